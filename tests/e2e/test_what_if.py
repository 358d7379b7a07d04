"""F9: neap simulate with bad input: an error that names the file, the line and the field.

No daemon is needed. Nothing is printed on the standard output and no file is written when the input
is refused.
"""

import gzip
import json
import pathlib
import subprocess
import tempfile
import unittest

from pool import NEAP

POLICY = """pool:
  total_gpus: 8
preempt:
  grace: 60s
priority_tiers:
  - {name: infer_core, weight: 100}
  - {name: train_normal, weight: 40}
"""
NODES = "sn,cpu_milli,memory_mib,gpu,model\na,64000,262144,8,P100\nb,64000,262144,0,\n"
SHORT = "1x8xA100-80G"


def job(name, gpus=1, at=0, seconds=60):
    return json.dumps({"at_us": at, "kind": "job", "name": name, "gpus": gpus,
                       "duration_us": seconds * 1_000_000}) + "\n"


def workload(*lines):
    return '{"neap_workload":1}\n' + "".join(lines)


# (file, what is changed into what, what the error says after the name of the file)
FILE_FAULTS = {
    "unknown field of a policy": ("now.yaml", "grace", "graze",
                                  ':4: preempt.graze: is not a known field; did you mean "grace"?'),
    "wrong unit in a policy": ("now.yaml", "60s", "60", ':4: preempt.grace: "60" has no unit'),
    "a policy without a training tier": ("now.yaml", "train_normal", "infer_other", ""),
    "not a number in a workload": ("jobs.jsonl", "60000000", '"long"', ":2: duration_us: "),
    "a negative time": ("jobs.jsonl", '"at_us": 0', '"at_us": -1', ":2: at_us: "),
    "more devices than any job may ask for": ("jobs.jsonl", '"gpus": 1', '"gpus": 99999999',
                                              ":2: gpus: "),
    "an unknown kind": ("jobs.jsonl", '"kind": "job"', '"kind": "jab"', ":2: kind: "),
    "another version of a workload": ("jobs.jsonl", "neap_workload\":1", "neap_workload\":2", ":1"),
    "half a line": ("jobs.jsonl", "}\n{", "}\n{{", ":2: "),
    "not a number in a node list": ("nodes.csv", ",8,P100", ",x,P100", ":2: gpu: "),
    "a node list without a column": ("nodes.csv", ",gpu", ",gpus", ":1: gpu: "),
}


