"""A log's statements about its next key: events ledger_log_key, each in a tree that the previous key signed too."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .._shapes import is_object
from ._bundles import Bundle, parse_bundle
from ._check import check_bundle
from ._documents import is_positive, parse_envelope, parse_record
from ._flaw import MALFORMED, SIGNATURE, TOO_MANY_KEYS, Flaw, need
from ._keys import VerifierKey, parse_log_key
from ._logkeys import LogKey
from ._note import Checkpoint, Note, open_checkpoint, parse_note, read_checkpoint
from ._report import Options

MAX_STATEMENTS = 16
"""The maximum number of statements that one run of find_key_statements asks for."""

MAX_KNOWN_KEYS = 256
"""The maximum number of keys of one log that a reader remembers."""


@dataclass(frozen=True)
class AcceptedKey:
    """A log key that the log stated under an earlier known key.

    key signs trees of from_size and larger ones, and by, the key that signed the statement, only smaller ones.
    """

    key: VerifierKey
    by: VerifierKey
    from_size: int

    def __str__(self) -> str:
        return (
            f"the key {self.key.signer} replaces {self.by.signer} from size {self.from_size} on: "
            f"an entry of the log states it, in a tree that {self.by.signer} signed"
        )

    def members(self) -> dict[str, Any]:
        """Return the key in the form that readers store."""
        return {"vkey": str(self.key), "by": str(self.by), "from_size": self.from_size}

    def add_to(self, known: Sequence[LogKey]) -> tuple[LogKey, ...]:
        """Return the known keys with this one, which does not count if the key that vouched for it is not known.

        Raise a Flaw if MAX_KNOWN_KEYS keys are known already.
        """
        if not any(k.key == self.by for k in known):
            return tuple(known)
        need(self.key.name == self.by.name and self.key != self.by and self.from_size > 0, "accepted key", MALFORMED)
        ended = tuple(self._end(k) if k.key == self.by else k for k in known)
        if any(k.key == self.key for k in known):
            return ended
        if len(ended) >= MAX_KNOWN_KEYS:
            bound = f"a reader remembers at most {MAX_KNOWN_KEYS} keys of a log; pin its current key"
            raise Flaw("accepted key", TOO_MANY_KEYS, bound)
        return (*ended, LogKey(self.key, self.from_size, None))

    def _end(self, k: LogKey) -> LogKey:
        to_size = self.from_size if k.to_size is None else min(k.to_size, self.from_size)
        return replace(k, to_size=to_size)


@dataclass(frozen=True)
class KeyStatement:
    """A checked statement: the accepted key, and the tree whose last entry states it."""

    accepted: AcceptedKey
    checkpoint: Checkpoint


def parse_accepted(members: Any) -> AcceptedKey:
    """Parse an accepted key as written by members. Errors are Flaw."""
    good = is_object(members) and all(isinstance(members.get(n), str) for n in ("vkey", "by"))
    need(good and is_positive(members.get("from_size")), "accepted key", MALFORMED)
    return AcceptedKey(parse_log_key(members["vkey"]), parse_log_key(members["by"]), members["from_size"])


def find_signer(known: Iterable[LogKey], note: Note) -> VerifierKey | None:
    """Return the known key that signs trees of the size of a note and has a line in it. Errors are Flaw."""
    size = read_checkpoint(note).size
    return next((k.key for k in known if k.signed(size) and note.line_of(k.key) is not None), None)


def open_known(known: Sequence[LogKey], raw: str | bytes) -> Checkpoint:
    """Open a checkpoint with the known key that signs trees of its size. Errors are Flaw."""
    note = parse_note(raw)
    key = find_signer(known, note)
    if key is None:
        raise Flaw("open checkpoint: verify note: no line of the key", SIGNATURE)
    return open_checkpoint(note, key)


def check_key_statement(text: str | bytes, known: Sequence[LogKey]) -> KeyStatement:
    """Check the bundle of an event by which a log states its next key. Errors are Flaw.

    The tree must end with the event. The stated key and a known key must have signed it. The known key must sign trees
    of this size and have no end, because a replaced key cannot state another one. The caller must check that this tree
    and every tree that it knows are of one history.
    """
    try:
        return _check(parse_bundle(text), known)
    except Flaw as flaw:
        raise flaw.within("check key statement") from None


def _check(bundle: Bundle, known: Sequence[LogKey]) -> KeyStatement:
    note = parse_note(bundle.text("checkpoint"))
    by = _current_signer(known, note)
    if by is None:
        raise Flaw("no line of a known key that still signs", SIGNATURE)
    checkpoint = read_checkpoint(note)
    need(checkpoint.size == bundle.log_index + 1, "log_index and the end of the tree")
    report = check_bundle(bundle, Options(key=by))
    need(report.ok, "".join(report.errors[:1]))
    shown = report.record_ok and report.signature_ok and report.envelope_ok
    need(shown is True, "the event: not disclosed")
    key = _stated_key(bundle)
    need(all(k.key != key for k in known), "the stated key is known already")
    open_checkpoint(note, key)  # checks the key's name too
    return KeyStatement(AcceptedKey(key, by, checkpoint.size), checkpoint)


def _current_signer(known: Iterable[LogKey], note: Note) -> VerifierKey | None:
    size = read_checkpoint(note).size
    for k in known:
        if k.to_size is not None or not k.signed(size):
            continue
        try:
            open_checkpoint(note, k.key)
        except Flaw:
            continue
        return k.key
    return None


def _stated_key(bundle: Bundle) -> VerifierKey:
    record, envelope = bundle.shown("record"), bundle.shown("envelope")
    if record is None or envelope is None:
        raise Flaw("the event: not disclosed", MALFORMED)
    members = parse_envelope(envelope).members
    own = parse_record(record)["signer"] == "system" and members.get("action_kind") == "ledger_log_key"
    need(own, "not the service's event about a log key")
    payload = members.get("payload")
    payload = payload if is_object(payload) else {}
    vkey = payload.get("vkey")
    if payload.get("transition") != "log_key_created" or not isinstance(vkey, str):
        raise Flaw("the event states no new key", MALFORMED)
    return parse_log_key(vkey)


Found = tuple[list[KeyStatement], list[str]]


def find_key_statements(note: Note, known: Sequence[LogKey]) -> Generator[str, bytes | None, Found]:
    """Follow the rotations of a log from the known keys to the keys that signed a note.

    It yields the ID of each key whose statement it needs, in hex, and receives the text of the bundle, or None if there
    is none. It returns the statements in the order of the rotations, and why others were not found.
    """
    return (yield from _Finder(known).run(note))


class _Finder:
    def __init__(self, known: Sequence[LogKey]) -> None:
        self._known = tuple(known)
        self._asked: set[bytes] = set()
        self._found: list[KeyStatement] = []
        self._why: list[str] = []

    def run(self, note: Note) -> Generator[str, bytes | None, Found]:
        yield from self._follow(note)
        return self._found, self._why

    def _follow(self, note: Note) -> Generator[str, bytes | None, None]:
        for line in note.lines:
            if line.name != self._known[0].key.name or line.key_id in self._asked:
                continue
            if len(self._asked) == MAX_STATEMENTS or any(k.key.key_id == line.key_id for k in self._known):
                continue
            self._asked.add(line.key_id)
            text = yield line.key_id.hex()
            try:
                if text is None:
                    raise Flaw("there is none", "")
                yield from self._add(line.key_id, text)
            except Flaw as flaw:
                self._why.append(f"the statement of the key {line.key_id.hex()}: {flaw}")

    def _add(self, key_id: bytes, text: bytes) -> Generator[str, bytes | None, None]:
        under = parse_note(parse_bundle(text).text("checkpoint"))
        if _current_signer(self._known, under) is None:
            yield from self._follow(under)
        statement = check_key_statement(text, self._known)
        need(statement.accepted.key.key_id == key_id, "it states another key")
        self._known = statement.accepted.add_to(self._known)
        self._found.append(statement)
