"""The demonstration cleans up after itself when it is interrupted, and says what is missing."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NEAP = os.environ.get("NEAP") or str(ROOT / "build" / "neap")
PATIENCE_SECONDS = 120


def has_torch():
    return subprocess.run(["/usr/bin/python3", "-c", "import torch"], stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


def processes_of(folder):
    """Command lines of all processes that run in the folder or name it."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_bytes()
            place = os.readlink(entry / "cwd")
        except OSError:
            continue
        if folder.encode() in words or place.startswith(folder):
            found.append(words.replace(b"\0", b" ").decode(errors="replace"))
    return found


@unittest.skipUnless(os.access(NEAP, os.X_OK), "build/neap is not built")
class Demo(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="neap-demo-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def start(self, *options):
        command = [NEAP, "demo", "--dir", self.folder, "--examples", str(ROOT / "examples" / "llm"),
                   *options]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    @unittest.skipUnless(has_torch() and shutil.which("haproxy", path=os.environ["PATH"] +
                                                      ":/usr/sbin"), "needs torch and haproxy")
    def test_interrupted_it_leaves_nothing_behind(self):
        demo = self.start()
        end = time.monotonic() + PATIENCE_SECONDS
        for line in demo.stdout:
            if line.startswith("A day of") or time.monotonic() > end:
                break
        self.assertIn("train.py", " ".join(processes_of(self.folder)))
        demo.send_signal(signal.SIGINT)
        rest, errors = demo.communicate(timeout=PATIENCE_SECONDS)
        self.assertEqual(demo.returncode, 130, rest + errors)
        self.assertEqual(processes_of(self.folder), [])
        self.assertFalse(os.path.exists(self.folder))

    def test_it_says_what_is_missing(self):
        demo = self.start("--python", "/nowhere/python3")
        _, errors = demo.communicate(timeout=PATIENCE_SECONDS)
        self.assertEqual(demo.returncode, 8)
        self.assertIn("/nowhere/python3", errors)
        demo = self.start("--python", "/bin/false")
        _, errors = demo.communicate(timeout=PATIENCE_SECONDS)
        self.assertIn("python3-torch", errors)
        pathlib.Path(self.folder, "mine").touch()
        demo = self.start()
        _, errors = demo.communicate(timeout=PATIENCE_SECONDS)
        self.assertEqual(demo.returncode, 2)
        self.assertIn("new or empty folder", errors)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "mine")))


if __name__ == "__main__":
    unittest.main()
