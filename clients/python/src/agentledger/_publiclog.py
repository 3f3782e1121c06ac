"""The public log of an organization. Everything that is returned was checked under a key that the caller pinned."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from ._answers import BadAnswer, read_object
from ._errors import LedgerError, Unproved, about
from ._exchange import fetch, public_request
from ._settings import Settings
from ._shapes import is_list
from .verify._documents import is_hash, is_natural
from .verify._flaw import MALFORMED, Flaw
from .verify._heads import check_consistency_answer, check_head, open_pinned
from .verify._keys import VerifierKey
from .verify._keystatement import AcceptedKey, Found, find_key_statements, find_signer, open_known, parse_accepted
from .verify._logkeys import LogKey
from .verify._note import Checkpoint, Note, parse_note
from .verify._outcome import BundleResult, verify_bundle
from .verify._trust import Trust
from .verify._tree import check_inclusion
from ._wire.effects import Operation


@dataclass(frozen=True)
class Head:
    """The signed end of a log: its checkpoint, the signed note, and the service's members (docs/api.md)."""

    checkpoint: Checkpoint
    note: str
    members: dict[str, Any]


@dataclass(frozen=True)
class KnownLog:
    """One log: the organization's slug, and the known keys: the pinned one, and those that follow accepted."""

    slug: str
    known: tuple[LogKey, ...]

    @property
    def trust(self) -> Trust:
        """The trust in the known keys."""
        keys = tuple(k.key for k in self.known if k.to_size is None)
        return Trust(keys, tuple(k for k in self.known if k.to_size is not None))

    def signer(self, note: object) -> VerifierKey:
        """Return the known key that counts for a checkpoint, or the latest one."""
        try:
            key = find_signer(self.known, parse_note(note)) if isinstance(note, (str, bytes)) else None
        except Flaw:
            key = None
        return key or self.known[-1].key

    def path(self, rest: str) -> str:
        """Return the path of a document of the log."""
        return f"/v1/public/orgs/{quote(self.slug, safe='')}/{rest}"


def fetch_head(s: Settings, log: KnownLog) -> Operation[Head]:
    """Fetch the head. Errors are Unproved, and those of fetch."""
    answer = yield from fetch(public_request(s, log.path("transparency/head")), s.retry)
    members = read_object(answer.body)
    try:
        checkpoint = check_head(members, log.signer(members.get("checkpoint")))
    except Flaw as flaw:
        raise Unproved(f"head: {flaw}") from None
    return Head(checkpoint, members["checkpoint"], members)


def fetch_checkpoint(s: Settings, log: KnownLog) -> Operation[Head]:
    """Fetch the latest checkpoint. Errors are Unproved, and those of fetch."""
    answer = yield from fetch(public_request(s, log.path("transparency/checkpoint")), s.retry)
    try:
        opened = open_pinned(answer.body, log.signer(answer.body))
    except Flaw as flaw:
        raise Unproved(f"checkpoint: {flaw}") from None
    return Head(opened, answer.body.decode(), {})


@dataclass(frozen=True)
class Followed:
    """The result of follow. memory is plain JSON for the next visit, and new_keys the keys that this visit accepted."""

    memory: dict[str, Any]
    head: Head
    new_keys: tuple[AcceptedKey, ...]


def follow(s: Settings, log: KnownLog, memory: Mapping[str, Any]) -> Operation[tuple[Followed, KnownLog]]:
    """Fetch the head and check that it extends the tree of a memory, under keys that the log stated under known ones.

    log has only the pinned keys; the result has all keys. Errors are Unproved, and those of fetch.
    """
    try:
        kept, accepted, known = _recall(log, memory)
        answer = yield from fetch(public_request(s, log.path("transparency/head")), s.retry)
        members = read_object(answer.body)
        note = members.get("checkpoint")
        if not isinstance(note, str):
            raise Flaw("checkpoint", MALFORMED)
        shown = parse_note(note)
        found, why = yield from _find_statements(s, log, shown, known)
        for statement in found:
            known = statement.accepted.add_to(known)
        next_log = replace(log, known=known)
        try:
            open_known(known, note)
            newest = check_head(members, next_log.signer(note))
        except Flaw as flaw:
            raise Unproved(f"follow: {flaw}" + (f" ({'; '.join(why)})" if why else "")) from None
    except Flaw as flaw:
        raise Unproved(f"follow: {flaw}") from None
    yield from _check_one_history(s, next_log, [*kept, *(f.checkpoint for f in found), newest])
    new_keys = tuple(f.accepted for f in found)
    stored = {"checkpoint": note, "accepted_keys": [k.members() for k in (*accepted, *new_keys)]}
    return Followed(stored, Head(newest, note, members), new_keys), next_log


