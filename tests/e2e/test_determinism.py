"""D8: the same inputs give the same bytes, timings apart: on every run, and from every build type.

The runs differ in what must not matter: the folder they start in, and what fresh memory holds. The
sanitized build is compared where it has been built, beside the release build.
"""

import json
import os
import pathlib
import random
import subprocess
import tempfile
import unittest

from pool import NEAP

TIMINGS = {"seconds", "decision_ns"}
PATIENCE = 600


def write_trace(folder):
    """A small pool with pods of all kinds, in the form of the openb trace; and request rates."""
    chance = random.Random(11)
    nodes = ["sn,cpu_milli,memory_mib,gpu,model"]
    for n in range(40):
        nodes.append("n%d,%d,%d,%d,%s" % (n, 32000 + n % 3 * 16000, 262144, 2 if n % 3 == 0 else 8,
                                          "T4" if n % 3 == 0 else "G2"))
    pods = ["name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec"]
    for p in range(400):
        gpus = chance.choice([0, 1, 1, 1, 1, 1, 2, 8])
        each = 0 if gpus == 0 else 1000 if gpus > 1 else chance.choice([100, 250, 460, 810, 1000])
        spec = chance.choice(["", "", "", "T4", "G2"]) if gpus == 1 else ""
        pods.append("p%d,%d,%d,%d,%d,%s" % (p, chance.choice([1000, 4000, 11300]), 4096, gpus, each,
                                            spec))
    rates = ['{"neap_workload":1}']
    for half_hour in range(4 * 48):
        rates.append('{"at_us":%d,"kind":"rate","service":"chat","micro_per_second":%d}'
                     % (half_hour * 1_800_000_000, chance.randrange(50, 300) * 1_000_000))
    (folder / "rates.jsonl").write_text("\n".join(rates) + "\n")
    (folder / "nodes.csv").write_text("\n".join(nodes) + "\n")
    (folder / "pods.csv").write_text("\n".join(pods) + "\n")


def without_timings(value):
    if isinstance(value, dict):
        return {key: without_timings(v) for key, v in value.items() if key not in TIMINGS}
    if isinstance(value, list):
        return [without_timings(v) for v in value]
    return value


def builds():
    """The program of this build, and that of the other build type where it is there."""
    own = pathlib.Path(NEAP)
    found = [own]
    for other in (own.parent / "asan/neap", own.parent.parent / "neap"):
        if other.is_file() and other != own:
            found.append(other)
    return found


class Determinism(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        write_trace(self.folder)

    def output(self, program, words, turn):
        folder = self.folder / ("turn%d" % turn)
        folder.mkdir(exist_ok=True)
        done = subprocess.run([str(program), *words], cwd=folder, text=True, timeout=PATIENCE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env={**os.environ, "MALLOC_PERTURB_": str(17 * turn)})
        self.assertEqual(done.returncode, 0, done.stderr[-1000:])
        return json.dumps(without_timings(json.loads(done.stdout)))

    def check(self, words):
        outputs = {self.output(program, words, turn) for program in builds()
                   for turn in (1, 2)}
        self.assertEqual(len(outputs), 1, " ".join(words))

    def commands(self):
        openb = ["simulate", "openb", "--nodes", str(self.folder / "nodes.csv"), "--pods",
                 str(self.folder / "pods.csv"), "--json"]
        for policy in ("random", "dotprod", "clustering", "packing", "bestfit", "fgd"):
            yield [*openb, "--policy", policy]
        yield [*openb, "--policy", "fgd", "--ties", "random", "--seed", "7"]
        yield [*openb, "--policy", "neap", "--learn", "online", "--ties", "random"]
        yield [*openb, "--policy", "neap"]
        yield ["simulate", "--cluster", "8x8xA100-80G", "--generate", "philly", "--jobs", "300",
               "--json"]
        yield ["guard", "fit", "--trace", str(self.folder / "rates.jsonl"), "--pool", "64",
               "--json"]

    def test_D8_the_same_inputs_give_the_same_bytes(self):
        commands = list(self.commands())
        for words in commands:
            self.check(words)
        print("determinism: %d commands, two runs each, %d build types: equal"
              % (len(commands), len(builds())))

    def test_D8_another_seed_gives_others(self):
        words = ["simulate", "openb", "--nodes", str(self.folder / "nodes.csv"), "--pods",
                 str(self.folder / "pods.csv"), "--json", "--policy", "fgd", "--seed"]
        curves = {json.dumps(json.loads(self.output(builds()[0], [*words, seed], 1))["alloc_pct"])
                  for seed in ("1", "2", "3")}
        self.assertGreater(len(curves), 1)


if __name__ == "__main__":
    unittest.main()
