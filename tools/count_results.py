"""Counts what `./run test` ran: python3 tools/count_results.py FOLDER.

Reads FOLDER/*.xml (tests) and FOLDER/steps.txt (steps of the run). A step that failed without a
failed test of its own (a build, the formatting) counts as one failure. Exits 1 when any failed.
"""

import pathlib
import sys

import junit


def read_steps(folder):
    """The recorded steps as (name, status, seconds)."""
    steps = []
    for line in (folder / "steps.txt").read_text(encoding="utf-8").splitlines():
        name, status, seconds = line.split("\t")
        steps.append((name, int(status), int(seconds)))
    return steps


def read_skipped_steps(folder):
    path = folder / "skipped.txt"
    if not path.exists():
        return []
    return [line.split("\t", 1) for line in path.read_text(encoding="utf-8").splitlines()]


def count(folder):
    """(passed, failed, skipped): lists of (name, detail)."""
    passed, failed, skipped = [], [], []
    for path in sorted(folder.glob("*.xml")):
        for case in junit.read(path):
            name = f"{path.stem}: {case.name}"
            bucket = {"passed": passed, "failed": failed, "skipped": skipped}[case.outcome]
            bucket.append((name, case.detail))
    failed_in_tests = bool(failed)
    for name, status, _ in read_steps(folder):
        runs_tests = "tests" in name.split() or name in ("long simulations",)
        if status == 0:
            if not runs_tests:
                passed.append((name, ""))
        elif not runs_tests or not failed_in_tests:
            failed.append((name, f"status {status}"))
    skipped.extend((name, why) for name, why in read_skipped_steps(folder))
    return passed, failed, skipped


def main(folder):
    passed, failed, skipped = count(folder)
    for name, why in skipped:
        print(f"skipped: {name}" + (f" ({why})" if why else ""))
    for name, _ in failed:
        print(f"FAILED:  {name}")
    print(f"{len(passed)} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
