"""The fast paths of signing against the strict ones, over random values: the same bytes, the same errors."""

from __future__ import annotations

import enum
import math
import random
import sys
import unicodedata
import unittest
from collections.abc import Callable
from typing import Any

import harness  # noqa: F401  (the path of the package)
from agentledger import _grammar as grammar, _signer as signer
from agentledger._canonical import MAX_DEPTH, canonical_text, strict_text
from agentledger._errors import Malformed
from agentledger._plainjson import plain_text

ROUNDS = 20_000


class Level(enum.IntEnum):
    HIGH = 3


class Text(str):
    pass


TEXTS = ("", "a", "text", 'q"\\/\n\x00\x1f\x7f\u2028', "ö", "\u20ac", "\U0001f600", "\ufb33", "\ud800", "x\udfff")
NAMES = ("a", "b", "amount_usd", "", 'q"\n', "ö", "\ufb33", "\U0001f600", "\ud800", "~/", Text("t"), 1, None, True)
NUMBERS = (0, -0.0, 10.0, 0.1, 2**53, -(2**53), 2**53 + 1, 1e16, 123456789.125, 1e-4, 9.99e-5, 1e21, math.inf, math.nan)
OTHERS = (True, False, None, Level.HIGH, Text("t"), (1, 2), {1}, b"x", object, 1j)


def a_number(r: random.Random) -> Any:
    kinds: tuple[Callable[[], Any], ...] = (
        lambda: r.choice(NUMBERS),
        lambda: r.randint(-(10**6), 10**6),
        lambda: r.randint(-(2**54), 2**54),
        lambda: r.uniform(-1000, 1000),
        lambda: math.ldexp(r.uniform(-1, 1), r.randint(-1074, 1023)),
        lambda: round(r.uniform(0, 1e5), 2),
    )
    return r.choice(kinds)()


def a_value(r: random.Random, depth: int, rare: float) -> Any:
    """Return a random value. rare is the share of parts that are deliberately unusual."""
    kind = r.random()
    if kind < rare:
        return r.choice(OTHERS + TEXTS + NUMBERS)
    if kind < 0.4 or depth == 0:
        return a_number(r) if r.random() < 0.3 else r.choice(("", "a", "text", "xyz" * 20, 1, 2.5, True, None))
    if kind < 0.7:
        return [a_value(r, depth - 1, rare) for _ in range(r.randint(0, 4))]
    names = NAMES if r.random() < rare else ("a", "b", "amount_usd", "", 'q"\n', "trace_id", "zz", "sig_b")
    return {r.choice(names): a_value(r, depth - 1, rare) for _ in range(r.randint(0, 5))}


def outcome(call: Callable[[], Any]) -> Any:
    """Return a call's result, or the type, path and reason of its error."""
    try:
        return call()
    except Malformed as why:
        return (type(why), why.path, why.why)


class Canonical(unittest.TestCase):
    def compare(self, value: Any) -> bool:
        want = outcome(lambda: strict_text(value))
        plain = plain_text(value, MAX_DEPTH)
        self.assertIn(plain, (None, want))
        self.assertEqual(want, outcome(lambda: canonical_text(value)))
        return plain is not None

    def test_random_values(self) -> None:
        r = random.Random(7)
        fast = sum(self.compare(a_value(r, 5, r.choice((0.0, 0.02, 0.3)))) for _ in range(ROUNDS))
        self.assertTrue(ROUNDS / 5 < fast < ROUNDS * 4 / 5, fast)

    def test_random_doubles(self) -> None:
        r = random.Random(8)
        for _ in range(ROUNDS):
            self.compare([a_number(r)])

    def test_levels_and_cycles(self) -> None:
        for depth in (62, 63, 64, 65, 66, 5000):
            for inner in ([], {}, 1):
                value: Any = inner
                for number in range(depth):
                    value = [value] if number % 2 else {"a": value}
                with self.subTest(depth=depth, inner=inner):
                    self.compare(value)
        loop: dict[str, Any] = {"b": 1}
        loop["a"] = [1, loop]
        self.compare(loop)

    def test_a_fast_path_is_taken(self) -> None:
        self.assertEqual('{"a":[1,0.5,"ö",{"b":null}]}', plain_text({"a": [1, 0.5, "ö", {"b": None}]}, MAX_DEPTH))
        for value in (10.0, (1,), {"ö": 1}, Text("t"), Level.HIGH, 2**53 + 1, {1: 2}, "\ud800", math.nan, 1e16):
            with self.subTest(value):
                self.assertIsNone(plain_text([value], MAX_DEPTH))


class Members(unittest.TestCase):
    SIGNER = signer.Signer("8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11", "agt_1", "key_1", b"\7" * 32)
    VALUES: tuple[Any, ...] = (
        ("ok", "x.y", "", 1, None, True, 1.0, [], {}, "ö", "\x85", ".", "..", "a" * 129, "A" * 257, "system_1")
        + ("ledger_x", "stp_1", "bridge_", "a..b", "allow", "deny", "2026-01-31T12:00:00.000Z", "2026-02-30T12:00:00Z")
        + ("8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11", "8D0F6D0A-5B1C-4C55-9A52-0C8D7C6F1E11", Text("ok"), Level.HIGH)
    )
    KNOWN = ("organization_id", "schema_version", "event_id", "trace_id", "actor_type", "action_kind", "tool_name")
    NAMES = KNOWN + ("actor_principal", "payload", "emitted_at", "policy_decision", "salt", "zz", "sig_b", "sig_a")

    def test_the_quick_check_agrees_with_the_full_check(self) -> None:
        r = random.Random(9)
        right = 0
        for _ in range(ROUNDS):
            given = {r.choice(self.NAMES): r.choice(self.VALUES) for _ in range(r.randint(0, 3))}
            event = {"action_kind": "tool_call", **self.SIGNER._defaults(), **given}

            def check() -> bool:
                grammar.check_members(event)
                grammar.check_reserved(event)
                return True

            want = outcome(check) is True
            self.assertEqual(want, grammar.are_right(given), given)
            right += want
        self.assertTrue(ROUNDS / 20 < right < ROUNDS / 2, right)

    def test_the_parts_around_the_signature_are_the_same(self) -> None:
        r = random.Random(10)
        fast = 0
        for _ in range(ROUNDS):
            value = a_value(r, 3, 0.01)
            given = value if isinstance(value, dict) else {"payload": value}
            event = {**self.SIGNER._defaults(), **given}
            want = outcome(lambda: signer._strict_parts(event, None))
            got = outcome(lambda: signer._plain_parts(event))
            self.assertIn(got, (None, want))
            fast += got is not None
        self.assertTrue(ROUNDS / 5 < fast, fast)

    def test_a_principal_has_no_control_characters(self) -> None:
        for code in range(sys.maxunicode + 1):
            c = chr(code)
            if grammar.is_principal(c) == (unicodedata.category(c) == "Cc"):
                self.fail(hex(code))


if __name__ == "__main__":
    unittest.main()
