"""Repository lint: python3 tools/tidy [--untested] [ROOT].

Prints one finding a line as path:line: [rule] message and exits 1 when there is any. A line, or
the one above it, may say `tidy-allow(<rule>): <why>`.
"""

import pathlib
import sys

import content_rules
import include_rules
import name_rules
import shape_rules
from files import load

CHECKS = (include_rules.CHECKS + shape_rules.CHECKS + content_rules.CHECKS
          + name_rules.CHECKS)


def run(root):
    files = load(root)
    return [finding for check in CHECKS for finding in check(files)]


def main(arguments):
    options = [word for word in arguments if word.startswith("-")]
    places = [word for word in arguments if not word.startswith("-")]
    root = pathlib.Path(places[0] if places else __file__).resolve()
    if not places:
        root = root.parents[2]
    if "--untested" in options:
        for path in content_rules.untested_sources(load(root)):
            print(path)
        return 0
    findings = run(root)
    for finding in findings:
        print(finding)
    print(f"tidy: {len(findings)} findings" if findings else "tidy: clean")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
