"""Durable checkpoints on disk, and finding the newest whole one.

A checkpoint is a file or a directory named PREFIX + step + SUFFIX. Beside it stands a hidden
seal, `.NAME.seal`, with its size and SHA-256. The order of writing is: data aside, fsync, seal
aside, fsync, rename seal, rename data, fsync the directory. So whenever the machine stops, what
bears the final name with a matching seal is whole, and all else is recognised as torn.
"""

import hashlib
import json
import os
import re
import shutil
import socket
import time
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional

DEFAULT_PREFIX = "checkpoint-"
_SEAL_LIMIT = 64 * 1024  # bytes; a longer seal is not ours
_READ_SIZE = 1 << 20
_LEFTOVER_AGE_SECONDS = 24 * 3600


class Checkpoint(NamedTuple):
    path: str  # absolute
    step: int
    bytes: int
    seconds: float  # that writing it took; 0 when it was found, not written


Save = Callable[[str, int], Any]
Check = Callable[[str], bool]


def write_checkpoint(directory: str, step: int, save: Save, prefix: str = DEFAULT_PREFIX,
                     suffix: str = "") -> Checkpoint:
    """Calls save(temporary path, step), makes the result durable, gives it its final name.

    save writes a file or makes a directory at the path. When this returns, the checkpoint
    survives a power cut. Raises what save raises, or OSError; then nothing has changed.
    """
    began = time.monotonic()
    directory = os.path.abspath(directory)
    _make_directory(directory)
    name = "%s%08d%s" % (prefix, step, suffix)
    final = os.path.join(directory, name)
    mark = "%s.%d" % (re.sub(r"[^\w-]", "-", socket.gethostname()), os.getpid())
    aside = os.path.join(directory, ".%s.%s.tmp" % (name, mark))
    seal_aside = os.path.join(directory, ".%s.%s.seal.tmp" % (name, mark))
    try:
        _remove(aside)
        save(aside, step)
        size = _sync_tree(aside)
        seal = _new_seal(directory, final, step, {"bytes": size, "sha256": _digest(aside)})
        _write_synced(seal_aside, json.dumps(seal).encode("ascii"))
        os.rename(seal_aside, _seal_path(final))
        if os.path.isdir(final) or (os.path.isdir(aside) and os.path.lexists(final)):
            _remove(final)  # a directory cannot be renamed over
        os.rename(aside, final)
        _sync_directory(directory)
    except BaseException:
        _remove(aside)
        _remove(seal_aside)
        raise
    return Checkpoint(final, step, size, time.monotonic() - began)


def newest_valid(directory: str, prefix: str = DEFAULT_PREFIX,
                 check: Optional[Check] = None) -> Optional[Checkpoint]:
    """The checkpoint of a directory that was written last and is whole, or None.

    A torn file is skipped. A file without a seal (written by other code) is taken only when
    check(path) says so; without check it is skipped.
    """
    for entry in _entries(os.path.abspath(directory), prefix):
        valid = is_valid(entry.path)
        if valid is None and check is not None:
            valid = check(entry.path)
        if valid:
            return Checkpoint(entry.path, entry.step, _tree_size(entry.path), 0.0)
    return None


def is_valid(path: str) -> Optional[bool]:
    """True: matches its seal. False: torn, or gone. None: it has no seal, so nobody knows."""
    if not os.path.exists(path):
        return False
    seal = _read_seal(path)
    if seal is None:
        return None
    try:
        size = _tree_size(path)
        candidates = [c for c in seal["any_of"] if c["bytes"] == size]
        return bool(candidates) and _digest(path) in [c["sha256"] for c in candidates]
    except (OSError, KeyError, TypeError):
        return False


def restore_path(directory: Optional[str] = None, check: Optional[Check] = None,
                 prefix: str = DEFAULT_PREFIX,
                 environ: Mapping[str, str] = os.environ) -> Optional[str]:
    """Where to resume from, or None for a fresh start.

    NEAP_RESTORE_FROM names the last checkpoint that the pool has heard of. A later whole one in
    the same directory wins, because its report may have been lost; a torn one is passed over.
    """
    directory = environ.get("NEAP_CHECKPOINT_DIR") or directory
    found = newest_valid(directory, prefix, check) if directory else None
    named = environ.get("NEAP_RESTORE_FROM")
    if not named:
        return found.path if found else None
    named = os.path.abspath(named)
    if found and os.path.realpath(os.path.dirname(named)) == os.path.realpath(
            os.path.dirname(found.path)):
        return found.path
    valid = is_valid(named)
    if valid or (valid is None and (check is None or check(named))):
        return named
    return found.path if found else None


def prune(directory: str, keep: int, prefix: str = DEFAULT_PREFIX) -> None:
    """Removes all but the `keep` sealed checkpoints written last; files of others stay."""
    sealed = [e for e in _entries(os.path.abspath(directory), prefix) if e.sequence > 0]
    for entry in sealed[max(keep, 1):]:
        _remove(entry.path)
        _remove(_seal_path(entry.path))


