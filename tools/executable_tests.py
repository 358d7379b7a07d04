"""Runs end-to-end tests: executable_tests.py --name N --junit OUT FOLDER.

A test is an executable file of the folder (status 0 passed, 77 skipped with its last line as the
reason, anything else failed), or a unittest file test_*.py / *_test.py, of which every test counts.
Tests run one after the other, because they start daemons and real load.
"""

import argparse
import os
import pathlib
import signal
import subprocess
import sys
import time

import junit
import python_tests

SKIPPED = 77
LIMIT_SECONDS = int(os.environ.get("NEAP_E2E_LIMIT", "1800"))


def is_unittest(path):
    return path.suffix == ".py" and (path.stem.startswith("test_") or path.stem.endswith("_test"))


def run_executable(path):
    begin = time.monotonic()
    # A session of its own, so that a test that hangs is ended with all it started.
    process = subprocess.Popen([str(path)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace",
                               start_new_session=True)
    try:
        output, _ = process.communicate(timeout=LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        output += f"\nended after {LIMIT_SECONDS} s\n"
    print(f"---- {path.name}: status {process.returncode}\n{output}", flush=True)
    seconds = time.monotonic() - begin
    last_line = (output.strip().splitlines() or [""])[-1]
    if process.returncode == 0:
        return junit.Case(path.name, "passed", seconds)
    if process.returncode == SKIPPED:
        return junit.Case(path.name, "skipped", seconds, last_line)
    return junit.Case(path.name, "failed", seconds, output[-3000:])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", required=True)
    parser.add_argument("--junit", required=True, type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    options = parser.parse_args()
    folder = options.folder.resolve()
    cases = [run_executable(path) for path in sorted(folder.iterdir())
             if path.is_file() and os.access(path, os.X_OK) and not is_unittest(path)]
    cases += python_tests.run(folder)
    junit.write(options.junit, options.name, cases)
    return 1 if any(case.outcome == "failed" for case in cases) else 0


if __name__ == "__main__":
    sys.exit(main())
