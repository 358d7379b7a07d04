"""Teams that share one pool, and tasks that run with a range of devices."""

import re

import evidence

MISSING = "not run here"


def passed(show, what, output, pattern, target):
    ok = re.findall(r"^\[       OK \] (?:%s)" % pattern, output, re.MULTILINE)
    run = re.findall(r"^\[ RUN      \] (?:%s)" % pattern, output, re.MULTILINE)
    show.line(what, "%d of %d tests" % (len(ok), len(run)) if run else MISSING, target,
              bool(run) and len(ok) == len(run))


def show_teams(show):
    _, output = evidence.run([evidence.BUILD / "tests/core_test", "--gtest_filter=Teams.*"])
    passed(show, "teams: order, limits, borrowing, give-back, changes while tasks run", output,
           r"Teams\.", "all pass")
    _, output = evidence.run([evidence.BUILD / "tests/core_property",
                              "--gtest_filter=TeamsProperty.*"])
    found = re.search(r"^given back (\d+), looks at a limit (\d+)", output, re.MULTILINE)
    ok = "[       OK ] TeamsProperty.D6_GuaranteesAreGivenBackAndLimitsHold" in output
    show.line("arbitrary pools, trees of teams and arrivals: yields within a tier for a guarantee; "
              "waits at a limit", "%s; %s" % found.groups() if found else MISSING,
              "limits and guarantees hold, none takes turns", bool(found) and ok)
    passed(show, "teams: planted faults are noticed", output, r"TeamsProperty\.D6_SeesPlanted",
           "three of them")


def show_ranges(show):
    _, output = evidence.run([evidence.BUILD / "tests/core_test", "--gtest_filter=Resize.*"])
    passed(show, "ranges of devices: placed with fewer, shrunk, grown, withdrawn", output,
           r"Resize\.", "all pass")
    _, output = evidence.run([evidence.BUILD / "tests/core_property",
                              "--gtest_filter=ResizeProperty.*:ResizeEffect.*"])
    found = re.search(r"^resized: shrunk (\d+) times, grown (\d+) times", output, re.MULTILINE)
    ok = "[       OK ] ResizeProperty.D6_WithinTheRangeAndNothingIsLost" in output
    show.line("arbitrary pools: tasks shrunk, grown",
              "%s, %s" % found.groups() if found else MISSING,
              "within their range, no work lost", bool(found) and ok)
    passed(show, "ranges of devices: planted faults are noticed", output,
           r"ResizeProperty\.D6_SeesPlanted", "three of them")
    effect = re.search(r"^ranges: tasks (\d+), mean wait (\d+) s without, (\d+) s with; mean time "
                       r"to the end (\d+) s and (\d+) s; preemptions (\d+) and (\d+), resizes "
                       r"(\d+)", output, re.MULTILINE)
    show.line("two nodes of eight, %s tasks: mean wait without ranges, with" %
              (effect[1] if effect else "the same"),
              "%s s, %s s; to the end %s s, %s s; %s preemptions, %s and %s resizes"
              % effect.groups()[1:] if effect else MISSING, "shorter, no more preemptions",
              bool(effect) and int(effect[3]) < int(effect[2]) and
              int(effect[7]) <= int(effect[6]))
