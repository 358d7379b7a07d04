"""Ten simulated months of a pool of 4,096 devices, whole, and a stretch of short jobs."""

import json
import sys
import time

import evidence

MISSING = "not run here"
TARGET_S = 60
DEVICES_AT_85 = "4,096 devices at 85 %"


def show_recorded(show):
    """bench/ten_months.py, nothing extrapolated: some two minutes, with the drawing of the jobs."""
    status, output = evidence.run([sys.executable, evidence.ROOT / "bench/ten_months.py"],
                                  NEAP_TRACES=evidence.traces_folder())
    what = "ten simulated months of " + DEVICES_AT_85 + ", recorded jobs"
    lines = [line for line in output.split("\n") if line.startswith("{")]
    if status != 0 or len(lines) != 1:
        show.line(what, MISSING, "under %d s" % TARGET_S, False)
        return
    run = json.loads(lines[0])
    show.line(what, "%.1f s: %d jobs, %d events, at most %d MiB" % (
        run["seconds"], run["jobs"], run["events"], run["peak_mib"]),
        "under %d s" % TARGET_S,
        run["seconds"] < TARGET_S and run["finished"] == run["jobs"])


def show_drawn(show):
    """Short jobs (2.5 device-hours each) are ten times as many in the same months."""
    began = time.monotonic()
    status, output = evidence.run(
        [evidence.BUILD / "neap", "simulate", "--cluster", "512x8xA100-80G",
         "--generate", "philly", "--jobs", 40000, "--load", "85%",
         "--checkpoint", "signals", "--json"])
    took = time.monotonic() - began
    what = DEVICES_AT_85 + ", drawn jobs of 2.5 device-hours"
    try:
        run = json.loads(output)["runs"][0] if status == 0 else None
    except ValueError:
        run = None
    if run is None:
        show.line(what, MISSING, "shown", False)
        return
    hours = (run["last_arrival_us"] - run["begin_us"]) / 3.6e9
    show.line(what, "%.1f h in %.2f s, %d events" % (hours, took, run["events"]), "shown", True)


def show_months(show):
    show_recorded(show)
    show_drawn(show)
