"""What the pool may ask of the server beside requests: sleep, the KV cache's size, newer weights.

  POST /sleep?level=1|2, POST /wake_up, GET /is_sleeping    as vLLM has them
  POST /kv_cache {"action": "shrink|offload|drop|grow", "slots": N}
  POST /reload                                              a newer checkpoint, now

shrink takes slots that nobody uses; offload moves keys and values of running requests to the host;
drop throws them away. A request that had to leave goes on later and is answered whole.
"""

import json
import urllib.parse

from engine import Busy

ACTIONS = ("shrink", "offload", "drop", "grow")


class Refused(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Control:
    def __init__(self, engine, load, reload):
        """load(): (model, step) to wake with; reload(): the step of newer weights, or None."""
        self._engine = engine
        self._load = load
        self._reload = reload

    def get(self, path):
        """The answer, or None when the path is not one of these."""
        return {"is_sleeping": self._engine.sleeping > 0} if path == "/is_sleeping" else None

    def handles(self, path):
        return path.partition("?")[0] in ("/sleep", "/wake_up", "/kv_cache", "/reload")

    def post(self, path, body):
        """The answer; Refused."""
        url = urllib.parse.urlsplit(path)
        if url.path == "/sleep":
            return self._sleep(urllib.parse.parse_qs(url.query))
        if url.path == "/wake_up":
            self._engine.wake(self._load)
            return self._memory({})
        if url.path == "/reload":
            step = self._reload()
            return {"loaded": step is not None, "step": self._engine.step}
        return self._kv_cache(body)

    def _sleep(self, query):
        level = query.get("level", ["1"])[0]
        if level not in ("1", "2"):
            raise Refused(400, "level: expected 1 or 2")
        try:
            self._engine.sleep(int(level))
        except Busy:
            raise Refused(409, "requests run or wait; it sleeps once they are answered") from None
        return self._memory({})

    def _kv_cache(self, body):
        try:
            order = json.loads(body or b"{}")
        except (ValueError, RecursionError):
            raise Refused(400, "body: expected JSON") from None
        if not isinstance(order, dict) or order.get("action") not in ACTIONS:
            raise Refused(400, "action: expected one of " + ", ".join(ACTIONS))
        slots = order.get("slots")
        if isinstance(slots, bool) or not isinstance(slots, int) \
                or not 0 <= slots <= self._engine.most_slots:
            raise Refused(400, "slots: expected a whole number from 0 to %d"
                          % self._engine.most_slots)
        return self._memory({"slots": getattr(self._engine, order["action"])(slots)})

    def _memory(self, answer):
        device, host = self._engine.memory()
        return dict(answer, device_bytes=device, host_bytes=host)
