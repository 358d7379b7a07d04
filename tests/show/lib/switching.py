"""What switches cost: measured, charged, within a budget; the days that plans are made from."""

import os
import re

import evidence
from drills import MISSING, passed, tests

TRACE = "servegen/language_m-small.traces.tgz"


def traces_folder():
    beside = evidence.ROOT.parent / "shared/traces"
    return os.environ.get("NEAP_TRACES") or (str(beside) if beside.is_dir() else "")


def show_switches(show):
    passed(show, "a switch: each leg by service, version and device; break-even time; budget",
           tests("core_test", "Switching.*"))
    output = tests("core_property", "SwitchingProperty.*")
    found = re.search(r"^switches: (\d+) given away, (\d+) times kept by the budget$", output,
                      re.MULTILINE)
    show.line("any pools: what was seen, idle for the break-even time, within the budget",
              "%s given away, %s times kept" % found.groups() if found else MISSING,
              "as computed anew; planted faults are seen",
              bool(found) and "[  PASSED  ]" in output and "FAILED" not in output)
    passed(show, "charged: a part of restore and drain, by service, in random journals",
           tests("ledger_test", "Switches.*"), "bit for bit")
    status, output = evidence.run(
        ["/usr/bin/python3", evidence.ROOT / "tests/e2e/test_switching.py"],
        NEAP=str(evidence.BUILD / "neap"))
    found = re.search(r"switches: (leave .+)$", output, re.MULTILINE)
    show.line("a switch with real processes", found[1] if found else MISSING,
              "measured, charged, the same after a replay", bool(found) and status == 0)


def show_plan_days(show):
    """The plan by the kind of day against the last seven days."""
    status, output = evidence.run([evidence.BUILD / "bench/plan_days_bench",
                                   os.path.join(traces_folder(), TRACE)])
    rows = re.findall(r"^(.+), (\w+): held ([\d.]+) per replica needed, short in ([\d.]+) % of "
                      r"(\d+) slots$", output, re.MULTILINE) if status == 0 else []
    for traffic in dict.fromkeys(row[0] for row in rows):
        of = {days: (float(held), float(short)) for name, days, held, short, _ in rows
              if name == traffic}
        show.line("plan by days, %s traffic: held ÷ needed, slots short" % traffic,
                  "; ".join("%s %.3f, %.2f %%" % (days, *of[days]) for days in of),
                  "shown beside the default, recent", len(of) == 3)
    if not rows:
        show.line("plan by days", MISSING, "three choices", False)
