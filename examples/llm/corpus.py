"""The training text: the licences that every Debian system carries, and the order of reading."""

import hashlib
import os

import torch

DEFAULT_TEXTS = "/usr/share/common-licenses"


def read_texts(directory):
    """All files of a directory, each once (some names are links), by name; as bytes."""
    paths = sorted({os.path.realpath(os.path.join(directory, name))
                    for name in os.listdir(directory)})
    parts = []
    for path in paths:
        if os.path.isfile(path):
            with open(path, "rb") as file:
                parts.append(file.read())
    return b"\n".join(parts)


class Batches:
    """Windows of the text in a seeded random order, each once an epoch.

    The place in the data is two numbers, epoch and position: the order of an epoch follows from
    the seed, so a resumed run reads exactly what the interrupted one would have read.
    """

    def __init__(self, text, context, batch, seed):
        if len(text) < 2 * (context + 1):
            raise SystemExit("error: the training text has %d bytes, too few for a context of %d"
                             % (len(text), context))
        self.text_hash = hashlib.sha256(text).hexdigest()
        self._data = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
        self._context = context
        self._batch = batch
        self._seed = seed
        self._windows = (len(text) - 1) // context
        self.restore({"epoch": 0, "position": 0})

    def next(self):
        """inputs and targets, each [batch, context]"""
        rows = []
        while len(rows) < self._batch:
            if self._position == self._windows:
                self.restore({"epoch": self._epoch + 1, "position": 0})
            at = int(self._order[self._position]) * self._context
            rows.append(self._data[at:at + self._context + 1])
            self._position += 1
        rows = torch.stack(rows)
        return rows[:, :-1], rows[:, 1:]

    def state(self):
        return {"epoch": self._epoch, "position": self._position}

    def restore(self, state):
        self._epoch, self._position = state["epoch"], state["position"]
        shuffle = torch.Generator().manual_seed(self._seed * 1000003 + self._epoch)
        self._order = torch.randperm(self._windows, generator=shuffle)
