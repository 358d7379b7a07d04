"""What is fought over, with a real trainer and server and real hogs; the ladder; a quiet pool.

Figures are ratios to what the same workload was alone in the same run.
"""

import time

from drills import MISSING, passed, tests

TARGETS = ["neap", "neap-supervise", "measure_test", "measure_property", "local_test",
           "daemon_test"]


def with_pool(show, what, target, part, **ladder):
    """Runs part(pool, neighbours module); a line that says so when it does not come to its end."""
    import neighbours
    from pool import ApiError, Ends, Gone
    try:
        with Ends() as case:
            part(neighbours.pool_with(case, **ladder).start(), neighbours)
    except (AssertionError, ApiError, Gone, KeyError, OSError) as error:
        said = (str(error) or repr(error)).strip().split("\n")[0][:120]
        show.line(what, "%s: %s" % (MISSING, said), target, False)


def await_steps(pool, name):
    from pool import wait_for
    wait_for("its steps", lambda: pool.cli_json("ladder", name)["speed"]["step_us"])


def show_processors(show):
    """B7, F2: both in one group, the diagnosis, the ladder and its price."""
    what = "trainer and server without isolation, between tokens (engine)"
    target = "at least 5 times alone"
    import neighbours
    if not neighbours.shared_groups():
        show.line(what, MISSING + ": needs cgroup v1 and root", target, False)
        return

    def part(pool, its):
        from pool import wait_for
        case = pool.case
        its.server(pool)
        for job in its.trainers(pool):
            pool.wait_state(job, "running")
        await_steps(pool, "train-0")
        found = pool.cli_json("baseline", "run", "chat", "--rate", its.RATE, "--duration", "16s",
                              "--max-tokens", its.TOKENS)
        alone, mixed = found["alone"]["inter_token_p50_us"], found["mixed"]["inter_token_p50_us"]
        if not alone or not mixed:
            show.line(what, "not known", target, False)
            return
        show.line(what, "p50 alone %.2f ms, mixed %.2f ms, %.1f times"
                  % (alone / 1000, mixed / 1000, mixed / alone), target, mixed >= 5 * alone)
        load = its.Background(case, pool)

        def named():
            report = pool.cli_json("ladder", "chat")
            return report if report["resource"] == "cpu" and report["next"] else None
        report = wait_for("the diagnosis", named, patience=120)
        show.line("the diagnosis", "cpu, with %s, confidence %.0f %%, recommends %s"
                  % (report["neighbour"], report["confidence_ppm"] / 1e4, report["next"]),
                  "names the processors", report["neighbour"].startswith("train-"))
        its.rewrite(pool, mode="auto", groups="shared", settle="10s", calm="1h")

        def eased():
            now = pool.cli_json("ladder", "chat")
            if now["rung"] == "none":
                return None
            gap = now["speed"].get("inter_token_p50_us")
            # As it is at the end of its time, where it never gets there.
            return now if gap and (gap <= 1.3 * alone or time.monotonic() > end) else None
        end = time.monotonic() + 150
        report = wait_for("the ladder", eased, patience=180)
        after = report["speed"]["inter_token_p50_us"]
        time.sleep(30)  # training has been at its new pace for a window
        report = pool.cli_json("ladder", "chat")
        load.end()
        show.line("the ladder in mode auto", "rung %s, between tokens p50 %.2f ms, %.2f times alone"
                  % (report["rung"], after / 1000, after / alone), "at most 1.3 times alone",
                  after <= 1.3 * alone)
        before, now = (report["training_steps_before_milli_per_s"],
                       report["training_steps_milli_per_s"])
        show.line("what it cost training", "%.2f -> %.2f steps/s" % (before / 1000, now / 1000)
                  if before and now else "not known", "told", bool(before and now))
    with_pool(show, what, target, part, mode="recommend", groups="shared")


def show_storage(show):
    """S10 with an O_DIRECT hog."""
    what, target = "a storage hog beside a data loader", "names storage, with the hog"

    def part(pool, its):
        from pool import NORMAL, PYTHON, wait_for
        (pool.work / "hog.py").write_text(its.STORAGE_HOG)
        (pool.work / "loader.py").write_text(its.LOADER)
        pool.wait_state(its.sdk_task(pool, "loader", [PYTHON, "loader.py", "small.bin"]),
                        "running")
        await_steps(pool, "loader")
        found = pool.cli_json("baseline", "run", "loader", "--duration", "22s")
        hog = pool.submit_task("hog", [PYTHON, "hog.py", "large.bin"], tier=NORMAL, gpus=1)
        pool.wait_state(hog, "running")

        def named():
            report = pool.cli_json("ladder", "loader")
            return report if report["resource"] == "storage" else None
        report = wait_for("storage", named, patience=120)
        show.line(what, "a step took %.2f ms alone, %.2f ms beside it; storage, with %s,"
                  " confidence %.0f %%" % (found["alone"]["step_us"] / 1000,
                                           report["speed"]["step_us"] / 1000, report["neighbour"],
                                           report["confidence_ppm"] / 1e4),
                  target, report["neighbour"] == "hog")
    with_pool(show, what, target, part, mode="recommend")


def show_quiet(show):
    """No alarm where nothing is fought over."""
    what, target = "a quiet pool, real processes, 6 windows beside training in its group", "none"

    def part(pool, its):
        from pool import wait_for
        its.server(pool)
        pool.wait_state(its.trainers(pool, 1)[0], "running")
        await_steps(pool, "train-0")
        pool.cli_json("baseline", "run", "chat", "--rate", its.RATE, "--duration", "16s",
                      "--max-tokens", its.TOKENS)
        load = its.Background(pool.case, pool)
        seen = set()
        first = pool.cli_json("ladder", "chat")["windows"]

        def watched():
            report = pool.cli_json("ladder", "chat")
            seen.add(report["resource"])
            return report["windows"] >= first + 6
        wait_for("six windows", watched)
        load.end()
        show.line(what, ", ".join(sorted(seen)), target, seen == {"none"})
    with_pool(show, what, target, part, mode="recommend")
    passed(show, "an hour of normal load, drawn, planted bug noticed (property)",
           tests("measure_property", "*DiagnosisProperty*"))
    passed(show, "the diagnosis by resource; the ladder in virtual time; rungs as limits",
           tests("measure_test", "Diagnosis.*:Ladder.*") +
           tests("local_test", "HostSignals.*:RungLimits.*") +
           tests("daemon_test", "ContentionWatch.*"))


PARTS = [show_quiet, show_processors, show_storage]
