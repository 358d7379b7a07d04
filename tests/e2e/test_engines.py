"""Engines behind replicas: hot load under load, memory given back in order, sleep and wake,
llama.cpp beside the Python server (C3, C4, E3)."""

import json
import shutil
import subprocess
import threading
import time
import unittest

from engines import (LLM, complete, export, folder, port_of, readable, serve_llama, serve_py,
                     serve_vllm, torch_is_there, wait_ready, wait_routed, why_no_llama)
from pool import PYTHON, Pool, wait_for
from records import Load, records_of, streamer


@unittest.skipUnless(torch_is_there(), "there is no torch")
class HotLoad(unittest.TestCase):
    """C4: the new model loads while the old one serves."""

    def models(self, pool):
        """Two folders with a checkpoint each, of other weights."""
        found = []
        for name, steps in (("old", 2), ("new", 3)):
            made = folder(pool, name)
            subprocess.run([PYTHON, str(LLM / "train.py"), "--dir", str(made), "--size", "tiny",
                            "--steps", str(steps), "--checkpoint-every", str(steps), "--contract",
                            "watch"], check=True, capture_output=True, timeout=120)
            readable(made)
            found.append(made)
        return found

    def service(self, pool, models):
        return serve_py(pool, "chat", "--checkpoints", str(models), "--token-sleep-ms", "4",
                        "--slots", "4", "--reload-seconds", "3600")

    def test_c4_hot_load_under_load_fails_no_request_and_reserves_its_peak_first(self):
        pool = Pool(self).start()
        old, new = self.models(pool)
        pool.submit(self.service(pool, old))
        wait_ready(pool, "chat")
        address = pool.service("chat")["service"]["address"]
        before = complete(address, "The licence", 12)["system_fingerprint"]
        load = Load(pool, "chat", "--rate", "8", "--duration", "15s", "--max-tokens", "16",
                    "--prompt", "The licence")
        time.sleep(2)
        mark = pool.status()["sequence"]
        file = pool.work / "chat.yaml"
        file.write_text(json.dumps(self.service(pool, new)))
        done = pool.cli("submit", "--replace", file)
        self.assertEqual(done.returncode, 0, done.stderr)
        rolled = pool.wait_event("service_rolled", after=mark)
        report, rows = load.end()
        after = complete(address, "The licence", 12)["system_fingerprint"]
        self.assertEqual((before, after), ("step-2", "step-3"))
        self.assertEqual(report["outcomes"]["ok"], report["scheduled"], report)
        self.assertGreater(report["scheduled"], 60)
        self.assertEqual(report["sent_again"], 0)
        # The new one had its devices in the books before it was started, and the old one still
        # held its own; that one was asked to stop only when the new one was healthy.
        events = {}
        for event in pool.events(mark):
            events.setdefault((event["kind"], event["subject"]), event)
        placed = events["task_placed", "chat.1"]
        started = events["task_started", "chat.1"]
        healthy = events["replica_healthy", "chat.1"]
        stopped = events["stop_asked", "chat.0"]
        order = [event["sequence"] for event in (placed, started, healthy, stopped, rolled)]
        self.assertEqual(order, sorted(order))
        self.assertNotIn(("task_exited", "chat.1"), events)
        exited = events["task_exited", "chat.0"]
        self.assertGreater(exited["sequence"], healthy["sequence"])
        print("hot load: %d requests, %d failed; peak reserved %.2f s before the old one was asked "
              "to go, loaded in %.2f s; first token p50 %.1f ms, p99 %.1f ms"
              % (report["scheduled"], report["scheduled"] - report["outcomes"]["ok"],
                 (stopped["time_us"] - placed["time_us"]) / 1e6,
                 (healthy["time_us"] - placed["time_us"]) / 1e6,
                 report["first_byte"]["p50_us"] / 1e3, report["first_byte"]["p99_us"] / 1e3),
              flush=True)

    def test_c4_without_room_for_both_nothing_is_loaded_and_the_old_one_serves(self):
        pool = Pool(self, pool={"total_gpus": 1}).start()
        old, new = self.models(pool)
        pool.submit(self.service(pool, old))
        wait_ready(pool, "chat")
        file = pool.work / "chat.yaml"
        file.write_text(json.dumps(self.service(pool, new)))
        load = Load(pool, "chat", "--rate", "8", "--duration", "4s", "--max-tokens", "8")
        self.assertEqual(pool.cli("submit", "--replace", file).returncode, 0)
        pool.wait_state("chat.1", "waiting")
        report, _ = load.end()
        self.assertEqual(report["outcomes"]["ok"], report["scheduled"], report)
        self.assertEqual(pool.task("chat.1")["state"], "waiting")
        self.assertEqual(pool.task("chat.0")["state"], "running")
        self.assertTrue(pool.task("chat.1")["reason"])

    def test_c4_newer_weights_in_the_same_process_fail_no_request(self):
        pool = Pool(self).start()
        old, new = self.models(pool)
        pool.submit(self.service(pool, old))
        wait_ready(pool, "chat")
        port = port_of(pool, "chat")
        load = Load(pool, "chat", "--rate", "8", "--duration", "4s", "--max-tokens", "16")
        time.sleep(1.5)
        for path in sorted(new.iterdir()):
            if path.name.startswith("checkpoint-"):
                shutil.copy(path, old / "checkpoint-00000099.pt")
        (old / "checkpoint-00000099.pt").chmod(0o644)
        done = pool.cli("engine", "neap", port, "model")
        self.assertEqual(done.returncode, 0, done.stderr)
        address = "http://127.0.0.1:%d" % port
        self.assertEqual(complete(address, "a", 2)["system_fingerprint"], "step-3")
        report, _ = load.end()
        self.assertEqual(report["outcomes"]["ok"], report["scheduled"], report)
        self.assertEqual(pool.cli("engine", "neap", port, "adapter", "--name", "a", "--path",
                                  "/a").returncode, 6)


