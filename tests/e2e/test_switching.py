"""What it costs to give devices of a service away and to take them back (SPEC D5)."""

import unittest

from pool import Pool, wait_for
from programs import Request, answers, service, trainer

# A switch is expected to take half a second; the time that it really takes comes on top.
MEASURED = {"mode": "tidal", "headroom": "0%", "dwell": "measured", "plan": "0%",
            "switch_leave": "200ms", "switch_load": "300ms", "stale_after": "10s"}


class Switching(unittest.TestCase):
    def burst(self, pool, number, least):
        """Eight requests at once, until so many replicas serve, and their end."""
        over = "over.%d" % number
        held = [Request(pool, "chat", "/hold?file=" + over) for _ in range(8)]
        wait_for("replicas for the burst",
                 lambda: pool.service("chat")["service"]["replicas_ready"] >= least)
        (pool.work / over).touch()
        self.assertEqual([request.ended().status for request in held], [200] * 8)

    def night(self, pool, wanted):
        wait_for("%d replicas" % wanted,
                 lambda: pool.service("chat")["service"]["replicas_wanted"] == wanted)

    def test_D5_each_leg_is_measured_charged_and_follows_from_the_journal(self):
        pool = Pool(self, pool={"total_gpus": 4}).start()
        service(pool, "chat", 1, 4, concurrency=2, scale=MEASURED)
        trainer(pool, "job", 1)
        wait_for("the replica to answer", lambda: answers(pool, "chat"))
        before = pool.service("chat")["switches"]
        self.assertEqual((before["loads_seen"], before["leaves_seen"], before["given"]), (1, 0, 0))
        self.assertIsNone(before["allowed_of_day"])
        for number in range(2):
            self.burst(pool, number, 3)
            self.night(pool, 1)
        wait_for("the last to be gone",
                 lambda: len(pool.service("chat")["replicas"]) == 1)
        seen = pool.service("chat")["switches"]
        self.assertGreaterEqual(seen["leaves_seen"], 3)
        self.assertGreaterEqual(seen["loads_seen"], 5)
        self.assertEqual(seen["given"], seen["given_of_day"])
        self.assertEqual(seen["given"], seen["taken"])
        self.assertEqual(seen["cost_us"],
                         seen["leave_us"] + seen["load_us"] + seen["warm_up_us"])
        self.assertGreater(seen["load_us"], 10_000)
        self.assertEqual(seen["dwell_us"], seen["break_even_us"])
        self.assertGreater(int(seen["device_time"]), 0)

        usage = pool.get("/v1/usage")
        self.assertEqual(sum(int(amount) for amount in usage["categories"].values()),
                         int(usage["provisioned"]))
        (row,) = usage["switches"]
        self.assertEqual(row["service"], "chat")
        booked = sum(int(usage["categories"][name]) for name in ("drain", "restore"))
        self.assertLessEqual(int(row["device_time"]), booked)
        text = pool.cli("describe", "chat").stdout
        self.assertIn("switches of devices:", text)
        self.assertIn("seen in all", text)
        self.assertIn("SWITCHES OF", pool.cli("usage").stdout)
        print("switches: leave %.2f s, load %.2f s, pays after %.2f s; %d given away, %d taken back"
              % (seen["leave_us"] / 1e6, seen["load_us"] / 1e6, seen["break_even_us"] / 1e6,
                 seen["given"], seen["taken"]))

        pool.kill()
        pool.start()
        again = pool.service("chat")["switches"]
        for name in ("leave_us", "leaves_seen", "load_us", "loads_seen", "warm_up_us", "given"):
            self.assertEqual(again[name], seen[name], name)

    def test_D5_a_budget_that_is_used_up_keeps_devices_and_takes_back_all_the_same(self):
        # A millionth of four devices' day is 0.35 s, which a process that starts does not do in.
        scale = {**MEASURED, "dwell": "1s", "switch_budget": "0.0001%"}
        pool = Pool(self, pool={"total_gpus": 4}).start()
        service(pool, "chat", 1, 4, concurrency=2, scale=scale)
        wait_for("the replica to answer", lambda: answers(pool, "chat"))
        self.burst(pool, 0, 3)
        wait_for("the budget to be used up",
                 lambda: [condition for condition in pool.status()["conditions"]
                          if condition["name"] == "switch_budget"])
        kept = pool.service("chat")
        self.assertGreater(kept["service"]["replicas_wanted"], 1)
        switches = kept["switches"]
        self.assertGreaterEqual(switches["given_of_day"], switches["allowed_of_day"])
        self.assertIn("devices are kept", pool.cli("describe", "chat").stdout)
        self.assertIn("chat keeps devices", pool.cli("ps").stdout)
        self.burst(pool, 1, 4)


if __name__ == "__main__":
    unittest.main()
