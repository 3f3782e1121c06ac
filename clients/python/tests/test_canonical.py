"""Canonical JSON: what is written, and what is refused at which path."""

from __future__ import annotations

import datetime
import decimal
import enum
import pathlib
import subprocess
import sys
import unittest
import uuid
from typing import Any

import harness
from agentledger._canonical import canonical_text
from agentledger._errors import Malformed
from agentledger._strictjson import parse


class Level(enum.IntEnum):
    HIGH = 3


class Loop(list[Any]):
    """A list that may contain itself."""


class Written(unittest.TestCase):
    def test_values(self) -> None:
        for value, want in (
            (10.0, "10"),
            (-0.0, "0"),
            (1e21, "1e+21"),
            (1e-7, "1e-7"),
            (0.000001, "0.000001"),
            (123456789.125, "123456789.125"),
            (5e-324, "5e-324"),
            (1.7976931348623157e308, "1.7976931348623157e+308"),
            (2**53, "9007199254740992"),
            (-(2**53), "-9007199254740992"),
            (True, "true"),
            (None, "null"),
            (Level.HIGH, "3"),
            ('\u20ac\n\x0f"\\/\x7f', '"\u20ac\\n\\u000f\\"\\\\/\x7f"'),
            ({"\ufb33": 1, "\U0001f600": 2, "b": 3, "a": []}, '{"a":[],"b":3,"\U0001f600":2,"\ufb33":1}'),
        ):
            with self.subTest(want):
                self.assertEqual(want, canonical_text(value))

    def test_texts(self) -> None:
        for text, want in (
            ("4.0", "4"),
            ("0.4e1", "4"),
            ("-0", "0"),
            ("100000000000000000000", "100000000000000000000"),
        ):
            self.assertEqual(want, canonical_text(parse(text)))


class Refused(unittest.TestCase):
    def test_values_by_name_and_place(self) -> None:
        loop = Loop()
        loop.append({"again": loop})
        deep: Any = 0
        for _ in range(65):
            deep = [deep]
        for value, place, word in (
            ({"a": {"b/c": 2**53 + 1}}, "/a/b~1c", "integer"),
            ({"a": [0, float("nan")]}, "/a/1", "infinite"),
            (float("inf"), "", "infinite"),
            ({"p": "\ud800"}, "/p", "surrogate"),
            ({"p": {"\udfff": 1}}, "/p", "surrogate"),
            ({"p": (1, 2)}, "/p", "tuple"),
            ({"p": {1, 2}}, "/p", "set"),
            ({"p": b"x"}, "/p", "bytes"),
            ({"p": decimal.Decimal("1.5")}, "/p", "Decimal"),
            ({"p": datetime.datetime(2026, 1, 1)}, "/p", "datetime"),
            ({"p": uuid.UUID(int=1)}, "/p", "UUID"),
            ({"p": 1j}, "/p", "complex"),
            ({"p": {1: 2}}, "/p", "int"),
            ({"p": object()}, "/p", "object"),
            (loop, "/0/again", "itself"),
            (deep, "/0" * 64, "deeper"),
        ):
            with self.subTest(word), self.assertRaises(Malformed) as refused:
                canonical_text(value)
            self.assertEqual(place, refused.exception.path)
            self.assertIn(word, refused.exception.why)

    def test_converters(self) -> None:
        def convert(path: str, value: Any) -> Any:
            if isinstance(value, decimal.Decimal):
                return str(value)
            raise Malformed(f"no {type(value).__name__} here", path)

        self.assertEqual('{"p":"1.50"}', canonical_text({"p": decimal.Decimal("1.50")}, convert))
        with self.assertRaises(Malformed) as refused:
            canonical_text({"p": [b""]}, convert)
        self.assertEqual("/p/0: no bytes here", str(refused.exception))

    def test_texts(self) -> None:
        for text, place in (
            ('{"a":9007199254740993}', "/a"),
            ('{"a":[0.123456789012345678]}', "/a/0"),
            ('{"a":1e400}', "/a"),
            ('{"a":1e-400}', "/a"),
            ('{"a":1,"a":1}', ""),
            ('{"a":"\\ud800"}', "/a"),
            ("\ufeff{}", ""),
            ("[NaN]", ""),
            ("[1] 2", ""),
            ("[01]", ""),
            ("[\u0661]", ""),
            ('["\x01"]', ""),
            ("[" * 65 + "]" * 65, "/0" * 64),
            ("[" * 100000, ""),
        ):
            with self.subTest(text[:40]), self.assertRaises(Malformed) as refused:
                parse(text)
            self.assertEqual(place, refused.exception.path)


class Lines(unittest.TestCase):
    def test_one_digest_or_error_a_line(self) -> None:
        tool = pathlib.Path(__file__).with_name("canon_lines.py")
        run = subprocess.run(
            [sys.executable, tool], input=b'{"b":1,"a":4.0}\n{"a":1,"a":1}\n\xff\n', stdout=subprocess.PIPE
        )
        lines = run.stdout.decode().splitlines()
        self.assertEqual("error", lines[1])
        self.assertEqual("error", lines[2])
        self.assertEqual(64, len(lines[0]))


if __name__ == "__main__":
    unittest.main()
