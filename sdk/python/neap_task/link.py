"""The connection to the pool: one background thread that owns the socket.

Training calls only append to memory under a lock, so it never waits for the pool. When the
socket goes away the thread tries again, for as long as the task lives; training goes on.
"""

import collections
import os
import selectors
import signal
import socket
import sys
import threading
import time
import weakref
from typing import Any, Callable, Deque, Dict, Optional, Tuple

from . import wire

STEP_INTERVAL_SECONDS = 0.5  # at most one step message in this time
FIRST_RETRY_SECONDS = 0.1
LAST_RETRY_SECONDS = 5.0
STABLE_SECONDS = 5.0  # a connection that lasted this long resets the retry delay
CONNECT_TIMEOUT_SECONDS = 2.0
OUTBOX_MAX = 64  # messages kept while the pool is away; the newest stay


class Link:
    """Sends reports and hands requests to on_request (called on the background thread)."""

    def __init__(self, path: str, hello: Dict[str, Any],
                 on_request: Callable[[wire.Request], None]) -> None:
        self._path = path
        self._hello = wire.encode(hello)
        self._on_request = on_request
        self._lock = threading.Lock()
        self._outbox: Deque[bytes] = collections.deque(maxlen=OUTBOX_MAX)
        self._steps: Optional[Tuple[int, int, float]] = None  # last n, count, seconds
        self._last_checkpoint: Optional[bytes] = None
        self._steps_sent_at = 0.0
        self._last_words = False  # the sum of steps goes out before them, rested or not
        self._closing = False
        self._dead = False  # in a forked child: the parent speaks for the task
        self._complained = False
        self._socket: Optional[socket.socket] = None
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._thread = threading.Thread(target=self._run, name="neap-task", daemon=True)
        _links.add(self)
        self._thread.start()

    # ---- called by the training

    def steps(self, n: int, seconds: float) -> None:
        """One more step done, n in all; sent in sums."""
        with self._lock:
            _, count, total = self._steps or (0, 0, 0.0)
            self._steps = (n, count + 1, total + seconds)

    def checkpoint(self, message: Dict[str, Any]) -> None:
        """Reported now, and once more after a reconnection: the first may have been lost."""
        line = wire.encode(message)
        with self._lock:
            self._last_checkpoint = line
            self._outbox.append(line)
            self._wake()

    def yielding(self, message: Dict[str, Any]) -> None:
        line = wire.encode(message)
        with self._lock:
            self._last_words = True
            self._outbox.append(line)
            self._wake()

    def close(self, timeout_seconds: float = 2.0) -> None:
        """Sends what is left, for at most this time, and ends the connection."""
        if self._dead:
            return
        with self._lock:
            self._closing = True
            self._last_words = True
            self._wake()
        self._thread.join(timeout_seconds)
        if self._thread.is_alive():
            return  # the pool does not read; the process is about to end anyway
        with self._lock:
            os.close(self._wake_read)
            os.close(self._wake_write)
            self._wake_write = -1
        _links.discard(self)

    # ---- the background thread

    def _run(self) -> None:
        # Signals belong to the main thread: one delivered here would not wake it from a wait.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        delay = FIRST_RETRY_SECONDS
        while not self._dead:
            connected = self._connect()
            if connected is not None:
                began = time.monotonic()
                self._serve(connected)
                connected.close()
                self._socket = None
                if time.monotonic() - began >= STABLE_SECONDS:
                    delay = FIRST_RETRY_SECONDS
            if self._closing or self._dead:
                break
            self._pause(delay)
            delay = min(delay * 2, LAST_RETRY_SECONDS)

    def _connect(self) -> Optional[socket.socket]:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(CONNECT_TIMEOUT_SECONDS)
            connection.connect(self._path)
            connection.setblocking(False)
        except OSError as error:
            connection.close()
            self._complain(error)
            return None
        self._socket = connection
        self._complained = False
        return connection

    def _complain(self, error: OSError) -> None:
        if not self._complained:  # once an outage, not once a try
            self._complained = True
            print("neap-task: the pool is not reachable at %s (%s); training goes on"
                  % (self._path, error), file=sys.stderr, flush=True)

    def _pause(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        with selectors.PollSelector() as selector:
            selector.register(self._wake_read, selectors.EVENT_READ)
            while not self._closing and not self._dead:
                left = end - time.monotonic()
                if left <= 0:
                    return
                selector.select(left)
                self._drain_wakes()

    def _serve(self, connection: socket.socket) -> None:
        """Until the connection breaks, or all is sent after close()."""
        reader = wire.LineReader()
        sending = bytearray(self._greeting())
        current: Optional[bytes] = None  # the outbox line that is under way
        with selectors.PollSelector() as selector:
            selector.register(self._wake_read, selectors.EVENT_READ)
            selector.register(connection, selectors.EVENT_READ)
            while not self._dead:
                if not sending:
                    current = self._next_line()
                    if current is not None:
                        sending += current
                    elif self._closing:
                        return
                wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if sending else 0)
                selector.modify(connection, wanted)
                selector.select(None if sending else self._until_steps())
                self._drain_wakes()
                try:
                    if sending:
                        del sending[:self._write(connection, sending)]
                    if not self._read(connection, reader):
                        break
                except OSError:
                    break
        if sending and current is not None:
            with self._lock:  # a line cut short was never a line: it goes again, whole
                if len(self._outbox) < OUTBOX_MAX:
                    self._outbox.appendleft(current)

    def _greeting(self) -> bytes:
        with self._lock:
            last = self._last_checkpoint
            return self._hello + (last if last is not None and last not in self._outbox else b"")

    def _next_line(self) -> Optional[bytes]:
        with self._lock:
            now = time.monotonic()
            rested = now - self._steps_sent_at >= STEP_INTERVAL_SECONDS
            if self._steps is not None and (rested or self._last_words):
                n, count, seconds = self._steps
                self._steps = None
                self._steps_sent_at = now
                return wire.encode({"type": "step", "n": n,
                                    "count": min(count, wire.STEP_COUNT_LIMIT),
                                    "seconds": round(seconds, 6)})
            return self._outbox.popleft() if self._outbox else None

    def _until_steps(self) -> float:
        return max(0.001, self._steps_sent_at + STEP_INTERVAL_SECONDS - time.monotonic()) \
            if self._steps is not None else STEP_INTERVAL_SECONDS

    def _write(self, connection: socket.socket, data: bytearray) -> int:
        try:
            return connection.send(data, socket.MSG_NOSIGNAL)
        except (BlockingIOError, InterruptedError):
            return 0

    def _read(self, connection: socket.socket, reader: wire.LineReader) -> bool:
        try:
            data = connection.recv(wire.LINE_LIMIT)
        except (BlockingIOError, InterruptedError):
            return True
        for line in reader.feed(data):
            request = wire.parse(line)
            if request is not None:
                self._on_request(request)
        return bool(data)

    # ---- waking and forking

    def _wake(self) -> None:
        """With the lock held, so that the descriptor is not closed and reused meanwhile."""
        try:
            if self._wake_write >= 0:
                os.write(self._wake_write, b"w")
        except BlockingIOError:
            pass  # the pipe is full of wakes: it will wake

    def _drain_wakes(self) -> None:
        try:
            while os.read(self._wake_read, 4096):
                pass
        except BlockingIOError:
            pass

    def _after_fork(self) -> None:
        """In a forked child (a data loader's worker): let go of what belongs to the parent."""
        self._dead = True
        self._lock = threading.Lock()  # may have been held by a thread that is not here
        for descriptor in (self._wake_read, self._wake_write):
            try:
                os.close(descriptor)
            except OSError:
                pass
        self._wake_write = -1
        if self._socket is not None:
            self._socket.close()  # else the pool would take the parent for alive


_links: "weakref.WeakSet[Link]" = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for link in list(_links):
        link._after_fork()
    _links.clear()


os.register_at_fork(after_in_child=_after_fork_in_child)
