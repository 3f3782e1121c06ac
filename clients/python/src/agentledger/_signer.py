"""Signs the events of one agent with one Ed25519 key. No method, text or error reveals the private key."""

from __future__ import annotations

import secrets
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from ._canonical import MAX_DEPTH, Convert, canonical_bytes, canonical_members
from ._errors import Malformed, NotAsked, about
from ._forkgate import fork_gate
from ._grammar import AGENT, KEY, UUID, are_right, check_members, check_reserved, trace_of
from ._inputs import EventInput
from ._plainjson import encode_plain, plain_text
from ._strictjson import parse_object
from .verify._documents import event_digest
from .verify._encoding import base64_bytes

MAX_ENVELOPE = 256 << 10
"""Default maximum size in bytes of an envelope that the service accepts."""

_TEXT = b'%s"sig_alg":"ed25519",%s"sig_value_b64":"%s",%s'
_SIGNATURE_SIZE = len(_TEXT % (b"", b"", b"", b"")) + 88


@dataclass(frozen=True)
class Signed:
    """A signed event: its canonical text, which is sent and stored, and its identifiers."""

    text: bytes
    event_id: str
    trace_id: str
    digest: str

    def __str__(self) -> str:
        return f"event {self.event_id}"


class Unsigned:
    """A checked event without its signature. size is the size of the signed text in bytes."""

    __slots__ = ("_signer", "_parts", "event_id", "trace_id", "size")

    def __init__(self, signer: Signer, parts: tuple[bytes, bytes, bytes], event_id: str, trace_id: str) -> None:
        """parts are the canonical form, split where the two members of the signature are inserted."""
        self._signer = signer
        self._parts = parts
        self.event_id = event_id
        self.trace_id = trace_id
        self.size = sum(map(len, parts)) + _SIGNATURE_SIZE

    def sign(self) -> Signed:
        """Sign the event (form digest)."""
        before, between, behind = self._parts
        digest = event_digest(self._signer.key_id, before + between + behind)
        text = _TEXT % (before, between, self._signer.sign_bytes(digest).encode(), behind)
        return Signed(text, self.event_id, self.trace_id, digest.hex())


class Signer:
    """Completes and signs events of one agent. It is thread-safe."""

    def __init__(self, org: str, agent: str, key_id: str, key: str | bytes, convert: Convert | None = None) -> None:
        """key is the 32-byte Ed25519 seed, as bytes or in base64. convert is for values without a JSON form.

        Errors are NotAsked for a malformed name or key.
        """
        _need(UUID.fullmatch(org), "org (APS_ORG) must be a UUID")
        _need(AGENT.fullmatch(agent) and agent != "system", "agent (APS_AGENT) must match [A-Za-z0-9._-]{1,128}")
        _need(KEY.fullmatch(key_id), "key_id (APS_KEY_ID) must match [A-Za-z0-9._:#-]{1,256}")
        self.org = org
        self.agent = agent
        self.key_id = key_id
        self._convert = convert
        self._own_are_right = are_right({"key_id": key_id})
        self._private = Ed25519PrivateKey.from_private_bytes(parse_seed(key, "key"))
        self._gate = fork_gate()

    def __repr__(self) -> str:
        return f"Signer({self.agent} with {self.key_id})"

    __str__ = __repr__

    def __reduce__(self) -> Any:
        raise TypeError("a signer is not copied to elsewhere: it holds a private key")

    @property
    def public_key(self) -> bytes:
        """The public key, 32 bytes."""
        return self._private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)

    def complete(self, event: EventInput) -> dict[str, Any]:
        """Return the event with the members that it lacks: IDs, time, salt, and those of the agent.

        Given members are kept. Without a trace_id, the event is of the trace of its traceparent. Completing twice creates two events. Errors are Malformed.
        """
        return self._completed(self._given(event))

    def _completed(self, given: dict[str, Any]) -> dict[str, Any]:
        complete = {**self._defaults(), **given}
        if "traceparent" in given and "trace_id" not in given:
            complete["trace_id"] = trace_of(given["traceparent"]) or complete["trace_id"]
        return complete

    def _given(self, event: EventInput) -> dict[str, Any]:
        given = parse_object(event) if isinstance(event, (str, bytes)) else dict(event)
        for name, own in (("agent_id", self.agent), ("key_id", self.key_id)):
            if given.get(name, own) != own:
                raise Malformed(f"{name} is not the signer's")
        organization = given.get("organization_id", self.org)
        if not isinstance(organization, str) or organization.lower() != self.org.lower():
            raise Malformed("organization_id is not the signer's")
        return given

    def _defaults(self) -> dict[str, Any]:
        random = secrets.token_bytes(48)  # all at once, because each call is a system call
        return {
            "schema_version": 1,
            "organization_id": self.org,
            "event_id": "evt_" + random[:16].hex(),
            "trace_id": "trc_" + random[16:32].hex(),
            "agent_id": self.agent,
            "key_id": self.key_id,
            "emitted_at": now(),
            "actor_type": "agent",
            "actor_principal": self.agent,
            "policy_decision": "allow",
            "payload": {},
            "salt": urlsafe_b64encode(random[32:]).rstrip(b"=").decode(),
        }

    def sign(self, event: EventInput) -> Signed:
        """Complete and sign an event (form digest). Errors are Malformed, with the place of the value."""
        return self.prepare(event).sign()

    def prepare(self, event: EventInput) -> Unsigned:
        """Complete and check an event, to be signed later, possibly by another thread. Errors are those of sign."""
        given = self._given(event)
        try:
            return self._prepare(given)
        except Malformed as why:
            event_id = given.get("event_id")
            about(event_id if isinstance(event_id, str) else None, why)
            raise

    def _prepare(self, given: dict[str, Any]) -> Unsigned:
        if "sig_alg" in given or "sig_value_b64" in given:
            raise Malformed("an event to be signed must not have sig_alg or sig_value_b64")
        members = self._completed(given)
        payload = members["payload"]
        if not isinstance(payload, dict) and isinstance(payload, Mapping):
            raise Malformed("is a mapping of another kind: give a dict", "/payload")
        parts = _plain_parts(members) or _strict_parts(members, self._convert)
        if not self._own_are_right or not are_right(given):
            check_members(members)
            check_reserved(members)
        unsigned = Unsigned(self, parts, members["event_id"], members["trace_id"])
        if unsigned.size > MAX_ENVELOPE:
            raise Malformed(f"The envelope is larger than {MAX_ENVELOPE} bytes")
        return unsigned

    def sign_bytes(self, message: bytes) -> str:
        """Return the signature of a message in base64."""
        with self._gate:
            signature = self._private.sign(message)
        return b64encode(signature).decode()

    def consume_proof(self, approval_id: str, action_digest: str) -> str:
        """Return the proof with which an approval is consumed, in base64."""
        return self.sign_bytes(f"APS1-CONSUME\n{approval_id}\n{action_digest}\n".encode())


