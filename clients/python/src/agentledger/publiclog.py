"""The public log of an organization. All that is returned is checked under a key that the caller pinned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from .answers import BadAnswer, read_object
from .errors import Unproved
from .exchange import fetch, public_request
from .settings import Settings
from .verify.documents import is_hash, is_natural
from .verify.flaw import Flaw
from .verify.heads import check_consistency_answer, check_head, open_pinned
from .verify.keys import VerifierKey
from .verify.note import Checkpoint
from .verify.outcome import BundleResult, verify_bundle
from .verify.trust import Trust
from .verify.tree import check_inclusion
from .wire.effects import Operation


@dataclass(frozen=True)
class Head:
    """The signed end of a log: its checkpoint, the signed note, and the service's members (docs/api.md)."""

    checkpoint: Checkpoint
    note: str
    members: dict[str, Any]


@dataclass(frozen=True)
class Log:
    """Names one log: the organization's slug, and the pinned key."""

    slug: str
    key: VerifierKey

    def path(self, rest: str) -> str:
        """Return the path of a document of the log."""
        return f"/v1/public/orgs/{quote(self.slug, safe='')}/{rest}"


def head(s: Settings, log: Log) -> Operation[Head]:
    """Fetch the head. Errors are Unproved, and those of fetch."""
    answer = yield from fetch(public_request(s, log.path("transparency/head")), s.retry)
    members = read_object(answer.body)
    try:
        checkpoint = check_head(members, log.key)
    except Flaw as flaw:
        raise Unproved(f"head: {flaw}") from None
    return Head(checkpoint, members["checkpoint"], members)


def checkpoint(s: Settings, log: Log) -> Operation[Head]:
    """Fetch the newest checkpoint. Errors are Unproved, and those of fetch."""
    answer = yield from fetch(public_request(s, log.path("transparency/checkpoint")), s.retry)
    try:
        opened = open_pinned(answer.body, log.key)
    except Flaw as flaw:
        raise Unproved(f"checkpoint: {flaw}") from None
    return Head(opened, answer.body.decode(), {})


def inclusion(s: Settings, log: Log, index: int, leaf: bytes, at: Checkpoint) -> Operation[list[bytes]]:
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


def consistency(s: Settings, log: Log, old: Checkpoint, new: Checkpoint) -> Operation[list[bytes]]:
    """Fetch the proof that a tree extends an older one. Errors are Unproved: evidence of a fork, or of a fault."""
    path = log.path(f"transparency/consistency?from={old.size}&to={new.size}")
    v = read_object((yield from fetch(public_request(s, path), s.retry)).body)
    hashes = _hashes(v, "from", "to")
    try:
        check_consistency_answer(v, hashes, old, new)
    except Flaw as flaw:
        raise Unproved(f"consistency: {flaw}") from None
    return hashes


def bundle(s: Settings, log: Log, event_id: str, trust: Trust) -> Operation[BundleResult]:
    """Fetch and check the bundle of an event. The result says whether it is proved. It may be of the wrong event:

    then the error is Unproved.
    """
    path = log.path(f"verify/{quote(event_id, safe='')}")
    answer = yield from fetch(public_request(s, path), s.retry)
    result = verify_bundle(answer.body, trust)
    if result.bundle is not None and result.bundle.text("event_id") != event_id:
        raise Unproved("the service sent the bundle of another event")
    return result


def _hashes(v: dict[str, Any], *numbers: str) -> list[bytes]:
    hashes = v.get("hashes")
    if (
        not isinstance(hashes, list)
        or not all(is_hash(h) for h in hashes)
        or not all(is_natural(v.get(n)) for n in numbers)
    ):
        raise BadAnswer("the answer has no proof")
    return [bytes.fromhex(h) for h in hashes]
