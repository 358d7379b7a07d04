"""G3: a crash of the daemon stops no task and loses no event; what ended meanwhile is known.

The daemon is killed at every named moment of its loop and of its journal, several times each, and
at random moments (NEAP_KILLS, default 5). A story is one pool that lives through all its crashes:
the same tasks run from the first to the last, so that each crash also checks all those before.
"""

import os
import random
import re
import signal
import subprocess
import unittest

from pool import (PYTHON, ROOT, SDK, SIGNALS, URGENT, ApiError, Gone, Pool, is_alive,
                  wait_for)

# A pool that seals a segment and takes a snapshot all the time.
PACE = {"NEAP_TESTING": "1", "NEAP_SNAPSHOT_EVERY": "20", "NEAP_SEAL_EVERY_MS": "50"}
SMALL = {"gpu": {"memory": "1GiB", "compute": "3%"}}

# Lives until it is told to checkpoint and leave. Each run leaves its pid behind.
STAYS = """
echo $$ >> "$0.runs"
trap 'exit 75' TERM
while :; do sleep 100000 & wait $!; done
"""
# Lives until a file appears, then ends with the code that it was given.
ENDS = """
echo $$ >> "$0.runs"
while [ ! -e "$0.go" ]; do sleep 0.05; done
exit "$1"
"""
# Trains for as long as there is no file `stop`; at its end it says how many steps it has made.
TRAINS = """
import json, os, sys, time
import neap_task
with open("sdk.runs", "a") as runs:
    print(os.getpid(), file=runs)
def save(path, step):
    with open(path, "w") as file:
        json.dump(step, file)
with neap_task.Task(save=save, interval_seconds=2) as task:
    for step in task.steps(0, 10**9):
        time.sleep(0.05)
        if os.path.exists("sdk.stop"):
            break
    task.checkpoint(step)  # the last one was left before it was complete
with open("sdk.made", "w") as made:
    print(step, file=made)
"""


def crash_points():
    """The names of all moments, from the sources that enumerate them."""
    names = []
    for path in ("src/daemon/crash_points.cpp", "src/journal/crash_points.cpp"):
        text = (ROOT / path).read_text(encoding="utf-8")
        array = re.search(r"crash_point_count> \w+\s*=?\s*\{(.*?)\};", text, re.DOTALL)
        found = re.findall(r'"([a-z_]+)"', array[1])
        header = (ROOT / path).with_suffix(".h").read_text(encoding="utf-8")
        assert len(found) == int(re.search(r"crash_point_count = (\d+);", header)[1]), path
        names += found
    return names


