"""Runs the unittest files of a folder: python_tests.py --name N --junit OUT FOLDER.

Takes test_*.py and *_test.py. Exits 1 when a test fails or a file cannot be loaded.
"""

import argparse
import pathlib
import sys
import time
import unittest

import junit


class RecordingResult(unittest.TextTestResult):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.cases = []
        self._begin = 0.0

    def startTest(self, test):  # noqa: N802 (the name is unittest's)
        self._begin = time.monotonic()
        super().startTest(test)

    def _note(self, test, outcome, detail=""):
        seconds = time.monotonic() - self._begin if self._begin else 0.0
        self.cases.append(junit.Case(test.id(), outcome, seconds, detail))

    def addSuccess(self, test):  # noqa: N802
        super().addSuccess(test)
        self._note(test, "passed")

    def addFailure(self, test, err):  # noqa: N802
        super().addFailure(test, err)
        self._note(test, "failed", self.failures[-1][1])

    def addError(self, test, err):  # noqa: N802
        super().addError(test, err)
        self._note(test, "failed", self.errors[-1][1])

    def addSkip(self, test, reason):  # noqa: N802
        super().addSkip(test, reason)
        self._note(test, "skipped", reason)

    def addExpectedFailure(self, test, err):  # noqa: N802
        super().addExpectedFailure(test, err)
        self._note(test, "passed")

    def addUnexpectedSuccess(self, test):  # noqa: N802
        super().addUnexpectedSuccess(test)
        self._note(test, "failed", "passed, and was expected to fail")

    def addSubTest(self, test, subtest, err):  # noqa: N802
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._note(subtest, "failed", str(err[1]))


def run(folder):
    """The cases of the folder's test files."""
    suite = unittest.TestSuite()
    for pattern in ("test_*.py", "*_test.py"):
        # A loader remembers its top folder: one for each pattern.
        suite.addTests(unittest.TestLoader().discover(str(folder), pattern, str(folder)))
    return unittest.TextTestRunner(verbosity=2, resultclass=RecordingResult).run(suite).cases


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", required=True)
    parser.add_argument("--junit", required=True, type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    options = parser.parse_args()
    cases = run(options.folder)
    junit.write(options.junit, options.name, cases)
    return 1 if any(case.outcome == "failed" for case in cases) else 0


if __name__ == "__main__":
    sys.exit(main())
