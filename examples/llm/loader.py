"""Where the server's weights come from: the newest whole checkpoint of a directory."""

import os
import sys
import threading
import time

import torch

import model as models
import state as states

import neap_task  # noqa: E402  (after state, which finds it)


class Checkpoints:
    """The directory that is watched for newer weights."""

    def __init__(self, directory):
        self._directory = directory
        self._seen = None
        self._loaded = None

    def newer(self):
        """(model, step) of a whole checkpoint that is not yet loaded, or None."""
        seen = self._listing()
        if seen == self._seen:
            return None
        found = neap_task.newest_valid(self._directory, states.PREFIX, states.is_whole)
        if found is None or found.path == self._loaded:
            self._seen = seen
            return None
        try:
            state = states.load(found.path)
            model = models.Model(models.Shape.from_dict(state["shape"]))
            model.load_state_dict(state["model"])
        except Exception as error:  # pruned meanwhile, or not of this example: keep serving
            print("cannot load %s: %s" % (found.path, error), file=sys.stderr, flush=True)
            self._seen = seen
            return None
        self._seen, self._loaded = seen, found.path
        return model.eval(), state["step"]

    def _listing(self):
        try:
            with os.scandir(self._directory) as entries:
                return sorted((e.name, e.stat().st_mtime_ns, e.stat().st_size) for e in entries
                              if e.name.startswith(states.PREFIX))
        except OSError:
            return None


class Loader:
    """Brings weights to the engine: newer ones by and by or at once, and those to wake with."""

    def __init__(self, options):
        self._options = options
        self._checkpoints = Checkpoints(options.checkpoints)
        self._lock = threading.Lock()

    def first(self):
        """(model, step): the newest, else a fresh seeded one."""
        with self._lock:
            return self._checkpoints.newer() or self._fresh()

    def again(self):
        """As first(), though it was loaded before."""
        with self._lock:
            self._checkpoints = Checkpoints(self._options.checkpoints)
            return self._checkpoints.newer() or self._fresh()

    def _fresh(self):
        torch.manual_seed(self._options.seed)
        return models.Model(models.SHAPES[self._options.size]).eval(), 0

    def reload(self, engine):
        """Its step, or None when there is nothing newer."""
        with self._lock:
            newer = self._checkpoints.newer()
        if newer is None:
            return None
        engine.swap(*newer)
        print("loaded step %d" % newer[1], flush=True)
        return newer[1]

    def watch(self, engine, seconds):
        while True:
            time.sleep(seconds)
            self.reload(engine)
