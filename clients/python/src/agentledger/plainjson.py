"""The fast path of canonical JSON: values that the encoder of json, written in C, puts into canonical form by itself.

- A text comes for a value only if it is the value's canonical form. For all other values, also refused ones, there is
  none, and the strict path (module canonical) writes or refuses them.
- Plain are dict with ASCII names, list, str, bool, int up to 2^53, None, and floats that repr writes as RFC 8785 does:
  those with a fraction, from 0.0001 to 10^16. Subclasses are not plain.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from .numbers import MAX_INTEGER

encode_plain = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":")
).encode
"""Returns the canonical form of a value that is plain."""


def plain_text(value: Any, levels: int) -> str | None:
    """Return the canonical form of a plain value of at most so many levels, None for another value."""
    if not _is_plain(value, levels):
        return None
    text = encode_plain(value)
    return text if text.isascii() or not has_surrogate(text) else None


def has_surrogate(text: str) -> bool:
    """Tell whether a text has half of a surrogate pair, which no UTF-8 can hold."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _is_plain(value: Any, levels: int) -> bool:
    """Tell whether a value has plain parts only. Half surrogates are not looked for."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return True
    if kind is int:
        return bool(-MAX_INTEGER <= value <= MAX_INTEGER)
    if kind is float:
        return bool(1e-4 <= abs(value) < 1e16 and not value.is_integer())
    if kind is dict and levels:
        return _are_names(value) and _are_plain(value.values(), levels - 1)
    return kind is list and levels > 0 and _are_plain(value, levels - 1)


def _are_names(names: Iterable[Any]) -> bool:
    for name in names:
        if type(name) is not str or not name.isascii():
            return False
    return True


def _are_plain(values: Iterable[Any], levels: int) -> bool:
    for value in values:
        if type(value) is not str and not _is_plain(value, levels):
            return False
    return True
