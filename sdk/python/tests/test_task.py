"""The contract end to end: a training loop on one side, a pool's socket on the other."""

import contextlib
import io
import os
import queue
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import neap_task
from neap_task import link, task as task_module
from tests.fake_pool import FakePool

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def save(path, step):
    with open(path, "w") as file:
        file.write(str(step))


class WithPool(unittest.TestCase):
    def setUp(self):
        self.addCleanup(signal.signal, signal.SIGTERM, signal.getsignal(signal.SIGTERM))
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.socket = os.path.join(self.dir, "s")
        self.out = os.path.join(self.dir, "out")
        self.environ = {"NEAP_TASK": "t1", "NEAP_SOCKET": self.socket,
                        "NEAP_CHECKPOINT_DIR": self.out}
        self.pool = FakePool(self.socket)
        self.addCleanup(self.close_pool)

    def close_pool(self):
        with contextlib.suppress(OSError):
            self.pool.drop()

    def task(self, **options):
        options.setdefault("interval_seconds", 3600)
        options.setdefault("save", save)
        return neap_task.Task(environ=self.environ, **options)

    def wait_for(self, condition):
        end = time.monotonic() + 10
        while not condition():
            self.assertLess(time.monotonic(), end, "waited in vain")
            time.sleep(0.002)


