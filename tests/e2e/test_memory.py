"""The daemon with 10,000 tasks: its memory, how fast they were taken, and its restart.

Printed, with `memory:` at the line's beginning, for who looks for the figures.
"""

import json
import threading
import time
import unittest

from pool import NORMAL, PATIENCE, Api, Pool
from programs import PATIENT

TASKS = 10_000
SENDERS = 8
LIMIT_MIB = 60


def resident(pid):
    """(now, at most) of a process's resident memory, in MiB."""
    fields = {}
    with open("/proc/%d/status" % pid, encoding="utf-8") as file:
        for line in file:
            name, _, value = line.partition(":")
            fields[name] = value.split()
    return int(fields["VmRSS"][0]) / 1024, int(fields["VmHWM"][0]) / 1024


class Memory(unittest.TestCase):
    def submit_all(self, pool):
        """Over the API as it stands: one request a task, several at once. Seconds it took."""
        failures = []

        def send(first):
            api = Api(pool.socket, timeout=PATIENCE)
            for number in range(first, TASKS, SENDERS):
                team = "team-%d" % (number % 40)
                task = {"name": "job-%d" % number, "tier": NORMAL, "team": team,
                        "command": ["sh", "-c", PATIENT], "gpus": number % 4 + 1,
                        "checkpoint": {"contract": "signals"}, "env": {"NUMBER": str(number)}}
                status, answer = api.call("POST", "/v1/tasks", {
                    "file": "job.yaml", "text": json.dumps({"task": task}),
                    "workdir": str(pool.work)})
                if status != 201:
                    failures.append((number, status, answer))
            api.close()
        begin = time.monotonic()
        senders = [threading.Thread(target=send, args=(first,)) for first in range(SENDERS)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        self.assertEqual(failures, [])
        return time.monotonic() - begin

    def check(self, pool, when):
        """At rest the daemon is under the limit; what it took for a moment is printed too."""
        status = pool.status()
        self.assertEqual(status["tasks_waiting"] + status["tasks_running"], TASKS)
        now, most = resident(pool.daemon.pid)
        print("memory: daemon with %d tasks %s: %.1f MiB, at most %.1f MiB"
              % (TASKS, when, now, most), flush=True)
        self.assertLess(now, LIMIT_MIB)
        return most

    def test_under_60_mib_with_10000_tasks(self):
        pool = Pool(self).start()
        empty, _ = resident(pool.daemon.pid)
        seconds = self.submit_all(pool)
        print("memory: %d tasks taken in %.1f s, %.0f a second"
              % (TASKS, seconds, TASKS / seconds), flush=True)
        most = self.check(pool, "after they were submitted (%.1f MiB without)" % empty)
        self.assertLess(most, LIMIT_MIB)
        self.assertEqual(len(pool.get("/v1/tasks")["tasks"]), TASKS)
        self.check(pool, "after all were listed")
        # The search for what would start it and the forecast of when work on copies of the state,
        # for their time: forecasts are made for a minute after somebody asked.
        self.assertTrue(pool.why("job-9999")["unblocks"])
        rest = time.monotonic() + 180
        while time.monotonic() < rest and resident(pool.daemon.pid)[0] >= LIMIT_MIB:
            time.sleep(1)
        self.check(pool, "after one was explained")

        for end in (pool.stop, pool.kill):
            end()
            begin = time.monotonic()
            pool.start()
            print("memory: restart with %d tasks after %s: %.2f s"
                  % (TASKS, end.__name__, time.monotonic() - begin), flush=True)
            self.assertLess(self.check(pool, "after a restart"), LIMIT_MIB)


if __name__ == "__main__":
    unittest.main()