class MemoryComesBack(unittest.TestCase):
    """C3, B8: shrunk, offloaded, dropped, in that order, before a replica goes."""

    def log_line(self, pool, pattern):
        wait_for("the daemon to say %s" % pattern,
                 lambda: pattern in pool.log_path.read_text(errors="replace"))
        return [line for line in pool.log_path.read_text(errors="replace").splitlines()
                if pattern in line][-1]

    @unittest.skipUnless(torch_is_there(), "there is no torch")
    def test_c3_a_real_server_gives_all_of_it_back_before_it_is_stopped(self):
        pool = Pool(self).start()
        pool.submit(serve_py(pool, "chat", "--checkpoints", str(folder(pool, "none"))))
        wait_routed(pool, "chat")
        pool.delete("/v1/services/chat")
        line = self.log_line(pool, "goes: ")
        self.assertRegex(line, r"offload: done, \d+ bytes.*drop: done, \d+ bytes.*"
                               r"sleep: done, 0 bytes on the device")
        drains = self.log_line(pool, "drains: ")
        self.assertRegex(drains, r"shrink: done, \d+ bytes on the device")
        wait_for("it to end", lambda: pool.status()["tasks_running"] == 0)
        print("memory given back: %s; %s" % (drains.partition("drains: ")[2],
                                             line.partition("goes: ")[2]), flush=True)

    def test_c3_vllm_is_asked_what_it_has_and_nothing_else(self):
        pool = Pool(self).start()
        asked = folder(pool, "asked") / "log"
        asked.parent.chmod(0o777)
        pool.submit(serve_vllm(pool, "chat", asked))
        wait_routed(pool, "chat")
        pool.delete("/v1/services/chat")
        wait_for("it to end", lambda: pool.status()["tasks_running"] == 0)
        self.assertEqual(asked.read_text().splitlines(),
                         ["/reset_prefix_cache", "/sleep?level=2"])
        self.assertIn("unsupported: offload", self.log_line(pool, "goes: "))

    def test_b8_a_replica_that_hangs_is_stopped_all_the_same(self):
        pool = Pool(self).start()
        asked = folder(pool, "asked") / "log"
        asked.parent.chmod(0o777)
        pool.submit(serve_vllm(pool, "chat", asked))
        wait_routed(pool, "chat")
        (pool.work / "hang").touch()
        begin = time.monotonic()
        pool.delete("/v1/services/chat")
        wait_for("it to end", lambda: pool.status()["tasks_running"] == 0)
        took = time.monotonic() - begin
        self.assertLess(took, 20)
        self.assertIn("no whole answer in time", self.log_line(pool, "goes: "))