class Story:
    """One pool and what is known about it, through as many crashes as are asked for."""

    def __init__(self, case, pace=None, keeps_all=True):
        self.case = case
        self.pace = {**PACE, **(pace or {})}
        self.keeps_all = keeps_all  # false: old records are dropped, so not everything is seen
        self.rows = {}  # sequence -> what was published as that event
        self.codes = {}  # task -> exit code that it must have
        self.cancelled = set()
        self.crashes = 0
        self.urgent = 0  # tasks that have preempted `victim`
        self.chapter = 0
        self.pool = Pool(case, pool={"total_gpus": 5})
        self.pool.start(self.pace)
        (self.pool.work / "trains.py").write_text(TRAINS)
        self.pool.submit_task("keeper", ["sh", "-c", STAYS, "keeper"], tier=URGENT)
        self.pool.submit_task("victim", ["sh", "-c", STAYS, "victim"], gpus=2)
        self.pool.submit_task("sdk", [PYTHON, "trains.py"], tier=URGENT, **SMALL,
                              env={"PYTHONPATH": str(SDK)},
                              checkpoint={**SIGNALS, "contract": "sdk", "interval": "10min"})
        for name in ("keeper", "victim", "sdk"):
            self.pool.wait_state(name, "running")
        wait_for("the SDK task to train", lambda: self.runs("sdk"))
        self.keeper, self.sdk = self.runs("keeper"), self.runs("sdk")
        self.prepare()
        self.pool.check_replay()

    def runs(self, task):
        """The pids that a task has had, oldest first."""
        try:
            return [int(pid) for pid in (self.pool.work / (task + ".runs")).read_text().split()]
        except FileNotFoundError:
            return []

    def prepare(self):
        """Tasks that run when the daemon dies, and that must have gone on or ended by then."""
        self.chapter += 1
        self.ends, self.gone = "ends-%d" % self.chapter, "gone-%d" % self.chapter
        self.codes[self.ends] = self.chapter % 60 + 3
        self.pool.submit_task(self.ends, ["sh", "-c", ENDS, self.ends,
                                          str(self.codes[self.ends])], **SMALL)
        self.pool.submit_task(self.gone, ["sh", "-c", STAYS, self.gone], **SMALL)
        for name in (self.ends, self.gone):
            self.pool.wait_state(name, "running")
            wait_for("%s to run" % name, lambda: self.runs(name))
        self.look()

    # ---- what is asked of the daemon until it dies

    def requests(self):
        """(kind, detail, call), without end."""
        pool, chapter = self.pool, self.chapter
        yield ("submit", "urgent-%d" % chapter,
               lambda: pool.submit_task("urgent-%d" % chapter, ["true"], tier=URGENT, gpus=2))
        yield "cancel", self.gone, lambda: pool.delete("/v1/tasks/" + self.gone)
        number = 0
        while True:
            name = "more-%d-%d" % (chapter, number)
            if number % 4 == 0 and number < 12:
                self.codes[name] = 0
                yield ("submit", name, lambda: pool.submit_task(
                    name, ["sh", "-c", 'echo $$ >> "$0.runs"', name], **SMALL))
            if number:
                yield "pause", True, lambda: pool.post("/v1/pause", {"reason": "a test"})
                yield "resume", False, lambda: pool.post("/v1/resume")
            number += 1

    def drive(self):
        """Asks until there is no answer; what was acknowledged, and the request that was not."""
        acknowledged = []
        for kind, detail, call in self.requests():
            try:
                answer = call()
            except Gone:
                return acknowledged, (kind, detail)
            acknowledged.append((kind, detail, answer))
            if len(acknowledged) > 2000:
                raise AssertionError("the daemon lives on: the moment is never reached")

    # ---- a crash

    def crash(self, at=None, after=None):
        """Dies at a moment, name:n, or by a SIGKILL after some seconds; then all is checked."""
        self.pool.start({**self.pace, **({"NEAP_CRASH_AT": at} if at else {})}, wait=False)
        acknowledged, unknown = [], (None, None)
        if self.pool.wait_ready():
            if after is not None:
                killer = subprocess.Popen(["sh", "-c", 'sleep "$0"; kill -9 "$1"', str(after),
                                           str(self.pool.daemon.pid)])
                self.case.addCleanup(killer.wait)
            acknowledged, unknown = self.drive()
        self.case.assertEqual(self.pool.wait_dead(), -signal.SIGKILL, self.pool.log_tail())
        self.crashes += 1
        self.pool.verify()  # what is on disk is whole, before anything repairs it
        self.end_meanwhile()
        self.pool.start(self.pace)
        try:
            self.check(acknowledged, unknown)
        except Exception:
            print("after crash %d, at %s" % (self.crashes, at or "%s s" % after), flush=True)
            self.pool.tell()
            raise

    def end_meanwhile(self):
        """While nobody watches, a task ends."""
        (pid,) = self.runs(self.ends)
        (self.pool.work / (self.ends + ".go")).touch()
        wait_for("%s to end by itself" % self.ends, lambda: not is_alive(pid))

    def check(self, acknowledged, unknown):
        case, pool = self.case, self.pool
        self.check_unharmed()
        pauses = [detail for kind, detail, _ in acknowledged if kind in ("pause", "resume")]
        paused = bool(pauses and pauses[-1])
        if unknown[0] not in ("pause", "resume"):
            case.assertEqual(pool.status()["paused"], paused)
        pool.post("/v1/resume")
        self.check_submitted(acknowledged, unknown)
        self.check_cancelled(acknowledged, unknown)
        ended = pool.wait_state(self.ends, "finished", "failed")
        case.assertEqual(ended["exit_code"], self.codes[self.ends])
        self.check_victim()
        self.prepare()
        self.check_counts()
        pool.check_replay()

    def check_unharmed(self):
        """The same processes, and the pool knows them."""
        for name, runs in (("keeper", self.keeper), ("sdk", self.sdk)):
            self.case.assertEqual(self.runs(name), runs, name + " was started again")
            self.case.assertTrue(is_alive(runs[0]), name)
            self.case.assertEqual(self.pool.task(name)["state"], "running")

    def check_submitted(self, acknowledged, unknown):
        submitted = {detail: answer for kind, detail, answer in acknowledged if kind == "submit"}
        for name, number in submitted.items():
            self.case.assertEqual(self.pool.task(number)["name"], name)
        if unknown[0] == "submit":
            try:
                submitted[unknown[1]] = self.pool.task(unknown[1])["id"]
            except ApiError as error:
                self.case.assertEqual(error.status, 404)
                self.codes.pop(unknown[1], None)
        for name, number in submitted.items():
            ended = self.pool.wait_state(number, "finished", "failed")
            self.case.assertEqual(ended["exit_code"], 0, ended)
            if name.startswith("urgent"):
                self.urgent += 1
            else:
                self.case.assertEqual(len(self.runs(name)), 1, name)

    def check_cancelled(self, acknowledged, unknown):
        if not any(kind == "cancel" for kind, _, _ in acknowledged):
            if unknown[0] != "cancel":
                self.case.assertEqual(self.pool.task(self.gone)["state"], "running")
                self.case.assertTrue(is_alive(self.runs(self.gone)[0]))
            try:
                self.pool.delete("/v1/tasks/" + self.gone)
            except ApiError as error:
                # What was not answered may have come through all the same.
                self.case.assertEqual((error.status, unknown[0]), (409, "cancel"))
        self.pool.wait_state(self.gone, "cancelled")
        self.cancelled.add(self.gone)
        self.case.assertEqual(len(self.runs(self.gone)), 1)
        self.case.assertFalse(is_alive(self.runs(self.gone)[0]))

    def check_victim(self):
        """Preempted once for each urgent task, nothing lost, and back."""
        victim = self.pool.wait_state("victim", "running")
        wait_for("victim to run again", lambda: len(self.runs("victim")) == self.urgent + 1)
        self.case.assertEqual(victim["preemptions"], self.urgent)
        self.case.assertEqual(victim["lost_work_us"], 0)
        self.case.assertTrue(is_alive(self.runs("victim")[-1]))

    # ---- events

    def look(self):
        """Reads the events: those seen before are still the same, and none is missing."""
        first = max(self.rows, default=0)
        events = self.pool.events(max(0, first - 200))
        sequences = [event["sequence"] for event in events]
        self.case.assertEqual(sequences, list(range(sequences[0], sequences[0] + len(events))))
        if self.keeps_all:
            self.case.assertLessEqual(sequences[0], max(1, first + 1))
        for event in events:
            row = (event["time_us"], event["kind"], event["subject"])
            known = self.rows.setdefault(event["sequence"], (*row, event["message"]))
            self.case.assertEqual(known[:3], row, "event %d changed" % event["sequence"])

    def count(self, kind, subject):
        return sum(1 for row in self.rows.values() if row[1] == kind and row[2] == subject)

    def check_counts(self):
        """Each start, end and step was recorded exactly once."""
        if not self.keeps_all:
            return
        for name in list(self.codes) + list(self.cancelled):
            over = name != self.ends  # that one has begun just now
            self.case.assertEqual(self.count("task_exited", name), int(over), name)
            self.case.assertEqual(self.count("task_started", name), 1, name)
            self.case.assertEqual(self.count("task_submitted", name), 1, name)
        self.case.assertEqual(self.count("task_started", "victim"), self.urgent + 1)

    def finish(self, what):
        """The SDK task ends: the steps that it has made are those that the pool was told."""
        self.pool.start(self.pace)
        (self.pool.work / "sdk.stop").touch()
        ended = self.pool.wait_state("sdk", "finished")
        made = int((self.pool.work / "sdk.made").read_text())
        self.case.assertEqual(ended["step"], made)
        self.look()
        steps = [int(row[3].split()[0]) for row in self.rows.values()
                 if row[1] == "steps_reported" and row[2] == "sdk"]
        if self.keeps_all:
            self.case.assertEqual(sum(steps), made)
        self.pool.check_replay()
        print("%s: %d crashes, %d records, %d preemptions, %d steps of one task"
              % (what, self.crashes, max(self.rows), self.urgent, made), flush=True)


