"""The list of a log's keys: transparency/keys, saved earlier or from a source that the caller trusts."""

from __future__ import annotations

from dataclasses import dataclass

from .._errors import Malformed
from .._shapes import is_list, is_object
from .._strictjson import parse_object
from ._documents import is_natural
from ._flaw import MALFORMED, Flaw, need
from ._keys import VerifierKey, parse_log_key


@dataclass(frozen=True)
class LogKey:
    """A key of a log, which signs the checkpoints of trees of the sizes [from_size, to_size)."""

    key: VerifierKey
    from_size: int
    to_size: int | None

    def signed(self, size: int) -> bool:
        """Return whether the key signs checkpoints of trees of that size."""
        return self.from_size <= size and (self.to_size is None or size < self.to_size)


def parse_log_keys(text: str | bytes) -> list[LogKey]:
    """Return the keys of use log in a saved list, in order. Errors are Flaw."""
    try:
        lines = parse_object(text).get("keys")
    except Malformed as why:
        raise Flaw("parse keys", MALFORMED, str(why)) from None
    need(lines is None or is_list(lines), "parse keys", MALFORMED)
    keys = list[LogKey]()
    for number, line in enumerate(lines or [], 1):
        try:
            key = _parse_line(line)
        except Flaw as flaw:
            raise flaw.within(f"parse keys: key {number}") from None
        if key is not None:
            keys.append(key)
    need(bool(keys), "parse keys: no key of a log", MALFORMED)
    return keys


def _parse_line(line: object) -> LogKey | None:
    if not is_object(line) or any(n not in line for n in ("vkey", "use", "from_size", "to_size")):
        raise Flaw("missing member", MALFORMED)
    vkey, use, begin, end = line["vkey"], line["use"], line["from_size"], line["to_size"]
    need(isinstance(vkey, str) and isinstance(use, str), "vkey or use", MALFORMED)
    need(is_natural(begin) and (end is None or is_natural(end) and begin <= end), "sizes", MALFORMED)
    if use != "log":
        return None
    try:
        return LogKey(parse_log_key(vkey), begin, end)
    except Flaw as flaw:
        raise flaw.within("vkey") from None
