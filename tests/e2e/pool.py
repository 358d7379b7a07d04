"""A pool for end-to-end tests: a state folder of its own, a daemon with real tasks, and its end.

    pool = Pool(self)                     # self: the test case; what was started ends with it
    pool.start()
    task = pool.submit_task("job", ["sleep", "60"], gpus=1)
    pool.wait_state(task, "running")

The daemon is the program named by NEAP (default: build/neap), its supervisor stands beside it.
Everything is on loopback or on UNIX sockets. Conditions are awaited, never slept for: `wait_for`
gives up after NEAP_E2E_PATIENCE seconds (60).
"""

import http.client
import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
NEAP = pathlib.Path(os.environ.get("NEAP") or ROOT / "build/neap")
SDK = ROOT / "sdk/python"
PYTHON = "/usr/bin/python3"
PATIENCE = float(os.environ.get("NEAP_E2E_PATIENCE", "60"))

# Tasks that the field example file would know, in times that a test can wait for.
TIERS = [{"name": "infer_core", "weight": 100}, {"name": "train_deadline_near", "weight": 80},
         {"name": "train_normal", "weight": 40}]
URGENT, NORMAL, SERVING = "train_deadline_near", "train_normal", "infer_core"
SIGNALS = {"contract": "signals", "save_time": "1s", "stall_time": "0s", "drain_time": "0s",
           "release_time": "1s", "restore_time": "0s"}


def pool_text(name, **sections):
    """A pool file (YAML takes JSON). A section given replaces the default's keys one by one."""
    pool = {
        "pool": {"name": name, "total_gpus": 4},
        "preempt": {"grace": "5s", "term_grace": "5s", "protected_for": "0s",
                    "budget_per_day": 10000},
        "priority_tiers": TIERS,
        "devices": {"source": "simulated"},
    }
    for section, value in sections.items():
        if isinstance(value, dict):
            pool.setdefault(section, {}).update(value)
        else:
            pool[section] = value
    return json.dumps(pool, indent=1) + "\n"


class ApiError(Exception):
    """An answer of the API other than 2xx."""

    def __init__(self, status, body):
        super().__init__("status %d: %s" % (status, body))
        self.status = status
        self.body = body


class Gone(Exception):
    """The daemon did not answer: it is dead, or not there yet."""


def wait_for(what, condition, patience=None):
    """The first value of condition() that is true; an AssertionError when none comes.

    what: what is waited for, as a text or a function that gives one.
    """
    end = time.monotonic() + (patience or PATIENCE)
    pause = 0.01
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("waited in vain for " + (what() if callable(what) else what))
        time.sleep(pause)
        pause = min(pause * 1.3, 0.1)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Api:
    """One connection to the daemon's socket, kept open between calls. Not for several threads."""

    def __init__(self, path, timeout=30):
        self._connection = UnixConnection(str(path), timeout)

    def call(self, method, path, body=None):
        """(status, parsed answer). Gone when there is no whole answer."""
        if method != "GET":
            self.close()  # an idle connection may have been closed: see below
        data = body if body is None or isinstance(body, (bytes, str)) else json.dumps(body)
        for attempt in (0, 1):
            fresh = self._connection.sock is None
            try:
                self._connection.request(method, path, data)
                answer = self._connection.getresponse()
                text = answer.read()
                return answer.status, (json.loads(text) if text else None)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                # An idle connection may have been closed: only what cannot have been acted on
                # is said twice.
                if attempt or fresh or method != "GET":
                    raise Gone(repr(error)) from error

    def close(self):
        self._connection.close()


def stat_of(pid):
    """(state, start ticks) of a process, None when there is none."""
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return fields[0], int(fields[19])


def is_alive(pid):
    stat = stat_of(pid)
    return stat is not None and stat[0] != "Z"


def processes_of(folder):
    """Pids whose command line or environment names the folder, without this process."""
    mark = os.fsencode(str(folder))
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        for part in ("cmdline", "environ"):
            try:
                with open("/proc/%s/%s" % (entry, part), "rb") as file:
                    if mark in file.read():
                        found.append(int(entry))
                        break
            except OSError:
                pass
    return found


