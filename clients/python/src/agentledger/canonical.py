"""Canonical JSON (RFC 8785) of Python values.

A value that JSON has no one form for is refused with its place, and never converted silently. The caller may say
how to convert by a function of his own.

Accepted: dict with str names, list, str, bool, int up to 2^53, float, None. Refused by name: everything else, such
as tuple, set, bytes, Decimal, datetime; NaN and infinities; lone surrogates; cycles; more than 64 levels.
"""

from __future__ import annotations

from collections.abc import Callable
from json import encoder
from math import isfinite
from typing import Any

from .errors import Malformed
from .numbers import MAX_INTEGER, NOT_EXACT, double_text

MAX_DEPTH = 64
"""The nesting that the service accepts. The outermost object is level 1."""

Convert = Callable[[str, Any], Any]
"""convert(path, value) returns a JSON value for a value that JSON does not have, or raises."""

_quote: Callable[[str], str] = encoder.encode_basestring  # type: ignore[attr-defined]

_ADVICE = {
    "tuple": "give a list",
    "set": "give a list in an order that you choose",
    "frozenset": "give a list in an order that you choose",
    "bytes": "give base64 or hex text",
    "bytearray": "give base64 or hex text",
    "Decimal": "give str(value), or a float",
    "Fraction": "give str(value), or a float",
    "complex": "give two numbers",
    "datetime": "give value.isoformat()",
    "date": "give value.isoformat()",
    "time": "give value.isoformat()",
    "timedelta": "give seconds as a number",
    "UUID": "give str(value)",
}


def canonical_text(value: Any, convert: Convert | None = None) -> str:
    """Return the canonical form of a value. Errors are Malformed with the place as a JSON pointer."""
    parts: list[str] = []
    _Writer(parts, convert).write(value, "", 1)
    return "".join(parts)


def canonical_bytes(value: Any, convert: Convert | None = None) -> bytes:
    """Return the canonical form as UTF-8. Errors are those of canonical_text."""
    return canonical_text(value, convert).encode("utf-8")


def pointer(path: str, name: str | int) -> str:
    """Return the JSON pointer (RFC 6901) of a member or item of the value at path, safe for a terminal."""
    step = str(name).replace("~", "~0").replace("/", "~1")
    return path + "/" + "".join(c if c.isprintable() else "?" for c in step[:64])


def has_surrogate(text: str) -> bool:
    """Tell whether a text has half of a surrogate pair, which no UTF-8 can hold."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


class _Writer:
    def __init__(self, parts: list[str], convert: Convert | None) -> None:
        self.add = parts.append
        self.convert = convert
        self.open: set[int] = set()

    def write(self, value: Any, path: str, depth: int, converted: bool = False) -> None:
        if isinstance(value, str):
            self.add(_string(value, path))
        elif value is None or value is True or value is False:
            self.add({None: "null", True: "true", False: "false"}[value])
        elif isinstance(value, int):
            self.add(_integer(value, path))
        elif isinstance(value, float):
            self.add(_double(value, path))
        elif isinstance(value, (dict, list)):
            self._nested(value, path, depth)
        elif self.convert is not None and not converted:
            self.write(self.convert(path, value), path, depth, converted=True)
        else:
            raise Malformed(_refusal(value), path)

    def _nested(self, value: dict[Any, Any] | list[Any], path: str, depth: int) -> None:
        if id(value) in self.open:
            raise Malformed("contains itself: JSON has no cycles", path)
        if depth > MAX_DEPTH:
            raise Malformed(
                f"is nested deeper than {MAX_DEPTH} levels: make it flatter or give a part as a string", path
            )
        self.open.add(id(value))
        if isinstance(value, dict):
            self._object(value, path, depth)
        else:
            self._list(value, path, depth)
        self.open.discard(id(value))

    def _list(self, value: list[Any], path: str, depth: int) -> None:
        self.add("[")
        for index, item in enumerate(value):
            if index:
                self.add(",")
            self.write(item, pointer(path, index), depth + 1)
        self.add("]")

    def _object(self, value: dict[Any, Any], path: str, depth: int) -> None:
        self.add("{")
        between = ""
        for name in _sorted_names(value, path):
            self.add(between)
            self.add(_quote(name))
            self.add(":")
            self.write(value[name], pointer(path, name), depth + 1)
            between = ","
        self.add("}")


def _sorted_names(value: dict[Any, Any], path: str) -> list[str]:
    for name in value:
        if not isinstance(name, str):
            raise Malformed(f"has a member name of type {type(name).__name__}: give names as str", path)
        if not name.isascii() and has_surrogate(name):
            raise Malformed("has a member name with half of a surrogate pair: give whole characters", path)
    if all(name.isascii() for name in value):
        return sorted(value)
    return sorted(value, key=lambda name: name.encode("utf-16-be"))


def _string(value: str, path: str) -> str:
    if not value.isascii() and has_surrogate(value):
        raise Malformed("has half of a surrogate pair: give whole characters", path)
    return _quote(value)


def _integer(value: int, path: str) -> str:
    if abs(value) > MAX_INTEGER:
        raise Malformed(NOT_EXACT, path)
    return int.__repr__(value)


def _double(value: float, path: str) -> str:
    if not isfinite(value):
        raise Malformed("is not a number or is infinite, which JSON does not have: leave it out or give a string", path)
    return double_text(float(value))


def _refusal(value: Any) -> str:
    name = type(value).__name__
    return f"is a {name}, which JSON does not have: {_ADVICE.get(name, 'give a JSON value, or say how by convert')}"
