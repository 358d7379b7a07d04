"""Engines behind replicas: hot load under load, sleep and wake, the KV cache, llama.cpp."""

import re

import evidence
from drills import MISSING, passed, tests

TARGETS = ["neap", "neap-supervise", "engine_test", "daemon_test"]


def end_to_end():
    return evidence.run(["/usr/bin/python3", evidence.ROOT / "tests/e2e/test_engines.py"],
                        NEAP=str(evidence.BUILD / "neap"))


def show_hot_load(show, output):
    what = "hot load under load (C4): requests"
    found = re.search(r"hot load: (\d+) requests, (\d+) failed; peak reserved ([\d.]+) s before "
                      r"the old one was asked to go, loaded in ([\d.]+) s; (.+)$", output,
                      re.MULTILINE)
    if not found:
        show.line(what, MISSING, "0 failed", False)
        return
    show.line(what, "%s, %s failed; %s" % (found[1], found[2], found[5]), "0 failed",
              int(found[1]) > 60 and int(found[2]) == 0)
    show.line("hot load under load: the transient peak",
              "in the books %s s before the old replica was asked to go; the new one loaded within "
              "%s s of that" % (found[3], found[4]), "reserved before", float(found[3]) > 0)


def show_sleep(show, output):
    found = re.search(r"sleep and wake, vLLM's calls: (.+)$", output, re.MULTILINE)
    show.line("sleep and wake in vLLM's calls (C3), a stub that speaks them",
              found[1] if found else MISSING, "all of its memory back, both levels", bool(found))
    found = re.search(r"sleep and wake, a real server: (.+)$", output, re.MULTILINE)
    show.line("sleep and wake of a real server (C3)", found[1] if found else MISSING,
              "same answers after", bool(found))
    found = re.search(r"memory given back: (.+)$", output, re.MULTILINE)
    show.line("KV cache before a replica goes (C3)", found[1] if found else MISSING,
              "shrink, offload, drop, then 0 bytes",
              bool(found) and found[1].endswith("sleep: done, 0 bytes on the device"))


def show_leaving(show, output):
    what = "a replica that leaves stops accepting (B8)"
    found = re.search(r"stops accepting: (.+ at most ([\d.]+) ms after .+)$", output, re.MULTILINE)
    show.line(what, found[1] if found else MISSING, "within 10 ms, none failed",
              bool(found) and float(found[2]) <= 10 and " 0 failed" in found[1])


def show_llama(show, output):
    what = "llama.cpp behind the gateway"
    found = re.search(r"llama\.cpp behind the gateway: (\d+) requests, (\d+) ok; (.+)$", output,
                      re.MULTILINE)
    skipped = re.search(r"skipped 'llama\.cpp: (.+)'", output)
    if skipped and not found:
        show.line(what, "skipped: " + skipped[1], "skipped only where npm cannot install it", True)
        return
    show.line(what, "%s requests, %s ok; %s" % found.groups() if found else MISSING,
              "all ok, same text as the Python server",
              bool(found) and found[1] == found[2])


def show_engines(show):
    status, output = end_to_end()
    show_hot_load(show, output)
    show_sleep(show, output)
    show_leaving(show, output)
    show_llama(show, output)
    ran = re.search(r"^Ran (\d+) tests", output, re.MULTILINE)
    failed = re.findall(r"^(?:FAIL|ERROR): (\w+)", output, re.MULTILINE)
    show.line("engines with real processes", "%s tests, %s" % (
        ran[1], "all pass" if status == 0 else "failed: " + ", ".join(failed)) if ran else MISSING,
              "all pass", status == 0)
    passed(show, "calls of each engine, what each lacks, answers of any kind",
           tests("engine_test", "*"))
    passed(show, "a replica that goes: memory first, no stop lost",
           tests("daemon_test", "EngineRelease.*"))


PARTS = [show_engines]
