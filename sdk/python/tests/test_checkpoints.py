"""Durable checkpoints: torn files are recognised, whatever was torn."""

import os
import shutil
import tempfile
import unittest
from unittest import mock

from neap_task import checkpoints


def writer(data):
    def save(path, _step):
        with open(path, "wb") as file:
            file.write(data)
    return save


class InDirectory(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)

    def write(self, step, data=None):
        data = data if data is not None else b"state %d" % step
        return checkpoints.write_checkpoint(self.dir, step, writer(data))


class Torn(InDirectory):
    def test_newest_whole_one_wins(self):
        first = self.write(1)
        self.assertEqual((first.step, first.bytes), (1, 7))
        self.write(2)
        self.assertEqual(checkpoints.newest_valid(self.dir).step, 2)
        self.assertIsNone(checkpoints.newest_valid(self.dir + "/absent"))

    def test_every_truncation_and_every_flipped_byte_is_seen(self):
        self.write(1)
        path = self.write(2).path
        with open(path, "rb") as file:
            data = file.read()
        damaged = [data[:n] for n in range(len(data))] + [data + b"x"]
        damaged += [data[:i] + bytes([data[i] ^ 1]) + data[i + 1:] for i in range(len(data))]
        for bad in damaged:
            with open(path, "wb") as file:
                file.write(bad)
            self.assertIs(checkpoints.is_valid(path), False, bad)
            self.assertEqual(checkpoints.newest_valid(self.dir).step, 1)

    def test_broken_seal_is_torn_and_no_seal_is_unknown(self):
        path = self.write(3).path
        seal = checkpoints._seal_path(path)
        for text in (b"", b"{", b"[]", b"{}", b'{"any_of":7}', b'{"any_of":[1]}', b"\xff",
                     b'{"any_of":[{"bytes":7}]}', b"[" * 70000, b" " * 70000):
            with open(seal, "wb") as file:
                file.write(text)
            self.assertIs(checkpoints.is_valid(path), False, text[:20])
        os.unlink(seal)
        self.assertIsNone(checkpoints.is_valid(path))
        self.assertIsNone(checkpoints.newest_valid(self.dir))
        self.assertEqual(checkpoints.newest_valid(self.dir, check=lambda p: True).step, 3)
        self.assertIsNone(checkpoints.newest_valid(self.dir, check=lambda p: False))

    def test_stop_at_every_system_call_leaves_a_whole_checkpoint(self):
        """The process dies before the n-th fsync, rename or unlink: old or new, never none."""
        for same_step in (False, True):
            for stop_at in range(1, 12):
                shutil.rmtree(self.dir)
                os.mkdir(self.dir)
                self.write(1, b"old")
                if not self._write_until(stop_at, 1 if same_step else 2):
                    break
                found = checkpoints.newest_valid(self.dir)
                with open(found.path, "rb") as file:
                    self.assertIn(file.read(), (b"old", b"new"))
            self.assertGreater(stop_at, 5)
            self.assertLess(stop_at, 11)

    def _write_until(self, stop_at, step):
        """True when it was stopped; then nothing more touches the disk, as after kill -9."""
        calls = []

        class Killed(BaseException):
            pass

        def counted(real):
            def call(*args, **kwargs):
                calls.append(real.__name__)
                if len(calls) >= stop_at:
                    raise Killed()
                return real(*args, **kwargs)
            return call

        with mock.patch.multiple(os, fsync=counted(os.fsync), rename=counted(os.rename),
                                 unlink=counted(os.unlink)):
            try:
                checkpoints.write_checkpoint(self.dir, step, writer(b"new"))
                return False
            except Killed:
                return True

    def test_fsync_order(self):
        """Data and seal are synced before the renames, the directory after them."""
        calls = []

        def spy(real):
            def call(*args):
                calls.append((real.__name__,) + tuple(
                    os.readlink("/proc/self/fd/%d" % a) if isinstance(a, int) else a
                    for a in args))
                return real(*args)
            return call

        with mock.patch.multiple(os, fsync=spy(os.fsync), rename=spy(os.rename)):
            path = self.write(4).path
        names = [call[0] for call in calls]
        self.assertEqual(names, ["fsync", "fsync", "rename", "rename", "fsync"])
        self.assertEqual(calls[0][1], calls[3][1])  # the data that is renamed is synced first
        self.assertEqual(calls[1][1], calls[2][1])
        self.assertEqual(calls[3][2], path)
        self.assertEqual(calls[4][1], os.path.realpath(self.dir))