class Leaving(unittest.TestCase):
    def test_b8_a_replica_that_leaves_takes_no_more_requests_and_none_fails(self):
        pool = Pool(self).start()
        streamer(pool, "chat", replicas=2, first="0", gap="0", tokens="1")
        wait_ready(pool, "chat", 2)
        load = Load(pool, "chat", "--rate", "150", "--duration", "14s", "--arrivals", "constant")
        mark = pool.status()["sequence"]
        for _ in range(3):
            time.sleep(1)
            pool.post("/v1/services/chat/scale", {"min": 1, "max": 1})
            wait_ready(pool, "chat", 1)
            pool.post("/v1/services/chat/scale", {"min": 2, "max": 2})
            wait_ready(pool, "chat", 2)
        report, rows = load.end()
        self.assertEqual(report["outcomes"]["ok"], report["scheduled"], report)
        wait_for("all records",
                 lambda: pool.get("/v1/services/chat/latency")["requests"] >= len(rows))
        last = {}  # server -> when its last request began there
        for record in records_of(pool):
            queued = record["queue_ms,held_us"].partition(",")[0]
            began = int(record["ended_us"]) - int(record["total_us"]) + int(queued) * 1000
            last[record["server"]] = max(last.get(record["server"], 0), began)
        stops = [event["time_us"] for event in pool.events(mark) if event["kind"] == "stop_asked"]
        self.assertEqual(len(stops), 3)
        after = [min((began - stop for began in last.values()), key=abs) for stop in stops]
        self.assertLess(max(after), 1_000_000)
        print("stops accepting: %d requests, %d failed; last request begun at most %.1f ms after "
              "the stop was decided (%d replicas)"
              % (report["scheduled"], report["scheduled"] - report["outcomes"]["ok"],
                 max(0, max(after)) / 1000, len(stops)), flush=True)


class SleepAndWake(unittest.TestCase):
    """C3: through the command line, which speaks as the daemon does."""

    def test_c3_vllms_calls_both_levels(self):
        pool = Pool(self).start()
        asked = folder(pool, "asked") / "log"
        asked.parent.chmod(0o777)
        pool.submit(serve_vllm(pool, "chat", asked))
        wait_ready(pool, "chat")
        port = port_of(pool, "chat")

        def held():
            import urllib.request
            with urllib.request.urlopen("http://127.0.0.1:%d/held" % port, timeout=10) as answer:
                state = json.loads(answer.read())
            return state["weights"] + state["cache"]
        shown = pool.cli_json("engine", "vllm", port)
        self.assertEqual((shown["models"], shown["sleeping"], shown["ready"]),
                         (["stub-7b"], False, True))
        self.assertFalse(shown["calls"]["shrink"]["there"])
        times = []
        for level in (1, 2):
            full = held()
            slept = pool.cli_json("engine", "vllm", port, "sleep", "--level", level)
            self.assertEqual(held(), 0)
            self.assertTrue(pool.cli_json("engine", "vllm", port)["sleeping"])
            woken = pool.cli_json("engine", "vllm", port, "wake", "--level", level)
            self.assertEqual(held(), full)
            self.assertFalse(pool.cli_json("engine", "vllm", port)["sleeping"])
            times.append((slept["took_us"] + woken["took_us"]) / 1000)
        self.assertEqual(asked.read_text().splitlines(),
                         ["/sleep?level=1", "/wake_up", "/sleep?level=2", "/wake_up?tags=weights",
                          '/collective_rpc {"method": "reload_weights"}',
                          "/wake_up?tags=kv_cache"])
        refused = pool.cli("engine", "vllm", port, "shrink")
        self.assertEqual(refused.returncode, 6)
        self.assertIn("unsupported", refused.stderr)
        print("sleep and wake, vLLM's calls: level 1 %.1f ms, level 2 %.1f ms" % tuple(times),
              flush=True)

    @unittest.skipUnless(torch_is_there(), "there is no torch")
    def test_c3_a_real_server_says_the_same_after_it_slept(self):
        pool = Pool(self).start()
        pool.submit(serve_py(pool, "chat", "--checkpoints", str(folder(pool, "none")), "--size",
                             "medium"))
        wait_ready(pool, "chat")
        port = port_of(pool, "chat")
        direct = "http://127.0.0.1:%d" % port
        before = complete(direct, "The licence", 16)
        figures = []
        for level in (1, 2):
            slept = pool.cli_json("engine", "neap", port, "sleep", "--level", level)
            self.assertEqual(slept["device_bytes"], 0)
            self.assertEqual(slept["host_bytes"] > 0, level == 1)
            woken = pool.cli_json("engine", "neap", port, "wake", "--level", level)
            self.assertGreater(woken["device_bytes"], 3_000_000)
            self.assertEqual(complete(direct, "The licence", 16)["choices"], before["choices"])
            figures += [level, woken["device_bytes"] / 1e6, slept["took_us"] / 1e3,
                        woken["took_us"] / 1e3]
        print("sleep and wake, a real server: " + "; ".join(
            "level %d gave %.1f MB back in %.1f ms, woke in %.1f ms" % tuple(figures[i:i + 4])
            for i in (0, 4)), flush=True)