def _recall(log: KnownLog, memory: Mapping[str, Any]) -> tuple[list[Checkpoint], list[AcceptedKey], tuple[LogKey, ...]]:
    keys: list[Any] = memory.get("accepted_keys") or []
    accepted = [parse_accepted(k) for k in keys]
    known = log.known
    for key in accepted:
        known = key.add_to(known)
    kept = memory.get("checkpoint")
    return ([] if kept is None else [open_known(known, kept)]), accepted, known


def _find_statements(s: Settings, log: KnownLog, note: Note, known: tuple[LogKey, ...]) -> Operation[Found]:
    finder = find_key_statements(note, known)
    text: bytes | None = None
    try:
        key_id = next(finder)
        while True:
            try:
                path = log.path(f"transparency/keys/{key_id}")
                text = (yield from fetch(public_request(s, path), s.retry)).body
            except LedgerError:
                text = None  # no event states this key
            key_id = finder.send(text)
    except StopIteration as done:
        found: Found = done.value
        return found


def _check_one_history(s: Settings, log: KnownLog, trees: list[Checkpoint]) -> Operation[None]:
    """Check that each tree extends all smaller ones, and that the last one is the largest."""
    newest, ordered = trees[-1], sorted(trees, key=lambda tree: tree.size)
    if ordered[-1].size > newest.size:
        larger = ordered[-1].size
        raise Unproved(
            f"follow: rollback: the head has size {newest.size}, and the log's key signed a tree of size {larger}"
        )
    for old, new in itertools.pairwise(ordered):
        if old.size == new.size:
            if (old.origin, old.root) != (new.origin, new.root):
                raise Unproved(f"follow: fork: two trees of size {new.size} have different roots")
        elif old.size > 0:
            yield from fetch_consistency(s, log, old, new)


def fetch_inclusion(s: Settings, log: KnownLog, index: int, leaf: bytes, at: Checkpoint) -> Operation[list[bytes]]:
    """Fetch the proof that a leaf hash is at an index of a checkpoint's tree. Errors are Unproved."""
    path = log.path(f"transparency/inclusion?log_index={index}&tree_size={at.size}")
    v = read_object((yield from fetch(public_request(s, path), s.retry)).body)
    hashes = _hashes(v, "log_index", "tree_size")
    try:
        if (v["log_index"], v["tree_size"], v.get("leaf_hash"), v.get("root_hash")) != (
            index,
            at.size,
            leaf.hex(),
            at.root.hex(),
        ):
            raise Flaw("answer and question", "mismatch")
        check_inclusion(index, at.size, leaf, hashes, at.root)
    except Flaw as flaw:
        raise Unproved(f"inclusion: {flaw}") from None
    return hashes


def fetch_consistency(s: Settings, log: KnownLog, old: Checkpoint, new: Checkpoint) -> Operation[list[bytes]]:
    """Fetch the proof that a tree extends an older one. Unproved is evidence of a fork, or of a broken service."""
    path = log.path(f"transparency/consistency?from={old.size}&to={new.size}")
    v = read_object((yield from fetch(public_request(s, path), s.retry)).body)
    hashes = _hashes(v, "from", "to")
    try:
        check_consistency_answer(v, hashes, old, new)
    except Flaw as flaw:
        raise Unproved(f"consistency: {flaw}") from None
    return hashes


def fetch_bundle(s: Settings, log: KnownLog, event_id: str, trust: Trust) -> Operation[BundleResult]:
    """Fetch and check the bundle of an event. The result states whether it is proved.

    If the service sends the bundle of another event, the error is Unproved.
    """
    path = log.path(f"verify/{quote(event_id, safe='')}")
    try:
        answer = yield from fetch(public_request(s, path), s.retry)
        result = verify_bundle(answer.body, trust)
        if result.bundle is not None and result.bundle.text("event_id") != event_id:
            raise Unproved("the service sent the bundle of another event")
        return result
    except LedgerError as why:
        about(event_id, why)
        raise


def _hashes(v: dict[str, Any], *numbers: str) -> list[bytes]:
    hashes = v.get("hashes")
    if (
        not is_list(hashes)
        or not all(is_hash(h) for h in hashes)
        or not all(is_natural(v.get(n)) for n in numbers)
    ):
        raise BadAnswer("the answer has no proof")
    return [bytes.fromhex(h) for h in hashes]