class Protocol(WithPool):
    def test_run_to_the_end(self):
        with self.task(interval_steps=4) as task:
            self.assertEqual(task.name, "t1")
            self.assertEqual(list(task.steps(0, 10)), list(range(10)))
        messages = self.pool.rest()
        self.assertEqual(messages[0], {"type": "hello", "version": 1,
                                       "capabilities": ["on_demand", "boundary"]})
        saved = [m for m in messages if m["type"] == "checkpoint"]
        self.assertEqual([m["step"] for m in saved], [4, 8, 10])
        self.assertEqual(saved[-1]["path"], os.path.join(self.out, "checkpoint-00000010"))
        self.assertEqual(saved[-1]["bytes"], 2)
        self.assertLess(abs(saved[-1]["captured_us"] / 1e6 - time.time()), 60)
        for field in ("seconds", "stall_seconds"):
            self.assertGreater(saved[-1][field], 0)
        steps = [m for m in messages if m["type"] == "step"]
        self.assertEqual(sum(m["count"] for m in steps), 10)
        self.assertEqual(steps[-1]["n"], 10)
        self.assertFalse([m for m in messages if m["type"] == "yielding"])

    def test_steps_are_summed(self):
        with self.task() as task:
            began = time.monotonic()
            for _ in task.steps(0, 300):
                time.sleep(0.004)
            took = time.monotonic() - began
        steps = [m for m in self.pool.rest() if m["type"] == "step"]
        self.assertEqual(sum(m["count"] for m in steps), 300)
        self.assertGreaterEqual(len(steps), 2)
        self.assertLessEqual(len(steps), took / 0.5 + 2)  # one each 0.5 s, and the last words
        self.assertLess(abs(sum(m["seconds"] for m in steps) - took), 0.3 * took)

    def test_yield_now_saves_this_step_and_leaves_with_75(self):
        with self.assertRaises(neap_task.Yielded) as caught:
            with self.task() as task:
                for step in task.steps(3, 1000):
                    if step == 6:
                        self.pool.send({"type": "yield", "at": "now", "by": 0})
                        self.wait_for(lambda: task.yield_asked)
        self.assertEqual((caught.exception.code, caught.exception.step), (75, 7))
        messages = self.pool.rest()
        self.assertEqual(sum(m["count"] for m in messages if m["type"] == "step"), 4)
        self.assertEqual(messages[-1], {"type": "yielding", "step": 7})
        self.assertEqual([m["step"] for m in messages if m["type"] == "checkpoint"], [7])
        self.assertEqual(neap_task.newest_valid(self.out).step, 7)

    def test_yield_at_boundary_waits_for_the_interval(self):
        with self.assertRaises(neap_task.Yielded) as caught:
            with self.task(interval_steps=5) as task:
                for step in task.steps(0, 1000):
                    if step == 1:
                        self.pool.send({"type": "yield", "at": "boundary"})
                        self.wait_for(lambda: task.yield_asked)
        self.assertEqual(caught.exception.step, 5)
        self.assertEqual(neap_task.newest_valid(self.out).step, 5)

    def test_yield_at_boundary_becomes_now_at_its_time(self):
        by = time.time_ns() // 1000 + 100000
        with self.assertRaises(neap_task.Yielded):
            with self.task() as task:
                for step in task.steps(0, 100000):
                    if step == 0:
                        self.pool.send({"type": "yield", "at": "boundary", "by": by})
                    time.sleep(0.005)
        self.assertGreaterEqual(time.time_ns() // 1000, by)
        self.assertEqual(self.pool.next("checkpoint")["step"], self.pool.next("yielding")["step"])

    def test_checkpoint_on_demand_goes_on(self):
        with self.task() as task:
            for step in task.steps(0, 10):
                if step == 4:
                    self.pool.send({"type": "checkpoint", "by": 1})
                    self.wait_for(lambda: task._asked)
        saved = [m["step"] for m in self.pool.rest() if m["type"] == "checkpoint"]
        self.assertEqual(saved, [5, 10])

    def test_on_demand_checkpoint_is_a_boundary(self):
        with self.assertRaises(neap_task.Yielded) as caught:
            with self.task() as task:
                for step in task.steps(0, 100):
                    if step == 4:
                        self.pool.send({"type": "yield", "at": "boundary"}, {"type": "checkpoint"})
                        self.wait_for(lambda: task._asked)
        self.assertEqual(caught.exception.step, 5)

    def test_cancel_withdraws(self):
        with self.task(interval_steps=5) as task:
            for step in task.steps(0, 20):
                if step == 1:
                    self.pool.send({"type": "yield", "at": "boundary"})
                    self.wait_for(lambda: task.yield_asked)
                    self.pool.send({"type": "cancel"})
                    self.wait_for(lambda: not task.yield_asked)
        self.assertFalse([m for m in self.pool.rest() if m["type"] == "yielding"])

    def test_asked_before_the_first_step_leaves_without_saving(self):
        with self.assertRaises(neap_task.Yielded) as caught:
            with self.task() as task:
                self.pool.send({"type": "yield", "at": "boundary"})
                self.wait_for(lambda: task.yield_asked)
                for _ in task.steps(12, 100):
                    self.fail("no step should be made")
        self.assertEqual(caught.exception.step, 12)
        self.assertFalse(os.path.exists(self.out))
        self.assertEqual(self.pool.next("yielding")["step"], 12)

    def test_finished_is_finished_even_when_asked(self):
        with self.task() as task:
            for step in task.steps(0, 3):
                if step == 2:
                    self.pool.send({"type": "yield", "at": "now"})
                    self.wait_for(lambda: task.yield_asked)
        self.assertEqual(neap_task.newest_valid(self.out).step, 3)

    def test_garbage_and_long_lines_are_ignored(self):
        with self.assertRaises(neap_task.Yielded):
            with self.task() as task:
                for step in task.steps(0, 100000):
                    if step == 1:
                        self.pool.send_bytes(
                            b"\x00\xff\n[[[\n{}\n[]\n" + b"[" * 70000 + b"\n" + b"x" * 3000000
                            + b'\n{"type":"yield","at":"sometime"}\n{"type":"dance"}\n')
                        self.pool.send({"type": "yield", "at": "now"})
                    time.sleep(0.001)
        self.pool.next("yielding")

    def test_error_in_training_is_not_hidden_and_not_saved(self):
        with self.assertRaisesRegex(RuntimeError, "loss is NaN"):
            with self.task() as task:
                for _ in task.steps(0, 10):
                    raise RuntimeError("loss is NaN")
        self.assertFalse(os.path.exists(self.out))

    def test_pieces(self):
        with self.task(save=None) as task:
            task.begin(40)
            self.assertIs(task.due(), neap_task.Due.NOTHING)
            task.note_step(41, 0.1)
            task.report_checkpoint(neap_task.Checkpoint("/own/41", 41, 9, 2.0), 123, 0.25)
            message = self.pool.next("checkpoint")
            self.assertEqual((message["path"], message["captured_us"], message["stall_seconds"]),
                             ("/own/41", 123, 0.25))
            with self.assertRaises(RuntimeError):
                task.checkpoint(41)


class FailingSave(WithPool):
    def test_first_failure_is_raised(self):
        def broken(path, step):
            raise PermissionError("no")
        with self.assertRaises(PermissionError):
            with self.task(save=broken, interval_steps=2) as task:
                list(task.steps(0, 10))

    def test_later_failure_goes_on_and_a_yield_waits_for_a_good_one(self):
        failing = []

        def sometimes(path, step):
            save(path, step)
            if 4 <= step < 8:
                failing.append(step)
                raise RuntimeError("disk full")

        errors = io.StringIO()
        with self.assertRaises(neap_task.Yielded) as caught, contextlib.redirect_stderr(errors):
            with self.task(save=sometimes, interval_steps=2) as task:
                for step in task.steps(0, 100):
                    if step in (5, 9):
                        self.pool.send({"type": "yield", "at": "now"})
                        self.wait_for(lambda: task._yield is not None and not task._retry_at)
        self.assertEqual(failing, [4, 6])
        self.assertEqual(caught.exception.step, 10)
        self.assertIn("checkpoint at step 4 failed (RuntimeError: disk full)", errors.getvalue())


class Away(WithPool):
    def test_reconnects_and_tells_again_what_may_be_lost(self):
        with contextlib.redirect_stderr(io.StringIO()) as errors, self.task() as task:
            loop = task.steps(0, 1000)
            next(loop)
            next(loop)
            task.checkpoint(1)
            self.pool.next("checkpoint")
            self.pool.drop()
            self.wait_for(lambda: task._link._socket is None)
            for _ in range(5):
                next(loop)
            self.pool = FakePool(self.socket)
            self.assertEqual(self.pool.next("hello")["version"], 1)
            self.assertEqual(self.pool.next("checkpoint")["step"], 1)
            self.assertEqual(self.pool.next("step")["count"], 5)
            self.pool.send({"type": "yield", "at": "now"})
            self.wait_for(lambda: task.yield_asked)
            with self.assertRaises(neap_task.Yielded):
                next(loop)
        self.assertEqual(self.pool.next("yielding")["step"], 7)
        self.assertLessEqual(errors.getvalue().count("not reachable"), 1)

    def test_checkpoints_written_while_away_are_told(self):
        self.pool.drop()
        with contextlib.redirect_stderr(io.StringIO()), self.task(interval_steps=2) as task:
            for step in task.steps(0, 160):
                if step == 150:
                    self.pool = FakePool(self.socket)
                    self.pool.next("hello")
        saved = [m["step"] for m in self.pool.rest() if m["type"] == "checkpoint"]
        self.assertEqual(saved[-1], 160)
        self.assertLess(len(saved), 75)  # the outbox is bounded while nobody listens

    def test_request_outlives_its_connection(self):
        with self.assertRaises(neap_task.Yielded), contextlib.redirect_stderr(io.StringIO()):
            with self.task(interval_steps=5) as task:
                for step in task.steps(0, 100):
                    if step == 1:
                        self.pool.send({"type": "yield", "at": "boundary"})
                        self.wait_for(lambda: task.yield_asked)
                        self.pool.drop()

    def test_never_there_costs_nothing(self):
        self.pool.drop()
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            with self.task() as task:
                began = time.monotonic()
                for _ in task.steps(0, 20000):
                    pass
                self.assertLess(time.monotonic() - began, 5)
            self.assertLess(time.monotonic() - began, 5)
        self.assertEqual(errors.getvalue().count("not reachable"), 1)

    def test_pool_that_never_reads_does_not_block(self):
        self.pool.drop()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(self.socket)
        listener.listen(1)
        self.addCleanup(listener.close)
        began = time.monotonic()
        with self.task(save=None) as task:
            for step in range(3000):
                task.note_step(step, 0.1)
                task.report_checkpoint(
                    neap_task.Checkpoint("/" + "p" * 4000, step, 1, 1.0), 1, 1.0)
            self.assertLess(time.monotonic() - began, 3)
        self.assertLess(time.monotonic() - began, 3 + 3)

    def test_pool_that_hangs_up_at_once_is_not_hammered(self):
        self.pool.drop()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(self.socket)
        listener.listen(16)
        accepted = queue.Queue()

        def hang_up():
            with contextlib.suppress(OSError):
                while True:
                    listener.accept()[0].close()
                    accepted.put(1)

        threading.Thread(target=hang_up, daemon=True).start()
        with self.task():
            time.sleep(0.8)
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        self.assertLessEqual(accepted.qsize(), 6)  # at 0, 0.1, 0.3, 0.7 s and a margin
        self.assertGreaterEqual(accepted.qsize(), 2)


class Threads(WithPool):
    def test_reports_from_many_threads(self):
        with self.task(save=None) as task:
            def work(base):
                for i in range(200):
                    task.note_step(base + i, 0.001)
                    task.due()
                    if i % 50 == 0:
                        task.report_checkpoint(
                            neap_task.Checkpoint("/c", base + i, 1, 0.1), 1, 0.1)
            threads = [threading.Thread(target=work, args=(1000 * k,)) for k in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        messages = self.pool.rest()
        self.assertEqual(sum(m["count"] for m in messages if m["type"] == "step"), 1600)
        self.assertEqual(len({m["step"] for m in messages if m["type"] == "checkpoint"}), 32)

    def test_task_in_another_thread_leaves_signals_alone(self):
        before = signal.getsignal(signal.SIGTERM)

        def run():
            with self.task() as task:
                list(task.steps(0, 3))
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        self.assertIs(signal.getsignal(signal.SIGTERM), before)
        self.assertEqual(neap_task.newest_valid(self.out).step, 3)

    def test_forked_worker_lets_go(self):
        """A child neither keeps the parent's connection alive nor swallows SIGTERM."""
        with self.task() as task:
            self.pool.next("hello")
            ready_read, ready_write = os.pipe()
            child = os.fork()
            if child == 0:
                task.note_step(1, 0.1)
                os.write(ready_write, b"r")
                time.sleep(30)
                os._exit(0)
            os.read(ready_read, 1)
        self.pool.next("gone")  # although the child lives
        os.kill(child, signal.SIGTERM)
        self.assertEqual(os.waitpid(child, 0)[1], signal.SIGTERM)


SCRIPT = r"""
import sys, time
import neap_task
def save(path, step):
    open(path, "w").write(str(step))
with neap_task.Task(save=save, interval_seconds=3600, directory=sys.argv[1]) as task:
    path = task.restore_path()
    start = int(open(path).read()) if path else 0
    for step in task.steps(start, int(sys.argv[2])):
        print("step", step, flush=True)
        time.sleep(0.01)
print("finished", flush=True)
"""


class Process(unittest.TestCase):
    """A real process, real signals, real exit codes."""

    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)

    def start(self, total, **environ):
        env = {k: v for k, v in os.environ.items() if not k.startswith("NEAP_")}
        env.update(PYTHONPATH=ROOT, **environ)
        process = subprocess.Popen([sys.executable, "-c", SCRIPT, self.dir + "/out", str(total)],
                                   env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   universal_newlines=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        return process

    def test_sigterm_without_a_pool_then_resume(self):
        process = self.start(10 ** 6)
        while process.stdout.readline() != "step 5\n":
            pass
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGTERM)  # a second one changes nothing
        last = "step 5\n"
        for line in process.stdout:
            last = line
        self.assertEqual(process.wait(), 75)
        saved = neap_task.newest_valid(self.dir + "/out").step
        self.assertEqual(last, "step %d\n" % (saved - 1))
        again = self.start(saved + 3)
        self.assertEqual(again.stdout.read().split("\n")[0], "step %d" % saved)
        self.assertEqual(again.wait(), 0)

    def test_outside_a_pool_nothing_but_the_loop(self):
        process = self.start(3)
        out, errors = process.communicate()
        self.assertEqual((out.split("\n")[-2], errors, process.returncode), ("finished", "", 0))

    def test_unreachable_pool_and_sigterm(self):
        process = self.start(10 ** 6, NEAP_SOCKET="/nowhere/" + "x" * 200)
        process.stdout.readline()
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate()
        self.assertEqual(process.returncode, 75)
        self.assertLess(time.monotonic() - began, 5)
        self.assertIn("not reachable", errors)


class Options(unittest.TestCase):
    def test_misuse_is_refused_where_it_happens(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(TypeError):
                neap_task.Task(save="path", directory=folder, environ={})
            for start, error in ((-1, ValueError), (0.5, TypeError)):
                with neap_task.Task(save=save, directory=folder, environ={}) as task:
                    with self.assertRaises(error):
                        next(iter(task.steps(start, 3)))

    def test_bad_options_are_named(self):
        for name in ("interval_seconds", "interval_steps", "keep"):
            with self.assertRaisesRegex(ValueError, name):
                neap_task.Task(save=save, **{name: 0})

    def test_constants(self):
        self.assertEqual(neap_task.EXIT_YIELDED, 75)
        self.assertEqual(link.STEP_INTERVAL_SECONDS, 0.5)
        self.assertEqual(task_module.DEFAULT_INTERVAL_SECONDS, 600)


if __name__ == "__main__":
    unittest.main()
