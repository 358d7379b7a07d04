"""Lines of the contract: limits and garbage."""

import random
import unittest

from neap_task import wire


class Parse(unittest.TestCase):
    def test_requests(self):
        for line, expected in (
                (b'{"type":"checkpoint","by":17}', wire.Request("checkpoint", "", 17)),
                (b'{"type":"checkpoint"}', wire.Request("checkpoint", "", None)),
                (b'{"type":"yield","at":"now","by":5}', wire.Request("yield", "now", 5)),
                (b'{"type":"yield","at":"boundary","by":"x","new":1}',
                 wire.Request("yield", "boundary", None)),
                (b'{"type":"cancel"}', wire.Request("cancel"))):
            self.assertEqual(wire.parse(line), expected, line)

    def test_garbage_is_none(self):
        for line in (b"", b"\x00\xff\xfe", b"yield", b"[]", b"7", b"null", b'{"type":7}',
                     b'{"type":"yield"}', b'{"type":"yield","at":"later"}', b'{"type":"kill"}',
                     b'{"type":"yield","at":["now"]}', b"[" * 65000, b'{"a":' * 10000,
                     b'{"type":"yield","at":"now"', b"9" * 65000):
            self.assertIsNone(wire.parse(line), line[:40])

    def test_bool_is_not_a_time(self):
        self.assertIsNone(wire.parse(b'{"type":"checkpoint","by":true}').by_us)


class Reader(unittest.TestCase):
    def test_any_split_gives_the_same_lines(self):
        whole = (b'{"a":1}\n\n' + b"x" * wire.LINE_LIMIT + b"\n" + b"y" * (wire.LINE_LIMIT - 1)
                 + b"\n" + b"z" * 200000 + b'\n{"b":2}\nrest')
        expected = [b'{"a":1}', b"y" * (wire.LINE_LIMIT - 1), b'{"b":2}']
        self.assertEqual(wire.LineReader().feed(whole), expected)
        rng = random.Random(7)
        for _ in range(50):
            reader, lines, at = wire.LineReader(), [], 0
            while at < len(whole):
                size = rng.choice((1, 7, 1000, 65536, 100000))
                lines += reader.feed(whole[at:at + size])
                at += size
            self.assertEqual(lines, expected)

    def test_memory_is_bounded(self):
        reader = wire.LineReader()
        for _ in range(100):
            reader.feed(b"x" * 65536)
            self.assertLess(len(reader._rest), wire.LINE_LIMIT)


class Encode(unittest.TestCase):
    def test_limit_and_one_line(self):
        self.assertEqual(wire.encode({"type": "step", "n": 1}), b'{"type":"step","n":1}\n')
        self.assertEqual(wire.encode({"path": "a\nb\u00e9"}).count(b"\n"), 1)
        with self.assertRaises(ValueError):
            wire.encode({"path": "x" * wire.LINE_LIMIT})
        with self.assertRaises(ValueError):
            wire.encode({"seconds": float("nan")})


if __name__ == "__main__":
    unittest.main()
