"""Engines that tests put behind a pool: the Python server, llama.cpp, a stub with vLLM's calls."""

import json
import os
import pathlib
import subprocess

from pool import PYTHON, ROOT, SERVING, wait_for
from programs import Request, write_once

LLM = ROOT / "examples/llm"
LLAMA = ROOT / "examples/llama/serve.mjs"
MODULES = ROOT / "build/llama"

# Says what vLLM says to its calls, keeps what it was asked in a file, and counts what it would hold
# of a device: weights and KV cache. While there is a file "hang" it answers no order.
VLLM = """
import http.server, json, os, sys, time
WEIGHTS, CACHE = 1000, 500
state = {"level": 0, "weights": WEIGHTS, "cache": CACHE}
log = open(sys.argv[2], "a", buffering=1)
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def say(self, code, body):
        text = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def do_GET(self):
        if self.path == "/health":
            self.say(200, {})
        elif self.path == "/is_sleeping":
            self.say(200, {"is_sleeping": state["level"] > 0})
        elif self.path == "/v1/models":
            self.say(200, {"object": "list", "data": [{"id": "stub-7b", "object": "model"}]})
        elif self.path == "/held":
            self.say(200, state)
        else:
            self.say(404, {})
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        while os.path.exists("hang"):
            time.sleep(0.1)
        log.write(self.path + (" " + body if body else "") + chr(10))
        if self.path.startswith("/sleep?level="):
            state.update(level=int(self.path[-1]), weights=0, cache=0)
        elif self.path == "/wake_up":
            state.update(level=0, weights=WEIGHTS, cache=CACHE)
        elif self.path == "/wake_up?tags=weights":
            state["weights"] = WEIGHTS
        elif self.path == "/wake_up?tags=kv_cache":
            state.update(level=0, cache=CACHE)
        elif self.path not in ("/collective_rpc", "/reset_prefix_cache"):
            return self.say(404, {"detail": "Not Found"})
        self.say(200, {})
    def log_message(self, *arguments):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def torch_is_there():
    return subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode == 0


def why_no_llama():
    """None once llama.cpp is installed from npm; else why it cannot be."""
    done = subprocess.run([str(ROOT / "run"), "llama"], capture_output=True, text=True,
                          timeout=600, cwd=ROOT)
    return None if done.returncode == 0 else done.stdout.strip() or done.stderr.strip()


def readable(folder):
    """The task's user may not be ours."""
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)


def export(target, *source):
    """A GGUF file of a model of the example's."""
    done = subprocess.run([PYTHON, str(LLM / "export_gguf.py"), *map(str, source), "--to",
                           str(target)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    target.chmod(0o644)
    return target


def serve_py(pool, name, *options, **fields):
    """A service of examples/llm/serve.py; its task file."""
    return {"service": {"name": name, "tier": SERVING, "gpus": 1, "concurrency": 4,
                        "engine": "neap", "replicas": {"min": 1, "max": 1},
                        "command": [PYTHON, str(LLM / "serve.py"), "--port", "{port}", *options],
                        "env": {"OPENBLAS_NUM_THREADS": "1"},
                        "health": {"interval": "200ms", "start_timeout": "60s"}, **fields}}


def serve_llama(pool, name, model, **fields):
    return {"service": {"name": name, "tier": SERVING, "gpus": 1, "concurrency": 4,
                        "engine": "llama_cpp", "replicas": {"min": 1, "max": 1},
                        "command": ["node", str(LLAMA), "--port", "{port}", "--model", str(model),
                                    "--alias", "bytes", "--slot-save-path", str(pool.work)],
                        "env": {"LLAMA_MODULES": str(MODULES),
                                "PATH": os.environ.get("PATH", "/usr/bin:/bin")},
                        "health": {"interval": "200ms", "start_timeout": "60s"}, **fields}}


def serve_vllm(pool, name, log, **fields):
    write_once(pool.work / "vllm.py", VLLM)
    return {"service": {"name": name, "tier": SERVING, "gpus": 1, "engine": "vllm",
                        "command": [PYTHON, "vllm.py", "{port}", str(log)],
                        "replicas": {"min": 1, "max": 1},
                        "health": {"interval": "100ms"}, **fields}}


def wait_ready(pool, name, count=1):
    wait_for(lambda: "replicas of %s to be ready: %s" % (name, pool.service(name)["service"]),
             lambda: pool.service(name)["service"]["replicas_ready"] == count)


def wait_routed(pool, name):
    """A replica is ready before the proxy knows of it; who goes before is not asked for memory."""
    wait_ready(pool, name)

    def through_the_proxy():
        request = Request(pool, name, "/health", timeout=5)
        request.join()
        return request.status == 200

    wait_for("%s to answer through the proxy" % name, through_the_proxy)


def port_of(pool, name):
    """Of its first live replica."""
    rows = [row for row in pool.service(name)["replicas"] if row["state"] == "running"]
    return rows[0]["port"]


def complete(address, prompt, tokens, **fields):
    import urllib.request
    body = json.dumps({"prompt": prompt, "max_tokens": tokens, "temperature": 0, **fields})
    with urllib.request.urlopen(urllib.request.Request(
            address + "/v1/completions", body.encode()), timeout=60) as answer:
        return json.loads(answer.read())


def folder(pool, name):
    made = pathlib.Path(pool.work) / name
    made.mkdir()
    made.chmod(0o755)
    return made
