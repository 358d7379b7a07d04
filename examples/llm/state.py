"""Checkpoint files of this example: reading them, and telling whole ones from torn ones."""

import os
import sys
import zipfile

import torch

try:
    import neap_task  # noqa: F401  (installed)
except ImportError:  # run from the source tree
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                    "..", "..", "sdk", "python"))

FORMAT = 1
PREFIX = "checkpoint-"
SUFFIX = ".pt"


def is_whole(path):
    """True when every byte of a torch file is there: it is a zip file with checksums."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
    except (OSError, zipfile.BadZipFile, EOFError, ValueError, NotImplementedError):
        return False


def load(path):
    """The state in a checkpoint. Only tensors and plain values are read, no code."""
    state = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise ValueError("%s is not a checkpoint of this example (format %d)" % (path, FORMAT))
    return state
