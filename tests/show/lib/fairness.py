"""Who is started by force: every promised start is kept, and deadlines that were accepted."""

import re

from drills import MISSING, passed, tests


def show_fairness(show):
    """An adversary within the envelope for simulated weeks; the bugs that would break promises."""
    output = tests("core_property", "Starvation.*:LaneFit*")
    rows = re.findall(r"^starvation, ([^:]+): (\d+) tasks, (\d+) starts promised, (\d+) kept, "
                      r"(\d+) late, (\d+) without promise, (\d+) started in the lane, "
                      r"(\d+) restarts, worst wait/bound ([\d.]+)$", output, re.MULTILINE)
    for name, tasks, promised, kept, late, without, in_lane, restarts, worst in rows:
        show.line("no starvation, %s: of %s tasks" % (name, tasks),
                  "%s starts promised, %s kept, %s late, %s told that none is promised; %s started "
                  "in the lane, %s restarts" % (promised, kept, late, without, in_lane, restarts),
                  "none late", late == "0" and int(kept) > 0)
        show.line("no starvation, %s: worst wait ÷ its own bound" % name, worst, "at most 1",
                  float(worst) <= 1)
    if len(rows) != 2:
        show.line("no starvation", MISSING, "two contests", False)
    passed(show, "no starvation: backfill past the first, and a denominator that forgets nodes",
           "\n".join(line for line in output.split("\n") if "IsSeen" in line or "Busy" in line),
           "seen")
    passed(show, "S11, forced starts, promises and deadlines",
           tests("core_test", "Lane.*:Promise.*:Forced.*:Deadline.*"))
