"""G5: bad input gets an error that names file, line and field, and changes nothing.

Every case is sent to a daemon that runs, and its state is the same before and after: the same
sequence of records, the same hash.
"""

import json
import random
import socket
import subprocess
import unittest

from pool import NEAP, PATIENCE, ApiError, Pool, pool_text

LARGE = 100 * 1024 * 1024

TASK = """task:
  name: job
  tier: train_normal
  command: [sleep, "1000"]
  gpu: {memory: 16GiB, compute: 60%}
  checkpoint: {contract: signals, interval: 10min}
"""
SERVICE = """service:
  name: chat
  tier: infer_core
  command: [python3, serve.py]
  gpu:
    memory: 8GiB
    compute: 30%
  replicas: {min: 1, max: 4}
"""
GARBAGE = random.Random(7).randbytes(4096)

# (what is changed into what, the line and the field that the error must name, a word of it)
TASK_FAULTS = {
    "unknown field": (TASK, "tier:", "teir:", 3, "task.teir", "tier"),
    "unknown field within": (TASK, "interval:", "intervall:", 6, "task.checkpoint.intervall",
                             "interval"),
    "wrong unit of memory": (TASK, "16GiB", "16GB", 5, "task.gpu.memory", "GiB"),
    "wrong unit of time": (TASK, "10min", "10", 6, "task.checkpoint.interval", "10min"),
    "negative share": (TASK, "60%", "-60%", 5, "task.gpu.compute", "-60%"),
    "share above a device": (TASK, "60%", "160%", 5, "task.gpu.compute", "160%"),
    "negative memory": (TASK, "16GiB", "-16GiB", 5, "task.gpu.memory", "-16GiB"),
    "more memory than any device": (TASK, "16GiB", "200GiB", 5, "task.gpu.memory", "any device"),
    "more devices than there are": (TASK, "gpu: {memory: 16GiB, compute: 60%}", "gpus: 65", 5,
                                    "task.gpus", "65"),
    "unknown tier": (TASK, "train_normal", "train_norm", 3, "task.tier", "train_norm"),
    "unknown contract": (TASK, "signals", "smoke", 6, "task.checkpoint.contract", "sdk"),
    "not a list": (TASK, '[sleep, "1000"]', "sleep 1000", 4, "task.command", "list"),
    "key given twice": (TASK, "tier:", "name: other\n  tier:", 3, "task.name", "twice"),
    "name of another shape": (TASK, "job", "Job!", 2, "task.name", "a-z"),
    "replicas the wrong way round": (SERVICE, "max: 4", "max: 0", 8, "service.replicas.max", "0"),
    "unknown field of a service": (SERVICE, "memory:", "memry:", 6, "service.gpu.memry", "memory"),
    "negative share of a service": (SERVICE, "30%", "-30%", 7, "service.gpu.compute", "-30%"),
}

POOL = """pool:
  total_gpus: 4
  inference_guard_min: 1
preempt:
  checkpoint_interval_min: 10
  grace: 60s
priority_tiers:
  - {name: infer_core, weight: 100}
  - {name: train_normal, weight: 40}
devices:
  source: simulated
"""
POOL_FAULTS = {
    "unknown field": ("grace:", "graze:", 6, "preempt.graze", "grace"),
    "wrong unit": ("60s", "60", 6, "preempt.grace", "60"),
    "negative": ("min: 1", "min: -1", 3, "pool.inference_guard_min", "-1"),
    "more than there is": ("min: 1", "min: 5", 3, "pool.inference_guard_min", "total_gpus"),
    "one name twice": ("train_normal", "infer_core", 9, "priority_tiers[1].name", "infer_core"),
    "not a number": ("weight: 40", "weight: heavy", 9, "priority_tiers[1].weight", "heavy"),
    "key given twice": ("  grace", "  grace: 5s\n  grace", 7, "preempt.grace", "twice"),
}


def exchange(path, data, close_after=False):
    """Sends bytes to the socket and reads to the end; what came back, at most 64 KiB."""
    with socket.socket(socket.AF_UNIX) as raw:
        raw.settimeout(PATIENCE)
        raw.connect(str(path))
        received = b""
        try:
            for part in ([data] if isinstance(data, bytes) else data):
                raw.sendall(part)
            raw.shutdown(socket.SHUT_WR)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it would not read all of that
        if close_after:
            return received
        try:
            while len(received) < 65536:
                part = raw.recv(65536)
                if not part:
                    break
                received += part
        except ConnectionResetError:
            pass
        return received


