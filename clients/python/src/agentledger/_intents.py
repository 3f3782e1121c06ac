"""The events of a guarded act: its intent before, and its result after."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ._answers import Approval
from ._canonical import Convert, canonical_bytes
from ._errors import LedgerError, Malformed
from ._grammar import trace_of
from ._exact import TAGGED, exact_text, recorded_members
from ._journal import Entry
from ._signer import Signed, Signer, new_id
from ._strictjson import parse_object
from .verify._receipts import action_text


_OWN = ("phase", "call_id", "salt", "input_digest", TAGGED)
"""The members that an intent adds to the arguments."""


@dataclass(frozen=True)
class Options:
    """How acts of one tool are guarded.

    action_kind: of the intent. wait: maximum seconds to wait for approval, None for no maximum, 0 not to wait.
    digest: the arguments are sent as payload.input_digest with the members named in shown. record_output: the result
    event contains the output in addition to its digest. idempotent: an interrupted act may run again. on_ask is
    called with an approval that the act waits for; without it, the address of its page is logged. attempts: how often
    the intent is sent. traceparent: returns the caller's span in the form of W3C Trace Context, or None; called at
    each act. Both events have it as a signed member, and one that is malformed is left out. on_behalf_of: returns for
    whom the agent acts (issuer, subject and actors), or None; called at each act. Both events have it as a signed
    member. A key must not be used again for another subject. receipt: the permit has what a tool needs to sign a
    receipt without a grant.
    """

    action_kind: str = "tool_call"
    wait: float | None = None
    digest: bool = False
    shown: tuple[str, ...] = ()
    record_output: bool = False
    idempotent: bool = False
    principal: str | None = None
    on_ask: Callable[[Approval], None] | None = None
    attempts: int = 3
    convert: Convert | None = None
    traceparent: Callable[[], str | None] | None = None
    on_behalf_of: Callable[[], Mapping[str, Any] | None] | None = None
    receipt: bool = False


@dataclass(frozen=True)
class Permit:
    """The permission of an act: the intent's event.

    grant is the signed note of an approval, and approved the payload that it is for; both are None without approval.
    intent (organization, agent and event) and payload are for a tool that signs receipts. They are None with an
    approval, and without Options.receipt.
    """

    event_id: str
    call_id: str
    decision: str
    grant: str | None = None
    approved: str | None = None
    intent: str | None = None
    payload: str | None = None


def digest_of(
    tool: str,
    trace: str | None,
    payload: Mapping[str, Any],
    convert: Convert | None,
    subject: Mapping[str, Any] | None = None,
) -> str:
    """Return the digest of everything that a key must not be reused for."""
    parts: list[Any] = [tool, trace, dict(payload)]
    text = exact_text(parts if subject is None else [*parts, dict(subject)], convert)
    return _sha256(text)


def sign_intent(
    signer: Signer,
    tool: str,
    payload: Mapping[str, Any],
    o: Options,
    trace: str | None,
    subject: Mapping[str, Any] | None = None,
) -> tuple[Signed, str]:
    """Return the signed intent and its call_id."""
    for name in _OWN:
        if name in payload or name in o.shown:
            raise Malformed("is a member of the intent's own: give the argument another name", f"/{name}")
    call_id = new_id("call")
    shown = {n: payload[n] for n in o.shown if n in payload} if o.digest else payload
    members = recorded_members(shown, o.convert)
    if o.digest:
        members["input_digest"] = _sha256(exact_text(dict(payload), o.convert))
    members.update(phase="intent", call_id=call_id, salt=secrets.token_hex(16))
    event: dict[str, Any] = {"action_kind": o.action_kind, "tool_name": tool, "payload": members}
    event.update({"trace_id": trace} if trace else {}, **({"actor_principal": o.principal} if o.principal else {}))
    caller = o.traceparent() if o.traceparent else None
    event.update({"traceparent": caller} if trace_of(caller) else {})
    event.update({"on_behalf_of": dict(subject)} if subject is not None else {})
    text = canonical_bytes(event, o.convert)
    return signer.sign(text), call_id


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def intent_action(intent: Signed) -> bytes:
    """Return the text whose SHA-256 an approval of the intent has as action_digest."""
    return action_text(parse_object(intent.text)).encode()


def intent_name(intent: Signed) -> str:
    """Return organization, agent and event of an intent, as a tool reads them."""
    e = parse_object(intent.text)
    return f"{e['organization_id'].lower()} {e['agent_id']} {e['event_id']}"


def intent_payload(intent: Signed) -> str:
    """Return the payload of an intent in canonical form."""
    return canonical_bytes(parse_object(intent.text)["payload"]).decode()


@dataclass(frozen=True)
class Disclosed:
    """An output whose result event has further members."""

    output: Any
    members: dict[str, str]


def sign_result(
    signer: Signer,
    entry: Entry,
    spent: float,
    has_output: bool,
    o: Options,
    grant: str | None,
    members: Mapping[str, str] = MappingProxyType({}),
) -> Signed:
    """Return the signed event that states how an act ended. spent is in seconds, members are further ones."""
    intent = parse_object(entry.envelope)
    payload: dict[str, Any] = {
        **members,
        "phase": "result",
        "call_id": entry.call_id,
        "status": entry.status,
        "duration_ms": round(spent * 1000),
        "salt": secrets.token_hex(16),
    }
    if has_output:
        payload["output_digest"] = _sha256(exact_text(entry.output))
        payload.update(recorded_members({"output": entry.output}) if o.record_output else {})
    if entry.approval_id:
        payload["approval_id"] = entry.approval_id
    nonce = _nonce_of(grant)
    payload.update({"grant_nonce": nonce} if nonce else {})
    same = ("action_kind", "tool_name", "trace_id", "actor_principal", "traceparent", "on_behalf_of")
    event: dict[str, Any] = {n: intent[n] for n in same if n in intent}
    event.update(parent_event_id=entry.event_id, payload=payload)
    return signer.sign(event)


def _nonce_of(grant: str | None) -> str | None:
    """Return the nonce of a grant: the seventh line of its text."""
    lines = grant.split("\n") if grant else []
    return lines[6] if len(lines) > 9 else None


def _refuse_decimal(path: str, value: Any) -> Any:
    raise Malformed("is no JSON value that the journal keeps", path)


def plain(output: Any, convert: Convert | None) -> Any:
    """Return an output as JSON, or None if it has no such form: the act is done, so its output is not an error."""
    try:
        exact_text(output, _refuse_decimal)
        return output
    except LedgerError:
        pass
    if convert is None:
        return None
    try:
        return json.loads(canonical_bytes(output, convert))
    except Exception:
        return None


def known(output: Any, plain: Any) -> bool:
    """Return whether an output has a JSON form."""
    return plain is not None or output is None
