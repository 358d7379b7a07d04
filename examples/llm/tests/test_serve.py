"""The inference server: real tokens, limits, hot reload, draining.

Run: /usr/bin/python3 -m unittest discover -s examples/llm/tests   (needs torch)
"""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLE = os.path.dirname(HERE)
sys.path.insert(0, EXAMPLE)
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import api  # noqa: E402
import engine as engines  # noqa: E402
import model as models  # noqa: E402
import state as states  # noqa: E402
import torch  # noqa: E402

import neap_task  # noqa: E402

torch.set_num_threads(1)


def tiny_model(seed):
    torch.manual_seed(seed)
    return models.Model(models.SHAPES["tiny"]).eval()


def greedy(model, prompt, count):
    """The plain way: the whole text through the model for every token."""
    tokens = list(prompt)
    with torch.inference_mode():
        for _ in range(count):
            tokens.append(int(model(torch.tensor([tokens]))[0, -1].argmax()))
    return tokens[len(prompt):]


def drain(sequence):
    return list(iter(lambda: sequence.tokens.get(timeout=20), None))


class Engine(unittest.TestCase):
    def generate(self, engine, prompts, count=20, **options):
        sequences = [engines.Sequence(p, count, options.get("temperature", 0.0),
                                      options.get("top_p", 1.0), seed=5) for p in prompts]
        for sequence in sequences:
            engine.submit(sequence)
        return [drain(s) for s in sequences]

    def test_tokens_are_the_models_own_alone_and_in_company(self):
        model = tiny_model(3)
        prompts = [b"The licence", b"a", b"software is free", b"GNU " * 7, b"\n"]
        expected = [greedy(model, p, 20) for p in prompts]
        self.assertGreater(len({tuple(e) for e in expected}), 1)
        engine = engines.Engine(model, 1, 3, 10, 0.0)
        self.assertEqual(self.generate(engine, prompts), expected)
        self.assertEqual([self.generate(engine, [p])[0] for p in prompts], expected)

    def test_seed_repeats_and_longer_than_the_context_goes_on(self):
        engine = engines.Engine(tiny_model(3), 1, 2, 10, 0.0)
        first = self.generate(engine, [b"x" * 200, b"y"], 150, temperature=1.0, top_p=0.9)
        again = self.generate(engine, [b"x" * 200, b"y"], 150, temperature=1.0, top_p=0.9)
        self.assertEqual(first, again)
        self.assertEqual([len(f) for f in first], [150, 150])

    def test_swap_in_mid_sequence_uses_the_new_weights(self):
        old, new = tiny_model(3), tiny_model(4)
        engine = engines.Engine(old, 1, 1, 10, 0.02)
        sequence = engines.Sequence(b"The licence", 30, 0.0, 1.0, None)
        engine.submit(sequence)
        out = [sequence.tokens.get(timeout=20) for _ in range(5)]
        engine.swap(new, 2)
        out += drain(sequence)
        self.assertEqual(out[:5], greedy(old, b"The licence", 5))
        changed = [n for n in range(5, 30)
                   if out == out[:n] + greedy(new, b"The licence" + bytes(out[:n]), 30 - n)]
        self.assertTrue(changed)
        self.assertEqual((engine.step, engine.reloads), (2, 1))

    def test_capacity_is_the_simulated_devices(self):
        engine = engines.Engine(tiny_model(3), 1, 4, 10, 0.03)
        began = time.monotonic()
        self.generate(engine, [b"a"] * 8, 10)  # two rounds of ten ticks
        self.assertGreaterEqual(time.monotonic() - began, 2 * 10 * 0.03)

    def test_queue_is_bounded(self):
        engine = engines.Engine(tiny_model(3), 1, 1, 2, 0.2)
        with self.assertRaises(engines.Full):
            for _ in range(5):
                engine.submit(engines.Sequence(b"a", 5, 0.0, 1.0, None))


