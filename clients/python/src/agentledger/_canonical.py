"""Canonical JSON (RFC 8785) of Python values.

A value without a unique JSON form is rejected with its place, and never converted silently. The caller may pass a
function that converts such values.

Accepted: dict with str names, list, str, bool, int up to 2^53, float, None. Rejected by name: everything else, such
as tuple, set, bytes, Decimal, datetime; NaN and infinities; lone surrogates; cycles; more than 64 levels.
"""

from __future__ import annotations

from collections.abc import Callable
from json import encoder
from math import isfinite
from typing import Any

from ._errors import Malformed
from ._numbers import MAX_INTEGER, NOT_EXACT, double_text
from ._plainjson import has_surrogate, plain_text

MAX_DEPTH = 64
"""The nesting that the service accepts. The outermost object is level 1."""

Convert = Callable[[str, Any], Any]
"""convert(path, value) returns a JSON value for a value that JSON does not have, or raises."""

_quote: Callable[[str], str] = encoder.encode_basestring  # type: ignore[attr-defined]

_NESTED: tuple[type[Any], ...] = (dict, list)
_LITERALS = {None: "null", True: "true", False: "false"}

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
    text = plain_text(value, MAX_DEPTH)
    return strict_text(value, convert) if text is None else text


def strict_text(value: Any, convert: Convert | None = None) -> str:
    """Return what canonical_text does, without its fast path."""
    parts: list[str] = []
    Writer(parts, convert).write(value)
    return "".join(parts)


def canonical_members(value: dict[str, Any], convert: Convert | None = None) -> dict[str, str]:
    """Return the members of an object by name, each in its canonical form. Errors are Malformed."""
    members: dict[str, str] = {}
    for name in _sorted_names(value, str):
        parts: list[str] = [_quote(name), ":"]
        writer = Writer(parts, convert)
        writer.names.append(name)
        writer.write(value[name])
        members[name] = "".join(parts)
    return members


def canonical_bytes(value: Any, convert: Convert | None = None) -> bytes:
    """Return the canonical form as UTF-8. Errors are those of canonical_text."""
    return canonical_text(value, convert).encode("utf-8")


def pointer(path: str, name: str | int) -> str:
    """Return the JSON pointer (RFC 6901) of a member or item of the value at path, safe for a terminal."""
    step = str(name).replace("~", "~0").replace("/", "~1")
    return path + "/" + "".join(c if c.isprintable() else "?" for c in step[:64])


class Writer:
    """Writes one value. names is the path from the outermost value to the one that is being written."""

    def __init__(self, parts: list[str], convert: Convert | None) -> None:
        self.add = parts.append
        self.convert = convert
        self.names: list[str | int] = []
        self.open: set[int] = set()

    def write(self, value: Any, converted: bool = False) -> None:
        if isinstance(value, str):
            self.add(self._string(value))
        elif value is None or value is True or value is False:
            self.add(_LITERALS[value])
        elif isinstance(value, int):
            self.add(self.integer(value))
        elif isinstance(value, float):
            self.add(self._double(value))
        elif isinstance(value, _NESTED):
            self._nested(value)
        elif self.convert is not None and not converted:
            self.write(self.convert(self._path(), value), converted=True)
        else:
            raise self.refuse(_refusal(value))

    def _path(self) -> str:
        path = ""
        for name in self.names:
            path = pointer(path, name)
        return path

    def refuse(self, why: str) -> Malformed:
        return Malformed(why, self._path())

    def _nested(self, value: dict[Any, Any] | list[Any]) -> None:
        if id(value) in self.open:
            raise self.refuse("contains itself: JSON has no cycles")
        if len(self.names) >= MAX_DEPTH:
            raise self.refuse(f"is nested deeper than {MAX_DEPTH} levels: make it flatter or give a part as a string")
        self.open.add(id(value))
        if isinstance(value, dict):
            self._object(value)
        else:
            self._list(value)
        self.open.discard(id(value))

    def _list(self, value: list[Any]) -> None:
        self.add("[")
        for index, item in enumerate(value):
            if index:
                self.add(",")
            self.names.append(index)
            self.write(item)
            self.names.pop()
        self.add("]")

    def _object(self, value: dict[Any, Any]) -> None:
        self.add("{")
        between = ""
        for name in _sorted_names(value, self._path):
            self.add(f"{between}{_quote(name)}:")
            self.names.append(name)
            self.write(value[name])
            self.names.pop()
            between = ","
        self.add("}")

    def _string(self, value: str) -> str:
        if not value.isascii() and has_surrogate(value):
            raise self.refuse("has half of a surrogate pair: give whole characters")
        return _quote(value)

    def integer(self, value: int) -> str:
        if abs(value) > MAX_INTEGER:
            raise self.refuse(NOT_EXACT)
        return int.__repr__(value)

    def _double(self, value: float) -> str:
        if not isfinite(value):
            raise self.refuse(
                "is not a number or is infinite, which JSON does not have: leave it out or give a string"
            )
        return double_text(float(value))


def _sorted_names(value: dict[Any, Any], path: Callable[[], str]) -> list[str]:
    ascii_only = True
    for name in value:
        if not isinstance(name, str):
            raise Malformed(f"has a member name of type {type(name).__name__}: give names as str", path())
        if not name.isascii():
            ascii_only = False
            if has_surrogate(name):
                raise Malformed("has a member name with half of a surrogate pair: give whole characters", path())
    return sorted(value) if ascii_only else sorted(value, key=lambda name: name.encode("utf-16-be"))


def _refusal(value: Any) -> str:
    name = type(value).__name__
    return f"is a {name}, which JSON does not have: {_ADVICE.get(name, 'give a JSON value, or say how by convert')}"