class Crash(unittest.TestCase):
    def test_G3_the_sources_name_every_moment(self):
        names = crash_points()
        self.assertEqual(len(names), len(set(names)))
        pool = Pool(self)
        pool.start({"NEAP_TESTING": "1", "NEAP_CRASH_AT": "no_such_moment"}, wait=False)
        self.assertFalse(pool.wait_ready())
        self.assertEqual(pool.wait_dead(), 2)
        self.assertIn("no_such_moment", pool.log_tail())
        self.assertFalse(pool.state_dir.exists())

    def test_G3_the_moments_are_for_tests_alone(self):
        pool = Pool(self)
        pool.start({"NEAP_CRASH_AT": "turn_begun"})
        pool.submit_task("a", ["true"])
        pool.wait_state("a", "finished")
        pool.stop()

    def test_G3_killed_at_every_moment(self):
        story = Story(self)
        for name in crash_points():
            if name == "segment_dropped":
                continue  # below: it forgets old records
            for n in times_of(name):
                story.crash("%s:%d" % (name, n))
        story.finish("killed at every moment")

    def test_G3_killed_while_old_records_are_dropped(self):
        story = Story(self, {"NEAP_RETENTION_MS": "100"}, keeps_all=False)
        for n in (1, 2, 4):
            story.crash("segment_dropped:%d" % n)
        story.finish("killed while records are dropped")

    def test_G3_killed_at_random_moments(self):
        kills = int(os.environ.get("NEAP_KILLS", "5"))
        seed = int(os.environ.get("NEAP_KILL_SEED") or random.randrange(1 << 30))
        dice = random.Random(seed)
        print("NEAP_KILLS=%d NEAP_KILL_SEED=%d" % (kills, seed), flush=True)
        story = Story(self)
        for _ in range(kills):
            story.crash(after=round(dice.choice((0.02, 0.2, 1.0)) * dice.random(), 4))
        story.finish("killed at random moments")


def times_of(name):
    """On which passes the daemon dies at a moment: at the start, early, amid the work."""
    rare = {"snapshot_part": (1, 2), "snapshot_complete": (1, 2), "segment_sealed": (1, 3)}
    often = {"file_write": (1, 30, 150), "file_sync": (1, 7, 25), "action_sent": (1, 3)}
    return {**rare, **often}.get(name, (1, 4, 12))


if __name__ == "__main__":
    unittest.main()
