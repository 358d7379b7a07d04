"""The result of `./run test --long` as a text file to keep: python3 tools/long_result.py FOLDER."""

import datetime
import os
import pathlib
import platform
import re
import subprocess
import sys

from count_results import read_steps


def _git(*arguments):
    return subprocess.run(["git", *arguments], capture_output=True, text=True).stdout.strip()


# Lines by which a step says how much it did.
FIGURES = (r"\d+ seeds: \d+ events[^<\n]*", r"NEAP_KILLS=\d+[^<\n]*",
           r"killed at [a-z ]+: \d+ crashes[^<\n]*", r"memory: [^<\n]*")


def figures(folder):
    """What the tests said of themselves: of a passed test ctest keeps it in the results alone."""
    texts = [path.read_text(encoding="utf-8", errors="replace")
             for path in [*sorted(folder.glob("*.xml")),
                          folder.parent / "log/end-to-end-tests.log"] if path.exists()]
    found = [match[0] for text in texts for pattern in FIGURES
             for match in re.finditer(pattern, text)]
    return list(dict.fromkeys(found))


def main(folder):
    # The result file itself does not make the tree another one.
    changed = _git("status", "--porcelain", "--", ".", ":!docs/results")
    print("neap: result of ./run test --long")
    print(f"commit   {_git('rev-parse', 'HEAD')}{' with uncommitted changes' if changed else ''}")
    print(f"date     {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC")
    print(f"machine  {os.cpu_count()} cores, {platform.machine()}, Linux {platform.release()}")
    print()
    for name, status, seconds in read_steps(folder):
        print(f"{'ok' if status == 0 else 'FAILED':7} {seconds:6d} s  {name}")
    left_out = folder / "left-out.txt"
    if left_out.exists():
        print("not run: " + ", ".join(left_out.read_text(encoding="utf-8").split()))
    print()
    for figure in figures(folder):
        print(figure)
    print()
    print((folder / "summary.txt").read_text(encoding="utf-8"), end="")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
