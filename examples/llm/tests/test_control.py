"""Sleep and wake, the KV cache in parts, and the export to GGUF."""

import http.client
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLE = os.path.dirname(HERE)
sys.path.insert(0, EXAMPLE)
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import engine as engines  # noqa: E402
import export_gguf  # noqa: E402
import model as models  # noqa: E402
import state as states  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(1)


def tiny_model(seed=3):
    torch.manual_seed(seed)
    return models.Model(models.SHAPES["tiny"]).eval()


def drain(sequence):
    return list(iter(lambda: sequence.tokens.get(timeout=20), None))


def texts(model, prompts, act, slots=3):
    """What each prompt became, with act(engine) once the first tokens are there."""
    engine = engines.Engine(model, 1, slots, 10, 0.01)
    sequences = [engines.Sequence(p, 25, 0.0, 1.0, None) for p in prompts]
    for sequence in sequences:
        engine.submit(sequence)
    first = [sequences[0].tokens.get(timeout=20) for _ in range(4)]
    act(engine)
    return [first + drain(sequences[0])] + [drain(s) for s in sequences[1:]]


class KvCache(unittest.TestCase):
    """C3: shrunk, offloaded, dropped; nobody's answer changes."""

    PROMPTS = [b"The licence", b"software is free", b"GNU " * 5]

    def setUp(self):
        self.model = tiny_model()
        self.plain = texts(self.model, self.PROMPTS, lambda engine: None)
        self.assertGreater(len({tuple(t) for t in self.plain}), 1)

    def test_c3_shrinking_takes_only_what_nobody_uses(self):
        seen = []

        def act(engine):
            before = engine.memory()[0]
            seen.append(engine.shrink(1))
            seen.append(before - engine.memory()[0])
        self.assertEqual(texts(self.model, self.PROMPTS, act, slots=6), self.plain)
        self.assertEqual(seen[0], 3)  # three run
        shape = self.model.shape
        one = 2 * shape.layers * shape.context * shape.width * 4
        self.assertEqual(seen[1], 3 * one)

    def test_c3_offloaded_requests_wait_on_the_host_and_go_on_bit_for_bit(self):
        seen = []

        def act(engine):
            seen.append(engine.offload(1))
            seen.append(engine.memory()[1])
            seen.append(engine.load())
        self.assertEqual(texts(self.model, self.PROMPTS, act), self.plain)
        self.assertEqual(seen[0], 1)
        self.assertGreater(seen[1], 0)
        self.assertEqual(seen[2], (1, 2))

    def test_c3_dropped_requests_are_computed_again(self):
        seen = []

        def act(engine):
            engine.offload(1)
            engine.drop(1)
            seen.append(engine.memory()[1])
            engine.grow(2)
        self.assertEqual(texts(self.model, self.PROMPTS, act), self.plain)
        self.assertEqual(seen, [0])

    def test_c3_nothing_runs_without_slots_and_all_goes_on_after(self):
        def act(engine):
            engine.offload(0)
            before = engine.tokens_generated
            time.sleep(0.1)
            self.assertEqual(engine.tokens_generated, before)
            engine.grow(3)
        self.assertEqual(texts(self.model, self.PROMPTS, act), self.plain)

    def test_a_planted_fault_is_seen(self):
        """Keys of one slot given to another: the answers differ, so the tests above can fail."""
        class Wrong(engines.Slots):
            def park(self, slot):
                return super().park((slot + 1) % self.count)
        right, engines.Slots = engines.Slots, Wrong
        try:
            wrong = texts(self.model, self.PROMPTS, lambda engine: engine.offload(1))
        finally:
            engines.Slots = right
        self.assertNotEqual(wrong, self.plain)


