"""Strict JSON texts: one value, UTF-8, no duplicate member, no lone surrogate, at most 64 levels, exact numbers.

These are the rules of the service and of the verifier (docs/spec/bundle.md, JSON).
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from ._canonical import MAX_DEPTH, pointer
from ._errors import Malformed
from ._numbers import TOO_LONG, read_exact, read_literal
from ._plainjson import has_surrogate
from ._shapes import is_list, is_object


class _Flaw:
    """Represents a rejected value until its place is known."""

    def __init__(self, why: str) -> None:
        self.why = why


def parse(text: str | bytes, depth: int = MAX_DEPTH) -> Any:
    """Return the value of a strict JSON text. Errors are Malformed with the place as a JSON pointer.

    Integers up to 2^53 are int, even if they are spelled 4.0 or 4e0; all other numbers are float.
    """
    return _parse(text, depth, _DECODER)


def parse_exact(text: str | bytes) -> Any:
    """Return what parse does, but accept numbers that a double cannot hold: integers are int, others are Decimal."""
    return _parse(text, MAX_DEPTH, _EXACT_DECODER)


def _parse(text: str | bytes, depth: int, decoder: json.JSONDecoder) -> Any:
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError:
            raise Malformed("not valid UTF-8") from None
    if text.startswith("\ufeff"):
        raise Malformed("begins with a byte order mark: leave it out")
    try:
        value = decoder.decode(text)
    except (ValueError, RecursionError):
        raise Malformed("not valid JSON") from None
    _check(value, "", 1, depth)
    return value


def parse_object(text: str | bytes, depth: int = MAX_DEPTH) -> dict[str, Any]:
    """Return the value of a text that must be an object. Errors are those of parse."""
    value = parse(text, depth)
    if not is_object(value):
        raise Malformed("must be a JSON object")
    return value


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any] | _Flaw:
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    names = [name for name, _ in pairs]
    twice = next(name for number, name in enumerate(names) if name in names[:number])
    return _Flaw(f"Member {json.dumps(twice[:64])} appears twice: send it once")


def _number(text: str) -> Any:
    value = read_literal(text)
    return _Flaw(value) if isinstance(value, str) else value


def _exact_number(text: str) -> Any:
    exact = read_exact(text)
    if exact is None:
        return _Flaw(TOO_LONG)
    literal, is_plain = exact
    if literal.lstrip("-").isdigit():
        return int(literal)
    return read_literal(literal) if is_plain else Decimal(literal)


def _constant(text: str) -> Any:
    raise ValueError("not a JSON literal")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_members, parse_int=_number, parse_float=_number, parse_constant=_constant
)

_EXACT_DECODER = json.JSONDecoder(
    object_pairs_hook=_members, parse_int=_exact_number, parse_float=_exact_number, parse_constant=_constant
)


def _check(value: Any, path: str, depth: int, most: int) -> None:
    if isinstance(value, _Flaw):
        raise Malformed(value.why, path)
    if isinstance(value, str) and not value.isascii() and has_surrogate(value):
        raise Malformed("has half of a surrogate pair", path)
    if depth > most and isinstance(value, (dict, list)):
        raise Malformed(f"is nested deeper than {most} levels", path)
    if is_list(value):
        for index, item in enumerate(value):
            _check(item, pointer(path, index), depth + 1, most)
    if is_object(value):
        for name, item in value.items():
            if not name.isascii() and has_surrogate(name):
                raise Malformed("has a member name with half of a surrogate pair", path)
            _check(item, pointer(path, name), depth + 1, most)
