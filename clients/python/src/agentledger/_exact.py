"""Values with numbers that canonical JSON (RFC 8785) cannot carry, such as 64-bit integers and Decimal.

- The exact form is the text that a tool receives: canonical JSON in which every number keeps its value.
- The recorded form is what a payload contains: such a number is {"$number": "<digits>"}, and an object whose only
  member has one of the reserved names is the value of {"$object": ...}. The payload then has the member $tagged.

The rules are in docs/spec/signing.md, section Exact numbers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from ._canonical import MAX_DEPTH, Convert, Writer, canonical_text
from ._errors import Malformed
from ._numbers import TOO_LONG, read_exact, read_literal
from ._plainjson import plain_text

TAGGED = "$tagged"
"""The member that marks a payload in recorded form."""

_RESERVED = ("$number", "$object")


def exact_text(value: Any, convert: Convert | None = None) -> str:
    """Return the exact form of a value. Accepted are the values of canonical_text, every int, and finite Decimals.

    convert is asked first about a Decimal. Errors are Malformed with the place as a JSON pointer.
    """
    text = plain_text(value, MAX_DEPTH)
    if text is not None:
        return text
    parts: list[str] = []
    _ExactWriter(parts, convert).write(value)
    return "".join(parts)


def recorded_members(members: Mapping[str, Any], convert: Convert | None = None) -> dict[str, Any]:
    """Return members in recorded form, with the marker if one of them differs from its exact form.

    Errors are those of exact_text.
    """
    if TAGGED in members:
        raise Malformed("is a member of the payload's own: give the argument another name", f"/{TAGGED}")
    plain = plain_text(members, MAX_DEPTH)
    if plain is not None and not any(f'{{"{name}":' in plain for name in _RESERVED):
        return dict(members)
    text = exact_text(dict(members), convert)
    recorded: dict[str, Any] = _RECORDER.decode(text)
    if recorded.keys() == {"$object"}:  # the members themselves are not escaped
        recorded = recorded["$object"]
    return recorded if canonical_text(recorded) == text else {**recorded, TAGGED: True}


class _ExactWriter(Writer):
    def write(self, value: Any, converted: bool = False) -> None:
        if isinstance(value, Decimal) and (self.convert is None or converted):
            if not value.is_finite():
                raise self.refuse("is not a number or is infinite, which JSON does not have")
            self.add(self._exact(f"{value:E}" if value else "0"))
        else:
            super().write(value, converted)

    def integer(self, value: int) -> str:
        # int.__repr__ refuses integers of more than 4,300 digits with a ValueError.
        return self._exact(int.__repr__(value) if abs(value) < 10**200 else "1e99999")

    def _exact(self, literal: str) -> str:
        exact = read_exact(literal)
        if exact is None:
            raise self.refuse(TOO_LONG)
        return exact[0]


def _recorded_number(text: str) -> Any:
    """Return the value of a number literal of an exact form for a recorded form."""
    exact = read_exact(text)
    if exact is None:
        raise Malformed(TOO_LONG)
    return read_literal(text) if exact[1] else {"$number": exact[0]}


def _escape(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    return {"$object": members} if len(pairs) == 1 and pairs[0][0] in _RESERVED else members


_RECORDER = json.JSONDecoder(object_pairs_hook=_escape, parse_int=_recorded_number, parse_float=_recorded_number)