class Pool:
    _made = 0

    def __init__(self, case, text=None, **sections):
        """text: a whole pool file; else pool_text() with these sections."""
        Pool._made += 1
        self.case = case
        self.name = "e2e-%d-%d" % (os.getpid(), Pool._made)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="neap-e2e-"))
        self.folder.chmod(0o755)
        self.state_dir = self.folder / "state"
        self.socket = self.state_dir / "neap.sock"
        self.work = self.folder / "work"
        self.work.mkdir()
        self.work.chmod(0o1777)
        self.pool_file = self.folder / "pool.yaml"
        self.pool_file.write_text(text if text is not None else pool_text(self.name, **sections))
        self.log_path = self.folder / "daemon.log"
        self.daemon = None
        self._api = None
        case.addCleanup(self.close)

    # ---- the daemon

    def start(self, environment=None, wait=True):
        """Starts the daemon; with wait, returns once it says that it serves."""
        assert self.daemon is None or self.daemon.returncode is not None, "it is running"
        if not NEAP.exists():
            raise AssertionError("there is no %s: build it, or name the program in NEAP" % NEAP)
        env = {key: value for key, value in os.environ.items() if not key.startswith("NEAP_")}
        env.update(environment or {})
        with open(self.log_path, "ab") as log:
            self.daemon = subprocess.Popen(
                [str(NEAP), "serve", str(self.pool_file), "--state-dir", str(self.state_dir)],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, env=env,
                start_new_session=True)
        if wait and not self.wait_ready():
            raise AssertionError("the daemon ended with %s before it was ready:\n%s"
                                 % (self.daemon.poll(), self.log_tail()))
        return self

    def wait_ready(self):
        """True once it serves, False when it has ended before."""
        end = time.monotonic() + PATIENCE
        line = b""
        while not line.endswith(b"\n"):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.daemon.stdout], [], [], left)[0]:
                raise AssertionError("the daemon is not ready after %d s:\n%s"
                                     % (PATIENCE, self.log_tail()))
            part = os.read(self.daemon.stdout.fileno(), 4096)
            if not part:
                self.daemon.wait(PATIENCE)
                return False
            line += part
        assert line.startswith(b"neap serves "), line
        return True

    def stop(self):
        """SIGTERM, and an end in order."""
        self.daemon.send_signal(signal.SIGTERM)
        code = self._ended()
        assert code == 0, "the daemon ended with %s:\n%s" % (code, self.log_tail())

    def kill(self):
        self.daemon.kill()
        self._ended()

    def _ended(self):
        self._drop_api()
        code = self.daemon.wait(PATIENCE)
        self.daemon.stdout.close()
        return code

    def wait_dead(self):
        """The exit status of the daemon, which is about to end."""
        return self._ended()

    def log_tail(self):
        return self.log_path.read_text(errors="replace")[-3000:] if self.log_path.exists() else ""

    def verify(self):
        """(records, state hash) by `neap verify`, which replays twice and compares."""
        done = subprocess.run([str(NEAP), "verify", str(self.state_dir)], capture_output=True,
                              text=True, timeout=PATIENCE * 5)
        assert done.returncode == 0, "neap verify: %s%s" % (done.stdout, done.stderr)
        found = re.fullmatch(r"(\d+) records, state (\w+) from record \d+, (\w+) from snapshot"
                             r" \d+\n", done.stdout)
        assert found and found[2] == found[3], done.stdout
        return int(found[1]), found[2]

    def check_replay(self):
        """Stops the daemon; its state was that of a replay. The pool must be quiet."""
        for _ in range(5):
            version = self.get("/v1/version")
            self.stop()
            records, state = self.verify()
            if records == version["sequence"]:
                self.case.assertEqual(state, version["state_hash"])
                return records
            self.start()  # something happened in between: once more
        raise AssertionError("the pool does not come to rest")

    def close(self):
        """Ends every process that the pool has started, and removes its folder."""
        if has_failed(self.case):
            self.tell()
        self._drop_api()
        if self.daemon is not None:
            if self.daemon.poll() is None:
                self.daemon.kill()
                self.daemon.wait()
            elif self.daemon.returncode not in (0, -signal.SIGKILL):
                print("the daemon ended with %d:\n%s" % (self.daemon.returncode, self.log_tail()),
                      flush=True)
            self.daemon.stdout.close()
        # First the supervisors, whose tasks die with them, then whatever is left.
        end = time.monotonic() + 20
        while time.monotonic() < end:
            left = [pid for pid in processes_of(self.folder) if is_alive(pid)]
            if not left:
                break
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.02)
        shutil.rmtree(self.folder, ignore_errors=True)
        remove_groups(self.name)

    def tell(self):
        """What somebody needs who looks for a fault: the last events, the daemon's words."""
        try:
            for event in self.events(max(0, self.status()["sequence"] - 100)):
                print(event["sequence"], event["time_us"], event["kind"], event["subject"],
                      event["message"], sep="  ", flush=True)
        except (Gone, ApiError, AssertionError) as error:
            print("no events:", error)
        print(self.log_tail(), flush=True)

    # ---- the API

    def api(self):
        if self._api is None:
            self._api = Api(self.socket)
        return self._api

    def _drop_api(self):
        if self._api is not None:
            self._api.close()
            self._api = None

    def call(self, method, path, body=None):
        status, answer = self.api().call(method, path, body)
        if not 200 <= status < 300:
            raise ApiError(status, answer)
        return answer

    def get(self, path):
        return self.call("GET", path)

    def post(self, path, body=None):
        return self.call("POST", path, body)

    def delete(self, path):
        return self.call("DELETE", path)

    def submit(self, content, file="task.yaml", workdir=None):
        """Submits the content of a task file (text or object); its id."""
        text = content if isinstance(content, str) else json.dumps(content)
        return self.post("/v1/tasks", {"file": file, "text": text,
                                       "workdir": str(workdir or self.work)})["id"]

    def submit_task(self, name, command, tier=NORMAL, checkpoint=SIGNALS, **fields):
        task = {"name": name, "tier": tier, "command": command, **fields}
        if checkpoint:
            task["checkpoint"] = checkpoint
        if "gpu" not in task:
            task.setdefault("gpus", 1)
        return self.submit({"task": task})

    def task(self, task):
        return self.get("/v1/tasks/%s" % task)["task"]

    def service(self, name):
        return self.get("/v1/services/%s" % name)

    def why(self, task):
        return self.get("/v1/tasks/%s/why" % task)

    def log(self, task):
        return self.get("/v1/tasks/%s/log" % task)["text"]

    def status(self):
        return self.get("/v1/status")["pool"]

    def wait_state(self, task, *states, patience=None):
        """The task once it is in one of the states."""
        seen = {}

        def there():
            seen.update(self.task(task))
            return seen["state"] in states
        wait_for(lambda: "task %s to be %s; it is %s (%s)"
                 % (task, " or ".join(states), seen.get("state"), seen.get("reason")),
                 there, patience)
        return seen

    def events(self, after=0):
        """All events after that sequence, up to what the state shows now."""
        newest = self.status()["sequence"]  # maybe not in the journal yet
        events = []

        def read():
            nonlocal after
            page = self.get("/v1/events?after=%d&limit=1000" % after)
            events.extend(page["events"])
            after = page["last"]
            return after >= newest
        wait_for("the journal to hold record %d" % newest, read)
        return events

    def wait_event(self, kind, subject=None, after=0):
        """The first such event, with the events up to it."""
        def found():
            for event in self.events(after):
                if event["kind"] == kind and subject in (None, event["subject"]):
                    return event
            return None
        return wait_for("event %s of %s" % (kind, subject), found)

    # ---- the command line

    def cli(self, *words, input=None, user=None):
        """The finished `neap WORDS` against this pool, as text; user: a uid, for root alone."""
        env = {**os.environ, "NEAP_SOCKET_API": str(self.socket)}
        return subprocess.run([str(NEAP), *map(str, words)], input=input, capture_output=True,
                              text=True, env=env, cwd=self.work, timeout=PATIENCE * 2, user=user)

    def cli_json(self, *words):
        done = self.cli(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


class Ends:
    """In place of a test case, for shows and benches: what was started ends with the block."""

    def __init__(self):
        self._calls = []

    def addCleanup(self, call):  # noqa: N802 (unittest's name)
        self._calls.append(call)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        while self._calls:
            self._calls.pop()()


def has_failed(case):
    """Whether a test has failed so far, also in one of its parts."""
    result = getattr(getattr(case, "_outcome", None), "result", None)
    return any(case is getattr(test, "test_case", test)
               for kind in ("failures", "errors") for test, _ in getattr(result, kind, []))


def remove_groups(pool):
    """Empty control groups that the pool has left; the kernel keeps those in use."""
    for root, folders, _ in os.walk("/sys/fs/cgroup", topdown=True):
        if os.path.basename(root) == "neap":
            for made in (name for name in folders if name.startswith(pool + "-")):
                for group, _, _ in os.walk(os.path.join(root, made), topdown=False):
                    try:
                        os.rmdir(group)
                    except OSError:
                        pass
            folders[:] = []
        elif root.count("/") > 5:
            folders[:] = []
