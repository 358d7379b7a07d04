"""Presets, stages of adoption, staggered starts, profiles and the weekly review."""

import re

import evidence

MISSING = "not run here"
# A pool whose guard is far larger than its traffic needs, so that the review has something to say.
WEEK = ["simulate", "--cluster", "8x8xA100-80G", "--generate", "tide", "--jobs", 4000, "--load",
        "110%", "--on-demand", "--until", "8d", "--review"]


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


def review_with(settings):
    """The lines of the review of a simulated week, without their heading."""
    words = [evidence.BUILD / "neap", *WEEK]
    for setting in settings:
        words += ["--set", setting]
    _, output = evidence.run(words)
    return re.findall(r"^review: (.*)$", output, re.MULTILINE)


def show_presets(show):
    show_tests(show, "presets: what they give, what is stated wins", "config_test",
               "PoolFile.D10*:PoolFile.D11*", "all pass")
    for guard, wanted in (("40", "more-for-training"), ("1", "")):
        lines = review_with(["pool.inference_guard_min=" + guard, "pool.elastic_buffer=0"])
        verdict = [line for line in lines if re.match(r"(more-|no-change|too-little)", line)]
        proposed = [line for line in lines if line.startswith("proposed")]
        show.line("review of a simulated week, 64 devices, guard %s" % guard,
                  "; ".join(verdict + proposed) if verdict else MISSING,
                  wanted or "a verdict with its evidence",
                  bool(verdict) and verdict[0].startswith(wanted) and len(lines) >= 6)
    show_tests(show, "review of made weeks: each verdict", "ledger_test", "Review.*", "all pass")


def show_adoption(show):
    show_starts(show)
    show_presets(show)
    show_tests(show, "stages of adoption: what each allows, its check, force on record, the way "
               "back", "core_test", "Adoption.*", "all pass")
    show_tests(show, "profiles: what a file leaves open, memory, number of devices, bounds",
               "core_test", "Profile.*", "all pass")
