"""Bundles, parsed strictly (docs/spec/bundle.md, The bundle)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._errors import Malformed
from .._grammar import INSTANT, UUID, is_time
from .._shapes import is_list, is_object
from .._strictjson import parse_object
from ._documents import is_hash, is_natural
from ._flaw import MALFORMED, VERSION, Flaw, need

_REQUIRED = (
    "version organization_id organization_slug origin event_id sequence_num log_index event_hash entry inclusion "
    "checkpoint log_key disclosure".split()
)
_NULLABLE = ("previous_entry", "previous_inclusion")
_OPTIONAL = ("log_keys", "record", "envelope", "erased_at", "directory", "verification", "operator_statement")
_TEXTS = ("organization_slug", "origin", "event_id", "entry", "checkpoint", "log_key")
_PROOF = frozenset(("log_index", "tree_size", "root_hash", "hashes"))


@dataclass(frozen=True)
class Inclusion:
    """An inclusion proof of a bundle. Hashes begin with the leaf's sibling."""

    log_index: int
    tree_size: int
    root_hash: bytes
    hashes: tuple[bytes, ...]


@dataclass(frozen=True)
class Bundle:
    """All data needed to check one event. Create it with parse_bundle."""

    members: dict[str, Any]
    inclusion: Inclusion
    previous_inclusion: Inclusion | None
    directory: SecondProof | None

    def text(self, name: str) -> str:
        """Return a text member that every bundle has."""
        value = self.members[name]
        return value if isinstance(value, str) else ""

    def text_lower(self, name: str) -> str:
        """Return a text in lower case, for IDs whose case does not matter."""
        return self.text(name).lower()

    def shown(self, name: str) -> str | None:
        """Return a text that may be absent or null: record, envelope, erased_at, previous_entry."""
        value = self.members.get(name)
        return value if isinstance(value, str) else None

    @property
    def log_index(self) -> int:
        """The position of the entry, from 0."""
        return int(self.members["log_index"])

    @property
    def log_keys(self) -> list[str]:
        """All keys that signed the checkpoint during a rotation; usually empty."""
        return self.members.get("log_keys") or []

    @property
    def unknown(self) -> list[str]:
        """Members that version 1 does not define, in canonical order."""
        known = {*_REQUIRED, *_NULLABLE, *_OPTIONAL}
        return sorted((n for n in self.members if n not in known), key=lambda n: n.encode("utf-16-be"))

    def names_key(self, vkey: str) -> bool:
        """Return whether the bundle claims that a key signed its checkpoint."""
        return vkey == self.members["log_key"] or vkey in self.log_keys


@dataclass(frozen=True)
class SecondProof:
    """A proof by the service's directory: a listed tree contains the event, and an event of the directory lists it."""

    inclusion: Inclusion
    bundle: Bundle


def parse_bundle(text: str | bytes) -> Bundle:
    """Parse a bundle. Errors are Flaw; its kind is VERSION for a bundle of another version."""
    try:
        members = parse_object(text)
    except Malformed as why:
        raise Flaw("parse bundle", MALFORMED, str(why)) from None
    try:
        return _bundle(members)
    except Flaw as flaw:
        raise flaw.within("parse bundle") from None


def _bundle(b: dict[str, Any]) -> Bundle:
    _check_presence(b)
    _check_values(b)
    previous = b["previous_inclusion"]
    second = b.get("directory")
    return Bundle(
        members=b,
        inclusion=parse_inclusion(b["inclusion"], "inclusion"),
        previous_inclusion=None if previous is None else parse_inclusion(previous, "previous_inclusion"),
        directory=None if second is None else _second_proof(second),
    )


def _check_presence(b: dict[str, Any]) -> None:
    if b.get("version") is not None:
        need(is_natural(b["version"]) and b["version"] == 1, "", VERSION)
    for name in _REQUIRED:
        need(name not in b or b[name] is not None, f"{name} is null", MALFORMED)
    need(all(n in b for n in (*_REQUIRED, *_NULLABLE)), "missing member", MALFORMED)


def _check_values(b: dict[str, Any]) -> None:
    for name in _TEXTS:
        need(isinstance(b[name], str), name, MALFORMED)
    for name in ("record", "envelope", "previous_entry"):
        need(b.get(name) is None or isinstance(b[name], str), name, MALFORMED)
    org, keys = b["organization_id"], b.get("log_keys")
    need(isinstance(org, str) and UUID.fullmatch(org) is not None, "organization_id", MALFORMED)
    need(is_natural(b["sequence_num"]) and is_natural(b["log_index"]), "number", MALFORMED)
    need(is_hash(b["event_hash"]), "event_hash", MALFORMED)
    need(b["disclosure"] in ("commitment", "record", "full"), "disclosure", MALFORMED)
    need(keys is None or is_list(keys) and all(isinstance(k, str) for k in keys), "log_keys", MALFORMED)
    need(b.get("erased_at") is None or is_time(b["erased_at"], INSTANT), "erased_at", MALFORMED)


def parse_inclusion(value: Any, name: str) -> Inclusion:
    """Parse an object with exactly the members of an inclusion proof. Errors are Flaw."""
    need(is_object(value) and value.keys() == _PROOF, f"{name}: members", MALFORMED)
    hashes = value["hashes"]
    good = is_natural(value["log_index"]) and is_natural(value["tree_size"]) and is_hash(value["root_hash"])
    need(good and is_list(hashes) and all(is_hash(h) for h in hashes), name, MALFORMED)
    return Inclusion(
        value["log_index"],
        value["tree_size"],
        bytes.fromhex(value["root_hash"]),
        tuple(bytes.fromhex(h) for h in hashes),
    )


def _second_proof(value: Any) -> SecondProof:
    need(is_object(value) and value.keys() == {"bundle", "inclusion"}, "directory: members", MALFORMED)
    inclusion = parse_inclusion(value["inclusion"], "directory: inclusion")
    need(is_object(value["bundle"]), "directory", MALFORMED)
    try:
        bundle = _bundle(value["bundle"])
    except Flaw as flaw:
        raise flaw.within("directory") from None
    need(bundle.directory is None, "directory: in a directory", MALFORMED)
    return SecondProof(inclusion, bundle)
