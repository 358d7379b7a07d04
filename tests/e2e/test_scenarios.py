"""Field scenarios with a real daemon, real processes and a real proxy.

Devices are simulated; protected windows, intervals and thresholds are seconds where the field has
minutes and hours.
"""

import collections
import os
import re
import signal
import socket
import subprocess
import unittest

from pool import NEAP, PATIENCE, PYTHON, ApiError, Pool, is_alive, processes_of, wait_for
from programs import PATIENT, Request, answers, service, trainer

# A burst counts after a second, and so does its end.
QUICK_SCALE = {"up_above": "70%", "up_for": "1s", "down_below": "20%", "down_for": "1s",
               "stale_after": "10s"}


def command_line(pid):
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            return file.read()
    except OSError:
        return b""


def running(pool, task, words):
    """The process of a task that runs, by its command line."""
    def found():
        for pid in processes_of(pool.folder):
            line = command_line(pid).split(b"\0")
            try:
                with open("/proc/%d/environ" % pid, "rb") as file:
                    mine = b"NEAP_TASK=" + task.encode() in file.read().split(b"\0")
            except OSError:
                continue
            if mine and all(word.encode() in line for word in words):
                return pid
        return None
    return wait_for("a process %s of task %s" % (words, task), found)


class FieldScenarios(unittest.TestCase):
    def test_S2_a_training_and_a_replica_share_a_device_and_a_second_pair_does_not_fit(self):
        # Else the second replica would take the first training's place.
        pool = Pool(self, pool={"total_gpus": 1}, preempt={"enabled": False}).start()
        training = {"gpu": {"memory": "16GiB", "compute": "60%"}}
        replica = {"gpu": {"memory": "8GiB", "compute": "30%"}}
        pool.submit_task("train", ["sh", "-c", PATIENT], **training)
        service(pool, "chat", **replica)
        pool.wait_state("train", "running")
        wait_for("the replica to answer", lambda: answers(pool, "chat"))
        (device,) = pool.get("/v1/devices")["devices"]
        self.assertEqual({holder["task"]: (holder["compute_milli"], holder["memory_mib"])
                          for holder in device["holders"]},
                         {"train": (600, 16384), "chat.0": (300, 8192)})

        pool.submit_task("train-2", ["sh", "-c", PATIENT], **training)
        service(pool, "chat-2", **replica)
        (device,) = pool.get("/v1/devices")["devices"]
        self.assertGreater(device["memory_free_mib"], 16384 + 8192)  # memory would allow it
        self.assertEqual(device["compute_free_milli"], 100)
        for name in ("train-2", "chat-2.0"):
            pool.wait_state(name, "waiting")
            self.assertEqual(pool.why(name)["code"], "compute")
            self.assertTrue(pool.why(name)["unblocks"])

    def test_S3_a_long_training_loses_nothing_at_a_boundary_and_never_more_than_its_interval(self):
        interval = 3
        pool = Pool(self, pool={"total_gpus": 2, "elastic_buffer": 2}).start()
        trainer(pool, "job", interval, gpus=2, work="20h")
        wait_for("a checkpoint", lambda: pool.task("job")["last_checkpoint_us"])
        service(pool, "peak")
        replica = wait_for("the peak to be served", lambda: answers(pool, "peak"))
        job = pool.task("job")
        self.assertEqual((job["state"], job["preemptions"], job["lost_work_us"]), ("waiting", 1, 0))
        self.assertTrue(pool.why("job")["reason"])
        step = job["step"]
        pool.delete("/v1/services/peak")
        wait_for("the replica to leave", lambda: not is_alive(replica))

        pool.wait_state("job", "running")
        wait_for("the job to go on", lambda: "begins at step %d\n" % step in pool.log("job"))
        self.assertGreater(step, 0)
        wait_for("more steps", lambda: pool.task("job")["step"] > step)
        os.kill(running(pool, "job", ["trainer.py"]), signal.SIGKILL)
        pool.wait_event("task_exited", "job", pool.events()[-1]["sequence"] - 200)
        lost = wait_for("the loss to be told", lambda: pool.task("job")["lost_work_us"])
        self.assertLess(lost, (interval + 1) * 1_000_000)
        pool.wait_state("job", "running")

        with self.assertRaises(ApiError) as refused:
            pool.submit_task("no-contract", ["sleep", "60"], checkpoint=None)
        self.assertEqual(refused.exception.status, 422)
        self.assertIn("interruptible", str(refused.exception.body))

    def test_S4_a_burst_at_night_is_served_from_guard_then_buffer_then_yields(self):
        pool = Pool(self, pool={"total_gpus": 4, "inference_guard_min": 1, "elastic_buffer": 1},
                    scale=QUICK_SCALE).start()
        # Night: one replica keeps watch, training holds all but the guard.
        service(pool, "chat", 0, 4, concurrency=1, scale=QUICK_SCALE)
        for name in ("night-1", "night-2", "night-3"):
            trainer(pool, name, 1)
            pool.wait_state(name, "running")
        trainer(pool, "night-4", 1)
        pool.wait_state("night-4", "waiting")
        self.assertEqual(pool.why("night-4")["code"], "guard")
        self.assertEqual(pool.status()["devices_lent"], 1)
        roles = {device["name"]: device["role"] for device in pool.get("/v1/devices")["devices"]}
        self.assertEqual(collections.Counter(roles.values()),
                         {"core": 2, "buffer": 1, "guard": 1})
        wait_for("checkpoints", lambda: all(pool.task(name)["last_checkpoint_us"] for name in
                                            ("night-1", "night-2", "night-3")))

        # The burst: as many requests at once as four replicas can hold.
        pool.post("/v1/services/chat/scale", {"min": 1})
        wait_for("the guard to serve", lambda: answers(pool, "chat"))
        burst = [Request(pool, "chat", "/hold?file=over") for _ in range(8)]
        wait_for("four replicas",
                 lambda: pool.service("chat")["service"]["replicas_ready"] == 4)
        replicas = [pool.task("chat.%d" % number) for number in range(4)]
        taken = [roles[replica["devices"][0]] for replica in replicas]
        self.assertEqual(taken, ["guard", "buffer", "core", "core"])
        # Day: training waits, each with its reason, and has lost nothing.
        for name in ("night-1", "night-2", "night-3", "night-4"):
            self.assertEqual(pool.task(name)["state"], "waiting", name)
            self.assertTrue(pool.why(name)["reason"])
            self.assertEqual(pool.task(name)["lost_work_us"], 0)
        self.assertEqual(sum(pool.task("night-%d" % n)["preemptions"] for n in (1, 2, 3)), 3)
        (pool.work / "over").touch()
        self.assertEqual([request.ended().status for request in burst], [200] * 8)

        # Night again: one replica stays, training has the rest.
        wait_for("replicas to go", lambda: pool.service("chat")["service"]["replicas_ready"] == 1)
        wait_for("three trainings", lambda: sum(
            pool.task("night-%d" % n)["state"] == "running" for n in (1, 2, 3, 4)) == 3)
        self.assertFalse(pool.status()["conditions"])


