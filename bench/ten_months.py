#!/usr/bin/python3
"""Ten simulated months of a pool of 4,096 devices, whole, on recorded jobs.

Jobs of the Philly trace (NEAP_TRACES) are drawn and laid on one of 304 days each, until they ask
for 85 % of the devices; sizes, lengths and times of day stay as recorded.
Prints one line of JSON: jobs, events, seconds of the whole command, reading included, and the most
memory that it held.

  bench/ten_months.py [--days 304] [--devices 4096] [--load 0.85] [--neap build/neap]
"""

import argparse
import csv
import datetime
import gzip
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
TRACE = "philly/philly_sia_pollux.csv.gz"
DAY_S = 86400
LONGEST_S = 7 * DAY_S  # as in the lending experiment
LARGEST_GANG = 128


def recorded(path):
    """(second of the day, duration in seconds, devices) of each job."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            at = datetime.datetime.fromisoformat(row["timestamp"])
            duration, devices = float(row["duration"]), int(row["num_gpus"])
            if 0 < duration <= LONGEST_S and 0 < devices <= LARGEST_GANG:
                yield at.hour * 3600 + at.minute * 60 + at.second, duration, devices


def draw(jobs, days, device_s, seed):
    """Jobs at random days until they ask for device_s device-seconds, in the order of arrival."""
    chance = random.Random(seed)
    drawn = []
    while device_s > 0:
        second, duration, devices = jobs[int(chance.random() * len(jobs))]
        drawn.append((int(chance.random() * days) * DAY_S + second, duration, devices))
        device_s -= duration * devices
    drawn.sort()
    return drawn


def write(drawn, file):
    file.write('{"neap_workload":1}\n')
    for number, (at, duration, devices) in enumerate(drawn):
        file.write('{"at_us":%d,"kind":"job","name":"j%d","gpus":%d,"duration_us":%d}\n'
                   % (at * 1000000, number, devices, duration * 1000000))


def most_memory_mib(pid):
    """Of the process so far, 0 where it has ended. What wait4() tells counts this program in."""
    try:
        status = pathlib.Path("/proc/%d/status" % pid).read_text(encoding="ascii")
    except OSError:
        return 0
    found = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    return int(found.group(1)) // 1024 if found else 0


def timed(command, output):
    """(status, what it printed, seconds, most memory) of a command."""
    with open(output, "w+", encoding="utf-8") as file:
        began = time.monotonic()
        with subprocess.Popen(command, stdout=file) as process:
            peak_mib = 0
            while process.poll() is None:
                peak_mib = max(peak_mib, most_memory_mib(process.pid))
                try:
                    process.wait(timeout=0.2)
                except subprocess.TimeoutExpired:
                    pass
            took = time.monotonic() - began
        file.seek(0)
        return process.returncode, file.read(), took, peak_mib


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--days", type=int, default=304)
    parser.add_argument("--devices", type=int, default=4096)
    parser.add_argument("--load", type=float, default=0.85)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--neap", default=str(ROOT / "build/neap"))
    parser.add_argument("simulate", nargs="*", help="more words for neap simulate, after --")
    options = parser.parse_args()
    traces = os.environ.get("NEAP_TRACES")
    if not traces:
        print("skipped: NEAP_TRACES not set")
        return 0
    jobs = list(recorded(pathlib.Path(traces) / TRACE))
    drawn = draw(jobs, options.days, options.load * options.devices * options.days * DAY_S,
                 options.seed)
    with tempfile.TemporaryDirectory(prefix="neap-months-") as folder:
        workload = pathlib.Path(folder) / "jobs.jsonl"
        with open(workload, "w", encoding="utf-8") as file:
            write(drawn, file)
        status, output, took, peak_mib = timed(
            [options.neap, "simulate", "--cluster", "%dx8xA100-80G" % (options.devices // 8),
             "--workload", str(workload), "--checkpoint", "signals", "--json", *options.simulate],
            pathlib.Path(folder) / "output")
    if status != 0:
        return 1
    run = json.loads(output)["runs"][0]
    print(json.dumps({"days": options.days, "devices": options.devices, "jobs": len(drawn),
                      "finished": run["jobs"]["finished"], "events": run["events"],
                      "arriving_days": (run["last_arrival_us"] - run["begin_us"]) / 8.64e10,
                      "seconds": round(took, 2),
                      "peak_mib": peak_mib}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
