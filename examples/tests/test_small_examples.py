"""The small examples keep the contract: stopped in the middle, they go on where they were.

Run: python3 -m unittest discover -s examples/tests   (standard library only)
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

EXAMPLES = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SDK = os.path.join(EXAMPLES, "..", "sdk", "python")


class SmallExamples(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)

    def start(self, *command, **environ):
        env = {k: v for k, v in os.environ.items() if not k.startswith("NEAP_")}
        env.update(PYTHONPATH=SDK,
                   NEAP_CHECKPOINT_DIR=self.dir, OUT=self.dir, STEP_SECONDS="0.02", **environ)
        process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE,
                                   universal_newlines=True, start_new_session=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        return process

    def read_until(self, process, line):
        for read in process.stdout:
            if read == line:
                return
        self.fail("ended before %r" % line)

    def test_minimal(self):
        program = os.path.join(EXAMPLES, "minimal", "train.py")
        process = self.start(sys.executable, program)
        end = time.monotonic() + 10
        while not self.catches_sigterm(process.pid):  # then the loop has begun, or is about to
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(), 75)
        again = self.start(sys.executable, program)
        self.assertEqual(again.communicate()[0], "sum %d\n" % sum(range(300)))
        self.assertEqual(again.returncode, 0)

    def catches_sigterm(self, pid):
        with open("/proc/%d/status" % pid) as file:
            caught = [line for line in file if line.startswith("SigCgt:")][0].split()[1]
        return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)

    def test_signals(self):
        program = os.path.join(EXAMPLES, "shell", "signals.sh")
        process = self.start(program, STEPS="30")
        self.read_until(process, "step 10\n")
        os.killpg(process.pid, signal.SIGTERM)
        rest = process.stdout.read().split("\n")
        self.assertEqual(process.wait(), 75)
        last = int((["step 10"] + [r for r in rest if r])[-1].split()[1])
        with open(os.path.join(self.dir, "state")) as file:
            self.assertEqual(int(file.read()), last)  # nothing is lost
        again = self.start(program, STEPS="30").communicate()[0].split("\n")
        self.assertEqual((again[0], again[-2]), ("step %d" % (last + 1), "step 30"))

    def test_watched(self):
        program = os.path.join(EXAMPLES, "shell", "watched.sh")
        process = self.start(program, EVERY="5")
        self.read_until(process, "step 11\n")
        os.killpg(process.pid, signal.SIGKILL)
        with open(os.path.join(self.dir, "checkpoint-10"), "w") as file:
            file.write("10")  # torn
        again = self.start(program, EVERY="5", STEPS="12").communicate()[0].split("\n")
        self.assertEqual((again[0], again[-2]), ("step 6", "step 12"))


if __name__ == "__main__":
    unittest.main()
