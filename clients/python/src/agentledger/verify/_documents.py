"""The three documents of an event: entry, record and envelope (docs/spec/bundle.md, The rules of a verifier)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from .. import _ed25519 as ed25519
from .._canonical import canonical_text
from .._errors import Malformed
from .._grammar import DECISIONS, ID, INSTANT, UUID, check_members, is_time
from .._shapes import is_list, is_object
from .._strictjson import parse_object
from ._encoding import MAX_NATURAL, base64_bytes, decimal, hash_bytes, multikey_bytes, sha
from ._flaw import MALFORMED, MISMATCH, Flaw, need
from ._tree import leaf_hash

_ENTRY = re.compile(r'\{"prev":"([0-9a-f]{64})","record":"([0-9a-f]{64})","seq":([1-9][0-9]*),"v":1\}', re.ASCII)
_RECORD = frozenset(
    "v origin organization_id sequence_num event_id agent_id key_id public_key signer custody event_digest "
    "sig_form sig_value_b64 ingest_key_id received_at policy".split()
)
_POLICY = set(
    "evaluated declared effective policy_id policy_version policy_digest rule_id engine input_digest evaluated_at "
    "limits approval_id".split()
)
_TRACEPARENT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)
_LIMIT_DEPTH = 8


@dataclass(frozen=True)
class Entry:
    """The public leaf of an event."""

    text: str
    prev: bytes
    record: bytes
    seq: int

    @property
    def hash(self) -> bytes:
        """The leaf hash, which is the event's hash."""
        return leaf_hash(self.text.encode())


@dataclass(frozen=True)
class Envelope:
    """What an agent signed: its members, the signed content, and its digest."""

    members: dict[str, Any]
    content: bytes
    digest: bytes


def genesis(origin: str) -> bytes:
    """Return the value that the first entry of a log names as its predecessor."""
    return sha(b"agentledger/genesis/v1\n", origin.encode(), b"\n")


def parse_entry(text: str) -> Entry:
    """Parse an entry, which has one spelling. Errors are Flaw."""
    match = _ENTRY.fullmatch(text)
    seq = decimal(match[3], MAX_NATURAL) if match else None
    if match is None or seq is None:
        raise Flaw("entry", MALFORMED)
    return Entry(text, bytes.fromhex(match[1]), bytes.fromhex(match[2]), seq)


def parse_record(text: str) -> dict[str, Any]:
    """Parse a record, which has one spelling. Errors are Flaw."""
    form = Flaw("not the exact canonical form", MALFORMED)
    try:
        record = parse_object(text)
        same = canonical_text(record) == text
    except Malformed:
        raise form from None
    whole = frozenset(record) - {"on_behalf_of", "traceparent"} == _RECORD
    if not same or not whole or not _is_record(record) or not _is_policy(record["policy"]):
        raise form
    return record


def _is_record(r: dict[str, Any]) -> bool:
    texts = all(
        isinstance(r[n], str) for n in ("origin", "event_id", "agent_id", "key_id", "public_key", "sig_value_b64")
    )
    return (
        texts
        and _is_one(r["v"])
        and isinstance(r["organization_id"], str)
        and UUID.fullmatch(r["organization_id"]) is not None
        and r["organization_id"] == r["organization_id"].lower()
        and is_positive(r["sequence_num"])
        and r["signer"] in ("agent", "bridge", "system")
        and r["custody"] in ("agent", "server")
        and is_hash(r["event_digest"])
        and r["sig_form"] in ("digest", "canonical")
        and _is_null_or_some(r["ingest_key_id"])
        and is_time(r["received_at"], INSTANT)
        and r.get("on_behalf_of", "verified") == "verified"
        and ("traceparent" not in r or _is_traceparent(r["traceparent"]))
    )


def _is_traceparent(value: Any) -> bool:
    return isinstance(value, str) and _TRACEPARENT.fullmatch(value) is not None


def _is_policy(p: Any) -> bool:
    if not is_object(p) or p.keys() - {"intent"} != _POLICY:
        return False
    if p["evaluated"] is True and p["limits"] is None:
        return False
    hashes = all(p[n] is None or is_hash(p[n]) and p[n] != "0" * 64 for n in ("policy_digest", "input_digest"))
    at = p["evaluated_at"]
    return (
        hashes
        and all(_is_null_or_some(p[n]) for n in ("policy_id", "rule_id", "engine", "approval_id"))
        and isinstance(p["evaluated"], bool)
        and p["declared"] in DECISIONS
        and p["effective"] in DECISIONS
        and (p["policy_version"] is None or is_positive(p["policy_version"]))
        and (at is None or is_time(at, INSTANT) and at != "1970-01-01T00:00:00.000Z")
        and (p["limits"] is None or is_list(p["limits"]) and _depth(p["limits"]) <= _LIMIT_DEPTH)
        and ("intent" not in p or isinstance(p["intent"], str) and p["intent"] != "")
    )


