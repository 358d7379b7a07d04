#!/usr/bin/python3
"""How far the proxy's records are from what the client saw, with the reader killed in between.

    bench/records.py [--rate 100] [--seconds 20]

Generator and proxy run with SCHED_FIFO where the user may have that: what is compared is the
measurement, not how busy the machine is. Prints one JSON object.
"""

import argparse
import json
import os
import pathlib
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from pool import Pool, processes_of, wait_for  # noqa: E402
from records import Load, first_bytes, quantile, records_of, streamer  # noqa: E402


def make_real_time(pool):
    """Whether the proxy runs with real-time priority now. Replicas are in a control group of their
    own, where the kernel refuses it; what they add is in both figures."""
    done = 0
    for pid in processes_of(pool.folder):
        try:
            if b"haproxy" not in pathlib.Path("/proc/%d/cmdline" % pid).read_bytes():
                continue
            for thread in os.listdir("/proc/%d/task" % pid):
                os.sched_setscheduler(int(thread), os.SCHED_FIFO, os.sched_param(10))
                done += 1
        except (PermissionError, FileNotFoundError, ProcessLookupError):
            pass
    return done >= 2  # master and worker


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rate", type=float, default=100)
    parser.add_argument("--seconds", type=int, default=20)
    options = parser.parse_args()
    case = unittest.TestCase()
    try:
        pool = Pool(case).start()
        streamer(pool, "chat")
        wait_for("two replicas", lambda: pool.service("chat")["service"]["replicas_ready"] == 2)
        real_time = make_real_time(pool)
        load = Load(pool, "chat", "--rate", options.rate, "--duration", "%ds" % options.seconds,
                    "--realtime")
        for _ in range(2):
            time.sleep(options.seconds / 4)
            pool.kill()
            time.sleep(1)
            pool.start()
        report, rows = load.end()
        wait_for("all records",
                 lambda: pool.get("/v1/services/chat/latency")["requests"] >= len(rows))
        records = records_of(pool)
        pairs = first_bytes(rows, records)
        apart = [abs(client - proxy) for client, proxy in pairs.values()]
        client, proxy = ([pair[i] for pair in pairs.values()] for i in (0, 1))
        print(json.dumps({
            "requests": len(rows), "ok": report["outcomes"]["ok"], "records": len(records),
            "distinct": len({record["id"] for record in records}), "compared": len(pairs),
            "client_p50_ms": quantile(client, 0.5), "proxy_p50_ms": quantile(proxy, 0.5),
            "client_p99_ms": quantile(client, 0.99), "proxy_p99_ms": quantile(proxy, 0.99),
            "apart_p50_ms": quantile(apart, 0.5), "apart_p99_ms": quantile(apart, 0.99),
            "lateness_p99_us": report["lateness"]["p99_us"],
            "real_time": real_time and report["note"] is None}))
    finally:
        case.doCleanups()


if __name__ == "__main__":
    main()
