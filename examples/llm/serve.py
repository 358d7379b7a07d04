#!/usr/bin/python3
"""Serves the newest checkpoint of a directory over an OpenAI-style API.

  POST /v1/completions, /v1/chat/completions   (stream: true gives server-sent events)
  GET  /v1/models, /health, /metrics
  and what control.py says: sleep and wake, the size of the KV cache, newer weights at once

A newer whole checkpoint is loaded while serving; before there is any, a fresh model with
seeded weights answers. The text is what the model really generates. What may be simulated is
the device: --token-sleep-ms is the time it takes for one token of every running request, so
capacity is --slots / --token-sleep-ms whatever the machine's CPU can do. SIGTERM: requests in
flight are answered, then exit code 0.
"""

import argparse
import json
import os
import queue
import select
import signal
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before torch is loaded

import torch  # noqa: E402

import api  # noqa: E402
import model as models  # noqa: E402
from control import Control, Refused  # noqa: E402
from engine import Asleep, Engine, Full, Sequence  # noqa: E402
from loader import Loader  # noqa: E402

TTFT_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
GAP_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)
IDLE_GRACE_SECONDS = 0.5  # on SIGTERM, for a request that is on its way on an open connection
SOCKET_TIMEOUT_SECONDS = 60
CLIENT_CHECK_SECONDS = 0.25