class Replicas(unittest.TestCase):
    def test_E3_a_replica_drains_with_a_request_in_flight(self):
        pool = Pool(self).start()
        service(pool, "chat", concurrency=4)
        replica = wait_for("the replica to answer", lambda: answers(pool, "chat"))
        held = Request(pool, "chat", "/hold?file=go")
        wait_for("the request to be under way",
                 lambda: (pool.work / ("held.%d" % replica)).exists())
        pool.delete("/v1/services/chat")
        pool.wait_state("chat.0", "stopping")
        self.assertTrue(is_alive(replica))
        self.assertTrue(held.is_alive())
        (pool.work / "go").touch()
        self.assertEqual((held.ended().status, held.text), (200, str(replica)))
        pool.wait_state("chat.0", "finished")
        self.assertFalse(is_alive(replica))

    def test_E3_the_proxy_is_killed_and_comes_back(self):
        pool = Pool(self).start()
        service(pool, "chat")
        pool.submit_task("train", ["sh", "-c", PATIENT])
        replica = wait_for("the replica to answer", lambda: answers(pool, "chat"))
        proxies = [pid for pid in processes_of(pool.state_dir / "proxy")
                   if os.readlink("/proc/%d/exe" % pid).endswith("haproxy")]
        self.assertTrue(proxies)
        for pid in proxies:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # a worker goes with its master
        self.assertEqual(wait_for("an answer again", lambda: answers(pool, "chat")), replica)
        self.assertEqual(pool.task("train")["state"], "running")
        self.assertEqual(pool.service("chat")["replicas"][0]["name"], "chat.0")

    def test_a_port_is_chosen_and_kept_and_a_taken_one_is_refused(self):
        pool = Pool(self).start()
        service(pool, "chat")
        service(pool, "code")
        addresses = [pool.service(name)["service"]["address"] for name in ("chat", "code")]
        self.assertEqual(len(set(addresses)), 2)
        pool.kill()
        pool.start()
        self.assertEqual([pool.service(name)["service"]["address"] for name in ("chat", "code")],
                         addresses)
        with socket.create_server(("127.0.0.1", 0)) as other:
            for taken in (int(addresses[0].rpartition(":")[2]), other.getsockname()[1]):
                before = pool.status()["sequence"]
                with self.assertRaises(ApiError) as refused:
                    service(pool, "late", port=taken)
                self.assertEqual(refused.exception.status, 409)
                self.assertIn("port %d" % taken, str(refused.exception.body))
                events = pool.events(before)
                self.assertFalse([e for e in events if e["kind"] == "service_submitted"])

    def test_G3_requests_are_answered_while_the_daemon_is_dead(self):
        pool = Pool(self).start()
        service(pool, "chat", concurrency=4)
        replica = wait_for("the replica to answer", lambda: answers(pool, "chat"))
        held = Request(pool, "chat", "/hold?file=go")
        wait_for("the request to be under way",
                 lambda: (pool.work / ("held.%d" % replica)).exists())
        again = Request(pool, "chat").ended()
        pool.kill()
        again.run()  # the same address, while nobody is there
        self.assertEqual((again.status, again.text), (200, str(replica)))
        pool.start()
        self.assertEqual(answers(pool, "chat"), replica)
        (pool.work / "go").touch()
        self.assertEqual((held.ended().status, held.text), (200, str(replica)))


