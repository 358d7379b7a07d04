"""A pool's end of the contract socket, for tests."""

import json
import os
import queue
import socket
import threading


class FakePool:
    """Listens at path; every line of every connection is put into `lines`."""

    def __init__(self, path):
        self.path = path
        self.lines = queue.Queue()
        self._connected = threading.Event()
        self._open = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(path)
        self._listener.listen(8)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(connection)
            self._connected.set()
            threading.Thread(target=self._read, args=(connection,), daemon=True).start()

    def _read(self, connection):
        try:
            for line in connection.makefile("rb"):
                if line.endswith(b"\n"):
                    self.lines.put(json.loads(line.decode("utf-8")))
        except OSError:
            pass
        self.lines.put({"type": "gone"})

    def next(self, kind, timeout=10):
        """The next message of a kind; others before it are skipped."""
        while True:
            message = self.lines.get(timeout=timeout)
            if message["type"] == kind:
                return message

    def rest(self):
        """All messages until the task's connection ends."""
        messages = []
        while True:
            message = self.lines.get(timeout=10)
            if message["type"] == "gone":
                return messages
            messages.append(message)

    def send(self, *messages):
        self.send_bytes(b"".join(json.dumps(m).encode("utf-8") + b"\n" for m in messages))

    def send_bytes(self, data):
        assert self._connected.wait(10), "no task has connected"
        self._open[-1].sendall(data)

    def drop(self):
        """The pool goes away: no socket, no connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        os.unlink(self.path)
        for connection in self._open:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            connection.close()