class Text(unittest.TestCase):
    def run_text(self, data, stops):
        text = api.Text(stops)
        out = []
        for byte in data:
            out.append(text.add(byte))
            if text.stopped:
                break
        return "".join(out) + ("" if text.stopped else text.end()), text.stopped

    def test_stops_and_whole_characters(self):
        euro = "1 \u20ac".encode()
        self.assertEqual(self.run_text(euro, []), ("1 \u20ac", False))
        self.assertEqual(self.run_text(euro[:-1], []), ("1 \ufffd", False))
        self.assertEqual(self.run_text(b"one END two", ["END"]), ("one ", True))
        self.assertEqual(self.run_text(b"one EN", ["END"]), ("one EN", False))
        self.assertEqual(self.run_text(b"aab aac", ["aac"]), ("aab ", True))


class Serve(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        cls.start("--token-sleep-ms", "10", "--slots", "2", "--queue", "2",
                  "--reload-seconds", "0.1", "--body-limit", "2000")

    @classmethod
    def start(cls, *options):
        cls.process = subprocess.Popen(
            [sys.executable, os.path.join(EXAMPLE, "serve.py"), "--port", "0", "--checkpoints",
             os.path.join(cls.dir, "out")] + list(options),
            stdout=subprocess.PIPE, universal_newlines=True)
        cls.addClassCleanup(cls.process.kill)  # a no-op when it has ended as it should
        cls.port = int(cls.process.stdout.readline().rsplit(":", 1)[1])

    @classmethod
    def tearDownClass(cls):
        """SIGTERM: what is in flight is answered, then exit code 0."""
        answers = []
        streams = [threading.Thread(target=lambda: answers.append(cls.stream_text(100)))
                   for _ in range(3)]  # two in the slots, one that waits
        for thread in streams:
            thread.start()
        while cls.metric("requests_waiting") < 1 and not answers:
            time.sleep(0.005)
        idle = http.client.HTTPConnection("127.0.0.1", cls.port, timeout=20)
        idle.connect()
        cls.process.send_signal(signal.SIGTERM)
        for thread in streams:
            thread.join()
        rest = cls.process.stdout.read()
        cls.process.stdout.close()
        idle.close()
        assert cls.process.wait(20) == 0 and rest.endswith("drained\n"), rest
        assert len(answers) == 3 and all(len(a) == 100 for a in answers), answers

    @classmethod
    def call(cls, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", cls.port, timeout=20)
        try:
            body = json.dumps(body) if isinstance(body, dict) else body
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, response.read(), response.headers
        finally:
            connection.close()

    @classmethod
    def metric(cls, name):
        text = cls.call("GET", "/metrics")[1].decode()
        return float([line for line in text.splitlines()
                      if line.startswith("neap_llm_%s " % name)][0].split()[1])

    @classmethod
    def stream_text(cls, count):
        _, body, headers = cls.call("POST", "/v1/completions", {
            "prompt": "GNU", "max_tokens": count, "stream": True, "temperature": 0,
            "stream_options": {"include_usage": True}})
        assert headers["Content-Type"] == "text/event-stream"
        events = body.decode().strip().split("\n\n")
        assert events[-1] == "data: [DONE]", events
        events = [json.loads(e[len("data: "):]) for e in events[:-1]]
        assert events[-1]["usage"]["completion_tokens"] == count
        text = "".join(e["choices"][0]["text"] for e in events[:-1])
        return bytes(count) if events[-2]["choices"][0]["finish_reason"] == "length" else text

    def test_answers(self):
        status, body, _ = self.call("POST", "/v1/completions", {
            "prompt": "The licence", "max_tokens": 12, "temperature": 0})
        answer = json.loads(body)
        self.assertEqual((status, answer["usage"]["completion_tokens"]), (200, 12))
        status, body, _ = self.call("POST", "/v1/chat/completions", {
            "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 3, "seed": 1})
        self.assertEqual(json.loads(body)["choices"][0]["message"]["role"], "assistant")
        self.assertEqual(json.loads(self.call("GET", "/v1/models")[1])["data"][0]["id"],
                         "neap-llm")
        self.assertEqual(self.call("GET", "/health")[0], 200)
        self.assertGreater(self.metric("tokens_generated_total"), 14)
        text = self.call("GET", "/metrics")[1].decode()
        own = dict(line.split(" ") for line in text.splitlines() if line.startswith("vllm:"))
        self.assertEqual(float(own["vllm:generation_tokens_total"]),
                         self.metric("tokens_generated_total"))
        gaps = float(own['vllm:inter_token_latency_seconds_bucket{le="+Inf"}'])
        self.assertEqual(gaps, float(own["vllm:inter_token_latency_seconds_count"]))
        self.assertGreater(gaps, 10)

    def test_bad_requests_name_the_field(self):
        for path, body, field in (
                ("completions", b"{", "body"), ("completions", b"[" * 1900, "body"),
                ("completions", b"\xff", "body"), ("completions", b"[]", "body"),
                ("completions", {"prompt": 7}, "prompt"),
                ("completions", {"prompt": "a", "max_tokens": -1}, "max_tokens"),
                ("completions", {"prompt": "a", "max_tokens": 10 ** 9}, "max_tokens"),
                ("completions", {"prompt": "a", "temperature": "hot"}, "temperature"),
                ("completions", b'{"prompt": "a", "top_p": NaN}', "top_p"),
                ("completions", {"prompt": "a", "stream": 1}, "stream"),
                ("completions", {"prompt": "a", "stop": [""]}, "stop"),
                ("chat/completions", {"messages": []}, "messages"),
                ("chat/completions", {"messages": [{"role": "u"}]}, "messages[0].content")):
            status, answer, _ = self.call("POST", "/v1/" + path, body)
            self.assertEqual(status, 400, (body, answer))
            self.assertEqual(json.loads(answer)["error"]["param"], field)
        self.assertEqual(self.call("POST", "/v1/completions", b"x" * 2001)[0], 413)
        self.assertEqual(self.call("POST", "/v1/completions", iter([b"x"]),
                                   {"Transfer-Encoding": "chunked"})[0], 411)
        self.assertEqual(self.call("GET", "/v1/completions")[0], 405)
        self.assertEqual(self.call("GET", "/etc/passwd")[0], 404)

    def test_overload_and_clients_that_leave(self):
        body = json.dumps({"prompt": "a", "max_tokens": 4000}).encode()
        request = (b"POST /v1/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body)
                   + body)
        clients = []
        for _ in range(4):
            client = socket.create_connection(("127.0.0.1", self.port))
            client.sendall(request)
            clients.append(client)
        self.wait_for("requests_waiting", 2)
        status, _, headers = self.call("POST", "/v1/completions", body)
        self.assertEqual((status, headers["Retry-After"]), (429, "1"))
        for client in clients:
            client.close()
        self.wait_for("requests_waiting", 0)  # 4,000 tokens are 40 s: they were given up
        self.wait_for("requests_running", 0)

    def wait_for(self, name, value):
        end = time.monotonic() + 15
        while self.metric(name) != value:
            self.assertLess(time.monotonic(), end, name)
            time.sleep(0.02)

    def test_hot_reload_skips_torn_checkpoints(self):
        model = tiny_model(9)

        def save(path, step):
            torch.save({"format": states.FORMAT, "step": step, "shape": vars(model.shape),
                        "model": dict(model.state_dict())}, path)

        out = os.path.join(self.dir, "out")
        neap_task.write_checkpoint(out, 70, save, suffix=states.SUFFIX)
        save(os.path.join(out, "checkpoint-80.pt"), 80)
        os.truncate(os.path.join(out, "checkpoint-80.pt"), 5000)
        self.wait_for("model_step", 70)
        answer = json.loads(self.call("POST", "/v1/completions", {
            "prompt": "The licence", "max_tokens": 12, "temperature": 0})[1])
        self.assertEqual(answer["system_fingerprint"], "step-70")
        self.assertEqual(answer["choices"][0]["text"],
                         bytes(greedy(model, b"The licence", 12)).decode("utf-8", "replace"))


if __name__ == "__main__":
    unittest.main()