def read_signed(text: bytes) -> Signed:
    """Return the identifiers of an event that was signed before. Errors are Malformed."""
    members = parse_object(text)
    if not isinstance(members.get("sig_value_b64"), str):
        raise Malformed("the event is not signed")
    check_members(members)
    unsigned = {n: v for n, v in members.items() if n not in ("sig_alg", "sig_value_b64")}
    digest = event_digest(members["key_id"], canonical_bytes(unsigned))
    return Signed(canonical_bytes(members), members["event_id"], members["trace_id"], digest.hex())


def new_id(prefix: str) -> str:
    """Return a new random name."""
    return f"{prefix}_{secrets.token_hex(16)}"


def now() -> str:
    """Return the current time in the form of events, in UTC with milliseconds."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")[:-6] + "Z"


def _plain_parts(members: dict[str, Any]) -> tuple[bytes, bytes, bytes] | None:
    """Return the canonical form in the three parts between which the two members of the signature are inserted.

    Return None if members are not plain, or sort between those two. trace_id sorts after both.
    """
    text = plain_text(members, MAX_DEPTH)
    if text is None:
        return None
    names = sorted([name for name in members if name > "sig_alg"])
    if names[0] < "sig_value_b64":
        return None
    behind = ",".join([f"{encode_plain(name)}:{encode_plain(members[name])}" for name in names]) + "}"
    return text[: -len(behind)].encode(), b"", behind.encode()


def _strict_parts(members: dict[str, Any], convert: Convert | None) -> tuple[bytes, bytes, bytes]:
    """Return the same for all members. Errors are Malformed."""
    parts = canonical_members(members, convert)
    before = [f"{part}," for name, part in parts.items() if name < "sig_alg"]
    between = [f"{part}," for name, part in parts.items() if "sig_alg" < name < "sig_value_b64"]
    behind = [part for name, part in parts.items() if name > "sig_value_b64"]
    return f"{{{''.join(before)}".encode(), "".join(between).encode(), f"{','.join(behind)}}}".encode()


def parse_seed(key: str | bytes, name: str) -> bytes:
    """Return the 32-byte seed of a key. The error is NotAsked with the name of what has the key."""
    raw = base64_bytes(key.strip()) if isinstance(key, str) else key
    if raw is None or len(raw) != 32:
        raise NotAsked(f"{name} must be base64 of 32 bytes")
    return raw


def _need(holds: object, why: str) -> None:
    if not holds:
        raise NotAsked(why)