class LlamaCpp(unittest.TestCase):
    """llama.cpp behind the gateway, with a model that the Python server has too."""

    @classmethod
    def setUpClass(cls):
        if not torch_is_there():
            raise unittest.SkipTest("there is no torch to export a model with")
        why = why_no_llama()
        if why:
            raise unittest.SkipTest("llama.cpp: " + why)

    def test_e3_both_engines_say_the_same_and_llama_cpp_streams(self):
        pool = Pool(self).start()
        trained = folder(pool, "trained")
        subprocess.run([PYTHON, str(LLM / "train.py"), "--dir", str(trained), "--size", "small",
                        "--steps", "40", "--checkpoint-every", "40", "--contract", "watch",
                        "--batch", "4"], check=True, capture_output=True, timeout=180)
        readable(trained)
        model = export(pool.work / "model.gguf", "--checkpoints", trained)
        pool.submit(serve_llama(pool, "llama", model))
        pool.submit(serve_py(pool, "torch", "--checkpoints", str(trained)))
        wait_ready(pool, "llama")
        wait_ready(pool, "torch")
        addresses = [pool.service(name)["service"]["address"] for name in ("llama", "torch")]
        for prompt in ("The licence", "a copy of the program", "GNU"):
            said = [complete(address, prompt, 40) for address in addresses]
            self.assertEqual(*[one["choices"][0]["text"] for one in said])
            self.assertEqual([one["usage"]["completion_tokens"] for one in said], [40, 40])
        report, _ = Load(pool, "llama", "--rate", "10", "--duration", "5s", "--max-tokens", "32",
                         "--prompt", "The licence").end()
        self.assertEqual(report["outcomes"]["ok"], report["scheduled"], report)
        alone, _ = Load(pool, "llama", "--rate", "0.6", "--duration", "4s", "--max-tokens", "100",
                        "--prompt", "The licence", "--arrivals", "constant").end()
        # Not by the gaps between tokens: several come in one piece where the cores are busy.
        streaming = alone["total"]["mean_us"] - alone["first_byte"]["mean_us"]
        one = 1e6 * (alone["tokens"] / alone["outcomes"]["ok"] - 1) / streaming
        wait_for("its counters", lambda: pool.cli_json("latency", "llama")["engine"]["replicas"])
        print("llama.cpp behind the gateway: %d requests, %d ok; first token p50 %.1f ms, p99 %.1f "
              "ms; %.0f tokens/s at 10 requests/s, one stream %.0f tokens/s"
              % (report["scheduled"], report["outcomes"]["ok"],
                 report["first_byte"]["p50_us"] / 1e3, report["first_byte"]["p99_us"] / 1e3,
                 report["tokens_per_s"], one), flush=True)

    def test_c3_its_slots_are_offloaded_and_dropped_while_it_serves(self):
        pool = Pool(self).start()
        model = export(pool.work / "model.gguf", "--fresh", "tiny")
        pool.work.chmod(0o1777)
        pool.submit(serve_llama(pool, "llama", model))
        wait_ready(pool, "llama")
        port = port_of(pool, "llama")
        direct = "http://127.0.0.1:%d" % port
        first = complete(direct, "The licence", 8)

        def slots():
            import urllib.request
            with urllib.request.urlopen(direct + "/slots", timeout=10) as answer:
                return [slot["n_past"] for slot in json.loads(answer.read())]
        self.assertGreater(sum(slots()), 0)
        done = pool.cli("engine", "llama_cpp", port, "offload")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sum(slots()), 0)
        self.assertTrue((pool.work / "slot-0.bin").exists())
        self.assertEqual(complete(direct, "The licence", 8)["choices"], first["choices"])
        self.assertEqual(pool.cli("engine", "llama_cpp", port, "drop").returncode, 0)
        self.assertEqual(sum(slots()), 0)
        stop = threading.Event()
        failures = []

        def ask():
            while not stop.is_set():
                try:
                    complete(direct, "GNU", 20)
                except OSError as error:
                    failures.append(error)
        asking = threading.Thread(target=ask)
        asking.start()
        for _ in range(10):
            self.assertEqual(pool.cli("engine", "llama_cpp", port, "drop").returncode, 0)
        stop.set()
        asking.join(30)
        self.assertEqual(failures, [])
        for act in ("sleep", "wake", "shrink"):
            self.assertEqual(pool.cli("engine", "llama_cpp", port, act).returncode, 6)


if __name__ == "__main__":
    unittest.main(verbosity=2)
