"""The result of a check of a bundle: verdicts, what no verdict covers, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ._keys import VerifierKey
from ._logkeys import LogKey
from ._note import instant
from ._policy import is_ahead

FROM_BUNDLE = "bundle"
FROM_ARGUMENT = "argument"


@dataclass(frozen=True)
class Options:
    """What the caller of a check knows in addition to the bundle. Without a key the bundle's own key is used."""

    key: VerifierKey | None = None
    retired: tuple[LogKey, ...] = ()
    directory: Options | None = None
    witnesses: tuple[VerifierKey, ...] = ()
    now: float | None = None
    """When the check began, in seconds since 1970. If None, no cosignature counts as from the future."""

    def is_given(self, vkey: str) -> bool:
        """Return whether the caller gave the key that a bundle names."""
        return self.key is not None and (vkey == str(self.key) or any(str(k.key) == vkey for k in self.retired))


@dataclass(frozen=True)
class Witnessed:
    """A cosignature of a known witness: its name and time.

    in_future means that the time is later than the check, so it does not prove when the witness cosigned.
    """

    name: str
    time: str
    in_future: bool = False

    def members(self) -> dict[str, Any]:
        """Return the cosignature in the form of `aps verify --json`."""
        members: dict[str, Any] = {"name": self.name, "time": self.time}
        return {**members, "in_future": True} if self.in_future else members

    @property
    def time_words(self) -> str:
        """The time, with a remark if it proves none."""
        return f"{self.time} (in the future: it proves no time)" if self.in_future else self.time


@dataclass
class Report:
    """The result of a check. A verdict is None if it would need a part that is not disclosed."""

    inclusion_ok: bool = False
    checkpoint_ok: bool = False
    chain_ok: bool = False
    record_ok: bool | None = None
    signature_ok: bool | None = None
    envelope_ok: bool | None = None
    directory_ok: bool | None = None
    ok: bool = False
    log_key_source: str = FROM_BUNDLE
    unchecked: list[str] = field(default_factory=list[str])
    cosignatures: list[Witnessed] = field(default_factory=list[Witnessed])
    directory_cosignatures: list[Witnessed] = field(default_factory=list[Witnessed])
    tree_size: int = 0
    errors: list[str] = field(default_factory=list[str])

    def members(self) -> dict[str, Any]:
        """Return the report in the form of `aps verify --json`, without checked_at."""
        names = ["inclusion_ok", "checkpoint_ok", "chain_ok", "record_ok", "signature_ok", "envelope_ok"]
        members: dict[str, Any] = {name: getattr(self, name) for name in names}
        if self.directory_ok is not None:
            members["directory_ok"] = self.directory_ok
        members["ok"], members["log_key_source"], members["unchecked"] = self.ok, self.log_key_source, self.unchecked
        members["cosignatures"] = [c.members() for c in self.cosignatures]
        if self.directory_cosignatures:
            members["directory_cosignatures"] = [c.members() for c in self.directory_cosignatures]
        members["tree_size"], members["errors"] = self.tree_size, self.errors
        return members


def witnessed(key: VerifierKey, seconds: int, now: float | None) -> Witnessed:
    """Return the cosignature of a witness at a time in seconds since 1970, as a check at the time now sees it."""
    return Witnessed(key.name, instant(seconds), now is not None and is_ahead(seconds, now))


def printable_name(name: str) -> str:
    """Return a name from a bundle in ASCII, without control characters, at most 64 characters."""
    text = ""
    for c in name.encode()[:64].decode("utf-8", "ignore"):
        if c in '"\\':
            text += "\\" + c
        elif " " <= c <= "~":
            text += c
        elif c in _ESCAPES:
            text += _ESCAPES[c]
        else:
            text += _escape(ord(c))
    return text[:64]


_ESCAPES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}


def _escape(code: int) -> str:
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