class Sleep(unittest.TestCase):
    def test_c3_levels_and_what_they_leave(self):
        model = tiny_model()
        engine = engines.Engine(model, 7, 2, 10, 0.0)
        device, host = engine.memory()
        weights = sum(p.numel() * 4 for p in model.parameters())
        self.assertGreater(device, weights)
        self.assertEqual(host, 0)
        engine.sleep(1)
        self.assertEqual(engine.memory(), (0, weights))
        with self.assertRaises(engines.Asleep):
            engine.submit(engines.Sequence(b"a", 1, 0.0, 1.0, None))
        engine.wake(lambda: self.fail("the weights are there"))
        self.assertEqual(engine.memory()[0], device)
        engine.sleep(2)
        self.assertEqual(engine.memory(), (0, 0))
        engine.wake(lambda: (tiny_model(4), 9))
        self.assertEqual((engine.memory()[0], engine.step), (device, 9))
        sequence = engines.Sequence(b"a", 3, 0.0, 1.0, None)
        engine.submit(sequence)
        self.assertEqual(len(drain(sequence)), 3)

    def test_c3_it_does_not_sleep_over_requests(self):
        engine = engines.Engine(tiny_model(), 1, 1, 10, 0.02)
        sequence = engines.Sequence(b"a", 20, 0.0, 1.0, None)
        engine.submit(sequence)
        sequence.tokens.get(timeout=20)
        with self.assertRaises(engines.Busy):
            engine.sleep(1)
        self.assertEqual(len(drain(sequence)), 19)

    def test_e1_over_http(self):
        folder = tempfile.mkdtemp()
        server = subprocess.Popen([sys.executable, os.path.join(EXAMPLE, "serve.py"),
                                   "--checkpoints", folder, "--port", "0"],
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.communicate)
        self.addCleanup(server.send_signal, signal.SIGTERM)
        port = int(server.stdout.readline().rpartition(":")[2])

        def call(method, path, body=None):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request(method, path, body)
            answer = connection.getresponse()
            text = json.loads(answer.read())
            connection.close()
            return answer.status, text
        ask = json.dumps({"prompt": "a", "max_tokens": 4, "temperature": 0})
        before = call("POST", "/v1/completions", ask)
        self.assertEqual(before[0], 200)
        self.assertEqual(call("GET", "/is_sleeping"), (200, {"is_sleeping": False}))
        status, told = call("POST", "/sleep?level=2")
        self.assertEqual((status, told["device_bytes"], told["host_bytes"]), (200, 0, 0))
        self.assertEqual(call("GET", "/is_sleeping"), (200, {"is_sleeping": True}))
        self.assertEqual(call("GET", "/health")[0], 503)
        self.assertEqual(call("POST", "/v1/completions", ask)[0], 503)
        self.assertEqual(call("POST", "/wake_up")[0], 200)
        after = call("POST", "/v1/completions", ask)
        self.assertEqual(after[1]["choices"], before[1]["choices"])
        self.assertEqual(call("POST", "/sleep?level=3")[0], 400)
        self.assertEqual(call("POST", "/kv_cache", '{"action": "melt", "slots": 1}')[0], 400)
        self.assertEqual(call("POST", "/kv_cache", '{"action": "drop", "slots": 99}')[0], 400)
        self.assertEqual(call("POST", "/kv_cache", "[" * 5000)[0], 400)
        self.assertEqual(call("POST", "/kv_cache", '{"action": "shrink", "slots": 1}')[1]["slots"],
                         1)
        self.assertEqual(call("POST", "/reload"), (200, {"loaded": False, "step": 0}))


