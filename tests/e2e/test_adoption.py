"""Stages of adoption, presets, staggered starts and profiles with real processes (F8, D10, D11,
A3)."""

import unittest

from pool import NORMAL, SIGNALS, ApiError, Pool, wait_for
from programs import PATIENT

SOON = {"stabilise": "0s", "least_starts": 1}


def training(pool, name, command, **keys):
    return pool.submit({"task": {"name": name, "command": command, "gpus": 1, "tier": NORMAL,
                                 "checkpoint": SIGNALS, **keys}})


class Stages(unittest.TestCase):
    def test_F8_the_way_back_lets_tasks_go_at_their_boundaries_and_forward_is_checked(self):
        pool = Pool(self, adoption=SOON,
                    pool={"total_gpus": 4, "inference_guard_min": 1, "elastic_buffer": 1}).start()
        for name in ("a", "b", "c"):
            training(pool, name, ["sh", "-c", PATIENT])
            pool.wait_state(name, "running")
        devices = pool.get("/v1/devices")["devices"]
        lent = {row["name"] for row in devices if row["role"] == "buffer"}
        on_buffer = [name for name in ("a", "b", "c") if pool.task(name)["devices"][0] in lent]
        self.assertEqual(len(on_buffer), 1, "the buffer is lent in the last stage")

        done = pool.cli("stage", "back", "--why", "rehearsal")
        self.assertEqual(done.returncode, 0, done.stderr)
        left = on_buffer[0]
        pool.wait_state(left, "waiting")
        self.assertIn("stage memory of adoption", pool.task(left)["reason"])
        self.assertEqual(pool.task(left)["lost_work_us"], 0)
        for name in {"a", "b", "c"} - {left}:
            self.assertEqual(pool.task(name)["state"], "running")
        detail = pool.get("/v1/pool")
        self.assertEqual(detail["pool"]["stage"], "memory")
        self.assertEqual(detail["changes"][-1]["why"], "rehearsal")

        self.assertEqual(pool.cli("stage", "check").returncode, 1, "no drill has been run")
        with self.assertRaises(ApiError) as refused:
            pool.post("/v1/stage", {"to": "time"})
        self.assertEqual(refused.exception.status, 409)
        self.assertIn("drill: no drill has been run", str(refused.exception.body))
        done = pool.cli("stage", "advance", "--force", "--why", "a test")
        self.assertEqual(done.returncode, 0, done.stderr)
        pool.wait_state(left, "running")
        self.assertIn("drill", pool.get("/v1/pool")["changes"][-1]["missing"])

        # All of it is in the journal: a daemon that is killed goes on in the same stage.
        before = pool.get("/v1/pool")["changes"]
        pool.kill()
        pool.start()
        self.assertEqual(pool.get("/v1/pool")["changes"], before)
        self.assertEqual(pool.get("/v1/pool")["pool"]["stage"], "time")

    def test_D10_what_a_preset_gives_is_shown_and_a_review_needs_days(self):
        pool = Pool(self, pool={"total_gpus": 8, "preset": "training-led"},
                    preempt={"budget_per_day": 9}).start()
        detail = pool.get("/v1/pool")
        self.assertEqual(detail["pool"]["preset"], "training-led")
        self.assertEqual(detail["pool"]["isolation"], "time-slices")
        self.assertEqual(detail["pool"]["devices_guard"], 1)
        self.assertEqual(detail["derived"]["pool.elastic_buffer"], "1")
        self.assertNotIn("preempt.budget_per_day", detail["derived"], "the file states it")
        self.assertEqual(pool.get("/v1/review")["verdict"], "too-little-data")


class Starts(unittest.TestCase):
    def test_D11_one_loads_at_a_time_and_the_next_one_says_why_it_waits(self):
        pool = Pool(self, starts={"at_once": 1, "loading": "3s"}).start()
        for name in ("a", "b"):
            training(pool, name, ["sh", "-c", PATIENT])
        pool.wait_state("a", "running")
        why = pool.get("/v1/tasks/b/why")
        self.assertEqual(why["code"], "starts")
        self.assertIn("starts.at_once", why["reason"])
        pool.wait_state("b", "running")
        apart = pool.task("b")["started_us"] - pool.task("a")["started_us"]
        self.assertGreaterEqual(apart, 2_500_000)


class Profiles(unittest.TestCase):
    def test_A3_runs_of_a_type_stand_in_for_what_a_later_file_leaves_open(self):
        pool = Pool(self).start()
        for number in (1, 2, 3):
            training(pool, "job-%d" % number, ["sleep", "0.3"])
        for number in (1, 2, 3):
            pool.wait_state("job-%d" % number, "finished")
        rows = {row["name"]: row for row in pool.get("/v1/profiles")["profiles"]}
        self.assertEqual(rows["default/job"]["work_us"]["count"], 3)
        self.assertGreaterEqual(rows["default/job"]["work_us"]["p90"], 300_000)
        training(pool, "job-4", ["sh", "-c", PATIENT])
        self.assertEqual(pool.get("/v1/tasks/job-4")["declared"]["profile.gave"], "work")
        training(pool, "other", ["sh", "-c", PATIENT], work="1h")
        self.assertNotIn("profile.gave", pool.get("/v1/tasks/other")["declared"])

    def test_A3_auto_takes_the_devices_that_hold_the_model(self):
        pool = Pool(self).start()
        pool.submit({"task": {"name": "large", "command": ["sh", "-c", PATIENT], "gpus": "auto",
                              "memory": {"weights": "140GiB"}, "tier": NORMAL,
                              "checkpoint": SIGNALS}})
        wait_for("its devices", lambda: len(pool.task("large")["devices"]) == 2)
        with self.assertRaises(ApiError) as refused:
            pool.submit({"task": {"name": "unknown", "command": ["true"], "gpus": "auto",
                                  "tier": NORMAL, "checkpoint": SIGNALS}})
        self.assertIn("memory of the model", str(refused.exception.body))


if __name__ == "__main__":
    unittest.main()
