"""An interrupted run equals an uninterrupted one: every loss bit, every weight bit.

Run: /usr/bin/python3 -m unittest discover -s examples/llm/tests   (needs torch)
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLE = os.path.dirname(HERE)
SDK = os.path.join(EXAMPLE, "..", "..", "sdk", "python")
sys.path.insert(0, SDK)

from tests.fake_pool import FakePool  # noqa: E402  (of the SDK's own tests)

STEPS = 40
OPTIONS = ["--size", "tiny", "--batch", "2", "--steps", str(STEPS), "--seed", "11",
           "--report-every", "1"]

# Runs train.py with a bug planted: one part of the state is not put back.
FORGETFUL = """
import sys
sys.path.insert(0, sys.argv[1])
import train, torch  # in this order: train sets the number of threads first
part = sys.argv[2]
if part == "random":
    torch.set_rng_state = lambda state: None
elif part == "optimizer":
    torch.optim.AdamW.load_state_dict = lambda self, state: None
elif part == "data":
    train.corpus.Batches.restore = (lambda whole: lambda self, state: whole(self, state)
        if state["position"] == 0 else None)(train.corpus.Batches.restore)
train.main(sys.argv[3:])
"""


def clean_environment(**more):
    environ = {k: v for k, v in os.environ.items() if not k.startswith("NEAP_")}
    environ.update(more)
    return environ


class Bitwise(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.root)
        run = Run(os.path.join(cls.root, "reference"), "none")
        run.finish()
        cls.losses, cls.weights = run.losses(), run.weights()
        assert len(cls.losses) == STEPS, cls.losses

    def run_of(self, contract, *options):
        return Run(os.path.join(self.root, self.id().split(".")[-1]), contract, *options)

    def assert_same(self, run):
        self.assertEqual(run.losses(), self.losses)
        self.assertEqual(run.weights(), self.weights)

    def assert_true_so_far(self, run):
        """What an interrupted run wrote, and will write again, is right too."""
        losses = run.losses()
        self.assertTrue(losses)
        self.assertEqual(losses, self.losses[:len(losses)])

    def test_yields_over_the_socket(self):
        run = self.run_of("sdk", "--checkpoint-every", "7", "--step-sleep", "0.02")
        self.assertEqual(self.yield_over_socket(run, 4, {"type": "yield", "at": "now"}), 75)
        first = len(run.losses())
        self.assert_true_so_far(run)
        self.assertEqual(
            self.yield_over_socket(run, first + 3, {"type": "yield", "at": "boundary"}), 75)
        self.assertEqual(len(run.losses()) % 7, 0)  # at a boundary, and nothing after it
        run.finish()
        self.assert_same(run)

    def yield_over_socket(self, run, at_step, request):
        pool = FakePool(run.socket)
        try:
            process = run.start(NEAP_SOCKET=run.socket, NEAP_TASK="job")
            pool.next("hello")
            run.wait_for_step(process, at_step)
            pool.send(request)
            code = run.end(process)
            step = pool.next("yielding")["step"]
            self.assertEqual(step, len(run.losses()))  # no step is lost
            return code
        finally:
            pool.drop()

    def test_sigterm_with_sdk(self):
        self.check_sigterm(self.run_of("sdk", "--step-sleep", "0.02"))

    def test_sigterm_without_sdk(self):
        self.check_sigterm(self.run_of("signals", "--step-sleep", "0.02"))

    def check_sigterm(self, run):
        process = run.start()
        run.wait_for_step(process, 9)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(run.end(process), 75)
        self.assert_true_so_far(run)
        run.finish()
        self.assert_same(run)

    def test_kill_and_torn_checkpoint(self):
        run = self.run_of("sdk", "--checkpoint-every", "5", "--step-sleep", "0.02")
        self.check_kill(run, at_step=13, resumed_from=5)

    def test_watched_directory_kill_and_torn_checkpoint(self):
        run = self.run_of("watch", "--checkpoint-every", "5", "--step-sleep", "0.02")
        self.check_kill(run, at_step=13, resumed_from=5)

    def check_kill(self, run, at_step, resumed_from):
        process = run.start()
        run.wait_for_step(process, at_step)
        process.kill()
        self.assertEqual(run.end(process), -signal.SIGKILL)
        self.assert_true_so_far(run)
        newest = run.checkpoints()[-1]
        self.assertEqual(len(run.checkpoints()), 2)
        os.truncate(newest, os.path.getsize(newest) * 2 // 3)
        out = run.finish()
        self.assertIn("at step %d\n" % resumed_from, out)
        self.assert_same(run)

    def test_forgotten_state_is_noticed(self):
        """The comparison can fail: each part of the state, left out, is seen; none, is not."""
        base = self.run_of("sdk", "--step-sleep", "0.02")
        process = base.start()
        base.wait_for_step(process, 12)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(base.end(process), 75)
        for part in ("nothing", "random", "optimizer", "data"):
            copy = Run(base.dir + "-" + part, "sdk")
            shutil.copytree(base.dir, copy.dir)
            copy.finish(["-c", FORGETFUL, EXAMPLE, part])
            if part == "nothing":
                self.assert_same(copy)
            else:
                self.assertNotEqual(copy.losses(), self.losses, part)
                self.assertNotEqual(copy.weights(), self.weights, part)


class Run:
    """A training run in a directory of its own, over as many processes as it takes."""

    def __init__(self, directory, contract, *options):
        self.dir = directory
        self.socket = directory + ".s"
        self._options = ["--dir", directory, "--contract", contract] + OPTIONS + list(options)

    def start(self, **environ):
        return self._popen([os.path.join(EXAMPLE, "train.py")], **environ)

    def _popen(self, program, **environ):
        return subprocess.Popen([sys.executable] + program + self._options,
                                stdout=subprocess.PIPE, universal_newlines=True,
                                env=clean_environment(**environ))

    def wait_for_step(self, process, step):
        for line in process.stdout:
            if line.startswith("step ") and int(line.split()[1]) >= step:
                return
        raise AssertionError("the run ended before step %d" % step)

    def end(self, process):
        process.stdout.read()
        process.stdout.close()
        return process.wait()

    def finish(self, program=None):
        process = self._popen(program or [os.path.join(EXAMPLE, "train.py")])
        out = process.communicate()[0]
        assert process.returncode == 0, out
        return out

    def losses(self):
        with open(os.path.join(self.dir, "losses.log")) as file:
            lines = [line.split() for line in file]
        assert [int(line[0]) for line in lines] == list(range(1, len(lines) + 1)), lines
        return [line[1] for line in lines]

    def weights(self):
        with open(os.path.join(self.dir, "final.json")) as file:
            return json.load(file)["weights"]

    def checkpoints(self):
        return sorted(os.path.join(self.dir, name) for name in os.listdir(self.dir)
                      if name.startswith("checkpoint-"))


if __name__ == "__main__":
    unittest.main()
