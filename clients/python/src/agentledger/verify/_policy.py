"""C2SP tlog-policy: logs that a verifier trusts, and witnesses, a quorum of which must have cosigned.

A policy is bytes, of which only ASCII is significant; names are compared byte by byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from ._flaw import Flaw, need
from ._keys import VerifierKey, parse_log_key, parse_witness_key
from ._note import Note, cosigned_at

MAX_TEXT = 128 << 10
"""Maximum size of a policy in bytes."""
MAX_ITEMS = 100
"""Logs, witnesses and groups, each."""
MAX_AHEAD = 300
"""Seconds that a cosignature may be ahead of the reader's clock. A later one does not prove when."""
BAD_POLICY = "malformed policy"

_THRESHOLD = re.compile(r"[1-9][0-9]{0,3}", re.ASCII)


@dataclass(frozen=True)
class Cosignature:
    """A witness's statement that it saw a checkpoint. time is in seconds since 1970."""

    name: str
    key: VerifierKey
    time: int


def is_ahead(cosigned: int, now: float) -> bool:
    """Return whether the time of a cosignature is too far in the future to be used. Both are in seconds."""
    return cosigned > now + MAX_AHEAD


@dataclass(frozen=True)
class Times:
    """The times in seconds that cosignatures prove, even if a minority of witnesses has wrong clocks.

    by is the earliest time by which a quorum had cosigned, since the latest time since which a quorum has. Both are
    None if the cosignatures that are not from the future reach no quorum; the others are ahead.
    """

    by: int | None
    since: int | None
    ahead: list[Cosignature]


@dataclass
class Policy:
    """A policy. Create it with parse_policy."""

    logs: list[VerifierKey] = field(default_factory=list[VerifierKey])
    witnesses: dict[str, VerifierKey] = field(default_factory=dict[str, VerifierKey])
    groups: dict[str, tuple[int, list[str]]] = field(default_factory=dict[str, tuple[int, list[str]]])
    quorum: str = ""

    def cosignatures(self, note: Note) -> list[Cosignature]:
        """Return the valid cosignatures of the policy's witnesses, in its order."""
        found = list[Cosignature]()
        for name, key in self.witnesses.items():
            try:
                found.append(Cosignature(name, key, cosigned_at(note, key)))
            except Flaw:  # an invalid cosignature counts as absent
                continue
        return found

    @property
    def asks_for_witnesses(self) -> bool:
        """Whether the quorum requires any cosignature."""
        return self.quorum != "none"

    def reached(self, cosignatures: list[Cosignature]) -> bool:
        """Return whether the cosigners reach the quorum."""
        names = {c.name for c in cosignatures}
        return not self.asks_for_witnesses or self._holds(self.quorum, names)

    def times(self, cosignatures: list[Cosignature], now: float) -> Times:
        """Return the times that cosignatures prove at the time now, in seconds since 1970."""
        ahead = [c for c in cosignatures if is_ahead(c.time, now)]
        usable = sorted((c for c in cosignatures if not is_ahead(c.time, now)), key=lambda c: c.time)
        if not self.asks_for_witnesses or not self.reached(usable):
            return Times(None, None, ahead)
        return Times(self._completing(usable), self._completing(usable[::-1]), ahead)

    def _completing(self, ordered: list[Cosignature]) -> int:
        """Return the time of the cosignature that completes the quorum."""
        return next(c.time for n, c in enumerate(ordered, 1) if self.reached(ordered[:n]))

    def _holds(self, name: str, names: set[str]) -> bool:
        if name not in self.groups:
            return name in names
        least, members = self.groups[name]
        return sum(self._holds(member, names) for member in members) >= least


def parse_policy(raw: bytes) -> Policy:
    """Parse a policy. Errors are Flaw."""
    text = raw.decode("latin-1")
    good = len(raw) <= MAX_TEXT and not any(c < " " and c not in "\t\n" or c == "\x7f" for c in text)
    need(good, "parse policy: size or characters", BAD_POLICY)
    need(text.endswith("\n") or text == "", "parse policy: no line end at the end", BAD_POLICY)
    builder = _Builder()
    for number, line in enumerate(text.split("\n"), 1):
        items = [item for item in re.split("[ \t]+", line) if item]
        try:
            builder.read(items)
        except Flaw as flaw:
            raise Flaw(f"parse policy: line {number}: {flaw.what}", BAD_POLICY) from None
    need(builder.policy.quorum != "", "parse policy: no quorum", BAD_POLICY)
    return builder.policy


class _Builder:
    def __init__(self) -> None:
        self.policy = Policy()
        self.free: set[str] = set()  # names that are in no group yet
        self.known: set[str] = set()

    def read(self, items: list[str]) -> None:
        if not items or items[0].startswith("#"):
            return
        keyword, rest = items[0], items[1:]
        if keyword == "log" and len(rest) in (1, 2):
            self._log(rest[0])
        elif keyword == "witness" and len(rest) in (2, 3):
            self._witness(rest[0], rest[1])
        elif keyword == "group" and len(rest) >= 3:
            self._group(rest[0], rest[1], rest[2:])
        elif keyword == "quorum" and len(rest) == 1:
            self._quorum(rest[0])
        else:
            raise Flaw("unknown keyword or number of items", BAD_POLICY)

    def _log(self, vkey: str) -> None:
        key = _parse(parse_log_key, vkey)
        logs = self.policy.logs
        need(len(logs) < MAX_ITEMS and key.public not in [k.public for k in logs], "the key of another log", BAD_POLICY)
        logs.append(key)

    def _witness(self, name: str, vkey: str) -> None:
        key = _parse(parse_witness_key, vkey)
        others = [k.typed for k in self.policy.witnesses.values()]
        need(len(others) < MAX_ITEMS and key.typed not in others, "the key of another witness", BAD_POLICY)
        self._define(name)
        self.policy.witnesses[name] = key

    def _group(self, name: str, threshold: str, members: list[str]) -> None:
        least = {"any": 1, "all": len(members)}.get(threshold, 0)
        if not least and _THRESHOLD.fullmatch(threshold):
            least = int(threshold)
        need(1 <= least <= len(members) and len(self.policy.groups) < MAX_ITEMS, "threshold", BAD_POLICY)
        for member in members:
            need(member in self.free, "a member that is not defined, or in a group already", BAD_POLICY)
            self.free.discard(member)
        self._define(name)
        self.policy.groups[name] = least, members

    def _define(self, name: str) -> None:
        need(name != "none" and name not in self.known, "name", BAD_POLICY)
        self.known.add(name)
        self.free.add(name)

    def _quorum(self, name: str) -> None:
        good = not self.policy.quorum and (name == "none" or name in self.known)
        need(good, "a second quorum, or a name that is not defined", BAD_POLICY)
        self.policy.quorum = name


def _parse(parse: Callable[[str], VerifierKey], item: str) -> VerifierKey:
    try:
        return parse(item.encode("latin-1").decode("utf-8"))
    except UnicodeDecodeError:
        raise Flaw("key", BAD_POLICY) from None