class Metrics:
    def __init__(self):
        self._lock = threading.Lock()
        self._codes = {}
        self._buckets = [0] * (len(TTFT_BUCKETS) + 1)
        self._sum = 0.0
        self._gaps = [0] * (len(GAP_BUCKETS) + 1)
        self._gap_sum = 0.0

    def answered(self, code):
        with self._lock:
            self._codes[code] = self._codes.get(code, 0) + 1

    def first_token(self, seconds):
        with self._lock:
            self._buckets[sum(seconds > bound for bound in TTFT_BUCKETS)] += 1
            self._sum += seconds

    def between_tokens(self, seconds):
        with self._lock:
            self._gaps[sum(seconds > bound for bound in GAP_BUCKETS)] += 1
            self._gap_sum += seconds

    @staticmethod
    def _histogram(name, bounds, counts, total_seconds):
        lines, total = ["# TYPE %s histogram" % name], 0
        for bound, count in zip(bounds + ("+Inf",), counts):
            total += count
            lines.append('%s_bucket{le="%s"} %d' % (name, bound, total))
        return lines + ["%s_sum %.6f" % (name, total_seconds), "%s_count %d" % (name, total)]

    def text(self, engine, slots):
        running, waiting = engine.load()
        lines = []

        def metric(name, kind, value, labels=""):
            lines.extend(("# TYPE neap_llm_%s %s" % (name, kind),
                          "neap_llm_%s%s %s" % (name, labels, value)))

        metric("model_step", "gauge", engine.step)
        metric("slots", "gauge", slots)
        metric("requests_running", "gauge", running)
        metric("requests_waiting", "gauge", waiting)
        metric("tokens_generated_total", "counter", engine.tokens_generated)
        metric("prompt_tokens_total", "counter", engine.prompt_tokens)
        metric("device_busy_seconds_total", "counter", "%.6f" % engine.busy_seconds)
        metric("reloads_total", "counter", engine.reloads)
        device, host = engine.memory()
        metric("device_bytes", "gauge", device)
        metric("host_bytes", "gauge", host)
        with self._lock:
            lines.append("# TYPE neap_llm_requests_total counter")
            lines += ['neap_llm_requests_total{code="%d"} %d' % c
                      for c in sorted(self._codes.items())]
            lines += self._histogram("neap_llm_time_to_first_token_seconds", TTFT_BUCKETS,
                                     self._buckets, self._sum)
            lines += self._histogram("vllm:inter_token_latency_seconds", GAP_BUCKETS,
                                     self._gaps, self._gap_sum)
        # The same under the names that vLLM gives them, which neap and others read.
        for name, kind, value in (("num_requests_running", "gauge", running),
                                  ("num_requests_waiting", "gauge", waiting),
                                  ("prompt_tokens_total", "counter", engine.prompt_tokens),
                                  ("generation_tokens_total", "counter",
                                   engine.tokens_generated)):
            lines += ["# TYPE vllm:%s %s" % (name, kind), "vllm:%s %s" % (name, value)]
        return "\n".join(lines) + "\n"


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, options, engine, control):
        self.options = options
        self.engine = engine
        self.control = control
        self.metrics = Metrics()
        self.draining = False
        self.accepted = 0
        self._connections = {}  # socket -> whether a request is being answered on it
        self._changed = threading.Condition()
        super().__init__((options.host, options.port), Handler)

    def server_bind(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)  # without the base class's slow name look-up
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = self.server_address[:2]

    def process_request(self, request, client_address):
        self.accepted += 1
        with self._changed:
            if len(self._connections) >= self.options.connections:
                request.close()
                return
            self._connections[request] = False
        super().process_request(request, client_address)

    def shutdown_request(self, request):
        with self._changed:
            self._connections.pop(request, None)
            self._changed.notify_all()
        super().shutdown_request(request)

    def mark(self, request, busy):
        with self._changed:
            if request in self._connections:
                self._connections[request] = busy
                self._changed.notify_all()

    def handle_error(self, request, client_address):
        error = sys.exc_info()[1]
        if not isinstance(error, (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)

    def drain(self, seconds):
        """Answers all that has been sent, and says whether it all got out in time."""
        end = time.monotonic() + seconds
        self.draining = True
        self.shutdown()  # the accept loop
        self.timeout = 0
        before = None
        while before != self.accepted:  # connections the kernel has accepted for us
            before = self.accepted
            self.handle_request()
        self.socket.close()
        with self._changed:
            idle_until = time.monotonic() + IDLE_GRACE_SECONDS
            while self._connections and time.monotonic() < end:
                if time.monotonic() >= idle_until:
                    for request in [r for r, busy in self._connections.items() if not busy]:
                        try:
                            request.shutdown(socket.SHUT_RD)  # its reader sees the end
                        except OSError:
                            pass
                self._changed.wait(0.1)
            return not any(self._connections.values())


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "neap-llm"
    sys_version = ""
    timeout = SOCKET_TIMEOUT_SECONDS
    disable_nagle_algorithm = True
    look_again = 0.0  # when to see next whether the client is still there

    def do_GET(self):
        if self.path == "/health":
            asleep = "sleeping" if self.server.engine.sleeping else "ok"
            status = "draining" if self.server.draining else asleep
            code = 200 if status == "ok" else 503
            self.answer(code, {"status": status, "step": self.server.engine.step})
        elif self.path == "/metrics":
            text = self.server.metrics.text(self.server.engine, self.server.options.slots)
            self.answer(200, text.encode(), "text/plain; version=0.0.4")
        elif self.path == "/v1/models":
            self.answer(200, {"object": "list", "data": [
                {"id": api.MODEL_NAME, "object": "model", "created": 0, "owned_by": "neap",
                 "step": self.server.engine.step}]})
        elif self.path in ("/v1/completions", "/v1/chat/completions"):
            self.refuse(405, "use POST")
        else:
            told = self.server.control.get(self.path)
            if told is not None:
                self.answer(200, told)
            else:
                self.refuse(404, "no such path: %s" % self.path[:200])

    def do_POST(self):
        self.server.mark(self.connection, True)
        try:
            if self.server.control.handles(self.path):
                self.order()
                return
            if self.path not in ("/v1/completions", "/v1/chat/completions"):
                self.refuse(404, "no such path: %s" % self.path[:200], close=True)
                return
            body = self.read_body()
            if body is not None:
                self.complete(body)
        finally:
            self.server.mark(self.connection, False)

    def order(self):
        body = self.read_body() if self.headers.get("Content-Length") else b""
        if body is None:
            return
        try:
            self.answer(200, self.server.control.post(self.path, body))
        except Refused as refused:
            self.refuse(refused.code, str(refused))

    def read_body(self):
        """The bytes, or None when the request has been refused."""
        length = self.headers.get("Content-Length")
        if self.headers.get("Transfer-Encoding") or length is None:
            self.refuse(411, "send a Content-Length", close=True)
        elif not (length.isascii() and length.isdigit() and len(length) < 19):
            self.refuse(400, "Content-Length: expected a number", close=True)
        elif int(length) > self.server.options.body_limit:
            self.refuse(413, "the body is over the limit of %d bytes"
                        % self.server.options.body_limit, close=True)
        else:
            return self.rfile.read(int(length))
        return None

    def complete(self, body):
        try:
            query = api.Query(json.loads(body), chat=self.path.endswith("/chat/completions"))
            prompt = query.prompt
            sequence = Sequence(prompt, query.max_tokens, query.temperature, query.top_p,
                                query.seed)
            self.server.engine.submit(sequence)
        except api.BadRequest as bad:
            self.refuse(400, str(bad), field=bad.field)
            return
        except (ValueError, RecursionError):
            self.refuse(400, "body: expected JSON", field="body")
            return
        except Full:
            self.refuse(429, "too many requests are waiting", kind="rate_limit_error",
                        more={"Retry-After": "1"})
            return
        except Asleep:
            self.refuse(503, "the server sleeps", kind="unavailable", more={"Retry-After": "1"})
            return
        try:
            (self.stream if query.stream else self.whole)(query, sequence)
        finally:
            sequence.cancelled = True  # the client may be gone: give the slot back

    def pieces(self, query, sequence):
        """Yields (text, tokens so far, finish reason or None)."""
        text, count = api.Text(query.stops), 0
        last = None
        while True:
            token = self.next_token(sequence)
            now = time.monotonic()
            if count == 0:
                self.server.metrics.first_token(sequence.first_token_seconds)
            elif token is not None:
                self.server.metrics.between_tokens(now - last)
            last = now
            if token is None:
                yield text.end(), count, "length"
                return
            count += 1
            piece = text.add(token)
            if text.stopped:
                yield piece, count, "stop"
                return
            yield piece, count, None

    def next_token(self, sequence):
        """Waits for it, but not for the sake of a client that has gone."""
        while True:
            now = time.monotonic()
            if now >= self.look_again:
                self.look_again = now + CLIENT_CHECK_SECONDS
                if self.client_has_gone():
                    raise ConnectionAbortedError("the client has gone")
            try:
                return sequence.tokens.get(timeout=CLIENT_CHECK_SECONDS)
            except queue.Empty:
                pass

    def client_has_gone(self):
        poll = select.poll()  # first, because recv() on a socket with a timeout waits for data
        poll.register(self.connection, select.POLLIN)
        return bool(poll.poll(0)) and not self.connection.recv(1, socket.MSG_PEEK)

    def whole(self, query, sequence):
        parts = []
        for piece, count, reason in self.pieces(query, sequence):
            parts.append(piece)
        answer = api.Answer(query, self.server.engine.step)
        self.answer(200, answer.whole("".join(parts), reason, count))

    def stream(self, query, sequence):
        answer = api.Answer(query, self.server.engine.step)
        self.server.metrics.answered(200)
        headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
        if self.request_version == "HTTP/1.0":
            event, end = plain_event, b""
        else:
            event, end = chunked_event, b"0\r\n\r\n"
            headers["Transfer-Encoding"] = "chunked"
        head = self.head(200, headers)
        for piece, count, reason in self.pieces(query, sequence):
            if piece or reason:  # half of a character is not sent
                self.wfile.write(head + event(answer.piece(piece, reason)))
                head = b""
        usage = event(answer.usage_piece(count)) if query.usage_at_end else b""
        self.wfile.write(usage + event("[DONE]") + end)

    def head(self, code, headers):
        close = self.server.draining or self.close_connection
        self.close_connection = close
        lines = ["HTTP/1.1 %d %s" % (code, self.responses[code][0])]
        lines += ["%s: %s" % h for h in headers.items()]
        lines.append("Connection: close" if close else "Connection: keep-alive")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def answer(self, code, body, kind="application/json", more=None):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        headers = {"Content-Type": kind, "Content-Length": str(len(body)), **(more or {})}
        if self.path.startswith("/v1/"):
            self.server.metrics.answered(code)
        self.wfile.write(self.head(code, headers) + body)

    def refuse(self, code, message, kind="invalid_request_error", field=None, close=False,
               more=None):
        self.close_connection = self.close_connection or close
        self.answer(code, api.error(message, kind, field), more=more)

    def log_message(self, *_):
        pass  # the gateway in front keeps the record of requests


def plain_event(body):
    data = body if isinstance(body, str) else json.dumps(body)
    return b"data: " + data.encode() + b"\n\n"


def chunked_event(body):
    data = plain_event(body)
    return b"%x\r\n%s\r\n" % (len(data), data)


def read_options(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoints", default="out", metavar="DIR")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=int(os.environ.get("NEAP_PORT") or 8000),
                        help="default: NEAP_PORT, else 8000; 0 takes a free one")
    parser.add_argument("--slots", type=int, default=4,
                        help="requests that generate at the same time (default 4)")
    parser.add_argument("--queue", type=int, default=64,
                        help="requests that wait for a slot; beyond, 429 (default 64)")
    parser.add_argument("--connections", type=int, default=512)
    parser.add_argument("--body-limit", type=int, default=1 << 20, metavar="BYTES")
    parser.add_argument("--token-sleep-ms", type=float, default=0.0, metavar="MS",
                        help="simulated device time of one token of every running request: the "
                        "capacity of this server is then slots / token-sleep-ms, set by "
                        "the simulated device and not by the CPU. The tokens are the real model's "
                        "all the same. 0: as fast as the CPU can (default)")
    parser.add_argument("--drain-seconds", type=float, default=60.0)
    parser.add_argument("--reload-seconds", type=float, default=1.0)
    parser.add_argument("--size", choices=list(models.SHAPES), default="tiny",
                        help="of the fresh model that serves while there is no checkpoint")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args(arguments)


def main(arguments=None):
    stop_read, stop_write = os.pipe()
    os.set_blocking(stop_write, False)
    # A pipe, not an Event: the kernel may deliver the signal on any thread, and then nothing would
    # wake a main thread that waits for a lock.
    signal.set_wakeup_fd(stop_write)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    options = read_options(arguments)
    torch.set_num_threads(1)
    loader = Loader(options)
    model, step = loader.first()
    engine = Engine(model, step, options.slots, options.queue, options.token_sleep_ms / 1000)
    control = Control(engine, loader.again, lambda: loader.reload(engine))
    server = Server(options, engine, control)
    threading.Thread(target=loader.watch, args=(engine, options.reload_seconds),
                     daemon=True).start()
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    print("serving step %d on http://%s:%d" % (step, options.host, server.server_port), flush=True)
    os.read(stop_read, 1)
    done = server.drain(options.drain_seconds)
    print("drained" if done else "stopped with requests in flight", flush=True)
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main())
