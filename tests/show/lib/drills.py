"""What is rehearsed and reported: drills, preemptions, the checkpoint contract, the assessment."""

import re

import evidence

MISSING = "not run here"


def tests(target, pattern):
    _, output = evidence.run([evidence.BUILD / "tests" / target, "--gtest_filter=" + pattern])
    return output


def passed(show, what, output, target="all pass"):
    run = re.findall(r"^\[ RUN      \] (\S+)", output, re.MULTILINE)
    good = re.findall(r"^\[       OK \] (\S+)", output, re.MULTILINE)
    show.line(what, "%d of %d tests" % (len(good), len(run)) if run else MISSING, target,
              bool(run) and len(good) == len(run))


def figure(show, what, output, pattern, target, holds):
    found = re.search(pattern, output, re.MULTILINE)
    show.line(what, " ".join(found.groups()) if found else MISSING, target,
              bool(found) and holds(found))


def show_drills(show):
    """A burst on real processes and in virtual time; what preemptions took, two ways."""
    status, output = evidence.run(["/usr/bin/python3", evidence.ROOT / "tests/e2e/test_drill.py"],
                                  NEAP=str(evidence.BUILD / "neap"))
    for name, source, after in re.findall(r"^\.*drill: (\S+) from (\w+), ready after ([\d.]+) s$",
                                          output, re.MULTILINE):
        show.line("burst on real processes: room for %s from" % name,
                  "%s, ready after %s s" % (source, after), "served within 30 s",
                  float(after) <= 30)
    for name, seen, limit in re.findall(r"^drill: (lost work|tasks preempted|pause froze preemption"
                                        r" after|asked to yield during the pause|resumed, the last "
                                        r"after the demand ended): (.+) \((.+)\)$",
                                        output, re.MULTILINE):
        show.line("burst on real processes: " + name, seen, limit, status == 0)
    run = re.search(r"^Ran (\d+) tests", output, re.MULTILINE)
    show.line("drills, report and checkpoint contract with real processes, daemon killed midway",
              "%s tests, %s" % (run[1], "all pass" if status == 0 else "not all pass")
              if run else MISSING, "all pass", status == 0)
    output = tests("suite_sim", "Drill*")
    figure(show, "burst in virtual time", output, r"^simulated drill: (.+)$", "lost 0",
           lambda found: "lost 0 us" in found[1])
    passed(show, "drills in virtual time: limits, a real pause, random crashes (property)", output)
    output = tests("suite_sim", "PreemptionReport.*")
    figure(show, "report of preemptions, from the state and from the records alone", output,
           r"^preemptions of 60 runs, two ways: (.+)$", "agree bit for bit",
           lambda _: "[  PASSED  ]" in output)


def show_assess(show):
    """What sharing would gain, and where it gains nothing."""
    output = tests("simulate_test", "Assess.*:UseTrace.*:Lending.*:ThreeNumbers.*")
    figure(show, "S5, ten devices assessed", output, r"^S5 assess: (.+)$", "three to four saved",
           lambda found: found[1].startswith("gain: 3 of 10 ") or
           found[1].startswith("gain: 4 of 10 "))
    figure(show, "S9, the report", output, r"^S9: (.+)$", "isolation too weak",
           lambda found: "isolation too weak" in found[1])
    passed(show, "assessment, lending and the three numbers", output)
    figure(show, "S5 by the engine in virtual time", tests("suite_sim", "Scenario.S5*"),
           r"^S5 simulated: (.+)$", "all jobs done, nothing short",
           lambda found: "45 of 45 jobs done, short 0 " in found[1])


def show_no_gain(show):
    """Where sharing does not help, neap says so (neap guard fit and backtest say the same)."""
    output = tests("simulate_test", "Lending.*")
    for what, pattern, gains in [
            ("flat demand", r"^lending on flat demand: (.+)$", False),
            ("mean/peak above 0.9", r"^lending at mean/peak 0\.9\d: (.+)$", False),
            ("flat traffic of the experiment",
             r"^lending, flat traffic of the experiment, (.+)$", False),
            ("its traffic with mean/peak 0.5",
             r"^lending, broad traffic of the experiment, (.+)$", True),
            ("its recorded traffic", r"^lending, recorded traffic of the experiment, (.+)$", True),
            ("the recorded trace alone", r"^lending on the recorded trace (.+)$", True)]:
        found = re.search(pattern, output, re.MULTILINE)
        says_none = bool(found) and "no gain" in found[0]
        show.line("neap's verdict, " + what, found.groups()[-1] if found else MISSING,
                  "says its gain" if gains else "says no gain",
                  bool(found) and says_none != gains)
