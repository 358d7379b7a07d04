"""Drills, the report of preemptions and the checkpoint contract, with real processes (F10, F11,
F12, D12). Intervals and limits are seconds where the field has minutes."""

import os
import signal
import subprocess
import unittest

from pool import NEAP, NORMAL, PYTHON, SDK, SIGNALS, Pool, wait_for
from programs import answers, service, trainer, write_once

BURST = ["drill", "burst", "--service", "chat", "--replicas", 4, "--for", "12s", "--max-lost",
         "0s", "--ready-within", "30s", "--resume-within", "60s", "--pause", "1s"]

# Saves when it is asked alone.
FORGETFUL = """
import time
import neap_task
def save(path, step):
    open(path, "w").close()
with neap_task.Task(save=save, interval_seconds=1000) as task:
    for step in task.steps(0, 10**9):
        time.sleep(0.05)
"""

# Never comes to a step at which it could save.
STUCK = """
import time
import neap_task
with neap_task.Task(save=lambda path, step: None, interval_seconds=1000) as task:
    time.sleep(1000)
"""


def replicas_that_stay(pool):
    return [task["name"] for task in pool.get("/v1/tasks")["tasks"]
            if task["service"] == "chat" and task["state"] in ("starting", "running", "waiting")]


class Drills(unittest.TestCase):
    def busy_pool(self):
        """Four devices, two of them the guard: one replica, and two trainings on the others."""
        pool = Pool(self, pool={"total_gpus": 4, "inference_guard_min": 2}).start()
        service(pool, "chat", least=1, most=4)
        wait_for("the replica to answer", lambda: answers(pool, "chat"))
        for name in ("job-a", "job-b"):
            trainer(pool, name, 1)
        for name in ("job-a", "job-b"):
            wait_for("a checkpoint of " + name,
                     lambda name=name: pool.task(name)["last_checkpoint_us"])
        return pool

    def is_as_before(self, pool):
        wait_for("one replica", lambda: len(replicas_that_stay(pool)) == 1)
        for name in ("job-a", "job-b"):
            pool.wait_state(name, "running")
            step = pool.task(name)["step"]
            wait_for("more steps of " + name,
                     lambda name=name, step=step: pool.task(name)["step"] > step)
        self.assertFalse(pool.status()["paused"])
        self.assertEqual(pool.service("chat")["service"]["replicas_min"], 1)

    def test_F12_a_burst_pauses_resumes_and_reclaims_within_its_limits(self):
        pool = self.busy_pool()
        done = pool.cli(*BURST, "--max-preemptions", 2)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr + pool.log_tail())
        self.assertIn("passed: every limit was kept", done.stdout)
        drill = pool.get("/v1/drill")
        self.assertEqual(drill["result"]["kind"], "burst")
        self.assertTrue(all(check["kept"] for check in drill["checks"]), drill["checks"])
        self.assertEqual(sorted(row["source"] for row in drill["placed"]),
                         ["guard", "yielded", "yielded"])
        left = [victim for victim in drill["victims"] if not victim["withdrawn"]]
        self.assertEqual({victim["name"] for victim in left}, {"job-a", "job-b"})
        self.assertEqual([victim["lost_us"] for victim in left], [0, 0])
        self.assertTrue(all(victim["resumed_us"] for victim in left))
        self.is_as_before(pool)
        for row in drill["placed"]:
            print("drill: %s from %s, ready after %.2f s" % (
                row["name"], row["source"], (row["ready_us"] - row["asked_us"]) / 1e6))
        for check in drill["checks"]:
            print("drill: %s: %s (%s)" % (check["name"], check["figure"], check["limit"]))

        # What it took is in the report of preemptions, also after the daemon was killed, which
        # replays from a snapshot.
        report = pool.cli_json("preemptions", "--since", "1h")
        self.assertGreaterEqual(report["all"]["done"], 2)
        self.assertEqual(report["all"]["failed"], 0)
        self.assertEqual(report["all"]["success_ppm"], 1_000_000)
        self.assertEqual(report["all"]["lost_us"]["max"], 0)
        self.assertEqual(report["all"]["at_boundary"] + report["all"]["on_demand"],
                         report["all"]["done"])
        pool.kill()
        pool.start()
        again = pool.cli_json("preemptions", "--since", "1h")
        for group in ("all", "break_glass", "teams", "tiers", "queues"):
            self.assertEqual(again[group], report[group])
        self.assertEqual(pool.get("/v1/drill")["result"], drill["result"])
        self.assertIn("effective capacity", pool.cli("preemptions").stdout)

    def test_F12_above_its_limit_it_is_withdrawn_and_says_which(self):
        pool = self.busy_pool()
        done = pool.cli(*BURST, "--max-preemptions", 0)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("at most 0 may be", done.stdout)
        self.assertFalse(pool.get("/v1/drill")["result"]["passed"])
        self.is_as_before(pool)

    def test_F12_the_pool_is_as_before_when_the_command_and_the_daemon_are_killed_midway(self):
        pool = self.busy_pool()
        command = subprocess.Popen(
            [str(NEAP), *map(str, BURST), "--max-preemptions", "2"], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, "NEAP_SOCKET_API": str(pool.socket)})
        wait_for("the drill to ask for room",
                 lambda: pool.get("/v1/drill")["victims"])
        command.send_signal(signal.SIGKILL)
        command.wait()
        pool.kill()
        pool.start()
        drill = wait_for("the drill to end by itself",
                         lambda: (lambda d: d if d["phase"] == "none" else None)(
                             pool.get("/v1/drill")))
        self.assertIsNotNone(drill["result"])
        self.is_as_before(pool)
        print("drill: command and daemon killed midway: %s" % drill["result"]["detail"])
        pool.check_replay()

    def test_F12_the_command_waits_for_a_daemon_that_restarts(self):
        pool = self.busy_pool()
        command = subprocess.Popen(
            [str(NEAP), *map(str, BURST), "--max-preemptions", "2"], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
            env={**os.environ, "NEAP_SOCKET_API": str(pool.socket)})
        wait_for("the drill to ask for room", lambda: pool.get("/v1/drill")["victims"])
        pool.kill()
        self.assertIn("the daemon does not answer: waiting for it", command.stderr.readline())
        pool.start()
        out, err = command.communicate(timeout=120)
        self.assertIn(command.returncode, (0, 1), out + err)
        self.assertIn("passed", out)
        self.assertEqual(command.returncode == 0, pool.get("/v1/drill")["result"]["passed"])
        self.is_as_before(pool)

    def test_F12_only_who_administers_may_drill_and_wrong_orders_name_the_field(self):
        pool = self.busy_pool()
        self.assertIn("replicas", pool.cli(*BURST[:4], "--replicas", 9, "--for", "1min").stderr)
        self.assertIn("--for", pool.cli(*BURST[:4], "--replicas", 2, "--for", "soon").stderr)
        self.assertIn("no service", pool.cli("drill", "burst", "--service", "nobody",
                                             "--replicas", 2, "--for", "1min").stderr)
        self.assertIn("no drill is under way", pool.cli("drill", "stop").stderr)
        self.assertIn("--since", pool.cli("preemptions", "--since", "0s").stderr)


