"""What one user, one file or one slip must not do to a pool and to the others in it."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from pool import NEAP, NORMAL, PATIENCE, PYTHON, SERVING, SIGNALS, ApiError, Pool, wait_for
from programs import PATIENT

ZERO = '''task:
  name: zero
  tier: train_normal
  command: [sh, -c, "true", "a\\0b"]
  gpus: 1
  checkpoint: {contract: signals}
'''
# Says what no honest task would, then waits.
LIAR = '''
import json, os, socket, time
s = socket.socket(socket.AF_UNIX)
s.connect(os.environ["NEAP_SOCKET"])
def say(line):
    s.sendall((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\\n")
say({"type": "hello", "version": 1, "capabilities": ["on_demand"]})
say(b"garbage \\xff\\xfe")
say(b"x" * 200000)
say({"type": "step", "n": 100, "count": 1000000, "seconds": 9e6})
say({"type": "step", "n": 5, "count": 1, "seconds": 1.0})
say({"type": "checkpoint", "step": 9, "path": "/c\\0d", "bytes": 1, "seconds": 0.1})
say({"type": "checkpoint", "step": 9, "path": "relative", "bytes": 1, "seconds": 0.1})
say({"type": "checkpoint", "step": 100, "path": "/c/100", "bytes": 1, "seconds": 1e8,
     "captured_us": 2**63 - 1, "stall_seconds": 1e8})
print("said", flush=True)
while True:
    time.sleep(100)
'''
OTHERS = (61001, 61002)  # users without an entry


class OneInput(unittest.TestCase):
    def test_no_task_keeps_the_daemon_from_starting_again(self):
        pool = Pool(self).start()
        plain = ZERO.replace("a\\0b", "b")
        for text in (ZERO, plain + '  env: {A: "\\0"}\n', plain + '  workdir: "/tmp\\0x"\n'):
            with self.assertRaises(ApiError) as refused:
                pool.submit(text)
            self.assertEqual(refused.exception.status, 400)
            self.assertIn("zero byte", str(refused.exception))
        pool.submit_task("ended", ["true"])
        pool.wait_state("ended", "finished")
        pool.submit_task("runs", ["sleep", "1000"])
        pool.wait_state("runs", "running")
        # Damaged by whatever: the others are looked after all the same.
        (pool.state_dir / "run/tasks/0/spec.json").write_text('{"argv":["a')
        pool.kill()
        pool.start()
        self.assertIn("tasks/0/spec.json", pool.log_tail())
        pool.delete("/v1/tasks/runs")
        pool.wait_state("runs", "cancelled")

    def test_lies_on_the_contract_socket(self):
        pool = Pool(self).start()
        began = time.time()
        (pool.work / "liar.py").write_text(LIAR)
        pool.submit_task("liar", [PYTHON, "liar.py"], checkpoint={**SIGNALS, "contract": "sdk"})
        wait_for("its words", lambda: "said" in pool.log("liar"))
        pool.wait_event("checkpoint_durable", "liar")
        task = pool.task("liar")
        self.assertEqual(task["state"], "running")
        self.assertEqual(task["step"], 100)  # never backwards, and not what was refused
        self.assertLessEqual(task["last_checkpoint_us"], time.time() * 1e6)
        usage = pool.get("/v1/usage")
        held_us = (time.time() - began) * 1e6
        useful = int(usage["categories"]["useful_training"]) / 1000  # of milli-GPU microseconds
        self.assertLessEqual(useful, held_us)
        shown = pool.cli("describe", "liar").stdout
        self.assertFalse([c for c in shown if ord(c) < 32 and c != "\n"], shown)
        pool.delete("/v1/tasks/liar")
        pool.wait_state("liar", "cancelled")
        pool.check_replay()

    def test_a_service_that_crashes_at_once_says_so_and_backs_off(self):
        pool = Pool(self).start()
        pool.submit({"service": {"name": "crash", "tier": SERVING, "gpus": 1,
                                 "command": ["sh", "-c", "echo boom; exit 3"]}})
        why = wait_for("a replica in back-off",
                       lambda: [t["reason"] for t in pool.get("/v1/tasks")["tasks"]
                                if t["state"] == "waiting" and "starts again" in t["reason"]])[0]
        self.assertIn("starts in a row ended unasked", why)
        first = pool.task("crash.0")
        self.assertEqual((first["state"], first["exit_code"], first["reason"]),
                         ("failed", 3, "exited with 3"))
        self.assertIn("boom", pool.log("crash.0"))
        done = pool.cli("logs", "crash")
        self.assertEqual(done.returncode, 3)
        self.assertIn("crash.0", done.stderr)
        pool.submit_task("other", ["sleep", "1000"])
        pool.wait_state("other", "running")


class OneMachine(unittest.TestCase):
    def test_pools_of_one_name_do_not_touch_each_others_tasks(self):
        text = json.dumps({"pool": {"total_gpus": 1}, "devices": {"source": "simulated"},
                           "preempt": {"grace": "5s", "term_grace": "5s"},
                           "priority_tiers": [{"name": NORMAL, "weight": 1}]})
        pools = [Pool(self, text).start() for _ in range(2)]
        for pool in pools:
            self.addCleanup(remove_default_groups)
            pool.submit_task("job", ["sh", "-c", PATIENT])  # allocation 0 of both
            pool.wait_state("job", "running")
        pools[0].delete("/v1/tasks/job")
        pools[0].wait_state("job", "cancelled")
        pools[1].kill()
        pools[1].start()
        self.assertEqual(pools[1].task("job")["state"], "running")
        self.assertEqual([e for e in pools[1].events() if e["kind"] == "task_exited"], [])

    def test_a_state_folder_of_others_is_left_as_it_is(self):
        pool = Pool(self)
        folder = pathlib.Path(tempfile.mkdtemp(prefix="neap-e2e-"))
        self.addCleanup(shutil.rmtree, folder)
        folder.chmod(0o1777)
        done = subprocess.run([str(NEAP), "serve", str(pool.pool_file), "--state-dir", str(folder)],
                              capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("%s: cannot be the state folder: others may write" % folder, done.stderr)
        self.assertEqual(folder.stat().st_mode & 0o7777, 0o1777)
        self.assertEqual(list(folder.iterdir()), [])

    def test_two_daemons_on_one_state_folder(self):
        pool = Pool(self).start()
        pool.submit_task("job", ["sleep", "1000"])
        pool.wait_state("job", "running")
        second = subprocess.run([str(NEAP), "serve", str(pool.pool_file), "--state-dir",
                                 str(pool.state_dir)], capture_output=True, text=True,
                                timeout=PATIENCE)
        self.assertEqual(second.returncode, 5, second.stderr)
        self.assertIn("open for writing by process %d" % pool.daemon.pid, second.stderr)
        self.assertEqual(pool.task("job")["state"], "running")

    def test_a_journal_older_than_what_runs_is_noticed(self):
        pool = Pool(self).start()
        pool.stop()
        old = {path.name: path.read_bytes() for path in pool.state_dir.glob("journal.db*")}
        pool.start()
        pool.submit_task("job", ["sleep", "1000"])
        pool.wait_state("job", "running")
        pool.stop()
        for path in pool.state_dir.glob("journal.db*"):
            path.unlink()
        for name, content in old.items():
            (pool.state_dir / name).write_bytes(content)
        pool.start(wait=False)
        self.assertFalse(pool.wait_ready())
        self.assertIn("run/tasks/0: is of a task that the journal does not know", pool.log_tail())
        self.assertEqual(pool.wait_dead(), 5)

    def test_slow_clients_keep_nobody_out(self):
        pool = Pool(self).start()
        slow = []
        self.addCleanup(lambda: [one.close() for one in slow])
        for _ in range(400):
            one = socket.socket(socket.AF_UNIX)
            one.settimeout(PATIENCE)
            one.connect(str(pool.socket))
            one.sendall(b"GET /v1/version HT")
            slow.append(one)
        self.assertEqual(pool.cli("version").returncode, 0)


@unittest.skipUnless(os.geteuid() == 0, "needs root to be several users")
class SeveralUsers(unittest.TestCase):
    def setUp(self):
        self.pool = Pool(self, api={"group": "users"}).start()
        for uid in OTHERS:
            folder = self.pool.work / str(uid)
            folder.mkdir()
            os.chown(folder, uid, 100)

    def cli(self, uid, *words):
        return subprocess.run([str(NEAP), *words], capture_output=True, text=True, timeout=PATIENCE,
                              cwd=self.pool.work / str(uid), user=uid, group=100, extra_groups=[],
                              env={"NEAP_SOCKET_API": str(self.pool.socket), "HOME": "/"})

    def submit(self, uid, name, gpus=1, command="sleep 1000"):
        done = subprocess.run([str(NEAP), "submit", "-"], text=True, capture_output=True,
                              input=json.dumps({"task": {
                                  "name": name, "tier": NORMAL, "gpus": gpus,
                                  "command": ["sh", "-c", command], "env": {"SECRET": "hush"},
                                  "checkpoint": SIGNALS}}),
                              timeout=PATIENCE, cwd=self.pool.work / str(uid), user=uid, group=100,
                              extra_groups=[],
                              env={"NEAP_SOCKET_API": str(self.pool.socket), "HOME": "/"})
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_nobody_sees_what_others_do(self):
        one, two = OTHERS
        self.submit(one, "alpha", gpus=4)
        self.pool.wait_state("alpha", "running")
        self.submit(one, "beta")
        self.assertEqual(self.cli(one, "cancel", "beta").returncode, 0)
        self.pool.wait_state("beta", "cancelled")
        self.submit(two, "gamma")
        names = ("alpha", "beta", "hush", str(one))
        for words in (["ps", "-a"], ["ps", "-a", "--json"], ["gpus"], ["events"],
                      ["events", "--json"], ["usage"], ["describe", "gamma"], ["why", "gamma"]):
            done = self.cli(two, *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            for name in names:
                self.assertNotIn(name, done.stdout, words)
        for words in (["describe", "alpha"], ["why", "alpha"], ["logs", "alpha"],
                      ["cancel", "alpha"], ["pause"], ["resume"]):
            self.assertEqual(self.cli(two, *words).returncode, 4, words)
        self.assertIn("cancel asked by", self.cli(one, "events").stdout)
        self.assertEqual(self.pool.task("alpha")["state"], "running")
        # The same name, later, by another: each sees his own.
        self.submit(two, "beta")
        self.assertEqual(self.cli(two, "events").stdout.count("beta: submitted"), 1)

    def test_no_file_is_for_others(self):
        self.submit(OTHERS[0], "alpha", command="echo words; exec sleep 1000")
        wait_for("its words", lambda: "words" in self.pool.log("alpha"))
        self.pool.submit({"service": {"name": "chat", "tier": SERVING, "gpus": 1,
                                      "command": ["sleep", "1000"]}})
        self.pool.wait_state("chat.0", "running")
        group = OTHERS[0]
        for path in [self.pool.state_dir, *self.pool.state_dir.rglob("*")]:
            info = path.lstat()
            allowed = 0o711 if path.is_dir() else 0o600
            if path == self.pool.socket:
                allowed = 0o660
            self.assertEqual(info.st_mode & 0o777 & ~allowed, 0, path)
            owners = {0, group} if path.name == "contract.sock" else {0}
            self.assertIn(info.st_uid, owners, path)


def remove_default_groups():
    """Control groups of pools that are called "default", where they are empty."""
    for group in pathlib.Path("/sys/fs/cgroup").glob("**/neap/default-*"):
        for path in [*group.glob("*/"), group]:
            try:
                path.rmdir()
            except OSError:
                pass


if __name__ == "__main__":
    unittest.main()