def parse_envelope(text: str) -> Envelope:
    """Parse an envelope in canonical form. Errors are Flaw."""
    try:
        members = parse_object(text)
        check_members(members)
        _check_signature_members(members)
    except Malformed as why:
        raise Flaw("", MALFORMED, str(why)) from None
    need(canonical_text(members) == text, "not the exact canonical form", MALFORMED)
    content = signed_content(members)
    return Envelope(members, content, event_digest(members["key_id"], content))


def _check_signature_members(members: dict[str, Any]) -> None:
    for name in ("sig_alg", "sig_value_b64"):
        if name not in members:
            raise Malformed(f"Missing {name}")
    if members["sig_alg"] != "ed25519":
        raise Malformed("sig_alg must be ed25519")
    value = members["sig_value_b64"]
    raw = base64_bytes(value) if isinstance(value, str) else None
    if raw is None or len(raw) != 64:
        raise Malformed("sig_value_b64 must be the base64 of 64 bytes, with padding")


def signed_content(members: dict[str, Any]) -> bytes:
    """Return the bytes that a signature of an event covers: all members except the two of the signature."""
    unsigned = {name: value for name, value in members.items() if name not in ("sig_alg", "sig_value_b64")}
    return canonical_text(unsigned).encode()


def event_digest(key_id: str, content: bytes) -> bytes:
    """Return the digest of an event from its key ID and signed content."""
    return sha(b"APS1\n", key_id.encode(), b"\n", content)


def check_signature(record: dict[str, Any], envelope: Envelope | None) -> None:
    """Check that the record's key signed the digest or the envelope, depending on the form. Errors are Flaw."""
    key = multikey_bytes(record["public_key"])
    if key is None:
        raise Flaw("public_key: multikey", MALFORMED)
    message = bytes.fromhex(record["event_digest"])
    if record["sig_form"] == "canonical":
        if envelope is None:
            raise Flaw("no envelope", MISMATCH)
        message = envelope.content
    _check_signed(key, record["sig_value_b64"], message)


def _check_signed(key: bytes, value: str, message: bytes) -> None:
    try:
        ed25519.public_key(key)
    except ed25519.BadKey as why:
        raise Flaw("public_key: parse public key", str(why)) from None
    signature = base64_bytes(value)
    if signature is None:
        raise Flaw("sig_value_b64", MALFORMED)
    need(ed25519.is_signature(key, signature, message), "not the public key's", MISMATCH)


def check_envelope(record: dict[str, Any], envelope: Envelope) -> None:
    """Check that an envelope belongs to the record. Errors are Flaw."""
    e = envelope.members
    need(envelope.digest.hex() == record["event_digest"], "envelope and event_digest")
    same = all(e[n] == record[n] for n in ("event_id", "agent_id", "key_id"))
    need(
        same and e["organization_id"].lower() == record["organization_id"],
        "envelope and the record's organization_id, event_id, agent_id, key_id",
    )
    need(e["policy_decision"] == record["policy"]["declared"], "policy_decision and policy.declared")
    intent = record["policy"].get("intent")
    need(intent is None or is_result_of(e, intent), "payload.phase, parent_event_id and policy.intent")


def is_result_of(members: dict[str, Any], intent: str) -> bool:
    """Return whether an event claims to be the result of an intent."""
    payload = members["payload"]
    parent = members.get("parent_event_id")
    if not isinstance(parent, str) or not parent:
        parent = payload.get("parent_event_id")
    named = isinstance(parent, str) and ID.fullmatch(parent) is not None and parent == intent
    return named and "tool_name" in members and payload.get("phase") == "result"


def is_hash(value: Any) -> bool:
    """Return whether a value is a hash in lower-case hex."""
    return isinstance(value, str) and hash_bytes(value) is not None


def is_natural(value: Any) -> bool:
    """Return whether a value is a whole number from 0 to 2^53 - 1."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_NATURAL


def is_positive(value: Any) -> bool:
    """Return whether a value is a natural other than 0."""
    return is_natural(value) and value > 0


def _is_one(value: Any) -> bool:
    return is_natural(value) and bool(value == 1)


def _is_null_or_some(value: Any) -> bool:
    return value is None or isinstance(value, str) and value != ""


def _depth(value: Any) -> int:
    if is_object(value):
        return 1 + max((_depth(v) for v in value.values()), default=0)
    if is_list(value):
        return 1 + max((_depth(v) for v in value), default=0)
    return 0
