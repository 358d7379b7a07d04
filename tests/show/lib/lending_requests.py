"""What requests of the lent pool's service felt: one by one in a replay, and on real processes."""

import json
import re
import sys

import evidence

MISSING = "not run here"
NUMBER = r"([\d.]+)"
ROW = re.compile(r"^(\S+) +(\d+) +(\d+) +" + " +".join([NUMBER] * 8) + "$")


def rows_of(text):
    """{(policy, devices): figures} of the table that the bench prints with --requests yes."""
    rows = {}
    for line in text.split("\n"):
        found = ROW.match(line)
        if found:
            keys = ("requests", "failed", "p50", "p95", "p99", "total_p50", "total_p99", "worst",
                    "of_first")
            rows[found[1], int(found[2])] = dict(zip(keys, map(float, found.groups()[2:])))
    return rows


def show_replay(show, text):
    """`text`: the kept section of the bench."""
    rows = rows_of(text)
    first = rows.get(("A", 512))
    if not first:
        show.line("requests one by one", "no kept results", "shown", False)
        return
    for devices in (512, 399):
        ours, exact = rows["neap", devices], rows["O", devices]
        show.line("requests one by one, %d of 512: first byte p50, p99 ms; failed" % devices,
                  "%.0f, %.0f, %g %% of %.0f million (two clusters %.0f, %.0f; exactly the demand "
                  "%.0f, %.0f)" % (ours["p50"], ours["p99"], ours["failed"],
                                   ours["requests"] / 1e6, first["p50"], first["p99"],
                                   exact["p50"], exact["p99"]),
                  "shown; none failed", ours["failed"] == 0)


def show_processes(show):
    """The same requests and trainings on real processes: about four minutes."""
    status, output = evidence.run([sys.executable, evidence.ROOT / "bench/lending_processes.py"],
                                  NEAP=str(evidence.BUILD / "neap"))
    lines = [json.loads(line) for line in output.split("\n") if line.startswith("{")]
    if status != 0 or len(lines) != 3:
        show.line("real processes: requests and trainings", MISSING, "shown", False)
        return
    apart, shared, ratio = lines
    show.line("real processes, %d of %d devices: first byte p50, p99 of %d requests" % (
        shared["devices"], apart["devices"], shared["requests"]),
        "%.0f, %.0f ms, %.1f %% within %d ms (two clusters %.0f, %.0f ms, %.1f %%)" % (
            1e3 * shared["ttft_p50_s"], 1e3 * shared["ttft_p99_s"], 100 * shared["within_slo"],
            1000, 1e3 * apart["ttft_p50_s"], 1e3 * apart["ttft_p99_s"],
            100 * apart["within_slo"]), "shown; none failed",
        shared["failed"] == 0)
    show.line("real processes: trainings completed, mean time to it, preempted, work lost",
              "%d, %.0f s, %d, %g s (two clusters %d, %.0f s)" % (
                  shared["jobs_completed"], shared["completion_mean_s"], shared["preemptions"],
                  shared["lost_work_s"], apart["jobs_completed"], apart["completion_mean_s"]),
              "all, none lost", shared["jobs_completed"] == apart["jobs_completed"]
              and ratio["lost_work_s"] == 0)


