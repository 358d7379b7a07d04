"""Lines of the task contract: what is written, what is read, and what is ignored.

The pool is trusted but may be newer, older or broken: whatever cannot be understood is dropped,
never raised, because a training job must not die of its scheduler.
"""

import json
from typing import Any, Dict, List, NamedTuple, Optional

PROTOCOL_VERSION = 1
LINE_LIMIT = 64 * 1024  # bytes, with the newline; both directions
STEP_COUNT_LIMIT = 1000000  # steps in one message; reached only when the pool was away for days


class Request(NamedTuple):
    """What the pool asks: kind is "checkpoint", "yield" or "cancel"."""

    kind: str
    at: str = ""  # of a yield: "boundary" or "now"
    by_us: Optional[int] = None  # epoch microseconds; None when the pool set no time


def encode(message: Dict[str, Any]) -> bytes:
    """One line. Raises ValueError when it is over the limit (an absurdly long path)."""
    line = json.dumps(message, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"
    if len(line) > LINE_LIMIT:
        raise ValueError("a contract line is at most %d bytes, this one has %d"
                         % (LINE_LIMIT, len(line)))
    return line


def parse(line: bytes) -> Optional[Request]:
    """The request in a line, or None when it is not one that this version understands."""
    try:
        message = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):  # not UTF-8, not JSON, nested beyond reason
        return None
    if not isinstance(message, dict):
        return None
    kind = message.get("type")
    by_us = message.get("by")
    if isinstance(by_us, bool) or not isinstance(by_us, int):
        by_us = None
    if kind == "checkpoint":
        return Request("checkpoint", by_us=by_us)
    if kind == "yield" and message.get("at") in ("boundary", "now"):
        return Request("yield", at=message["at"], by_us=by_us)
    if kind == "cancel":
        return Request("cancel")
    return None


class LineReader:
    """Splits a stream into lines; a line over the limit is dropped as a whole."""

    def __init__(self) -> None:
        self._rest = b""
        self._dropping = False

    def feed(self, data: bytes) -> List[bytes]:
        lines = []
        parts = (self._rest + data).split(b"\n")
        self._rest = parts.pop()
        for part in parts:
            if self._dropping:
                self._dropping = False  # the end of the long line
            elif part and len(part) < LINE_LIMIT:
                lines.append(part)
        if len(self._rest) >= LINE_LIMIT:
            self._rest = b""
            self._dropping = True
        elif self._dropping:
            self._rest = b""
        return lines