class WhatIf(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="neap-what-if-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.policy = self.write("now.yaml", POLICY)
        self.jobs = self.write("jobs.jsonl", workload(job("a"), job("b", at=5)))
        self.nodes = self.write("nodes.csv", NODES)
        self.picture = self.folder / "picture.html"

    def write(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def simulate(self, *words):
        return subprocess.run([str(NEAP), "simulate", *map(str, words)], capture_output=True,
                              text=True, timeout=60, cwd=self.folder)

    def run_json(self, *words):
        done = self.simulate(*words, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def refuses(self, code, message, *words):
        done = self.simulate(*words, "--picture", self.picture)
        self.assertIn(message, done.stderr, words)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "", words)
        self.assertFalse(self.picture.exists(), words)
        return done.stderr

    def test_f9_files_that_are_not_there(self):
        gone = self.folder / "gone"
        missing = f"{gone}: cannot be "
        common = ["--cluster", SHORT, "--workload", self.jobs]
        self.refuses(3, missing, "--cluster", SHORT, "--workload", gone)
        self.refuses(3, missing, "--cluster", SHORT, "--workload", self.jobs, "--workload", gone)
        self.refuses(3, missing, *common, "--policy", gone)
        self.refuses(3, missing, *common, "--policy", self.policy, "--policy", gone)
        self.refuses(3, missing, *common, "--compare", f"{self.policy},{gone}")
        self.refuses(3, missing, *common, "--compare", f"{gone},{self.policy}")
        self.refuses(3, f'--cluster "{gone}": there is no such file, and it is no short form',
                     "--cluster", gone, "--workload", self.jobs)

    def test_f9_faults_within_files_name_their_place(self):
        for what, (name, old, new, place) in FILE_FAULTS.items():
            with self.subTest(what):
                path = self.folder / name
                good = path.read_text()
                self.assertIn(old, good, "the fault is not where it was meant")
                path.write_text(good.replace(old, new, 1))
                cluster = path if name == "nodes.csv" else SHORT
                done = self.simulate("--cluster", cluster, "--workload", self.jobs, "--policy",
                                     self.policy)
                path.write_text(good)
                if place:
                    self.assertIn(f"{path}{place}", done.stderr)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertEqual(done.stdout, "")

    def test_f9_an_error_far_into_a_workload_names_its_line(self):
        lines = [job(f"j{i}", at=i) for i in range(500)]
        lines[321] = job("j321", at=321).replace("60000000", "sixty")
        path = self.write("long.jsonl", workload(*lines))
        self.refuses(2, f"{path}:323: ", "--cluster", SHORT, "--workload", path)

    def test_f9_rows_that_go_back_in_time_are_named(self):
        path = self.write("back.jsonl", workload(job("a", at=9), job("b", at=5)))
        self.refuses(2, f"{path}:3: at_us: expected a time no earlier than the line before",
                     "--cluster", SHORT, "--workload", path)
        path = self.write("back.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n"
                                      "2023-11-16 18:15:46.6805900,374,44\n"
                                      "2023-11-16 18:15:40.6805900,374,44\n")
        self.refuses(2, f"{path}: row 2 is earlier than the one before it; expected the order of "
                     "time", "--cluster", SHORT, "--workload", path)

    def test_f9_set_is_checked_as_the_file_is(self):
        faults = {
            "preempt.fixedcost=1h": 'is not a known field; did you mean "fixed_cost"?',
            "pool.total_gpus=-1": '"-1" is negative',
            "preempt.grace=60": '"60" has no unit',
            "priority_tiers[7].weight=5": "has no item 7",
            "preempt.grace": "expected key=value",
            "pool.inference_guard_min=9": "9 is more than total_gpus (8)",
        }
        for text, message in faults.items():
            with self.subTest(text):
                said = self.refuses(2, message, "--cluster", SHORT, "--workload", self.jobs,
                                    "--policy", self.policy, "--set", text)
                self.assertIn(f"--set {text}", said)

    # A copy that was cut off must not pass for a shorter month.
    def test_f9_truncated_gzip(self):
        whole = gzip.compress(workload(*(job(f"j{i}", at=i * 997) for i in range(2_000))).encode())
        for size in (2, 5, 11, 100, len(whole) // 2, len(whole) - 9, len(whole) - 1):
            with self.subTest(size):
                path = self.write("cut.jsonl.gz", whole[:size])
                self.refuses(2, f"{path}: the gzip data is cut off", "--cluster", SHORT,
                             "--workload", path)
        path = self.write("wrong.jsonl.gz", whole[:-6] + bytes([whole[-6] ^ 1]) + whole[-5:])
        self.refuses(2, str(path), "--cluster", SHORT, "--workload", path)
        path = self.write("more.jsonl.gz", whole + b"and more")
        self.refuses(2, f"{path}: bytes follow the gzip data", "--cluster", SHORT, "--workload",
                     path)

    def test_f9_what_is_no_workload(self):
        for name, content in {"empty": b"", "noise": bytes(range(256)) * 9,
                              "text": b"once upon a time\n"}.items():
            with self.subTest(name):
                path = self.write(name, content)
                self.refuses(2, str(path), "--cluster", SHORT, "--workload", path)
        self.refuses(2, f"{self.jobs}:1: ", "--cluster", SHORT, "--workload", self.jobs,
                     "--format", "azure")
        self.refuses(3, "there is no journal", "--cluster", SHORT, "--workload", self.folder)
        self.refuses(2, "--workload: is needed", "--cluster", SHORT)

    def test_f9_clusters(self):
        for text in ("8xX1", "0x8xT4", "8x65xT4", "64xx", "8xT4,", "20001x1xT4"):
            with self.subTest(text):
                self.refuses(2, "--cluster ", "--cluster", text, "--workload", self.jobs)
        none = self.write("none.yaml", "pool: {}\n")
        self.refuses(2, f"{none}: names no devices", "--cluster", none, "--workload", self.jobs)
        hosts = self.write("hosts.csv", NODES.splitlines()[0] + "\na,1,1,0,\n")
        self.refuses(2, f"{hosts}: holds no node with devices", "--cluster", hosts, "--workload",
                     self.jobs)
        self.refuses(2, "--cluster: is needed", "--workload", self.jobs)

    # A variable of a script that was never set is no option left out.
    def test_f9_empty_words(self):
        common = ["--cluster", SHORT, "--workload", self.jobs]
        for option in ("--policy", "--compare", "--set", "--until", "--jitter", "--sample",
                       "--seeds", "--tier", "--save-time", "--curves-csv", "--generate"):
            with self.subTest(option):
                self.refuses(2, option, *common, option, "")
        for words in (["--cluster", "", "--workload", self.jobs, "--policy", self.policy],
                      ["--cluster", SHORT, "--workload", ""]):
            self.refuses(2, "not an empty one", *words)
        for names in (",", f"{self.policy},", f",{self.policy}", f"{self.policy}"):
            self.refuses(2, "--compare: expected pool files with a comma between", *common,
                         "--compare", names)
        self.assertEqual(self.simulate(*common, "--json", "--csv").returncode, 2)

    def test_f9_every_form_of_a_cluster(self):
        pool = self.write("pool.yaml", "pool: {}\ndevices:\n  nodes:\n"
                                       "    - {name: n0, count: 8, model: A100-80G}\n")
        plain = ["--workload", self.jobs, "--set", "preempt.enabled=false"]
        for cluster, devices in ((SHORT, 8), (self.policy, 8), (pool, 8), (self.nodes, 8),
                                 ("1x4xT4,2x2xX1:48GiB", 8)):
            with self.subTest(str(cluster)):
                said = self.run_json("--cluster", cluster, *plain)
                self.assertEqual(said["cluster"]["devices"], devices)
                self.assertEqual(said["runs"][0]["jobs"]["finished"], 2)
        # Without --cluster it is that of the first policy.
        said = self.run_json("--policy", pool, "--policy", self.policy, "--workload", self.jobs)
        self.assertEqual(said["cluster"], {"text": str(pool), "nodes": 1, "devices": 8})
        self.assertEqual([run["policy"] for run in said["runs"]], [str(pool), str(self.policy)])

    def test_f9_a_task_larger_than_the_pool_is_said_and_the_rest_goes_on(self):
        path = self.write("large.jsonl", workload(job("a"), job("wide", gpus=9, at=1),
                                                  job("b", at=2)))
        run = self.run_json("--cluster", SHORT, "--workload", path)["runs"][0]
        self.assertEqual((run["jobs"]["jobs"], run["jobs"]["finished"], run["jobs"]["refused"]),
                         (3, 2, 1))
        self.assertEqual(run["never_started"], [
            {"reason": "refused: gpus", "jobs": 1, "example": "wide",
             "detail": "9 devices are asked for, the pool has 8 that could serve"}])
        text = self.simulate("--cluster", SHORT, "--workload", path)
        self.assertEqual(text.returncode, 0, text.stderr)
        self.assertIn("wide", text.stdout)


if __name__ == "__main__":
    unittest.main()
