"""D2: training that the pool has interrupted ends as if nothing had happened, bit for bit.

The example's tiny language model runs through a real daemon and is interrupted in three ways; the
loss of every step and the weights at the end equal those of a run that nobody touched.
"""

import json
import os
import re
import signal
import subprocess
import unittest

from pool import PATIENCE, PYTHON, ROOT, SDK, SIGNALS, URGENT, Pool, processes_of, wait_for

TRAIN = ROOT / "examples/llm/train.py"
STEPS = 60
OPTIONS = ["--size", "tiny", "--batch", "2", "--steps", str(STEPS), "--seed", "23",
           "--report-every", "1"]


def losses_of(folder):
    """The loss of each step, as the bits of the number; [] before there is a log."""
    try:
        lines = [line.split() for line in (folder / "losses.log").read_text().splitlines()]
    except FileNotFoundError:
        return []
    return [line[1] for line in lines if len(line) == 3]


def weights_of(folder):
    return json.loads((folder / "final.json").read_text())["weights"]


def has_torch():
    return subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode == 0


@unittest.skipUnless(has_torch(), "needs torch (python3-torch)")
class Bitwise(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """The run that nobody interrupts; it needs no pool, only a task's plain environment:
        libraries may choose other instructions, with other roundings, by variables."""
        cls.reference = Pool(_Cleanup(cls)).work / "reference"
        done = subprocess.run([PYTHON, TRAIN, *OPTIONS, "--contract", "none", "--dir",
                               cls.reference],
                              env={"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/"),
                                   "LANG": "C.UTF-8", "PYTHONPATH": str(SDK)},
                              capture_output=True, text=True, timeout=PATIENCE * 3)
        assert done.returncode == 0, done.stdout + done.stderr
        cls.losses, cls.weights = losses_of(cls.reference), weights_of(cls.reference)
        assert len(cls.losses) == STEPS and len(set(cls.losses)) > STEPS // 2, cls.losses

    def train(self, contract, **checkpoint):
        """Starts the training in a pool of one device; returns when it is amid its work.

        The device is a lendable one: on those nobody is protected from being preempted soon.
        """
        self.pool = Pool(self, pool={"total_gpus": 1, "elastic_buffer": 1}).start()
        self.folder = self.pool.work / "run"
        self.pool.submit_task(
            "job", [PYTHON, str(TRAIN), *OPTIONS, "--contract", contract, "--dir",
                    str(self.folder), "--checkpoint-every", "7", "--step-sleep", "0.05"],
            env={"PYTHONPATH": str(SDK)},
            checkpoint={**SIGNALS, "contract": contract, **checkpoint})
        wait_for("the training to make steps", lambda: len(losses_of(self.folder)) >= 9)

    def preempt(self):
        """A task of a heavier tier takes the device and gives it back."""
        self.pool.submit_task("urgent", ["true"], tier=URGENT)
        urgent = self.pool.wait_state("urgent", "finished")
        job = self.pool.task("job")
        self.assertEqual((job["preemptions"], job["lost_work_us"]), (1, 0), job)
        self.assertGreater(urgent["started_us"], urgent["submitted_us"])

    def check_equal(self):
        job = self.pool.wait_state("job", "finished", "failed")
        self.assertEqual((job["state"], job["exit_code"], job["step"] or STEPS),
                         ("finished", 0, STEPS), self.pool.log("job"))
        self.assertEqual(losses_of(self.folder), self.losses)
        self.assertEqual(weights_of(self.folder), self.weights)
        log = self.pool.log("job")
        (resumed,) = re.findall(r"resumed from \S+ at step (\d+)", log)
        self.assertLess(0, int(resumed))
        self.assertLess(int(resumed), STEPS)
        print("resumed at step %s of %d: losses and weights equal" % (resumed, STEPS), flush=True)
        return job

    def check_yield_over_the_sdk(self, mode, **checkpoint):
        self.train("sdk", **checkpoint)
        self.preempt()
        self.check_equal()
        asked = self.pool.wait_event("yield_asked", "job")
        self.assertIn("(%s, preempted)" % mode, asked["message"])
        self.pool.wait_event("yield_acknowledged", "job")

    def test_D2_yield_on_demand_over_the_sdk(self):
        # The next boundary is a day away: a checkpoint is asked for.
        self.check_yield_over_the_sdk("on_demand", interval="24h", on_demand=True)

    def test_D2_yield_at_a_boundary_over_the_sdk(self):
        self.check_yield_over_the_sdk("boundary", interval="10min")

    def test_D2_sigterm_by_the_signals_contract(self):
        self.train("signals")
        self.preempt()
        self.check_equal()
        self.assertFalse([e for e in self.pool.events() if e["kind"] == "yield_acknowledged"])

    def test_D2_kill_9_of_its_process(self):
        self.train("sdk", interval="10min")
        before = len(losses_of(self.folder))
        for pid in processes_of(self.folder):
            with open("/proc/%d/cmdline" % pid, "rb") as file:
                if bytes(TRAIN) in file.read():
                    os.kill(pid, signal.SIGKILL)
        job = self.check_equal()
        self.assertEqual(job["preemptions"], 0)
        self.assertGreater(job["lost_work_us"], 0)  # and it is said
        self.pool.wait_event("backoff_ended", "job")
        self.assertLess(before, STEPS)


class _Cleanup:
    """A class as a pool's test case."""

    def __init__(self, cls):
        self.addCleanup = cls.addClassCleanup


if __name__ == "__main__":
    unittest.main()
