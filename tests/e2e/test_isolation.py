"""Host limits with real processes: what they hold, what is refused, what stays over a restart."""

import json
import os
import pathlib
import subprocess
import unittest

import hogs
from pool import Ends, Pool, wait_for

MIB = 1 << 20
METHODS = ("cpu weight", "cpu quota", "cpus", "memory max", "memory high", "processes max",
           "io bandwidth", "io operations", "io weight", "network")


def checks(pool):
    """What the doctor says of each method, once all have been tried."""
    def tried():
        found = {check["name"].removeprefix("host limit: "): check
                 for check in pool.get("/v1/doctor")["checks"]
                 if check["name"].startswith("host limit: ")}
        return found if all(check["message"] != "is being tried" for check in found.values()) \
            else None
    return wait_for("the methods to be tried", tried)


def printed(pool, task):
    return json.loads(pool.log(task).strip().split("\n")[-1])


@unittest.skipIf(os.geteuid() != 0, "limits of the host need root")
class HostLimits(unittest.TestCase):
    def held(self, pool, method):
        check = checks(pool)[method]
        if check["state"] != "ok":
            self.skipTest("%s: %s" % (method, check["message"]))
        return check

    def test_each_method_is_tried_and_told(self):  # B1
        pool = Pool(self).start()
        found = checks(pool)
        self.assertEqual(tuple(found), METHODS)
        for name, check in found.items():
            self.assertIn(check["state"], ("ok", "warning"), name)
            self.assertTrue(check["state"] == "ok" or check["message"].startswith("not offered: "),
                            check)
        self.assertIn("host.interfaces", found["network"]["message"])
        self.assertIn("host limit: cpu quota", pool.cli("doctor").stdout)

    def test_checks_can_be_turned_off(self):
        pool = Pool(self, host={"verify": False}).start()
        self.assertEqual({check["message"] for check in checks(pool).values()},
                         {"was not tried here"})

    def test_what_fails_its_check_is_refused_with_the_reason(self):  # B1
        pool = Pool(self, pool={"max_restarts": 0}).start()
        self.assertIn("host.interfaces", checks(pool)["network"]["message"])
        pool.submit_task("sender", ["true"], host={"network": "1MiB"})
        pool.wait_state("sender", "failed")
        told = [event["message"] for event in pool.events()]
        self.assertTrue(any("host limit 'network' is not offered here" in one for one in told),
                        told)

    def test_a_path_in_memory_has_no_disk_to_limit(self):
        pool = Pool(self, pool={"max_restarts": 0}).start()
        pool.submit_task("reader", ["true"], host={"io": [{"path": "/proc", "read": "1MiB"}]})
        pool.wait_state("reader", "failed")
        self.assertTrue(any("no disk whose reads and writes can be limited" in event["message"]
                            for event in pool.events()))

    def test_bytes_a_second_are_within_a_tenth_of_the_limit(self):  # B5
        pool = Pool(self).start()
        self.held(pool, "io bandwidth")
        writer = hogs.command(hogs.WRITER, "hog.bin", 3, MIB // 4)
        pool.submit_task("free", writer)
        pool.wait_state("free", "finished")
        pool.submit_task("limited", writer, host={"io": [{"path": ".", "write": "8MiB"}]})
        pool.wait_state("limited", "finished")
        free, limited = (printed(pool, task)["bytes_per_s"] for task in ("free", "limited"))
        self.assertLess(abs(limited / (8 * MIB) - 1), 0.1, "%d of %d" % (limited, 8 * MIB))
        self.assertGreater(free, 2 * limited)

    def test_paths_get_the_limits_of_their_storage_class(self):  # B5
        pool = Pool(self)
        text = json.loads(pool.pool_file.read_text())
        text["host"] = {"storage": [{"path": str(pool.work), "class": "throughput",
                                     "for": "training", "write": "4MiB"}]}
        pool.pool_file.write_text(json.dumps(text))
        pool.start()
        self.held(pool, "io bandwidth")
        pool.submit_task("declared", hogs.command(hogs.WRITER, "hog.bin", 3, MIB // 4),
                         host={"paths": ["."]})
        pool.wait_state("declared", "finished")
        self.assertLess(abs(printed(pool, "declared")["bytes_per_s"] / (4 * MIB) - 1), 0.1)

    def test_memory_is_taken_from_who_has_too_much_alone(self):  # B5
        pool = Pool(self, pool={"max_restarts": 0}).start()
        self.held(pool, "memory max")
        pool.submit_task("victim", hogs.command(hogs.EATER, 100, 3))
        pool.submit_task("hog", hogs.command(hogs.EATER, 400, 3), host={"memory_max": "64MiB"})
        pool.wait_state("hog", "failed")
        pool.wait_state("victim", "finished")
        self.assertEqual(printed(pool, "victim"), {"mib": 100})

    def test_limits_outlive_the_daemon(self):  # G3
        pool = Pool(self).start()
        self.held(pool, "cpu quota")
        pool.submit_task("runs", ["sleep", "1000"], host={"cpu_quota": 0.2})
        pool.wait_state("runs", "running")
        pool.kill()
        pool.start()
        pool.wait_state("runs", "running")
        found = [path for pattern in ("cpu/neap/%s-*/*/cpu.cfs_quota_us", "neap/%s-*/*/cpu.max")
                 for path in pathlib.Path("/sys/fs/cgroup").glob(pattern % pool.name)]
        self.assertEqual([path.read_text().split()[0] for path in found], ["20000"])

    def test_what_tasks_send_is_within_a_tenth_of_the_limit(self):  # B5
        own = subprocess.run(["unshare", "-n", hogs.PYTHON, __file__, "network"],
                             capture_output=True, text=True, timeout=120, check=False)
        if own.returncode == 77:
            self.skipTest(own.stdout.strip())
        self.assertEqual(own.returncode, 0, own.stdout + own.stderr)
        figures = json.loads(own.stdout.strip().split("\n")[-1])
        self.assertLess(abs(figures["limited"] / (10 * MIB) - 1), 0.1, figures)
        self.assertGreater(figures["free"], 2 * figures["limited"], figures)


def received(listener, seconds=20, skipped=1.0):
    """Bytes a second of one sender, less its first second: what the sockets and the limit let pass
    at once, before it holds, is a fifth of a second's worth."""
    import time
    listener.settimeout(seconds)
    connection, _ = listener.accept()
    with connection:
        connection.settimeout(seconds)
        begin = time.monotonic() + skipped
        last, count = begin, 0
        while True:
            part = connection.recv(1 << 20)
            if not part:
                return count / max(last - begin, 1e-6)
            now = time.monotonic()
            if now >= begin:
                count += len(part)
                last = now


def measure_network():
    """In a network of its own: a pool whose tasks send over loopback."""
    import socket

    if subprocess.run(["ip", "link", "set", "lo", "up"], check=False).returncode != 0:
        print("no loopback in a network of its own")
        return 77
    with Ends() as case:
        pool = Pool(case, host={"interfaces": ["lo"]})
        pool.start()
        check = checks(pool)["network"]
        if check["state"] != "ok":
            print("network: " + check["message"])
            return 77
        figures = {}
        for name, host in (("free", {}), ("limited", {"network": "10MiB"})):
            with socket.socket() as listener:
                listener.bind(("127.0.0.1", 0))
                listener.listen()
                pool.submit_task(name, hogs.command(hogs.SENDER, listener.getsockname()[1], 5),
                                 **({"host": host} if host else {}))
                figures[name] = received(listener)
            pool.wait_state(name, "finished")
        shown = subprocess.run(["tc", "class", "show", "dev", "lo"], capture_output=True, text=True,
                               check=True).stdout
        figures["classes_left"] = shown.count("htb")
        print(json.dumps(figures))
        return 0 if figures["classes_left"] == 0 else 1


if __name__ == "__main__":
    import sys
    if sys.argv[1:] == ["network"]:
        sys.exit(measure_network())
    unittest.main()
