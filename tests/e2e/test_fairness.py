"""A promised start with real processes: told, kept over a kill of the daemon; deadlines (D6)."""

import json
import time
import unittest

from pool import NORMAL, SIGNALS, Pool, wait_for
from programs import PATIENT

TIERS = [{"name": "infer_core", "weight": 100},
         {"name": "interactive", "weight": 90},
         {"name": NORMAL, "weight": 40, "wait": "1min"}]


def training(pool, name, tier=NORMAL, **keys):
    return pool.submit({"task": {"name": name, "command": ["sh", "-c", PATIENT], "gpus": 1,
                                 "tier": tier, "checkpoint": SIGNALS, **keys}})


class Fairness(unittest.TestCase):
    def test_D6_a_promised_start_is_told_and_kept_over_a_crash(self):
        nodes = [{"name": "a", "count": 1}, {"name": "b", "count": 1}]
        pool = Pool(self, pool={"total_gpus": 2}, priority_tiers=TIERS,
                    preempt={"wait_min": "0s"}, fairness={"lane": 1, "lane_within": "20s"},
                    devices={"nodes": nodes}).start()
        training(pool, "talk", tier="interactive")
        pool.wait_state("talk", "running")
        training(pool, "guest")
        pool.wait_state("guest", "running")
        self.assertEqual(pool.task("guest")["node"], "a", "it borrows the lane")
        training(pool, "job")
        pool.wait_state("job", "waiting")
        by = pool.task("job")["start_by_us"]
        self.assertIsNotNone(by)
        told = pool.cli("why", "job")
        self.assertIn("at the latest: in 1 min it goes before all others", told.stdout)
        self.assertIn("AT THE LATEST", pool.cli("ps", "--start").stdout)
        why = json.loads(pool.cli("why", "job", "--json").stdout)
        self.assertTrue(why["promise"].startswith("starts within"), why["promise"])

        pool.kill()
        pool.start()
        self.assertEqual(pool.task("job")["start_by_us"], by, "a promise outlives the daemon")
        wait_for("the forced start", lambda: pool.task("job")["state"] == "running", 150)
        self.assertLessEqual(time.time() * 1e6, by + 1e6)
        self.assertEqual(pool.task("job")["node"], "a")
        self.assertEqual(pool.task("talk")["preemptions"], 0, "interactive training is left alone")
        self.assertEqual(pool.task("guest")["lost_work_us"], 0)

    def test_D6_a_deadline_that_cannot_be_kept_is_told_at_submission(self):
        pool = Pool(self).start()
        soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
        text = json.dumps({"task": {"name": "late", "command": ["sleep", "1"], "gpus": 1,
                                    "tier": NORMAL, "checkpoint": SIGNALS, "work": "2h",
                                    "deadline": soon}})
        (pool.work / "late.yaml").write_text(text)
        done = pool.cli("submit", str(pool.work / "late.yaml"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the deadline was not accepted", done.stdout)
        checks = pool.get("/v1/tasks/late/why")["admission"]
        self.assertIn("failed", [row["state"] for row in checks if row["name"] == "deadline"])


if __name__ == "__main__":
    unittest.main()
