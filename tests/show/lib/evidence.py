"""Where the figures of a show come from: test executables, end-to-end tests, benchmarks, and the
results of long runs that are kept in docs/results/.

Nothing here fails: what could not be run has no cases and says why.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("NEAP_BUILD") or ROOT / "build")
RESULTS = ROOT / "docs/results"
sys.path.insert(0, str(ROOT / "tools"))
import junit  # noqa: E402 (the path comes first)

LIMIT_SECONDS = 3600


def traces_folder():
    """The recorded traces, empty where there are none."""
    beside = ROOT.parent / "shared/traces"
    return os.environ.get("NEAP_TRACES") or (str(beside) if beside.is_dir() else "")


def run(command, **environment):
    """(status, output) of a command; status None when it cannot be started or does not end. What
    it said until then is kept."""
    try:
        done = subprocess.run([str(word) for word in command], cwd=ROOT, text=True,
                              errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, timeout=LIMIT_SECONDS,
                              env={**os.environ, **environment})
    except OSError as error:
        return None, str(error)
    except subprocess.TimeoutExpired as error:
        said = error.stdout or b""
        return None, (said if isinstance(said, str) else said.decode(errors="replace")) + str(error)
    return done.returncode, done.stdout


def build(targets, preset="release", folder=BUILD):
    """Builds targets of a build; the end of what the compiler said, or nothing."""
    if not (folder / "build.ninja").exists():
        status, output = run(["cmake", "--preset", preset, "-B", folder])
        if status != 0:
            return output[-1000:]
    status, output = run(["ninja", "-C", folder, *targets])
    return "" if status == 0 else output[-1000:]


class Cases:
    """Test cases that ran, and the text that came with them."""

    def __init__(self, cases, output=""):
        self._cases = cases
        self.output = output

    def named(self, pattern):
        """(those that passed, all) of the cases whose name matches."""
        found = [case for case in self._cases if re.search(pattern, case.name)]
        return [case for case in found if case.outcome == "passed"], found

    def line(self, pattern):
        """The last line of the output that matches, as a match; None without one."""
        found = None
        for text in self.output.splitlines():
            found = re.search(pattern, text) or found
        return found


def cases_of(command, junit_option, **environment):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "cases.xml"
        status, output = run([*command, junit_option, path], **environment)
        cases = junit.read(path) if path.exists() else []
    return Cases(cases, output if status is not None else "could not be run: " + output)


def ctest(pattern):
    """The tests of the release build whose names match."""
    return cases_of(["ctest", "--test-dir", BUILD, "-j", str(os.cpu_count()), "-R", pattern],
                    "--output-junit")


def end_to_end():
    return cases_of([sys.executable, ROOT / "tools/python_tests.py", "--name", "e2e",
                     ROOT / "tests/e2e"], "--junit", NEAP=str(BUILD / "neap"),
                    PYTHONPATH=str(ROOT / "sdk/python"), PYTHONDONTWRITEBYTECODE="1")


def bench_json(name, *arguments):
    """What a benchmark printed as JSON on its last line, None when there is none."""
    _, output = run([BUILD / "bench" / name, *arguments])
    for text in reversed(output.splitlines()):
        try:
            return json.loads(text)
        except ValueError:
            continue
    return None


class LongResult:
    """docs/results/long-test.txt, as `./run test --long` wrote it."""

    def __init__(self, path=RESULTS / "long-test.txt"):
        self.text = path.read_text(encoding="utf-8") if path.exists() else ""

    def step(self, name):
        """(passed, seconds) of a step, None when it was not run."""
        found = re.search(r"^(ok|FAILED) +(\d+) s  %s$" % re.escape(name), self.text, re.MULTILINE)
        return (found[1] == "ok", int(found[2])) if found else None

    def figure(self, pattern):
        """The match whose first group is the largest number, None without one."""
        return max(re.finditer(pattern, self.text), key=lambda match: int(match[1]), default=None)

    def origin(self):
        found = re.search(r"^commit +(\w{12})", self.text, re.MULTILINE)
        return " (at %s)" % found[1] if found else ""


def fresh_debian(path=RESULTS / "fresh-debian.txt"):
    """{verb: (status, seconds)} as tests/fresh/run --times wrote it."""
    if not path.exists():
        return {}
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    return {row[0]: (int(row[1]), int(row[2])) for row in rows if len(row) == 3}
