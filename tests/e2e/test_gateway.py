"""The shared endpoint of a real pool: models, keys of teams and TLS (E1, E3, G5)."""

import json
import os
import pathlib
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from pool import PYTHON, SERVING, Pool, wait_for
from programs import write_once

# Answers a POST with the name that it was started with, the size of the body and what it was shown.
SERVER = """
import http.server, json, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        text = json.dumps({"server": sys.argv[2], "size": len(body),
                           "authorization": self.headers.get("Authorization")}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    do_GET = do_POST = answer
    def log_message(self, *arguments):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def submit(pool, name, **fields):
    write_once(pool.work / "server.py", SERVER)
    pool.submit({"service": {"name": name, "tier": SERVING, "gpus": 1, "concurrency": 8,
                             "command": [PYTHON, "server.py", "{port}", name],
                             "health": {"interval": "100ms"}, **fields}})


def ask(url, body=None, context=None, **headers):
    """(status, parsed answer)"""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url, data, named)
    try:
        with urllib.request.urlopen(request, timeout=20, context=context) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        text = error.read()
        return error.code, json.loads(text) if text.startswith(b"{") else text


def wait_open(*ports):
    """A replica can be healthy a little before the proxy is up."""
    for port in ports:
        wait_for("an endpoint at %d" % port, lambda port=port: is_open(port))


def is_open(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def make_certificate(path, name):
    key = str(path) + ".key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=" + name,
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out",
                    str(path) + ".crt"], check=True, capture_output=True)
    joined = pathlib.Path(str(path) + ".crt").read_text() + pathlib.Path(key).read_text()
    fresh = pathlib.Path(str(path) + ".new")
    fresh.write_text(joined)
    fresh.chmod(0o600)
    fresh.rename(path)


def served_name(port):
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port), timeout=5) as plain:
        with context.wrap_socket(plain) as secure:
            return secure.getpeercert(binary_form=True)


class GatewayTest(unittest.TestCase):
    def tearDown(self):
        self.pool.close()

    def test_e1_requests_are_routed_by_model(self):
        port = free_port()
        pool = self.pool = Pool(self, gateway={"listen": "127.0.0.1:%d" % port}).start()
        submit(pool, "chat", gateway={"models": ["gpt-x", "org/gpt"]})
        submit(pool, "code")
        for name in ("chat", "code"):
            wait_for("a replica of " + name,
                     lambda name=name: pool.service(name)["service"]["replicas_ready"] == 1)
        wait_open(port)
        base = "http://127.0.0.1:%d/v1/" % port
        wait_for("all models", lambda: [m["id"] for m in ask(base + "models")[1]["data"]] ==
                 ["gpt-x", "org/gpt", "code"])
        for model, server in (("gpt-x", "chat"), ("org/gpt", "chat"), ("code", "code")):
            status, answer = ask(base + "chat/completions", {"model": model, "messages": []})
            self.assertEqual((status, answer["server"]), (200, server))
        for escaped in (rb'{"model": "org\/gpt"}', rb'{"prompt": "\\/", "model": "\u006frg\/gpt"}'):
            status, answer = ask(base + "chat/completions", escaped)
            self.assertEqual((status, answer["server"]), (200, "chat"))
        status, answer = ask(base + "chat/completions", {"model": 'no"pe'})
        self.assertEqual((status, answer["error"]["code"]), (404, "model_not_found"))
        # Larger than the proxy looks at: found when the model comes first, or by header.
        large = "x" * 200_000
        status, answer = ask(base + "completions", {"model": "code", "prompt": large})
        self.assertEqual((status, answer["server"]), (200, "code"))
        self.assertGreater(answer["size"], 200_000)
        self.assertEqual(ask(base + "completions", {"prompt": large, "model": "code"})[0], 404)
        status, answer = ask(base + "completions", {"prompt": large, "model": "code"},
                             x_model="code")
        self.assertEqual((status, answer["server"]), (200, "code"))

    def test_g5_only_known_keys_are_let_in_and_none_is_logged(self):
        port = free_port()
        pool = self.pool = Pool(self, gateway={"listen": "127.0.0.1:%d" % port,
                                               "keys": "required"}).start()
        submit(pool, "chat")
        wait_for("a replica", lambda: pool.service("chat")["service"]["replicas_ready"] == 1)
        wait_open(port)
        base = "http://127.0.0.1:%d/v1/" % port
        own = pool.service("chat")["service"]["address"] + "/v1/completions"
        body = {"model": "chat"}
        made = pool.cli_json("keys", "create", "vision", "--class", "normal")
        key = made["key"]

        def status(url, **headers):
            return ask(url, body, **headers)[0]
        wait_for("the key to be known",
                 lambda: status(own, authorization="Bearer " + key) == 200)
        for url in (base + "completions", own):
            self.assertEqual(status(url), 401)
            self.assertEqual(status(url, authorization="Bearer neap-0"), 401)
            self.assertEqual(status(url, x_api_key=key), 200)
        _, answer = ask(own, body, authorization="Bearer " + key)
        self.assertIsNone(answer["authorization"])  # replicas do not get to see it
        status_, answer = ask(own, body)
        self.assertEqual((status_, answer["error"]["code"]), (401, "invalid_api_key"))
        listed = pool.cli_json("keys", "list")["keys"]
        self.assertEqual([(k["id"], k["team"], k["class"]) for k in listed],
                         [(made["id"], "vision", "normal")])
        self.assertEqual(pool.cli("keys", "revoke", made["id"]).returncode, 0)
        wait_for("the key to be refused",
                 lambda: status(own, authorization="Bearer " + key) == 401)
        secret = key.encode()
        for path in pathlib.Path(pool.folder).rglob("*"):
            if path.is_file():
                self.assertNotIn(secret, path.read_bytes(), path)

    def test_g5_endpoints_speak_tls_and_load_a_new_certificate(self):
        port = free_port()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        certificate = pathlib.Path(folder.name) / "tls.pem"
        make_certificate(certificate, "first")
        pool = self.pool = Pool(self, gateway={"listen": "127.0.0.1:%d" % port,
                                               "certificate": str(certificate)}).start()
        submit(pool, "chat")
        wait_for("a replica", lambda: pool.service("chat")["service"]["replicas_ready"] == 1)
        wait_open(port)
        self.assertTrue(pool.service("chat")["service"]["address"].startswith("https://"))
        context = ssl.create_default_context(cafile=str(certificate) + ".crt")
        url = "https://127.0.0.1:%d/v1/completions" % port
        self.assertEqual(ask(url, {"model": "chat"}, context)[0], 200)
        before = served_name(port)
        failures = []
        stop = threading.Event()

        def keep_asking():
            loose = ssl._create_unverified_context()
            while not stop.is_set():
                status = ask(url, {"model": "chat"}, loose)[0]
                if status != 200:
                    failures.append(status)
        asking = threading.Thread(target=keep_asking)
        asking.start()
        make_certificate(certificate, "second")
        wait_for("the new certificate", lambda: served_name(port) != before)
        stop.set()
        asking.join()
        self.assertEqual(failures, [])

    def restart(self):
        """The daemon alone: its proxy goes on."""
        self.pool.kill()
        self.pool.start()

    def proxy_check(self):
        found = {one["name"]: one for one in self.pool.get("/v1/doctor")["checks"]}["proxy"]
        return found["state"], found["message"]

    def conditions(self):
        return [one["name"] for one in self.pool.status()["conditions"]]

    def test_g5_a_restart_of_the_daemon_keeps_keys_tls_and_the_shared_port(self):
        port = free_port()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        certificate = pathlib.Path(folder.name) / "tls.pem"
        make_certificate(certificate, "first")
        pool = self.pool = Pool(self, gateway={
            "listen": "127.0.0.1:%d" % port, "keys": "required",
            "certificate": str(certificate)}).start()
        submit(pool, "chat")
        wait_for("a replica", lambda: pool.service("chat")["service"]["replicas_ready"] == 1)
        wait_open(port)
        key = pool.cli_json("keys", "create", "vision")["key"]
        context = ssl.create_default_context(cafile=str(certificate) + ".crt")
        shared = "https://127.0.0.1:%d/v1/completions" % port
        own = pool.service("chat")["service"]["address"] + "/v1/completions"

        def closed():
            for url in (shared, own) * 10:
                time.sleep(0.1)  # it may be opened a while after the start
                self.assertEqual(ask(url, {"model": "chat"}, context)[0], 401)
                self.assertEqual(ask(url, {"model": "chat"}, context, x_api_key=key)[0], 200)
                with self.assertRaises(OSError):
                    ask(url.replace("https", "http"), {"model": "chat"})
        wait_for("the key to be known",
                 lambda: ask(own, {"model": "chat"}, context, x_api_key=key)[0] == 200)
        closed()
        self.restart()
        wait_for("the service again",
                 lambda: pool.service("chat")["service"]["replicas_ready"] == 1)
        closed()
        self.assertEqual(self.proxy_check()[0], "ok")
        # A certificate that is bad by the next start opens nothing, and is told of.
        good = certificate.read_text()
        certificate.write_text("nothing")
        self.restart()
        wait_for("the condition", lambda: "gateway" in self.conditions())
        self.assertEqual(self.proxy_check()[0], "failed")
        closed()
        certificate.write_text(good)
        wait_for("the end of the condition", lambda: "gateway" not in self.conditions())
        closed()
        self.assertEqual(self.proxy_check()[0], "ok")

    def test_e3_a_certificate_that_is_mended_late_serves_what_waited_for_it(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        certificate = pathlib.Path(folder.name) / "tls.pem"
        certificate.write_text("nothing")
        pool = self.pool = Pool(self, gateway={"certificate": str(certificate)}).start()
        submit(pool, "chat")
        wait_for("the condition", lambda: "gateway" in self.conditions())
        status, detail = self.proxy_check()
        self.assertEqual(status, "failed")
        self.assertIn("tls.pem", detail)
        make_certificate(certificate, "first")
        context = ssl.create_default_context(cafile=str(certificate) + ".crt")

        def served():
            try:
                return ask(pool.service("chat")["service"]["address"], {}, context)[0] == 200
            except OSError:
                return False
        wait_for("the service", served)
        wait_for("the end of the condition", lambda: "gateway" not in self.conditions())
        self.assertEqual(self.proxy_check()[0], "ok")


if __name__ == "__main__":
    unittest.main(verbosity=2)
