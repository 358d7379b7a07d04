"""A server, trainers and hogs that stand beside each other on one machine, and load on the server.

The server and the trainers are those of examples/llm.
"""

import json
import os
import subprocess

from pool import NEAP, NORMAL, PYTHON, ROOT, SDK, SERVING, Pool, wait_for

EXAMPLES = ROOT / "examples/llm"
TRAINERS, RATE, TOKENS = 7, 4, 24
THREADS = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")}

# Reads a file of its own around the page cache, several at once.
STORAGE_HOG = """
import mmap, os, sys, threading
path, size, readers = sys.argv[1], 256 << 20, 8
with open(path, "wb") as file:
    for _ in range(size >> 20):
        file.write(os.urandom(1 << 20))
    file.flush()
    os.fsync(file.fileno())
def read(begin):
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    block = mmap.mmap(-1, 1 << 20)
    while True:
        for at in range(begin << 20, size, readers << 20):
            os.preadv(fd, [block], at)
threads = [threading.Thread(target=read, args=(i,)) for i in range(readers)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""

# A step reads a little around the page cache: a data loader that computes next to nothing.
LOADER = """
import mmap, os, sys, time
import neap_task
path = sys.argv[1]
with open(path, "wb") as file:
    file.write(os.urandom(32 << 20))
    file.flush()
    os.fsync(file.fileno())
fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
block = mmap.mmap(-1, 4096)
with neap_task.Task(save=lambda path, step: open(path, "w").close(), interval_seconds=600) as task:
    for step in task.steps(0, 10**9):
        for i in range(32):
            os.preadv(fd, [block], (step * 7919 + i * 131) % 8000 * 4096)
"""


def program(name, *words):
    return [PYTHON, str(EXAMPLES / name), *map(str, words)]


def sdk_task(pool, name, command):
    return pool.submit_task(name, command, tier=NORMAL, gpus=1, checkpoint={
        "contract": "sdk", "interval": "10min", "save_time": "1s", "stall_time": "1s",
        "drain_time": "1s", "release_time": "1s", "restore_time": "5s"},
        env={"PYTHONPATH": str(SDK)})  # its threads: as many as PyTorch takes of itself


def trainers(pool, count=TRAINERS):
    return [sdk_task(pool, "train-%d" % i, program(
        "train.py", "--contract", "sdk", "--dir", "out-%d" % i, "--steps", 10**6, "--size",
        "medium", "--batch", 8)) for i in range(count)]


def server(pool, name="chat", **fields):
    pool.submit({"service": {
        "name": name, "tier": SERVING, "gpus": 1, "replicas": {"min": 1, "max": 1},
        "command": program("serve.py", "--port={port}", "--size", "small"), "concurrency": 4,
        "env": THREADS, "health": {"interval": "500ms", "timeout": "5s", "start_timeout": "2min"},
        **fields}})
    wait_for("a replica", lambda: pool.service(name)["service"]["replicas_ready"] == 1)


def pool_with(case, **ladder):
    return Pool(case, pool={"total_gpus": 8}, ladder=ladder)


def rewrite(pool, **ladder):
    """Another ladder section, for a daemon that starts anew; tasks go on."""
    content = json.loads(pool.pool_file.read_text())
    content["ladder"] = ladder
    pool.stop()
    pool.pool_file.write_text(json.dumps(content))
    pool.start()


class Background:
    """Load until its end is asked for."""

    def __init__(self, case, pool, seconds=600):
        address = pool.service("chat")["service"]["address"]
        self._process = subprocess.Popen(
            [str(NEAP), "load",
             address + "/v1/completions", "--rate", str(RATE), "--duration", "%ds" % seconds,
             "--max-tokens", str(TOKENS), "--seed", "9"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        case.addCleanup(self.end)

    def end(self):
        if self._process.poll() is None:
            self._process.terminate()
        self._process.wait()


def between_tokens(pool):
    """p50 in ms of the last 15 s, as the engine counts it; None where it is not known."""
    p50 = pool.cli_json("ladder", "chat")["speed"].get("inter_token_p50_us")
    return p50 / 1000 if p50 else None


def shared_groups():
    """Whether this machine can put tasks into one CPU group (cgroup v1)."""
    return os.path.exists("/sys/fs/cgroup/cpu/cgroup.procs") and os.geteuid() == 0