class Contract(unittest.TestCase):
    def test_D12_intervals_saves_and_restores_are_measured_beside_what_is_declared(self):
        pool = Pool(self, pool={"total_gpus": 1}).start()
        write_once(pool.work / "trainer.py", __import__("programs").TRAINER)
        pool.submit_task("job", [PYTHON, "trainer.py", "job", "1"], tier=NORMAL,
                         checkpoint={**SIGNALS, "contract": "sdk", "interval": "1s",
                                     "recovery": "30s"},
                         env={"PYTHONPATH": str(SDK)})

        def measured():
            return pool.get("/v1/tasks/job")["measured"]
        wait_for("three checkpoints", lambda: int(measured().get("checkpoints", 0)) >= 3)
        self.assertIn("p50", measured()["checkpoint.interval"])
        self.assertEqual(measured()["contract"], "kept")
        self.assertEqual(pool.get("/v1/tasks/job")["declared"]["checkpoint.recovery"], "30s")
        self.assertIn("not seen yet", measured()["restore within objective"])
        service(pool, "peak")
        wait_for("the peak to be served", lambda: answers(pool, "peak"))
        pool.delete("/v1/services/peak")
        pool.wait_state("job", "running")
        wait_for("its restore", lambda: "restore" in measured())
        self.assertIn("1 of 1, objective 30s", measured()["restore within objective"])
        self.assertEqual(measured()["restarts"], "1")
        text = pool.cli("describe", "job").stdout
        self.assertIn("measured:", text)
        self.assertIn("restore within objective", text)
        print("contract: interval %s; restore %s" % (measured()["checkpoint.interval"],
                                                     measured()["restore"]))

    def overdue(self, program):
        """A task that is to save each second, and does not by itself."""
        pool = Pool(self, pool={"total_gpus": 1}, preempt={"grace": "1s"}).start()
        write_once(pool.work / "overdue.py", program)
        pool.submit_task("job", [PYTHON, "overdue.py"], tier=NORMAL,
                         checkpoint={**SIGNALS, "contract": "sdk", "interval": "1s"},
                         env={"PYTHONPATH": str(SDK)})
        pool.wait_state("job", "running")
        return pool

    def test_D12_a_checkpoint_that_comes_when_asked_keeps_the_contract(self):
        pool = self.overdue(FORGETFUL)

        def measured():
            return pool.get("/v1/tasks/job")["measured"]
        wait_for("four that were asked for",
                 lambda: int(measured().get("overdue, asked for", 0)) >= 4)
        wait_for("them to be saved", lambda: int(measured()["checkpoints"]) >= 4)
        self.assertEqual(pool.task("job")["state"], "running")
        self.assertNotIn("revoked", measured()["contract"])

    def test_D12_after_three_overdue_in_a_row_admission_is_revoked_with_the_reason(self):
        pool = self.overdue(STUCK)
        wait_for("it to be at risk, and to be said so",
                 lambda: "at risk: 2 of 3" in pool.get("/v1/tasks/job")["measured"]["contract"])
        task = pool.wait_state("job", "failed")
        self.assertIn("admission revoked: 3 checkpoints in a row were overdue", task["reason"])
        measured = pool.get("/v1/tasks/job")["measured"]
        self.assertIn("revoked: ", measured["contract"])
        self.assertEqual(measured["overdue, asked for"], "3")
        kinds = [event["kind"] for event in pool.events() if event["subject"] == "job"]
        self.assertEqual(kinds.count("checkpoint_asked"), 3)
        self.assertIn("contract", pool.cli("describe", "job").stdout)
        print("contract: %s" % measured["contract"])


if __name__ == "__main__":
    unittest.main()
