"""F2, B7: what is fought over on this machine is named; the ladder; nobody stays frozen.

How fast anything gets by it is shown by tests/show/request-path, not asserted here.
"""

import json
import unittest

from neighbours import Background, pool_with, server, shared_groups
from pool import PYTHON, Pool, wait_for

BUSY = [PYTHON, "-c", "while True: pass"]


def watched(pool, name, windows=1):
    wait_for("a look at " + name, lambda: pool.cli_json("ladder", name)["windows"] >= windows)


def runs(pool, name):
    """It took a part of a processor in the newest window."""
    return (pool.cli_json("ladder", name)["use"]["cpu_milli"] or 0) > 10


class Contention(unittest.TestCase):
    @unittest.skipUnless(shared_groups(), "needs cgroup v1 and root")
    def test_B7_F2_processors_are_named_and_the_rung_is_given_back(self):
        pool = pool_with(self, mode="auto", groups="shared", settle="5s", calm="1h").start()
        # A promise that nothing keeps: the service is slow on any machine.
        server(pool, slo={"ttft": "1ms"}, gateway={"concurrency": "fixed"})
        load = Background(self, pool)
        jobs = [pool.submit_task("busy-%d" % i, BUSY) for i in range(4)]

        def moved():
            report = pool.cli_json("ladder", "chat")
            return report if report["moves"] else None
        first = wait_for("a rung", moved, patience=90)["moves"][0]
        self.assertEqual((first["from"], first["to"], first["resource"], first["fault"]),
                         ("none", "flow", "cpu", ""))
        self.assertTrue(first["neighbour"].startswith("busy-"), first)
        self.assertIn("waits for a processor", first["why"])
        for job in jobs:
            pool.delete("/v1/tasks/%s" % job)

        def undone():
            report = pool.cli_json("ladder", "chat")
            return report if report["rung"] == "none" else None
        last = wait_for("an end to it", undone)["moves"][-1]
        load.end()
        self.assertEqual((last["to"], last["why"], last["fault"]),
                         ("none", "no training is left", ""))
        kept = [json.loads(line)
                for line in (pool.state_dir / "ladder.log").read_text().splitlines()]
        self.assertEqual((kept[0]["to"], kept[0]["why"]), ("flow", first["why"]))
        self.assertEqual(kept[-1]["to"], "none")

    def test_F2_frozen_neighbours_run_again(self):
        pool = pool_with(self, mode="recommend").start()
        for name in ("one", "two"):
            pool.wait_state(pool.submit_task(name, BUSY), "running")
        watched(pool, "one")
        found = pool.cli_json("baseline", "run", "one", "--duration", "1s", "--settle", "0s")
        self.assertEqual(found["frozen"], ["two"])
        self.assertEqual(pool.cli_json("baseline", "show", "one")["at_us"], found["at_us"])
        lease = pool.state_dir / "frozen"
        order = "/v1/tasks/one/baseline"
        pool.status()  # a fresh connection: one that was idle may be closed
        pool.post(order, {"phase": "alone", "for_us": 1_000_000})
        self.assertTrue(lease.exists())
        wait_for("an end to it", lambda: "given up" in pool.log_tail())
        self.assertFalse(lease.exists())
        wait_for("the neighbour", lambda: runs(pool, "two"))
        # A daemon that dies meanwhile leaves nobody frozen either, whatever the next one is told.
        pool.status()
        pool.post(order, {"phase": "alone", "for_us": 100_000_000})
        pool.kill()
        self.assertTrue(lease.exists())
        pool.pool_file.write_text(pool.pool_file.read_text().replace("recommend", "off"))
        pool.start()
        wait_for("an end to it", lambda: not lease.exists())
        pool.stop()
        pool.pool_file.write_text(pool.pool_file.read_text().replace('"off"', '"recommend"'))
        pool.start()
        wait_for("the neighbour", lambda: runs(pool, "two"))

    def test_B7_a_pool_that_does_not_ask_is_not_watched(self):
        pool = Pool(self).start()
        pool.wait_state(pool.submit_task("job", ["sleep", "100"]), "running")
        report = pool.cli_json("ladder", "job")
        self.assertEqual((report["mode"], report["windows"]), ("off", 0))
        self.assertIn("ladder.mode is off", pool.cli("ladder", "job").stdout)
        refused = pool.cli("baseline", "run", "job", "--duration", "1s", "--settle", "0s")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("ladder.mode off", refused.stderr)

    def test_F2_bad_orders_are_told(self):
        pool = pool_with(self, mode="recommend").start()
        job = pool.submit_task("job", ["sleep", "100"])
        pool.wait_state(job, "running")
        for body, word in (({"phase": "soon"}, "alone, mixed, store"),
                           ({"phase": "alone"}, "for_us"),
                           ({"phase": "alone", "for_us": 10**12}, "2 min"),
                           ({"phase": "mixed", "x": 1}, "x")):
            status, answer = pool.api().call("POST", "/v1/tasks/job/baseline", body)
            self.assertEqual(status, 400, answer)
            self.assertIn(word, json.dumps(answer))
        status, answer = pool.api().call("POST", "/v1/tasks/job/baseline", {"phase": "store"})
        self.assertEqual(status, 409, answer)
        shown = pool.cli("baseline", "show", "job")
        self.assertEqual(shown.returncode, 3, shown.stdout)


if __name__ == "__main__":
    unittest.main()
