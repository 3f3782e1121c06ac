"""The fast path of canonical JSON: values that the C encoder of json already writes in canonical form.

- It returns a text only if that is the value's canonical form. For all other values, including invalid ones, it returns
  none, and the strict path (module canonical) writes or rejects them.
- Plain are dict with ASCII names, list, str, bool, int up to 2^53, None, and floats that repr writes as RFC 8785 does:
  those with a fraction, from 0.0001 to 10^16. Subclasses are not plain.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ._numbers import MAX_INTEGER

encode_plain = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":")
).encode
"""Returns the canonical form of a value that is plain."""


def plain_text(value: Any, levels: int) -> str | None:
    """Return the canonical form of a plain value with at most the given number of levels, or None."""
    if not _is_plain(value, levels):
        return None
    text = encode_plain(value)
    return text if text.isascii() or not has_surrogate(text) else None


def has_surrogate(text: str) -> bool:
    """Return whether a text has half of a surrogate pair, which UTF-8 cannot represent."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _is_plain(value: Any, levels: int) -> bool:
    """Return whether a value has only plain parts. It does not search for lone surrogates."""
    kind = type(value)  # pyright: ignore[reportUnknownVariableType]
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
