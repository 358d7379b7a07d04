"""Host limits: each method as it was tried here, and what a victim gets beside a hog."""

import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
E2E = ROOT / "tests/e2e"
sys.path.insert(0, str(E2E))
MIB = 1 << 20
MISSING = "not run here"


def run_tasks(pool, **tasks):
    """Runs tasks at once, each (command, host); what each printed last, None when it failed."""
    called = {name: name.replace("_", "-") for name in tasks}
    for name, (command, host) in tasks.items():
        pool.submit_task(called[name], command, **({"host": host} if host else {}))
    out = {}
    for name in tasks:
        state = pool.wait_state(called[name], "finished", "failed")["state"]
        out[name] = json.loads(pool.log(called[name]).strip().split("\n")[-1]) \
            if state == "finished" else None
    return out


def show_methods(show, found):
    for name, check in found.items():
        show.line("host limit, tried under contention: " + name, check["message"],
                  "holds, or is not offered and why",
                  check["state"] == "ok" or check["message"].startswith("not offered: "))


def show_cpu(show, pool, hogs):
    counter = hogs.command(hogs.COUNTER, 3, 1)
    hog = hogs.command(hogs.COUNTER, 4, 4 * os.cpu_count())
    alone = run_tasks(pool, cpu_alone=(counter, None))["cpu_alone"]["rounds_per_s"]
    beside = run_tasks(pool, cpu_hog=(hog, None),
                       cpu_beside=(counter, None))["cpu_beside"]["rounds_per_s"]
    limited = run_tasks(pool, cpu_slow_hog=(hog, {"cpu_quota": 0.2}),
                        cpu_freed=(counter, None))["cpu_freed"]["rounds_per_s"]
    show.line("CPU: a victim beside a hog of %d processes, of what it has alone"
              % (4 * os.cpu_count()),
              "%.0f %%; with the hog held to 0.2 of a processor %.0f %%"
              % (100 * beside / alone, 100 * limited / alone),
              "at least 80 % with the limit", limited >= 0.8 * alone)


def show_memory(show, pool, hogs):
    got = run_tasks(pool, memory_hog=(hogs.command(hogs.EATER, 400, 2), {"memory_max": "64MiB"}),
                    memory_victim=(hogs.command(hogs.EATER, 100, 2), None))
    show.line("memory: a hog of 400 MiB held to 64 MiB; the victim's 100 MiB",
              "%s; %s" % ("took all" if got["memory_hog"] else "ended",
                          "all there" if got["memory_victim"] else "ended"),
              "ended; all there", got["memory_hog"] is None and bool(got["memory_victim"]))


def show_storage(show, pool, hogs):
    cap = 8 * MIB
    reader = hogs.command(hogs.READER, "victim.bin", 3)
    writer = hogs.command(hogs.WRITER, "hog.bin", 5, MIB)
    alone = run_tasks(pool, io_alone=(reader, None))["io_alone"]["reads_per_s"]
    free = run_tasks(pool, io_hog=(writer, None), io_beside=(reader, None))
    held = run_tasks(pool,
                     io_slow_hog=(writer, {"io": [{"path": ".", "write": "8MiB"}]}),
                     io_freed=(reader, None))
    rate = held["io_slow_hog"]["bytes_per_s"]
    show.line("storage: an O_DIRECT hog held to 8.0 MiB/s writes",
              "%.2f MiB/s (%.0f without)" % (rate / MIB, free["io_hog"]["bytes_per_s"] / MIB),
              "within 10 % of the cap", abs(rate / cap - 1) < 0.1)
    beside, freed = free["io_beside"]["reads_per_s"], held["io_freed"]["reads_per_s"]
    show.line("storage: a victim's 4 KiB reads beside the hog, of what it has alone",
              "%.0f %%; with the hog held %.0f %% (%.0f reads/s alone)"
              % (100 * beside / alone, 100 * freed / alone, alone),
              "more with the limit", freed > beside)


def show_network(show):
    done = subprocess.run(["unshare", "-n", sys.executable, E2E / "test_isolation.py", "network"],
                          capture_output=True, text=True, timeout=180, check=False)
    try:
        figures = json.loads(done.stdout.strip().split("\n")[-1]) if done.returncode == 0 else None
    except ValueError:
        figures = None
    said = (done.stdout + done.stderr).strip().split("\n")[-1]
    show.line("network: a sender held to 10.0 MiB/s by tc, in a network of its own",
              "%.2f MiB/s (%.0f without)" % (figures["limited"] / MIB, figures["free"] / MIB)
              if figures else "%s: %s" % (MISSING, said), "within 10 % of the cap",
              bool(figures) and abs(figures["limited"] / (10 * MIB) - 1) < 0.1)


def show_isolation(show):
    import hogs
    import test_isolation
    from pool import Ends, Pool
    if os.geteuid() != 0:
        show.line("host limits", MISSING + ": needs root", "each tried", False)
        return
    with Ends() as case:
        pool = Pool(case, pool={"max_restarts": 0}).start()
        found = test_isolation.checks(pool)
        show_methods(show, found)
        for method, part in (("cpu quota", show_cpu), ("memory max", show_memory),
                             ("io bandwidth", show_storage)):
            if found[method]["state"] == "ok":
                part(show, pool, hogs)
            else:
                show.line(method + ": a hog and a victim", MISSING, found[method]["message"], False)
        show_network(show)
