"""Teams that share one pool, and tasks with a range of devices, with real processes (D6)."""

import unittest

from pool import PYTHON, SDK, SIGNALS, Pool, wait_for
from programs import trainer, write_once

# Says with how many devices it runs, each time it starts.
RANGED = """
import json, os, time
import neap_task
done = 0
def save(path, step):
    with open(path, "w") as file:
        json.dump(step, file)
with neap_task.Task(save=save, interval_seconds=1) as task:
    path = task.restore_path()
    if path:
        with open(path) as file:
            done = json.load(file)
    devices = os.environ["CUDA_VISIBLE_DEVICES"].split(",")
    with open("runs.txt", "a") as file:
        print(os.environ["NEAP_GPUS"], len(devices), done, file=file)
    for step in task.steps(done, 10**9):
        time.sleep(0.05)
"""


class Sharing(unittest.TestCase):
    def test_D6_a_task_shrinks_for_another_and_grows_again(self):
        pool = Pool(self, resize={"dwell": "1s"}).start()
        write_once(pool.work / "ranged.py", RANGED)
        pool.submit_task("wide", [PYTHON, "ranged.py"], gpus=4, least_gpus=1, tier="train_normal",
                         checkpoint={**SIGNALS, "contract": "sdk", "interval": "1s"},
                         env={"PYTHONPATH": str(SDK)})
        wait_for("a checkpoint", lambda: pool.task("wide")["last_checkpoint_us"])
        self.assertEqual(len(pool.task("wide")["devices"]), 4)
        trainer(pool, "other", 1, gpus=2)
        pool.wait_state("other", "running")
        wait_for("the wide task with two devices",
                 lambda: pool.task("wide")["state"] == "running" and
                 len(pool.task("wide")["devices"]) == 2)
        task = pool.task("wide")
        self.assertEqual((task["resizes"], task["preemptions"], task["lost_work_us"]), (1, 0, 0))
        (pool.work / "other.stop").touch()
        wait_for("the wide task with four devices again",
                 lambda: pool.task("wide")["state"] == "running" and
                 len(pool.task("wide")["devices"]) == 4)
        task = pool.task("wide")
        self.assertEqual((task["resizes"], task["preemptions"], task["lost_work_us"]), (2, 0, 0))
        runs = pool.work / "runs.txt"
        wait_for("its third start", lambda: len(runs.read_text().splitlines()) == 3)
        lines = [line.split() for line in runs.read_text().splitlines()]
        self.assertEqual([line[0] for line in lines], ["4", "2", "4"])
        self.assertEqual([line[1] for line in lines], ["4", "2", "4"])
        steps = [int(line[2]) for line in lines]
        self.assertEqual(steps[0], 0)
        self.assertTrue(0 < steps[1] < steps[2], steps)
        print("ranges: with 4, 2 and 4 devices, from steps %d, %d, %d" % tuple(steps))

    def test_D6_a_team_gets_its_guarantee_back_from_who_borrowed_it(self):
        pool = Pool(self, teams=[{"name": "vision", "guarantee": 2},
                                 {"name": "speech", "limit": 4}]).start()
        for name in ("s1", "s2"):
            trainer(pool, name, 1, team="speech", gpus=2)
        for name in ("s1", "s2"):
            wait_for("a checkpoint of " + name,
                     lambda name=name: pool.task(name)["last_checkpoint_us"])
        rows = {row["name"]: row for row in pool.cli_json("teams")["teams"]}
        self.assertEqual(rows["speech"]["held_milli"], 4000)
        trainer(pool, "s3", 1, team="speech")
        pool.wait_state("s3", "waiting")
        self.assertIn("team speech has 4 of the 4 devices", pool.task("s3")["reason"])
        trainer(pool, "v1", 1, team="vision", gpus=2)
        pool.wait_state("v1", "running")
        rows = {row["name"]: row for row in pool.cli_json("teams")["teams"]}
        self.assertEqual(rows["vision"]["held_milli"], 2000)
        self.assertEqual(sum(pool.task(name)["lost_work_us"] for name in ("s1", "s2")), 0)
        self.assertEqual(sum(pool.task(name)["preemptions"] for name in ("s1", "s2")), 1)
        # It has what it is guaranteed, and asks for no more; speech takes nothing back.
        shown = pool.cli("teams").stdout
        self.assertIn("has its guarantee", shown)
        print(shown)


if __name__ == "__main__":
    unittest.main()
