#!/usr/bin/python3
"""Lending with real processes: the same trainings and the same requests on two clusters and on one
pool with a quarter fewer devices (docs/time-sharing-evidence.md).

Devices are simulated, processes are real: PyTorch trainers and PyTorch servers behind the pool's
proxy, hours as seconds. Two clusters are a pool whose guard is the inference cluster, so that
neither side ever uses the other's devices. Prints a line of JSON each, and one with the ratios.

  bench/lending_processes.py [--seconds 120] [--seed 1]
"""

import argparse
import heapq
import http.client
import json
import pathlib
import random
import sys
import threading
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from pool import NORMAL, PYTHON, SERVING, Ends, Pool, wait_for  # noqa: E402 (the path comes first)

EXAMPLES = ROOT / "examples/llm"
TOKENS, SLOTS, TOKEN_SLEEP_MS = 16, 4, 50  # a replica answers about five requests a second
SLO_S = 1.0
JOBS, JOB_STEPS = 6, 60
NIGHT, DAY = 0.8, 7.5  # requests a second: less than one replica can do, what two can
PREEMPT = {"protected_for": "5s", "fixed_cost": "1s", "budget_per_day": 100, "grace": "20s",
           "term_grace": "10s", "checkpoint_interval_min": 1}
TIDAL = {"mode": "tidal", "headroom": "20%", "dwell": "10s", "trend": "10s", "stale_after": "10s"}
FIXED = {"stale_after": "10s"}


def rate_at(second, length):
    """A night, a rise, a height of a fifth of the day, an ebb: mean / peak 0.4."""
    part = second / length
    rise = max(0.0, min(1.0, (part - 0.35) / 0.2, (0.85 - part) / 0.1))
    return NIGHT + (DAY - NIGHT) * rise


def arrivals(length, seed):
    """Moments of requests: Poisson, thinned to the curve."""
    draw = random.Random(seed)
    at, moments = 0.0, []
    while True:
        at += draw.expovariate(DAY)
        if at >= length:
            return moments
        if draw.random() * DAY < rate_at(at, length):
            moments.append(at)


class Client(threading.Thread):
    """One request, whose times count from the moment at which it was due."""

    def __init__(self, address, due):
        super().__init__(daemon=True)
        self.address, self.due = address, due
        self.first_byte_s = self.total_s = None

    def run(self):
        connection = http.client.HTTPConnection(self.address.hostname, self.address.port,
                                                timeout=90)
        body = json.dumps({"prompt": "The licensee may ", "max_tokens": TOKENS, "stream": True})
        try:
            connection.request("POST", "/v1/completions", body,
                               {"Content-Type": "application/json"})
            answer = connection.getresponse()
            first = answer.read(1)
            if answer.status == 200 and first:
                self.first_byte_s = time.monotonic() - self.due
                answer.read()
                self.total_s = time.monotonic() - self.due
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()


def command(program, *words):
    return [PYTHON, str(EXAMPLES / program), *map(str, words)]


def submit_job(pool, number):
    pool.submit_task("job-%d" % number, command(
        "train.py", "--contract", "sdk", "--steps", JOB_STEPS, "--checkpoint-seconds", 3,
        "--size", "small", "--batch", 1, "--step-sleep", 0.25), tier=NORMAL, gpus=1, work="10min",
        checkpoint={"contract": "sdk", "interval": "3s", "save_time": "500ms",
                    "stall_time": "500ms", "drain_time": "500ms", "release_time": "1s",
                    "restore_time": "4s"})


def submit_service(pool, least, most, scale):
    pool.submit({"service": {
        "name": "chat", "tier": SERVING, "gpus": 1, "replicas": {"min": least, "max": most},
        "command": command("serve.py", "--port={port}", "--slots", SLOTS, "--token-sleep-ms",
                           TOKEN_SLEEP_MS),
        "concurrency": SLOTS, "slo": {"ttft": "%dms" % (SLO_S * 1000)}, "scale": scale,
        "health": {"interval": "250ms", "timeout": "5s", "start_timeout": "2min"},
        "drain_timeout": "30s"}})


def quantile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else None


def drive(pool, length, seed):
    """Plays requests and submissions by the clock; the requests, once all have ended."""
    address = urllib.parse.urlparse(pool.service("chat")["service"]["address"])
    happenings = [(at, 1, None) for at in arrivals(length, seed)]
    happenings += [(2 + number * length / (JOBS + 2), 0, number) for number in range(JOBS)]
    heapq.heapify(happenings)
    began, clients = time.monotonic(), []
    while happenings:
        at, _, job = heapq.heappop(happenings)
        time.sleep(max(0.0, began + at - time.monotonic()))
        if job is not None:
            submit_job(pool, job)
            continue
        clients.append(Client(address, began + at))
        clients[-1].start()
    for client in clients:
        client.join()
    return clients


def run(name, sections, replicas, scale, options):
    with Ends() as case:
        pool = Pool(case, preempt=PREEMPT, **sections).start()
        submit_service(pool, *replicas, scale)
        wait_for("replicas", lambda: pool.service("chat")["service"]["replicas_ready"]
                 >= replicas[0])
        clients = drive(pool, options.seconds, options.seed)
        jobs = ["job-%d" % number for number in range(JOBS)]
        wait_for("the jobs to end", lambda: all(
            pool.task(job)["state"] in ("finished", "failed") for job in jobs), patience=900)
        ends = [pool.task(job) for job in jobs]
        return figures(name, sections["pool"]["total_gpus"], clients, ends)


def figures(name, devices, clients, jobs):
    first = [client.first_byte_s for client in clients if client.first_byte_s is not None]
    whole = [client.total_s for client in clients if client.total_s is not None]
    seconds = [(job["finished_us"] - job["submitted_us"]) / 1e6 for job in jobs]
    return {
        "setting": name, "devices": devices, "requests": len(clients),
        "failed": len(clients) - len(whole),
        "within_slo": sum(each <= SLO_S for each in first) / max(1, len(clients)),
        "ttft_p50_s": quantile(first, 0.5), "ttft_p95_s": quantile(first, 0.95),
        "ttft_p99_s": quantile(first, 0.99), "total_p99_s": quantile(whole, 0.99),
        "jobs_completed": sum(job["state"] == "finished" for job in jobs),
        "completion_mean_s": sum(seconds) / len(seconds),
        "first_wait_mean_s": sum(job["started_us"] - job["submitted_us"]
                                 for job in jobs) / 1e6 / len(jobs),
        "preemptions": sum(job["preemptions"] for job in jobs),
        "lost_work_s": sum(job["lost_work_us"] for job in jobs) / 1e6,
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    apart = run("two clusters", {"pool": {"total_gpus": 4, "inference_guard_min": 2,
                                          "elastic_buffer": 0}}, (2, 2), FIXED, options)
    print(json.dumps(apart), flush=True)
    shared = run("one pool", {"pool": {"total_gpus": 3, "inference_guard_min": 1,
                                       "elastic_buffer": 1}}, (1, 2), TIDAL, options)
    print(json.dumps(shared), flush=True)
    print(json.dumps({"devices": shared["devices"] / apart["devices"],
                      "ttft_p99": shared["ttft_p99_s"] / apart["ttft_p99_s"],
                      "completion": apart["completion_mean_s"] / shared["completion_mean_s"],
                      "failed": shared["failed"], "lost_work_s": shared["lost_work_s"]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
