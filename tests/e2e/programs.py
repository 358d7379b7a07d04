"""Programs that tests run as tasks and replicas, and how to start them."""

import http.client
import threading
import urllib.parse

from pool import NORMAL, PYTHON, SDK, SERVING, SIGNALS

# Serves /health, / (its pid) and /hold?file=F, which answers once F exists.
REPLICA = """
import http.server, os, sys, time, urllib.parse
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        url = urllib.parse.urlparse(self.path)
        if url.path == "/hold":
            open("held.%d" % os.getpid(), "w").close()
            while not os.path.exists(urllib.parse.parse_qs(url.query)["file"][0]):
                time.sleep(0.02)
        body = str(os.getpid()).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *arguments):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""

# Makes a step each 50 ms and a checkpoint each INTERVAL; finishes when a file NAME.stop appears.
TRAINER = """
import json, os, sys, time
import neap_task
name, interval = sys.argv[1], float(sys.argv[2])
done = 0
def save(path, step):
    with open(path, "w") as file:
        json.dump(step, file)
with neap_task.Task(save=save, interval_seconds=interval) as task:
    path = task.restore_path()
    if path:
        with open(path) as file:
            done = json.load(file)
    print("begins at step", done, flush=True)
    for step in task.steps(done, 10**9):
        time.sleep(0.05)
        if os.path.exists(name + ".stop"):
            break
print("ends at step", step, flush=True)
"""

# Like a program of the signals contract, which is saved at every moment.
PATIENT = "trap 'exit 75' TERM; while :; do sleep 100000 & wait $!; done"


def write_once(path, text):
    """A program that is being started must not change under it."""
    if not path.exists():
        path.write_text(text)


def trainer(pool, name, seconds=2, tier=NORMAL, **fields):
    """Submits a training task with the SDK that checkpoints every so many seconds."""
    write_once(pool.work / "trainer.py", TRAINER)
    checkpoint = {**SIGNALS, "contract": "sdk", "interval": "%ds" % seconds}
    return pool.submit_task(name, [PYTHON, "trainer.py", name, str(seconds)], tier=tier,
                            checkpoint=checkpoint, env={"PYTHONPATH": str(SDK)}, **fields)


def service(pool, name, least=1, most=None, **fields):
    """Submits a service of tiny replicas; a request to it is Request(pool, name, path)."""
    write_once(pool.work / "replica.py", REPLICA)
    content = {"name": name, "tier": SERVING, "command": [PYTHON, "replica.py", "{port}"],
               "replicas": {"min": least, "max": most or least}, "drain_timeout": "30s",
               "health": {"interval": "100ms"}, **fields}
    if "gpu" not in content:
        content["gpus"] = 1
    return pool.submit({"service": content})


class Request(threading.Thread):
    """A request that is under way: its status and text, or its error, once it has ended."""

    def __init__(self, pool, name, path="/", timeout=60):
        super().__init__(daemon=True)
        self._address = urllib.parse.urlparse(pool.service(name)["service"]["address"])
        self._path = path
        self._timeout = timeout
        self.start()

    def run(self):
        self.status = self.text = self.error = None
        connection = http.client.HTTPConnection(self._address.hostname, self._address.port,
                                                timeout=self._timeout)
        try:
            connection.request("GET", self._path)
            answer = connection.getresponse()
            self.status, self.text = answer.status, answer.read().decode()
        except (OSError, http.client.HTTPException) as error:
            self.error = error
        finally:
            connection.close()

    def ended(self):
        self.join(self._timeout)
        assert self.error is None, self.error
        return self


def answers(pool, name):
    """The pid of the replica that answers one request, None when none does."""
    request = Request(pool, name, timeout=5)
    request.join()
    return int(request.text) if request.status == 200 else None
