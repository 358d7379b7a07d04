"""Task: the contract as a training loop sees it."""

import enum
import operator
import os
import signal
import sys
import threading
import time
from typing import Any, Dict, Iterator, Mapping, Optional, Sequence

from . import checkpoints, wire
from .link import Link

EXIT_YIELDED = 75
DEFAULT_INTERVAL_SECONDS = 600.0
RETRY_SAVE_SECONDS = 30.0  # after a checkpoint that failed


class Due(enum.Enum):
    """What the task should do between two steps."""

    NOTHING = "nothing"
    CHECKPOINT = "checkpoint"  # write one and go on
    YIELD = "yield"  # write one, unless nothing has happened since the last, and leave


class Yielded(SystemExit):
    """Ends the process with exit code 75: resume me from my last checkpoint."""

    def __init__(self, step: int) -> None:
        super().__init__(EXIT_YIELDED)
        self.step = step


class Task:
    """One training run under the contract; outside a pool, the same without anybody listening.

    save(path, step) writes the state after `step` completed steps to path (a file, or a directory
    it makes). A checkpoint is taken every interval_seconds, or at every multiple of
    interval_steps; 600 s if neither is given. `directory` is where checkpoints go when
    NEAP_CHECKPOINT_DIR is not set. `keep` is how many stay. `signals` mean "checkpoint and leave
    now"; pass () to keep your own handlers.
    """

    def __init__(self, save: Optional[checkpoints.Save] = None, *,
                 interval_seconds: Optional[float] = None, interval_steps: Optional[int] = None,
                 directory: str = "checkpoints", keep: int = 3,
                 prefix: str = checkpoints.DEFAULT_PREFIX, suffix: str = "",
                 signals: Sequence[int] = (signal.SIGTERM,),
                 capabilities: Sequence[str] = ("on_demand", "boundary"),
                 environ: Mapping[str, str] = os.environ) -> None:
        if interval_seconds is None and interval_steps is None:
            interval_seconds = DEFAULT_INTERVAL_SECONDS
        for name, value in (("interval_seconds", interval_seconds),
                            ("interval_steps", interval_steps), ("keep", keep)):
            if value is not None and value <= 0:
                raise ValueError("%s must be above 0, is %r" % (name, value))
        if save is not None and not callable(save):
            raise TypeError("save must be a function of (path, step), is %r" % (save,))
        self.name = environ.get("NEAP_TASK", "")
        self.directory = os.path.abspath(environ.get("NEAP_CHECKPOINT_DIR") or directory)
        self.socket_path = environ.get("NEAP_SOCKET", "")
        self._environ = environ
        self._save = save
        self._interval_seconds = interval_seconds
        self._interval_steps = interval_steps
        self._keep = keep
        self._prefix = prefix
        self._suffix = suffix
        self._signals = tuple(signals)
        self._capabilities = list(capabilities)
        self._link: Optional[Link] = None
        self._pid = os.getpid()
        self._old_handlers: Dict[int, Any] = {}
        self._signalled = False  # set by the handler alone, which can take no lock
        self._lock = threading.RLock()
        self._yield: Optional[wire.Request] = None
        self._asked = False  # a checkpoint on demand
        self._leaving = False
        self._steps_since = 0  # steps that would be lost now
        self._step = 0
        self._interval_began = time.monotonic()
        self._retry_at = 0.0  # a checkpoint that failed is not tried again before
        self._saved_once = False

    # ---- the two lines

    def __enter__(self) -> "Task":
        return self.open()

    def __exit__(self, *_: Any) -> None:
        self.close()

    def steps(self, start: int, total: int) -> Iterator[int]:
        """Like range(start, total); between two steps it does what is due.

        Leaves by Yielded (a SystemExit with code 75). After the last step it writes a last
        checkpoint, if there is anything that the newest one lacks.
        """
        self.begin(start)
        if start < total and self.due() is Due.YIELD:
            self.leave(start)  # asked before the first step: nothing to save
        step = start
        while step < total:
            began = time.monotonic()
            yield step
            step += 1
            self.note_step(step, time.monotonic() - began)
            if step < total:
                self.act(step)
        if self._steps_since and self._save is not None:
            self._retry_at = 0.0
            self._write(step)  # the last state: its failure is the job's failure

    def restore_path(self, check: Optional[checkpoints.Check] = None) -> Optional[str]:
        """The checkpoint to resume from, or None; see checkpoints.restore_path."""
        return checkpoints.restore_path(self.directory, check, self._prefix, self._environ)

    # ---- the same in pieces, for loops of another shape

    def open(self) -> "Task":
        if self._link is None and self.socket_path:
            hello = {"type": "hello", "version": wire.PROTOCOL_VERSION,
                     "capabilities": self._capabilities}
            self._link = Link(self.socket_path, hello, self._on_request)
        checkpoints.remove_leftovers(self.directory, self._prefix)
        for number in self._signals:
            try:
                self._old_handlers[number] = signal.signal(number, self._on_signal)
            except ValueError:  # not the main thread: signals stay with whoever owns it
                break
        self.begin(self._step)
        return self

    def close(self) -> None:
        """Sends what is left (two seconds at most) and puts signal handlers back.

        After leave() the signals are ignored instead: a second SIGTERM must not turn exit
        code 75 into a death by signal.
        """
        for number, handler in self._old_handlers.items():
            handler = signal.SIG_IGN if self._leaving else handler
            try:
                signal.signal(number, handler if handler is not None else signal.SIG_DFL)
            except ValueError:
                pass
        self._old_handlers.clear()
        if self._link is not None and os.getpid() == self._pid:
            self._link.close()
            self._link = None

    def begin(self, step: int) -> None:
        """The state is that of a checkpoint, or fresh: leaving now would lose nothing."""
        if operator.index(step) < 0:
            raise ValueError("steps count from 0, not from %r" % step)
        with self._lock:
            self._step = step
            self._steps_since = 0
            self._interval_began = time.monotonic()

    def note_step(self, step: int, seconds: float) -> None:
        """`step` steps are complete; the last one took `seconds`. Costs microseconds."""
        with self._lock:
            self._step = step
            self._steps_since += 1
        if self._link is not None:
            self._link.steps(step, seconds)

    def due(self) -> Due:
        """What to do now. In a job of several ranks, ask on one and broadcast the answer."""
        with self._lock:
            if time.monotonic() < self._retry_at:
                return Due.NOTHING
            if self._signalled or self._yield_is_now():
                return Due.YIELD
            at_interval = self._steps_since > 0 and self._interval_is_over()
            if self._yield is not None and (
                    self._steps_since == 0 or at_interval or self._asked):
                return Due.YIELD
            if at_interval or self._asked:
                return Due.CHECKPOINT
            return Due.NOTHING

    def act(self, step: int) -> None:
        """Does what is due after `step` completed steps; may raise Yielded."""
        due = self.due()
        if due is Due.NOTHING:
            return
        if due is Due.CHECKPOINT:
            self.checkpoint(step)
            due = self.due()  # a yield may have come while it was written: this is a boundary
        elif self._steps_since and not self.checkpoint(step):
            return  # not saved, so not left: it is tried again
        if due is Due.YIELD:
            self.leave(step)

    def checkpoint(self, step: int) -> Optional[checkpoints.Checkpoint]:
        """Writes, reports and prunes. None when it failed; it is tried again in 30 s.

        The first checkpoint of a run must succeed, its error is raised: a job that cannot save at
        all had better stop early. Later failures (a full disk) do not stop the training.
        """
        if self._save is None:
            raise RuntimeError("checkpoint() needs Task(save=...); without it, write your own "
                               "and call report_checkpoint()")
        try:
            return self._write(step)
        except Exception as error:
            if not self._saved_once:
                raise
            self._retry_at = time.monotonic() + RETRY_SAVE_SECONDS
            print("neap-task: checkpoint at step %d failed (%s: %s); trying again in %d s"
                  % (step, type(error).__name__, error, RETRY_SAVE_SECONDS),
                  file=sys.stderr, flush=True)
            return None

    def report_checkpoint(self, done: checkpoints.Checkpoint, captured_us: int,
                          stall_seconds: float) -> None:
        """Reports a durable checkpoint that your own code wrote; `checkpoint` calls it itself.

        captured_us is the epoch time at which the state was copied, stall_seconds how long the
        training stood still for it (less than done.seconds when written in the background).
        """
        with self._lock:
            self._asked = False
            self._saved_once = True
            self._steps_since = max(0, self._step - done.step)
            self._interval_began = time.monotonic() - done.seconds
        if self._link is not None:
            self._link.checkpoint({
                "type": "checkpoint", "step": done.step, "path": done.path, "bytes": done.bytes,
                "seconds": round(done.seconds, 6), "captured_us": captured_us,
                "stall_seconds": round(stall_seconds, 6)})

    def leave(self, step: int) -> None:
        """Says so, then raises Yielded. A cancel that comes after this is too late."""
        with self._lock:
            self._leaving = True
        if self._link is not None:
            self._link.yielding({"type": "yielding", "step": step})
        raise Yielded(step)

    @property
    def yield_asked(self) -> bool:
        """Whether the task has been asked to leave: a reason to skip a long evaluation."""
        return self._signalled or self._yield is not None

    # ---- inside

    def _write(self, step: int) -> checkpoints.Checkpoint:
        assert self._save is not None
        captured_us = time.time_ns() // 1000
        done = checkpoints.write_checkpoint(self.directory, step, self._save, self._prefix,
                                            self._suffix)
        self.report_checkpoint(done, captured_us, done.seconds)
        checkpoints.prune(self.directory, self._keep, self._prefix)
        return done

    def _yield_is_now(self) -> bool:
        asked = self._yield
        if asked is None:
            return False
        past = asked.by_us is not None and time.time_ns() // 1000 >= asked.by_us
        return asked.at == "now" or past

    def _interval_is_over(self) -> bool:
        if self._interval_steps is not None and self._step % self._interval_steps == 0:
            return True
        return (self._interval_seconds is not None
                and time.monotonic() - self._interval_began >= self._interval_seconds)

    def _on_request(self, request: wire.Request) -> None:
        with self._lock:
            if self._leaving:
                return
            self._retry_at = 0.0
            if request.kind == "yield":
                self._yield = request
            elif request.kind == "cancel":
                self._yield = None
            else:
                self._asked = True

    def _on_signal(self, number: int, _frame: Any) -> None:
        if os.getpid() != self._pid:
            # A forked worker inherits this handler, but is not the one to checkpoint.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        self._retry_at = 0.0
        self._signalled = True
