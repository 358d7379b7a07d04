"""Pipelines and new versions of services with real processes (D9, C4, S8), and sleep (D5)."""

import json
import os
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from pool import NORMAL, PYTHON, SERVING, SIGNALS, Pool, wait_for
from programs import Request, service, write_once

# Answers with the model that it was started with: v1, or what the stage before it left.
SERVER = """
import http.server, os, sys, time
folder = os.environ.get("NEAP_INPUT_EVALUATE")
model = open(folder + "/model").read() if folder else sys.argv[2]
if model == "broken":
    sys.exit(1)
if model == "slow":
    time.sleep(1000)
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(model)))
        self.end_headers()
        self.wfile.write(model.encode())
    def log_message(self, *arguments):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""

# Each waits for a word before it finishes; evaluate hands the model on.
TRAIN = 'while [ ! -e go.train ]; do sleep 0.05; done; echo -n v2 > "$NEAP_ARTIFACTS/model"'
EVALUATE = ('cp "$NEAP_INPUT_TRAIN/model" "$NEAP_ARTIFACTS/model"; '
            'while [ ! -e go.evaluate ]; do sleep 0.05; done; '
            'echo "{\\"accuracy\\": $(cat accuracy)}" > "$NEAP_ARTIFACTS/metrics.json"')


def chat(pool, model="v1", **fields):
    write_once(pool.work / "server.py", SERVER)
    return {"name": "chat", "tier": SERVING, "gpus": 1,
            "command": [PYTHON, "server.py", "{port}", model], "replicas": {"min": 1, "max": 1},
            "health": {"interval": "100ms", "start_timeout": "20s"}, **fields}


def nightly(pool, **train):
    def stage(name, command, **fields):
        return {"name": name, **fields,
                "task": {"tier": NORMAL, "gpus": 1, "command": ["sh", "-c", command],
                         "checkpoint": SIGNALS, **(train if name == "train" else {})}}
    deploy = {"name": "deploy", "after": ["evaluate"], "service": chat(pool),
              "when": {"metric": "accuracy", "at_least": 0.9}}
    return {"pipeline": {"name": "nightly", "stages": [
        stage("train", TRAIN), stage("evaluate", EVALUATE, after=["train"]), deploy]}}


def status_of(pool, name):
    request = Request(pool, name, timeout=10)
    request.join()
    return request.status


class Traffic(threading.Thread):
    """Requests one after another, from now until the end: what they were answered."""

    def __init__(self, pool, name):
        super().__init__(daemon=True)
        self._pool, self._name = pool, name
        self._address = None
        self._over = threading.Event()
        self.answers, self.failures = [], []
        request = Request(pool, name).ended()  # finds the address on this thread
        self._address = request._address
        pool.case.addCleanup(self._over.set)  # its port is the next pool's
        self.start()

    def run(self):
        import http.client
        while not self._over.is_set():
            connection = http.client.HTTPConnection(self._address.hostname, self._address.port,
                                                    timeout=30)
            try:
                connection.request("GET", "/")
                answer = connection.getresponse()
                text = answer.read().decode()
                (self.answers if answer.status == 200 else self.failures).append(text)
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(repr(error))
            finally:
                connection.close()
            time.sleep(0.005)

    def ended(self):
        self._over.set()
        self.join(60)
        return self


class PipelineTest(unittest.TestCase):
    def go(self, name):
        (self.pool.work / ("go." + name)).touch()

    def stages(self, name="nightly"):
        rows = self.pool.get("/v1/pipelines/%s" % name)["pipeline"]["stages"]
        return {row["name"]: row for row in rows}

    def wait_stage(self, name, state):
        wait_for(lambda: "stage %s to be %s: %s" % (name, state, self.stages()[name]),
                 lambda: self.stages()[name]["state"] == state)

    def serve_v1(self):
        self.pool.submit({"service": chat(self.pool)})
        wait_for("v1 to answer", lambda: status_of(self.pool, "chat") == 200)

    def test_s8_the_chain_is_not_cut_and_the_new_model_loads_hot(self):
        pool = self.pool = Pool(self).start()
        (pool.work / "accuracy").write_text("0.93")
        self.serve_v1()
        pool.submit(nightly(pool, gpus=2))
        pool.wait_state("nightly.train", "running")
        self.assertEqual(pool.task("nightly.evaluate")["reason"],
                         "waits for stage train (running) of pipeline nightly")
        # More of the tier of the chain's last stage than there is room for; no task is protected
        # in this pool but by its chain.
        service(pool, "burst", least=3)
        wait_for("one of the burst to serve",
                 lambda: pool.service("burst")["service"]["replicas_ready"] == 1)
        time.sleep(2)
        self.assertEqual(pool.task("nightly.train")["state"], "running")
        traffic = Traffic(pool, "chat")
        self.go("train")
        pool.wait_state("nightly.evaluate", "running")
        self.go("evaluate")
        self.wait_stage("deploy", "done")
        wait_for("the new model to answer", lambda: traffic.answers[-1] == "v2")
        traffic.ended()
        self.assertEqual(traffic.failures, [])
        first = traffic.answers.index("v2")
        self.assertNotIn("v2", traffic.answers[:first])
        self.assertGreater(first, 0)
        for stage in ("train", "evaluate"):
            self.assertEqual(pool.task("nightly." + stage)["preemptions"], 0)
        self.assertEqual(self.stages()["evaluate"]["metrics"], {"accuracy": "0.93"})
        self.assertEqual(pool.get("/v1/pipelines/nightly")["pipeline"]["state"], "done")
        print("S8: %d requests during the chain, none failed; %d by the old model, then the new"
              % (len(traffic.answers), first), flush=True)
        pool.delete("/v1/services/burst")
        pool.delete("/v1/services/chat")
        wait_for("all to end", lambda: pool.status()["tasks_running"] == 0)
        pool.check_replay()

    def test_d9_a_condition_that_does_not_hold_stops_what_follows(self):
        pool = self.pool = Pool(self).start()
        (pool.work / "accuracy").write_text("0.8999")
        self.serve_v1()
        pool.submit(nightly(pool))
        self.go("train")
        self.go("evaluate")
        self.wait_stage("deploy", "stopped")
        self.assertEqual(self.stages()["deploy"]["reason"],
                         "chain_stopped: accuracy of stage evaluate is 0.8999, asked for is at "
                         "least 0.9")
        self.assertEqual(Request(pool, "chat").ended().text, "v1")

    def test_d9_metrics_that_are_a_trap_are_not_read(self):
        pool = self.pool = Pool(self).start()
        (pool.work / "accuracy").write_text("0.95")
        trap = EVALUATE + '; mv "$NEAP_ARTIFACTS/metrics.json" "$NEAP_ARTIFACTS/real"; ' \
                          'ln -s real "$NEAP_ARTIFACTS/metrics.json"'
        content = nightly(pool)
        content["pipeline"]["stages"][1]["task"]["command"] = ["sh", "-c", trap]
        pool.submit(content)
        self.go("train")
        self.go("evaluate")
        self.wait_stage("deploy", "stopped")
        self.assertIn("metrics.json cannot be opened", self.stages()["deploy"]["reason"])

    def test_g3_a_killed_daemon_cuts_no_chain(self):
        pool = self.pool = Pool(self).start()
        (pool.work / "accuracy").write_text("0.97")
        self.serve_v1()
        pool.submit(nightly(pool))
        pool.wait_state("nightly.train", "running")
        pool.kill()
        self.go("train")  # it finishes while nobody is there
        time.sleep(0.5)
        pool.start()
        pool.wait_state("nightly.evaluate", "running")
        pool.kill()
        self.go("evaluate")
        time.sleep(0.5)
        pool.start()
        self.wait_stage("deploy", "done")
        self.assertEqual(Request(pool, "chat").ended().text, "v2")
        pool.delete("/v1/services/chat")
        wait_for("all to end", lambda: pool.status()["tasks_running"] == 0)
        pool.check_replay()

    def test_d9_the_command_line_shows_and_cancels_it(self):
        pool = self.pool = Pool(self).start()
        file = pool.work / "nightly.yaml"
        file.write_text(json.dumps(nightly(pool)))
        done = pool.cli("submit", file)
        self.assertEqual(done.returncode, 0, done.stderr)
        pool.wait_state("nightly.train", "running")
        self.assertIn("train running, evaluate waiting, deploy waiting", pool.cli("ps").stdout)
        self.assertIn("waits for stage evaluate", pool.cli("describe", "nightly").stdout)
        self.assertIn("waits for stage train (running)",
                      pool.cli("why", "nightly.evaluate").stdout)
        self.assertIn("artefacts of train", pool.cli("why", "nightly").stdout)
        folder = self.stages()["train"]["artifacts"]
        self.assertEqual(os.stat(folder).st_mode & 0o777, 0o750)
        self.assertEqual(pool.cli("cancel", "nightly").returncode, 0)
        pool.wait_state("nightly.train", "cancelled")
        pool.wait_state("nightly.evaluate", "cancelled")
        self.assertEqual(self.stages()["deploy"]["state"], "stopped")
        text = json.dumps(nightly(pool), indent=1).replace('"gpus": 1', '"gpus": 99', 1)
        file.write_text(text)
        done = pool.cli("submit", file)
        self.assertEqual(done.returncode, 2)
        self.assertIn("pipeline.stages[0].task.gpus: asks for 99 devices", done.stderr)

    def test_c4_a_service_is_replaced_while_it_serves(self):
        pool = self.pool = Pool(self).start()
        self.serve_v1()
        traffic = Traffic(pool, "chat")
        file = pool.work / "chat.yaml"
        file.write_text(json.dumps({"service": chat(pool, "v2")}))
        self.assertEqual(pool.cli("submit", file).returncode, 5)  # the name lives
        done = pool.cli("submit", "--replace", file)
        self.assertEqual(done.returncode, 0, done.stderr)
        wait_for("v2 to answer", lambda: traffic.answers[-1] == "v2")
        # What is given up before that goes back to v1, the last that was whole.
        wait_for("v1 to be gone", lambda: pool.status()["tasks_running"] == 1)
        # One that never gets healthy is given up, and v2 goes on.
        file.write_text(json.dumps({"service": chat(pool, "broken")}))
        self.assertEqual(pool.cli("submit", "--replace", file).returncode, 0)
        wait_for("the roll back", lambda: any(c["name"] == "service_rolled_back"
                                              for c in pool.status()["conditions"]))
        wait_for("one replica", lambda: pool.service("chat")["service"]["replicas_wanted"] == 1)
        # Taken back before it is there; and what is not there is not replaced.
        file.write_text(json.dumps({"service": chat(pool, "slow")}))
        self.assertEqual(pool.cli("submit", "--replace", file).returncode, 0)
        done = pool.cli("cancel", "--version", "chat")
        self.assertEqual(done.returncode, 0, done.stderr)
        # While its replicas go the reason counts them; then it says what happened.
        wait_for("the way back to be done",
                 lambda: "took it back" in pool.service("chat")["service"]["reason"])
        self.assertEqual(pool.service("chat")["service"]["replicas_wanted"], 1)
        self.assertIn("there is none to give up", pool.cli("cancel", "--version", "chat").stderr)
        file.write_text(json.dumps({"service": {**chat(pool, "v3"), "name": "nobody"}}))
        self.assertIn("no service is called nobody: submit it without --replace",
                      pool.cli("submit", "--replace", file).stderr)
        traffic.ended()
        self.assertEqual(traffic.failures, [])
        self.assertEqual(traffic.answers[-1], "v2")
        self.assertIn("was given up", pool.service("chat")["service"]["reason"])

    def test_d5_a_service_sleeps_and_wakes(self):
        pool = self.pool = Pool(self).start()
        pool.submit({"service": chat(pool, replicas={"min": 0, "max": 2},
                                     scale={"down_for": "3s"})})

        def ready():
            return pool.service("chat")["service"]["replicas_ready"]
        wait_for("the daemon to ask the gateway", lambda: pool.events())
        time.sleep(2.5)  # two samples: what ended before the first is not known
        self.assertEqual(ready(), 0)
        # The request that wakes it waits for the replica.
        self.assertEqual(status_of(pool, "chat"), 200)
        wait_for("it to sleep again", lambda: ready() == 0)
        self.assertEqual(pool.service("chat")["service"]["replicas_wanted"], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
