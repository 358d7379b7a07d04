"""Presets, stages of adoption, staggered starts, profiles and the weekly review."""

import re

import evidence

MISSING = "not run here"
# Eight days of tides and more training than fits, and what the review is to find in the last seven.
WEEK = ["simulate", "--cluster", "8x8xA100-80G", "--generate", "tide", "--jobs", 4000, "--load",
        "110%", "--on-demand", "--until", "8d", "--review"]
WEEKS = [
    ("a guard of 60 for traffic that needs 17", "more-for-training",
     ["pool.inference_guard_min=60", "pool.elastic_buffer=0"], []),
    ("a guard of 8 in use", "no-change",
     ["pool.inference_guard_min=8", "pool.elastic_buffer=10", "scale.mode=tidal"], []),
    ("training-led, replicas of 4 devices, nobody yields", "more-for-inference",
     ["pool.total_gpus=64", "pool.preset=training-led", "preempt.enabled=false",
      "scale.mode=tidal"], ["--replica-gpus", 4]),
]


def show_tests(show, what, program, filters, target):
    _, output = evidence.run([evidence.BUILD / "tests" / program, "--gtest_filter=" + filters])
    passed = len(re.findall(r"^\[       OK \] ", output, re.MULTILINE))
    run = len(re.findall(r"^\[ RUN      \] ", output, re.MULTILINE))
    show.line(what, "%d of %d tests" % (passed, run) if run else MISSING, target,
              bool(run) and passed == run)
    return output


def show_starts(show):
    output = show_tests(show, "staggered starts: by hand", "core_test", "Starts.*", "all pass")
    found = re.search(r"^staggered: (\d+) load at once without a limit, (\d+) with one of (\d+); "
                      r"the last begins (\d+) s later", output, re.MULTILINE)
    show.line("a gust of 24 tasks: loading at once",
              "%s without, %s with at_once %s; the last begins %s s later" % found.groups()
              if found else MISSING, "at most at_once",
              bool(found) and int(found[2]) <= int(found[3]) < int(found[1]))
    show_tests(show, "drawn pools: the limit and the distance are kept; two planted faults are "
               "noticed", "core_property", "StartsProperty.*", "all pass")


def review_with(settings, options):
    """The lines of the review of a simulated week."""
    words = [evidence.BUILD / "neap", *WEEK, *options]
    for setting in settings:
        words += ["--set", setting]
    _, output = evidence.run(words)
    return re.findall(r"^review: (.*)$", output, re.MULTILINE)


def show_presets(show):
    show_tests(show, "presets: what they give, what is stated wins", "config_test",
               "PoolFile.D10*:PoolFile.D11*", "all pass")
    for what, wanted, settings, options in WEEKS:
        lines = review_with(settings, options)
        verdict = [line for line in lines
                   if re.match(r"more-|no-change|too-little-data|proposed", line)]
        show.line("review of a simulated week, 64 devices, " + what,
                  "; ".join(verdict) if verdict else MISSING, wanted,
                  bool(verdict) and verdict[0].startswith(wanted) and len(lines) >= 6)
    show_tests(show, "review of made weeks: each verdict", "ledger_test", "Review.*", "all pass")


def show_processes(show):
    status, output = evidence.run(["/usr/bin/python3",
                                   evidence.ROOT / "tests/e2e/test_adoption.py"],
                                  NEAP=str(evidence.BUILD / "neap"))
    run = re.search(r"^Ran (\d+) tests", output, re.MULTILINE)
    show.line("stages, presets, starts and profiles with real processes, daemon killed midway",
              "%s tests, %s" % (run[1], "all pass" if status == 0 else "not all pass")
              if run else MISSING, "all pass", status == 0)


def show_adoption(show):
    show_processes(show)
    show_starts(show)
    show_presets(show)
    show_tests(show, "stages of adoption: what each allows, its check, force on record, the way "
               "back", "core_test", "Adoption.*", "all pass")
    show_tests(show, "profiles: what a file leaves open, memory, number of devices, bounds",
               "core_test", "Profile.*", "all pass")