class Tasks(unittest.TestCase):
    @unittest.skipUnless(os.geteuid() == 0, "needs root: another user's task")
    def test_G5_a_task_runs_as_its_submitter_and_is_his(self):
        nobody = 65534
        pool = Pool(self, api={"group": "nogroup"}).start()
        pool.submit_task("roots", ["sleep", "1000"])
        asked = subprocess.run(
            [PYTHON, "-c", AS_NOBODY, str(pool.socket), str(pool.work)], user=nobody, group=nobody,
            extra_groups=[], capture_output=True, text=True, timeout=PATIENCE, cwd="/")
        self.assertEqual(asked.returncode, 0, asked.stderr)
        submitted, cancelled, listed = asked.stdout.splitlines()
        self.assertEqual((submitted, cancelled), ("201", "403"))
        self.assertEqual(listed, "theirs")
        pool.wait_state("theirs", "finished")
        self.assertEqual(pool.log("theirs"), "uid=65534 gid=65534 groups=65534\n")
        self.assertEqual((pool.work / "made").stat().st_uid, nobody)
        self.assertEqual(pool.task("theirs")["user"], "nobody")
        self.assertEqual(pool.task("roots")["state"], "running")

    def test_a_log_is_followed_to_the_end(self):
        pool = Pool(self).start()
        pool.submit_task("talks", ["sh", "-c", "echo one; until [ -e go ]; do sleep 0.05; done; "
                                   "seq 2000; echo last; exit 3"])
        pool.wait_state("talks", "running")
        follower = subprocess.Popen([str(NEAP), "logs", "-f", "talks"], stdout=subprocess.PIPE,
                                    env={**os.environ, "NEAP_SOCKET_API": str(pool.socket)})
        self.addCleanup(follower.stdout.close)
        self.addCleanup(follower.kill)
        self.assertEqual(follower.stdout.readline(), b"one\n")
        self.assertIsNone(follower.poll())  # it goes on
        (pool.work / "go").touch()
        rest = follower.stdout.read()
        self.assertEqual(rest, b"".join(b"%d\n" % n for n in range(1, 2001)) + b"last\n")
        self.assertEqual(follower.wait(PATIENCE), 0)

    def test_cancel_escalates_from_sigterm_to_sigkill(self):
        pool = Pool(self, preempt={"grace": "1s"}).start()
        pool.submit_task("polite", ["sh", "-c", "trap 'echo asked; exit 9' TERM; "
                                    "while :; do sleep 100000 & wait $!; done"])
        pool.submit_task("stubborn", ["sh", "-c", "trap 'echo asked' TERM; "
                                      "while :; do sleep 100000 & wait $!; done"])
        for name in ("polite", "stubborn"):
            pool.wait_state(name, "running")
            running(pool, name, ["sleep"])
        for name in ("polite", "stubborn"):
            pool.delete("/v1/tasks/" + name)
        polite = pool.wait_state("polite", "cancelled")
        stubborn = pool.wait_state("stubborn", "cancelled")
        self.assertEqual((polite["exit_code"], stubborn["exit_code"]), (9, 128 + signal.SIGKILL))
        for name in ("polite", "stubborn"):
            self.assertIn("asked\n", pool.log(name))
        told = stubborn["finished_us"] - pool.wait_event("stop_asked", "stubborn")["time_us"]
        self.assertGreaterEqual(told, 1_000_000)
        self.assertFalse([pid for pid in processes_of(pool.folder)
                          if b"sleep" in command_line(pid)])

    def test_a_task_whose_supervisor_is_killed_is_lost_and_restarted(self):
        pool = Pool(self).start()
        trainer(pool, "job", 1)
        wait_for("a checkpoint", lambda: pool.task("job")["last_checkpoint_us"])
        first = running(pool, "job", ["trainer.py"])
        with open("/proc/%d/stat" % first) as file:
            supervisor = int(file.read().rpartition(")")[2].split()[1])
        self.assertIn("neap-supervise", os.readlink("/proc/%d/exe" % supervisor))
        os.kill(supervisor, signal.SIGKILL)
        wait_for("its task to go with it", lambda: not is_alive(first))
        exited = pool.wait_event("task_exited", "job")
        self.assertIn("lost", exited["message"])
        pool.wait_state("job", "running")
        second = running(pool, "job", ["trainer.py"])
        self.assertNotEqual(first, second)
        (begun,) = wait_for("a new beginning",
                            lambda: re.findall(r"begins at step (\d+)", pool.log("job")))
        self.assertGreater(int(begun), 0)  # from its checkpoint


# Run as another user: what it may do on the daemon's socket.
AS_NOBODY = """
import http.client, json, socket, sys
def call(method, path, body=None):
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(sys.argv[1])
    connection.request(method, path, body and json.dumps(body))
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())
task = {"name": "theirs", "command": ["sh", "-c", "touch made; echo uid=$(id -u) "
        "gid=$(id -g) groups=$(id -G)"], "gpus": 1, "checkpoint": {"contract": "signals"}}
print(call("POST", "/v1/tasks", {"file": "t.yaml", "text": json.dumps({"task": task}),
                                 "workdir": sys.argv[2]})[0])
print(call("DELETE", "/v1/tasks/roots")[0])
print(*[row["name"] for row in call("GET", "/v1/tasks")[1]["tasks"]])
"""


if __name__ == "__main__":
    unittest.main()
