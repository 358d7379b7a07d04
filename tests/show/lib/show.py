"""What a show prints: a line is `what | figure | target | ok`, or `falls short` at its end.

    from show import Show            # with tests/show/lib on sys.path
    show = Show()
    show.line("time from burst to serving", "1.9 s", "under 3 s", 1.9 < 3)
    sys.exit(show.status())

`./run show NAME` collects the lines for its cache through the file named by NEAP_SHOW_LINES.
From a shell: tests/show/lib/show.sh.
"""

import json
import os
import sys

OK = "ok"
SHORT = "falls short"


def format_line(line):
    return f"{line['what']} | {line['figure']} | {line['target']} | {line['verdict']}"


class Show:
    def __init__(self):
        self._all_ok = True

    def line(self, what, figure, target, holds):
        """Prints one figure beside its target."""
        line = {"what": what, "figure": str(figure), "target": str(target),
                "verdict": OK if holds else SHORT}
        self._all_ok = self._all_ok and bool(holds)
        print(format_line(line), flush=True)
        collected = os.environ.get("NEAP_SHOW_LINES")
        if collected:
            with open(collected, "a", encoding="utf-8") as stream:
                stream.write(json.dumps(line) + "\n")

    def status(self):
        """The exit status of the show: 1 when any line falls short."""
        return 0 if self._all_ok else 1


def main(arguments):
    if len(arguments) != 4 or arguments[3] not in (OK, "short"):
        print("usage: show.py WHAT FIGURE TARGET ok|short", file=sys.stderr)
        return 2
    show = Show()
    show.line(*arguments[:3], arguments[3] == OK)
    return show.status()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
