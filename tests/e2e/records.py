"""The proxy's own records of requests beside the log of the load generator.

A client's request carries a number of its own (X-Request-Id), which stands in both.
"""

import csv
import json
import subprocess

from pool import NEAP, PYTHON, SERVING
from programs import write_once

# Streams TOKENS events, the first after a pause and the others a gap apart; headers go first.
STREAMER = r"""
import asyncio, sys
port, tokens = int(sys.argv[1]), int(sys.argv[4])
first, gap = float(sys.argv[2]), float(sys.argv[3])
made = [0]
async def serve(reader, writer):
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        length = [int(l.split(b":")[1]) for l in head.split(b"\r\n")
                  if l.lower().startswith(b"content-length:")]
        if length:
            await reader.readexactly(length[0])
        path = head.split(b" ")[1]
        if path == b"/health":
            writer.write(b"HTTP/1.0 200 OK\r\n\r\nok")
        elif path == b"/metrics":
            writer.write(b"HTTP/1.0 200 OK\r\n\r\nvllm:num_requests_running 0\n"
                         b"vllm:generation_tokens_total %d\n" % made[0])
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                         b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
            for i in range(tokens):
                await asyncio.sleep(gap if i else first)
                made[0] += 1
                writer.write(b"9\r\ndata: x\n\n\r\n")
            writer.write(b"0\r\n\r\n")
        await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", port, backlog=1024)
    await server.serve_forever()
asyncio.run(main())
"""


def streamer(pool, name, replicas=2, first="0.01", gap="0.005", tokens="4", **fields):
    write_once(pool.work / "streamer.py", STREAMER)
    return pool.submit({"service": {
        "name": name, "tier": SERVING, "gpus": 1, "replicas": {"min": replicas, "max": replicas},
        "command": [PYTHON, "streamer.py", "{port}", first, gap, tokens], "drain_timeout": "30s",
        "health": {"interval": "100ms"}, "concurrency": 256, **fields}})


class Load:
    """A `neap load` that is under way against a service."""

    def __init__(self, pool, service, *words):
        self.log = pool.folder / "load.csv"
        address = pool.service(service)["service"]["address"]
        self._process = subprocess.Popen(
            [str(NEAP), "load", address + "/v1/completions", "--json", "--log", str(self.log),
             "--request-ids", "r", *map(str, words)], stdout=subprocess.PIPE, text=True)

    def end(self):
        """(report, rows of the log)."""
        output, _ = self._process.communicate(timeout=300)
        with open(self.log, newline="", encoding="utf-8") as file:
            return json.loads(output), list(csv.DictReader(file))


FIELDS = ("mark ended_us service server status termination queue_ms,held_us total_us first_byte_us "
          "bytes_in bytes_out retries class team model id").split()


def records_of(pool):
    """All that the proxy has written, in order, as the files in the state folder have it."""
    found = []
    for path in sorted((pool.state_dir / "proxy/requests").glob("*.log")):
        with open(path, encoding="utf-8") as file:
            for line in file:
                fields = line.split()
                if line.startswith("R2 ") and line.endswith("\n") and len(fields) == len(FIELDS):
                    found.append(dict(zip(FIELDS, fields)))
    return found


def first_bytes(rows, records):
    """{number: (ms as the client saw them, ms as the proxy did)} of requests answered well."""
    seen = {r["id"]: int(r["first_byte_us"]) / 1000 for r in records
            if r["first_byte_us"].isdigit()}
    return {row["number"]: ((float(row["first_byte_s"]) - float(row["started_s"])) * 1000,
                            seen["r-" + row["number"]])
            for row in rows if row["outcome"] == "ok" and "r-" + row["number"] in seen}


def quantile(values, part):
    ordered = sorted(values)
    return ordered[max(0, -(-int(part * 1000) * len(ordered) // 1000) - 1)]