class BadInput(unittest.TestCase):
    def setUp(self):
        self.pool = Pool(self).start()
        self.pool.submit(TASK)
        self.pool.wait_state("job", "running")
        self.before = self.quiet()

    def quiet(self):
        """(sequence, hash) of the state, once all that has happened is applied."""
        self.pool.wait_event("task_started", "job")
        version = self.pool.get("/v1/version")
        return version["sequence"], version["state_hash"]

    def check_unchanged(self):
        version = self.pool.get("/v1/version")
        self.assertEqual(self.pool.events(self.before[0]), [])
        self.assertEqual((version["sequence"], version["state_hash"]), self.before)
        self.assertEqual(self.pool.task("job")["state"], "running")

    def submit_file(self, content, name="bad.yaml"):
        path = self.pool.work / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content)
        return self.pool.cli("submit", path), path

    # ---- task files

    def test_task_files_name_file_line_and_field(self):
        for what, (base, old, new, line, field, word) in TASK_FAULTS.items():
            with self.subTest(what):
                text = base.replace(old, new, 1)
                self.assertNotEqual(text, base)
                if base is TASK and "name" not in field:
                    text = text.replace("name: job", "name: other")
                done, path = self.submit_file(text)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertTrue(done.stderr.startswith("%s:%d: %s: " % (path, line, field)),
                                done.stderr)
                self.assertIn(word, done.stderr)
                with self.assertRaises(ApiError) as refused:
                    self.pool.submit(text, file="sent.yaml")
                error = refused.exception.body["error"]
                self.assertEqual(refused.exception.status, 400)
                self.assertEqual((error["file"], error["line"], error["field"]),
                                 ("sent.yaml", line, field))
                self.check_unchanged()

    def test_two_tasks_of_one_name(self):
        done, path = self.submit_file(TASK)
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertTrue(done.stderr.startswith("%s:2: task.name: " % path), done.stderr)
        self.assertIn("job", done.stderr)
        self.check_unchanged()

    def test_truncated_task_files(self):
        for length in (len("task"), len("task:\n  name: jo"), TASK.index('"1000'), len(TASK) - 3):
            with self.subTest(length=length):
                done, path = self.submit_file(TASK[:length])
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertRegex(done.stderr, r"^%s:\d+: " % path)
                self.check_unchanged()

    def test_large_and_binary_task_files(self):
        path = self.pool.work / "large.yaml"
        with open(path, "wb") as file:
            file.write(TASK.encode() + b"  # ")
            for _ in range(LARGE // (1 << 20)):
                file.write(b"x" * (1 << 20))
        done = self.pool.cli("submit", path)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("%s: over the limit" % path, done.stderr)
        path.unlink()
        for content in (GARBAGE, b"\0" * 100, b"task:\n  name: \xff\xfe", b"\x7fELF" + GARBAGE,
                        b""):
            done, path = self.submit_file(content)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(str(path), done.stderr)
        done = self.pool.cli("submit", self.pool.work / "not-there.yaml")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("not-there.yaml", done.stderr)
        self.check_unchanged()

    # ---- bodies of the API

    def test_bodies_name_the_field(self):
        good = {"file": "f.yaml", "text": TASK.replace("job", "other"), "workdir": "/tmp"}
        cases = [
            ({**good, "txet": 1}, "txet"),
            ({key: good[key] for key in ("file", "text")}, "workdir"),
            ({**good, "text": 5}, "text"),
            ({**good, "workdir": "relative"}, "workdir"),
            ({**good, "file": "x" * 5000}, "file"),
            (json.dumps(good)[:-1] + ', "file": "again.yaml"}', "file"),
        ]
        for body, field in cases:
            with self.subTest(field=field):
                status, answer = self.pool.api().call("POST", "/v1/tasks", body)
                self.assertEqual((status, answer["error"].get("field")), (400, field), answer)
        for body in (b"", b"{", b"[]", b"null", b'{"file": ', GARBAGE, b"[" * 10_000,
                     b'{"text": "' + b"\xff" * 9 + b'"}', json.dumps(good)[:40]):
            status, answer = self.pool.api().call("POST", "/v1/tasks", body)
            self.assertEqual((status, answer["error"]["code"]), (400, "invalid_argument"), body)
        for path, body in (("/v1/services/none/scale", {"min": -1}), ("/v1/pause", {"reson": ""}),
                           ("/v1/services/none/scale", {"min": 2, "max": 1})):
            self.assertEqual(self.pool.api().call("POST", path, body)[0], 400, path)
        for method, path, expected in (("GET", "/v1/nothing", 404), ("PUT", "/v1/tasks", 405),
                                       ("GET", "/v1/tasks/none", 404),
                                       ("DELETE", "/v1/tasks/999999", 404),
                                       ("GET", "/v1/events?after=x", 400),
                                       ("GET", "/v1/tasks/job/log?offset=1e9", 400)):
            self.assertEqual(self.pool.api().call(method, path)[0], expected, path)
        self.check_unchanged()

    def test_raw_bytes_on_the_socket(self):
        path = self.pool.socket
        head = b"POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\n"
        length = b"Content-Length: %d\r\n\r\n"
        block = b"x" * (1 << 20)

        def chunked():
            yield head + b"Transfer-Encoding: chunked\r\n\r\n"
            for _ in range(LARGE // len(block)):
                yield b"%x\r\n" % len(block) + block + b"\r\n"
            yield b"0\r\n\r\n"

        def plain():
            yield head + length % LARGE
            for _ in range(LARGE // len(block)):
                yield block

        both = head + b"Transfer-Encoding: chunked\r\n" + length % 5 + b"0\r\n\r\n"
        refused = {"100 MB": plain(), "100 MB in chunks": chunked(), "garbage": GARBAGE,
                   "garbage in a body": head + length % len(GARBAGE) + GARBAGE,
                   "two lengths": both, "negative length": head + b"Content-Length: -1\r\n\r\n{}",
                   "a header without end": head + b"X: " + b"y" * 200_000,
                   "no version": b"POST /v1/tasks\r\n\r\n"}
        for what, data in refused.items():
            with self.subTest(what):
                answer = exchange(path, data)
                if answer:  # or the connection is just closed
                    self.assertRegex(answer, rb"^HTTP/1\.[01] 4\d\d ")
                self.check_unchanged()
        large = exchange(path, plain())
        self.assertTrue(large.startswith(b"HTTP/1.1 413 "), large[:200])
        text = TASK.replace("job", "cut")
        body = json.dumps({"file": "f", "text": text, "workdir": "/"}).encode()
        exchange(path, head + length % (len(body) + 1) + body, close_after=True)
        exchange(path, head + length % len(body) + body[:-1], close_after=True)
        self.check_unchanged()

    # ---- pool files

    def serve(self, content):
        """The end of `neap serve` with such a file on the state of this pool, which is stopped."""
        path = self.pool.folder / "bad-pool.yaml"
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content)
        done = subprocess.run([str(NEAP), "serve", str(path), "--state-dir",
                               str(self.pool.state_dir)], capture_output=True, text=True,
                              timeout=PATIENCE)
        return done, path

    def test_pool_files_name_file_line_and_field(self):
        self.pool.stop()
        for what, (old, new, line, field, word) in POOL_FAULTS.items():
            with self.subTest(what):
                text = POOL.replace(old, new, 1)
                self.assertNotEqual(text, POOL)
                done, path = self.serve(text)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn("%s:%d: %s: " % (path, line, field), done.stderr)
                self.assertIn(word, done.stderr)
        for length in (3, POOL.index("grace") + 3, POOL.index("100}"), POOL.index("weight: 40")):
            with self.subTest("truncated", length=length):
                done, path = self.serve(POOL[:length])
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertRegex(done.stderr, r"%s:\d+: " % path)
        large = POOL.encode() + b"# " + b"x" * LARGE
        for what, content in {"garbage": GARBAGE, "100 MB": large, "nothing": b""}.items():
            with self.subTest(what):
                done, path = self.serve(content)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(str(path), done.stderr)
        self.assertEqual(self.pool.verify(), self.before)

    def test_a_pool_file_that_would_break_what_runs_is_refused(self):
        self.pool.stop()
        for sections in ({"priority_tiers": [{"name": "infer_core", "weight": 100}]},
                         {"pool": {"total_gpus": 2}}):  # the machine's node has four devices
            text = pool_text(self.pool.name, **sections)
            done, _ = self.serve(text)
            self.assertEqual(done.returncode, 5, done.stderr)
            self.assertEqual(self.pool.verify(), self.before)
        self.pool.start()
        # A restart may look at what waits once more; nothing else has happened.
        events = self.pool.events(self.before[0])
        self.assertLessEqual({event["kind"] for event in events}, {"timer_fired"})
        self.assertEqual(self.pool.task("job")["state"], "running")


if __name__ == "__main__":
    unittest.main()
