"""Records of requests beside the load generator's own log; the generator itself."""

import json
import re
import socket
import threading

import evidence
from drills import MISSING, passed, tests

TARGETS = ["neap", "neap-supervise", "load_test", "measure_test", "gateway_test"]


def bench():
    status, output = evidence.run(["/usr/bin/python3", evidence.ROOT / "bench/records.py"],
                                  NEAP=str(evidence.BUILD / "neap"))
    try:
        return json.loads(output.strip().split("\n")[-1]) if status == 0 else None
    except ValueError:
        return None


def show_records(show):
    """E2: count and time to first token, the daemon killed twice on the way."""
    found = bench()
    what = "records and the generator's log, daemon killed twice"
    if found is None:
        show.line(what, MISSING, "count exact", False)
    else:
        show.line(what + ": count",
                  "%(records)d records of %(requests)d requests, %(distinct)d distinct" % found,
                  "exact", found["records"] == found["requests"] == found["distinct"]
                  == found["compared"])
        show.line(what + ": time to first token, p50 of the differences",
                  "%.2f ms (client %.2f, proxy %.2f)" % (
                      found["apart_p50_ms"], found["client_p50_ms"], found["proxy_p50_ms"]),
                  "within 1 ms", found["apart_p50_ms"] <= 1)
        show.line(what + ": time to first token, p99 of the differences",
                  "%.2f ms %s" % (found["apart_p99_ms"],
                                  "under SCHED_FIFO" if found["real_time"]
                                  else "without real-time priority"),
                  "within 3 ms under SCHED_FIFO", found["apart_p99_ms"] <= 3)
    passed(show, "the log of requests: every crash, cut lines, full files; slices handed on once",
           tests("gateway_test", "RecordSpool*:RequestLog*:RequestRecords.*"))
    passed(show, "windows by class, team and model; burn of the SLO; engines' counters",
           tests("measure_test", "LatencyBook.*:EngineMetrics.*"))
    passed(show, "the generator: classes, traces, stale connections, refusals",
           tests("load_test", "Generator.*:RequestText.*:ResponseReader.*"))


class Sink:
    """Answers whatever comes at once, in one thread; enough for the generator's own speed."""

    ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    def __init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            connection, _ = self._listener.accept()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        while True:
            data = connection.recv(65536)
            if not data:
                return
            connection.sendall(self.ANSWER)


# 2,000 bare wake-ups a second under SCHED_FIFO: what the machine itself is late by.
FLOOR = """
import os, time
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
late, due = [], time.monotonic()
for _ in range(4000):
    due += 0.0005
    time.sleep(max(0, due - time.monotonic()))
    late.append(time.monotonic() - due)
print("floor", int(sorted(late)[int(0.99 * len(late))] * 1e6))
"""


def floor_us():
    _, output = evidence.run(["/usr/bin/python3", "-c", FLOOR])
    found = re.search(r"^floor (\d+)$", output, re.MULTILINE)
    return int(found[1]) if found else 0


def show_generator(show):
    """E2: 2,000 requests a second from one core."""
    sink = Sink()
    before = floor_us()
    _, output = evidence.run([evidence.BUILD / "neap", "load", "http://127.0.0.1:%d/" % sink.port,
                              "--get", "--rate", 2000, "--duration", "5s", "--keep-alive", "2s",
                              "--realtime", "--json"])
    floor = max(before, floor_us())
    found = re.search(r"^\{.*\}$", output, re.MULTILINE)
    report = json.loads(found[0]) if found else None
    what = "the generator at 2,000 requests/s: lateness p99"
    if report is None:
        show.line(what, MISSING, "below 1 ms", False)
        return
    late, good = report["lateness"]["p99_us"], report["outcomes"]["ok"]
    show.line(what, "%d us of %d requests, %d ok; bare wake-ups of this machine %d us%s"
              % (late, report["scheduled"], good, floor,
                 "" if report["note"] is None else "; " + report["note"]),
              "below 1 ms or the floor",
              late < max(1000, floor) and good > 0.99 * report["scheduled"])


PARTS = [show_records, show_generator]
