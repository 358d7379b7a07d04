"""Pipelines, new versions of services, and what replicas follow beside their use."""

import re

import evidence
from drills import MISSING, figure, passed, tests


def show_chains(show):
    """S8 in virtual time and with processes; a chain that is cut by nobody, not even by crashes."""
    output = tests("suite_sim", "Scenario.S8_*:Chain.*")
    figure(show, "S8 in virtual time, a burst of the tier of the chain's last stage", output,
           r"^S8 simulated: (.+)$", "0 preemptions, no wait, the old model serves",
           lambda found: found[1] == "0 preemptions of the chain, evaluate waited 0 us, never "
                                     "fewer than 1 replicas ready")
    passed(show, "pipelines and hot loads in virtual time, 25 seeds of crashes", output)
    output = tests("core_test", "Chain.*:RollTest.*:Metrics.*")
    passed(show, "stages, conditions, the priority group, versions", output)
    output = tests("core_property", "ChainProperty.*")
    passed(show, "any pipelines: in their turn, cut by nobody, each ends; 4 planted bugs", output)
    status, output = evidence.run(
        ["/usr/bin/python3", evidence.ROOT / "tests/e2e/test_pipelines.py"],
        NEAP=str(evidence.BUILD / "neap"))
    figure(show, "S8 with processes and the proxy", output, r"^(?:.* \.\.\. )?S8: (.+)$",
           "no failed request", lambda found: ", none failed;" in found[1])
    run = re.search(r"^Ran (\d+) tests", output, re.MULTILINE)
    show.line("pipelines with real processes: daemon killed midway, rolled back, asleep and awake",
              "%s tests, %s" % (run[1], "all pass" if status == 0 else "not all pass")
              if run else MISSING, "all pass", status == 0)


def show_signals(show):
    """D5, S13: use, queue and latency; unknown changes nothing; sleep and waking."""
    passed(show, "replicas on use, queue and latency, asleep and awake",
           tests("core_test", "SignalsTest.*:Engine.S13*"))
    passed(show, "S13 in virtual time", tests("suite_sim", "Scenario.S13_*"))