class Reader:
    """GGUF as its description has it, read apart from what writes it."""

    KINDS = {4: "I", 5: "i", 6: "f", 7: "?", 10: "Q"}

    def __init__(self, data):
        self.data, self.at = data, 0
        assert data[:4] == b"GGUF"
        self.at = 4
        version, tensors, entries = self.take("IQQ")
        assert version == 3
        self.values = {}
        for _ in range(entries):
            key = self.string()
            self.values[key] = self.value(*self.take("I"))
        rows = []
        for _ in range(tensors):
            name = self.string()
            sizes = self.take("%dQ" % self.take("I")[0])
            kind, offset = self.take("IQ")
            rows.append((name, sizes, kind, offset))
        base = -(-self.at // 32) * 32
        self.tensors = {}
        for name, sizes, kind, offset in rows:
            assert kind == 0 and offset % 32 == 0
            count = 1
            for size in sizes:
                count *= size
            flat = torch.frombuffer(bytearray(data[base + offset:base + offset + 4 * count]),
                                    dtype=torch.float32)
            self.tensors[name] = flat.reshape(tuple(reversed(sizes)))

    def take(self, form):
        found = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return found

    def string(self):
        size = self.take("Q")[0]
        self.at += size
        return self.data[self.at - size:self.at].decode()

    def value(self, kind):
        if kind == 8:
            return self.string()
        if kind == 9:
            inner, count = self.take("IQ")
            return [self.value(inner) for _ in range(count)]
        return self.take(self.KINDS[kind])[0]


class Export(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, model):
        path = os.path.join(self.folder, "m.gguf")
        export_gguf.write(path, model.state_dict(), model.shape, "test")
        self.assertEqual(os.listdir(self.folder), ["m.gguf"])
        with open(path, "rb") as file:
            return Reader(file.read())

    def test_what_the_file_says(self):
        model = tiny_model()
        read = self.write(model)
        shape = model.shape
        self.assertEqual(read.values["general.architecture"], "llama")
        self.assertEqual(read.values["llama.block_count"], shape.layers)
        self.assertEqual(read.values["llama.context_length"], shape.context)
        self.assertEqual(len(set(read.values["tokenizer.ggml.tokens"])), 256)
        self.assertEqual(read.values["tokenizer.ggml.tokens"][ord("A")], "A")
        self.assertEqual(read.values["tokenizer.ggml.merges"], [])
        self.assertTrue(torch.equal(read.tensors["token_embd.weight"], model.embedding.weight))
        self.assertTrue(torch.equal(read.tensors["blk.1.ffn_down.weight"],
                                    model.blocks[1].down.weight))
        self.assertEqual(len(read.tensors), 2 + 9 * shape.layers)

    def test_attention_is_the_same_in_llama_cpps_order(self):
        """Scores from the exported rows, turned in neighbouring pairs, equal the model's own."""
        model = tiny_model()
        read = self.write(model)
        shape, block = model.shape, model.blocks[0]
        x = torch.randn(1, 9, shape.width)
        cos, sin = models.rotation(shape, torch.arange(9))
        q, k, _ = block.project(x, cos, sin)
        expected = q @ k.transpose(-2, -1)
        normed = models.rms_norm(x, block.norm_attention)
        head = shape.width // shape.heads

        def turned(name):
            rows = normed @ read.tensors["blk.0.%s.weight" % name].T
            rows = rows.view(1, 9, shape.heads, head).transpose(1, 2)
            even, odd = rows[..., 0::2], rows[..., 1::2]
            return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)
        with torch.inference_mode():
            got = turned("attn_q") @ turned("attn_k").transpose(-2, -1)
            self.assertTrue(torch.allclose(got, expected, atol=1e-5))
            # Without the other order of rows they differ: the check above can fail.
            read.tensors["blk.0.attn_q.weight"] = block.qkv.weight[:shape.width]
            wrong = turned("attn_q") @ turned("attn_k").transpose(-2, -1)
            self.assertFalse(torch.allclose(wrong, expected, atol=1e-5))

    def test_from_a_checkpoint_and_from_none(self):
        model = tiny_model()
        path = os.path.join(self.folder, "checkpoint-00000012.pt")
        shape = {f: getattr(model.shape, f) for f in model.shape.__dataclass_fields__}
        torch.save({"format": states.FORMAT, "shape": shape, "model": model.state_dict(),
                    "step": 12}, path)
        target = os.path.join(self.folder, "m.gguf")
        self.assertEqual(export_gguf.main(["--checkpoint", path, "--to", target]), 0)
        self.assertGreater(os.path.getsize(target), 33000 * 4)
        self.assertEqual(export_gguf.main(["--checkpoint", target, "--to", target + "2"]), 2)
        empty = tempfile.mkdtemp(dir=self.folder)
        self.assertEqual(export_gguf.main(["--checkpoints", empty, "--to", target + "2"]), 2)
        self.assertFalse(os.path.exists(target + "2"))


if __name__ == "__main__":
    unittest.main()
