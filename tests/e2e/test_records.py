"""E2: the proxy's records of requests, with real processes, over crashes of their reader."""

import time
import unittest

from pool import Pool, wait_for
from records import Load, first_bytes, records_of, streamer


class Records(unittest.TestCase):
    def test_E2_every_request_once_over_two_kills_of_the_daemon(self):
        pool = Pool(self).start()
        streamer(pool, "chat")
        wait_for("two replicas", lambda: pool.service("chat")["service"]["replicas_ready"] == 2)
        load = Load(pool, "chat", "--rate", "80", "--duration", "6s", "--mix", "high=1,low=2")
        for _ in range(2):
            time.sleep(1.5)  # requests are under way, and go on without a daemon
            pool.kill()
            time.sleep(0.5)
            pool.start()
        report, rows = load.end()
        self.assertEqual(report["outcomes"]["ok"], report["scheduled"], report)
        self.assertEqual(report["scheduled"], len(rows))

        def all_read():
            return pool.get("/v1/services/chat/latency")["requests"] >= len(rows)
        wait_for("all records", all_read)
        records = records_of(pool)
        ids = [record["id"] for record in records]
        self.assertEqual(sorted(ids), sorted("r-" + row["number"] for row in rows))
        self.assertEqual({record["status"] for record in records}, {"200"})
        latency = pool.get("/v1/services/chat/latency")
        self.assertEqual(latency["requests"], len(rows))
        whole = latency["series"][0]
        self.assertEqual(whole["dimension"], "service")
        self.assertEqual(whole["windows"][1]["good"], len(rows))
        self.assertEqual(whole["windows"][1]["first_byte"]["count"], len(rows))
        self.assertEqual(len(first_bytes(rows, records)), len(rows))
        print("records: %d of %d requests, daemon killed twice" % (len(ids), len(rows)))

    def test_E2_what_is_shown_of_a_service(self):
        pool = Pool(self).start()
        streamer(pool, "chat", replicas=1, slo={"ttft": "5ms"})
        wait_for("a replica", lambda: pool.service("chat")["service"]["replicas_ready"] == 1)
        wait_for("its counters", lambda: pool.cli_json("latency", "chat")["engine"]["replicas"])
        report, _ = Load(pool, "chat", "--rate", "40", "--duration", "1500ms").end()
        self.assertEqual(report["outcomes"]["ok"], report["scheduled"])
        self.assertEqual(report["tokens"], 4 * report["scheduled"])
        wait_for("records", lambda: pool.cli_json("latency", "chat")["requests"]
                 == report["scheduled"])
        said = pool.cli("latency", "chat").stdout
        self.assertIn("objective: 99%", said)
        self.assertIn("service", said)
        # No answer comes within 5 ms: both windows burn, and everybody is told.
        self.assertIn("ALARM", said)
        self.assertIn("SLO burns", pool.cli("describe", "chat").stdout)
        wait_for("the pool's condition", lambda: "slo_burn" in
                 [c["name"] for c in pool.status()["conditions"]])
        wait_for("tokens a second", lambda: pool.cli_json("latency", "chat")["engine"][
            "generated_tokens_milli_per_s"])

    def test_E2_load_on_whatever_speaks_http(self):
        pool = Pool(self).start()
        streamer(pool, "chat", replicas=1)
        wait_for("a replica", lambda: pool.service("chat")["service"]["replicas_ready"] == 1)
        done = pool.cli("load", "chat", "--rate", "50", "--arrivals", "constant", "--duration",
                        "1s", "--keep-alive", "2s", "--realtime", "--slo-first-byte", "1s")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("50 requests in 1.0 s: 50 ok", done.stdout)
        self.assertIn("between tokens", done.stdout)
        refused = pool.cli("load", "nobody")
        self.assertEqual(refused.returncode, 3)
        self.assertIn("nobody", refused.stderr)
        refused = pool.cli("load", "http://127.0.0.1:1/", "--duration", "200ms", "--rate", "20")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("refused", refused.stdout)


if __name__ == "__main__":
    unittest.main()