class Writing(InDirectory):
    def test_failed_save_changes_nothing(self):
        self.write(1)
        before = sorted(os.listdir(self.dir))

        def full_disk(path, _step):
            with open(path, "wb") as file:
                file.write(b"half")
            raise OSError(28, "No space left on device")

        with self.assertRaises(OSError):
            checkpoints.write_checkpoint(self.dir, 2, full_disk)
        with self.assertRaises(FileNotFoundError):
            checkpoints.write_checkpoint(self.dir, 2, lambda path, step: None)
        self.assertEqual(sorted(os.listdir(self.dir)), before)

    def test_directory_checkpoint(self):
        def save(path, step):
            os.makedirs(path + "/shard")
            for name in ("a", "shard/b"):
                with open(os.path.join(path, name), "w") as file:
                    file.write("%s %d" % (name, step))

        done = checkpoints.write_checkpoint(self.dir, 5, save)
        self.assertEqual(done.bytes, len("a 5") + len("shard/b 5"))
        self.assertTrue(checkpoints.is_valid(done.path))
        checkpoints.write_checkpoint(self.dir, 5, save)  # over the old one
        self.assertEqual(checkpoints.newest_valid(self.dir).path, done.path)
        os.rename(done.path + "/a", done.path + "/c")
        self.assertIs(checkpoints.is_valid(done.path), False)

    def test_prune_keeps_the_last_written_and_files_of_others(self):
        open(os.path.join(self.dir, "checkpoint-900"), "w").close()
        for step in (30, 40, 50, 20):  # went back to an older state, wrote step 20 last
            self.write(step)
        self.assertEqual(checkpoints.newest_valid(self.dir).step, 20)
        checkpoints.prune(self.dir, 2)
        self.assertEqual(sorted(os.listdir(self.dir)),
                         [".checkpoint-00000020.seal", ".checkpoint-00000050.seal",
                          "checkpoint-00000020", "checkpoint-00000050", "checkpoint-900"])

    def test_leftovers_of_the_dead_go_those_of_the_living_stay(self):
        host = checkpoints.re.sub(r"[^\w-]", "-", checkpoints.socket.gethostname())
        dead, alive = 2 ** 22 + 1, os.getpid()
        for pid in (dead, alive):
            open(os.path.join(self.dir, ".checkpoint-1.%s.%d.tmp" % (host, pid)), "w").close()
        checkpoints.remove_leftovers(self.dir)
        self.assertEqual(os.listdir(self.dir), [".checkpoint-1.%s.%d.tmp" % (host, alive)])


class Restore(InDirectory):
    def restore(self, check=None, **environ):
        return checkpoints.restore_path(self.dir, check, environ=environ)

    def test_fresh(self):
        self.assertIsNone(self.restore())

    def test_later_one_beside_the_named_one_wins(self):
        named, later = self.write(1).path, self.write(2).path
        self.assertEqual(self.restore(NEAP_RESTORE_FROM=named), later)
        os.truncate(later, 3)
        self.assertEqual(self.restore(NEAP_RESTORE_FROM=later), named)

    def test_named_elsewhere_is_taken(self):
        self.write(9)
        elsewhere = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, elsewhere)
        named = checkpoints.write_checkpoint(elsewhere, 4, writer(b"x")).path
        self.assertEqual(self.restore(NEAP_RESTORE_FROM=named), named)
        self.assertEqual(self.restore(NEAP_RESTORE_FROM="/nowhere/x"),
                         os.path.join(self.dir, "checkpoint-00000009"))

    def test_unsealed_named_one_is_trusted_unless_check_says_no(self):
        path = os.path.join(self.dir, "checkpoint-7")
        open(path, "w").close()
        self.assertEqual(self.restore(NEAP_RESTORE_FROM=path), path)
        self.assertIsNone(self.restore(check=lambda p: False, NEAP_RESTORE_FROM=path))

    def test_checkpoint_dir_of_the_pool_wins(self):
        path = self.write(1).path
        self.assertEqual(checkpoints.restore_path(
            "/elsewhere", environ={"NEAP_CHECKPOINT_DIR": self.dir}), path)


if __name__ == "__main__":
    unittest.main()
