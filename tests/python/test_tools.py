"""The tools of the repository see what they are there to see."""

import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import count_results  # noqa: E402
import executable_tests  # noqa: E402
import junit  # noqa: E402
import show_cached  # noqa: E402

CTEST_REPORT = """<?xml version="1.0"?><testsuite name="x">
<testcase name="a.works" time="0.1" status="run"><system-out>ok</system-out></testcase>
<testcase name="a.breaks" time="0.1" status="fail"><failure message=""/></testcase>
<testcase name="a.waits" time="0.1" status="notrun">
<skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
<system-out>[ RUN      ] a.waits
no GPU here
[  SKIPPED ] a.waits (0 ms)</system-out></testcase></testsuite>"""


def write_executable(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)


class CountTest(InFolder):
    def count(self, steps, report=CTEST_REPORT):
        (self.folder / "steps.txt").write_text(steps, encoding="utf-8")
        if report:
            (self.folder / "release.xml").write_text(report, encoding="utf-8")
        return count_results.count(self.folder)

    def test_counts_each_outcome_with_the_reason_of_a_skip(self):
        passed, failed, skipped = self.count("tests\t8\t1\n")
        self.assertEqual([("release: a.works", "")], passed)
        self.assertEqual(["release: a.breaks"], [name for name, _ in failed])
        self.assertEqual([("release: a.waits", "no GPU here")], skipped)

    def test_a_failed_build_fails_though_no_test_ran(self):
        _, failed, _ = self.count("build release\t1\t9\n", report=None)
        self.assertEqual(["build release"], [name for name, _ in failed])

    def test_tests_that_break_off_without_a_failed_test_count(self):
        _, failed, _ = self.count("tests under asan\t8\t1\n", report=None)
        self.assertEqual(["tests under asan"], [name for name, _ in failed])

    def test_the_summary_decides_the_exit_status(self):
        self.count("tests\t8\t1\n")
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            self.assertEqual(1, count_results.main(self.folder))
        self.assertIn("1 passed, 1 failed, 1 skipped", output.getvalue())

    def test_own_reports_are_read_back(self):
        cases = [junit.Case("x", "passed", 1.5), junit.Case("y", "skipped", 0.0, "no torch")]
        junit.write(self.folder / "own.xml", "own", cases)
        self.assertEqual(cases, junit.read(self.folder / "own.xml"))


class ExecutableTest(InFolder):
    def outcome(self, script):
        write_executable(self.folder / "case", "#!/bin/sh\n" + script)
        with contextlib.redirect_stdout(io.StringIO()):
            return executable_tests.run_executable(self.folder / "case")

    def test_outcomes(self):
        self.assertEqual("passed", self.outcome("exit 0\n").outcome)
        self.assertEqual("failed", self.outcome("exit 3\n").outcome)
        skipped = self.outcome("echo no proxy here; exit 77\n")
        self.assertEqual(("skipped", "no proxy here"), (skipped.outcome, skipped.detail))


class ShowTest(InFolder):
    SCRIPT = """#!/bin/bash
. '{lib}/show.sh'
echo ran >>'{runs}'
show_line 'lost work' '{figure}' '0 s' {verdict}
exit "$(show_status)"
"""

    def setUp(self):
        super().setUp()
        self.repository = self.folder / "repository"
        self.runs = self.folder / "runs"

    def git(self, *arguments):
        subprocess.run(["git", "-C", str(self.repository), "-c", "user.name=t",
                        "-c", "user.email=t@localhost", *arguments],
                       check=True, capture_output=True)

    def write_show(self, figure, verdict):
        write_executable(self.repository / "tests/show/one", self.SCRIPT.format(
            lib=ROOT / "tests/show/lib", runs=self.runs, figure=figure, verdict=verdict))
        (self.repository / ".gitignore").write_text("/build/\n", encoding="utf-8")

    def commit(self):
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-qm", "x")

    def show(self):
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools")}
        code = ("import pathlib, sys, show_cached;"
                "sys.exit(show_cached.main('one', pathlib.Path(sys.argv[1])))")
        done = subprocess.run(["/usr/bin/python3", "-c", code, str(self.repository)],
                              capture_output=True, text=True, env=environment)
        return done.returncode, done.stdout

    def times_run(self):
        return len(self.runs.read_text(encoding="utf-8").splitlines())

    def test_a_clean_commit_is_measured_once(self):
        self.write_show("0 s", "ok")
        self.commit()
        self.assertEqual((0, "lost work | 0 s | 0 s | ok\n"), self.show())
        status, output = self.show()
        self.assertEqual(0, status)
        self.assertIn("lost work | 0 s | 0 s | ok\n", output)
        self.assertEqual(1, self.times_run())

    def test_a_changed_tree_is_measured_again(self):
        self.write_show("0 s", "ok")
        self.commit()
        self.show()
        (self.repository / "new").write_text("x", encoding="utf-8")
        self.show()
        self.assertEqual(2, self.times_run())

    def test_falling_short_fails_also_from_the_cache(self):
        self.write_show("7 s", "short")
        self.commit()
        for _ in range(2):
            status, output = self.show()
            self.assertEqual(1, status)
            self.assertIn("lost work | 7 s | 0 s | falls short\n", output)
        self.assertEqual(1, self.times_run())

    def test_a_show_without_lines_fails(self):
        write_executable(self.repository / "tests/show/one", "#!/bin/sh\nexit 0\n")
        self.assertEqual(1, self.show()[0])

    def test_the_reader_of_names_refuses_paths(self):
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(2, show_cached.main("../lib", ROOT))


if __name__ == "__main__":
    unittest.main()