def remove_leftovers(directory: str, prefix: str = DEFAULT_PREFIX) -> None:
    """Removes temporary files of writers that are dead: a killed job leaves them behind."""
    host = re.sub(r"[^\w-]", "-", socket.gethostname())
    pattern = re.compile(r"^\.%s.*\.([\w-]+)\.(\d+)(\.seal)?\.tmp$" % re.escape(prefix))
    for name in _listing(directory):
        match = pattern.match(name)
        if not match:
            continue
        path = os.path.join(directory, name)
        try:
            old = time.time() - os.lstat(path).st_mtime > _LEFTOVER_AGE_SECONDS
        except OSError:
            continue
        if old or (match.group(1) == host and not _alive(int(match.group(2)))):
            _remove(path)


def step_of(path: str) -> Optional[int]:
    """The step in a checkpoint's seal, else the last number in its name, else None."""
    seal = _read_seal(path)
    if seal and isinstance(seal.get("step"), int):
        return seal["step"]
    numbers = re.findall(r"\d+", os.path.basename(path))
    return int(numbers[-1]) if numbers else None


# ---- inside


class _Entry(NamedTuple):
    sequence: int  # order of writing; 0 for files without a seal
    step: int
    path: str


def _entries(directory: str, prefix: str) -> List[_Entry]:
    """Newest first. Order of writing, not of steps: after going back to an older
    checkpoint, what is written next is the truth although its step is smaller."""
    entries = []
    for name in _listing(directory):
        if name.startswith(prefix) and not name.endswith((".tmp", ".part")):
            path = os.path.join(directory, name)
            seal = _read_seal(path) or {}
            sequence = seal.get("sequence")
            step = step_of(path)
            entries.append(_Entry(sequence if isinstance(sequence, int) else 0,
                                  step if step is not None else -1, path))
    return sorted(entries, reverse=True)


def _new_seal(directory: str, final: str, step: int, digest: Dict[str, Any]) -> Dict[str, Any]:
    newest = max([_sequence_of(os.path.join(directory, name))
                  for name in _listing(directory) if name.endswith(".seal")] or [0])
    any_of = [digest]
    old = _read_seal(final)
    before = old.get("any_of") if old and os.path.isfile(final) else None
    if isinstance(before, list):
        # Until the rename the old file bears the name: the seal must fit either of them.
        any_of += [c for c in before[:1] if c != digest]
    return {"neap_checkpoint": 1, "step": step, "sequence": newest + 1, "any_of": any_of}


def _sequence_of(seal_path: str) -> int:
    sequence = (_read_json(seal_path) or {}).get("sequence")
    return sequence if isinstance(sequence, int) else 0


def _seal_path(path: str) -> str:
    return os.path.join(os.path.dirname(path), ".%s.seal" % os.path.basename(path))


def _read_seal(path: str) -> Optional[Dict[str, Any]]:
    return _read_json(_seal_path(path))


def _read_json(path: str) -> Optional[Dict[str, Any]]:
    try:
        with open(path, "rb") as file:
            text = file.read(_SEAL_LIMIT + 1)
    except OSError:
        return None
    if len(text) > _SEAL_LIMIT:
        return {}  # a seal that cannot be read matches nothing: torn, not unsealed
    try:
        value = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _tree_files(path: str) -> List[str]:
    if not os.path.isdir(path):
        return [path]
    return sorted(os.path.join(base, name) for base, _, names in os.walk(path) for name in names)


def _tree_size(path: str) -> int:
    return sum(os.stat(file).st_size for file in _tree_files(path))


def _digest(path: str) -> str:
    if not os.path.isdir(path):
        return _file_digest(path)
    whole = hashlib.sha256()
    for file in _tree_files(path):
        whole.update(os.fsencode(os.path.relpath(file, path)) + b"\0")
        whole.update(_file_digest(file).encode("ascii") + b"\n")
    return whole.hexdigest()


def _file_digest(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        while True:
            block = file.read(_READ_SIZE)
            if not block:
                return digest.hexdigest()
            digest.update(block)


def _sync_tree(path: str) -> int:
    """fsync of all that save wrote; the total of bytes."""
    if not os.path.lexists(path):
        raise FileNotFoundError("save() wrote nothing at %s" % path)
    for file in _tree_files(path):
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    if os.path.isdir(path):
        for base, _, _ in os.walk(path, topdown=False):
            _sync_directory(base)
    return _tree_size(path)


def _write_synced(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _make_directory(directory: str) -> None:
    if not os.path.isdir(directory):
        os.makedirs(directory, exist_ok=True)
        _sync_directory(os.path.dirname(directory))


def _sync_directory(directory: str) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: str) -> None:
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    except OSError:
        pass  # it is gone, or stays; either is safe, for it has no valid seal or is old


def _listing(directory: str) -> List[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True
