"""Calls for events, decisions and approvals. Each is an operation: it yields requests and returns a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from ._answers import (
    FINAL,
    Approval,
    BadAnswer,
    Decision,
    Stored,
    read_approval,
    read_decision,
    read_object,
    read_stored,
)
from ._canonical import Convert, canonical_bytes
from ._errors import ApprovalRequired, Refused, Unreachable, about
from ._exact import recorded_members
from ._exchange import NDJSON, fetch, ingest_request, is_retryable, pause_after, refusal, subject_headers
from ._settings import Retry, Settings
from ._signer import Signed
from ._wire.effects import Answer, Operation, Pause

EVENTS = "/v1/ingest/events"
APPROVALS = "/v1/ingest/approvals"
Outcome = Stored | Refused | Unreachable
POLL_SECONDS = 25
CROWDED_PAUSE = 5.0
"""Seconds between two requests while the service cannot accept another waiting request."""


def send_event(s: Settings, event: Signed, retry: Retry, ask: bool = False) -> Operation[Stored]:
    """Store one event. ask requests the approval that the policy may require (X-Request-Approval)."""
    headers = {"Idempotency-Key": event.event_id, **({"X-Request-Approval": "1"} if ask else {})}
    try:
        headers |= subject_headers(s)
        answer = yield from fetch(ingest_request(s, "POST", EVENTS, event.text, headers=headers), retry)
        return read_stored(read_object(answer.body), event.event_id)
    except (Refused, Unreachable) as why:
        about(event.event_id, why)
        raise


def evaluate(
    s: Settings, tool: str, payload: Mapping[str, Any], more: Mapping[str, Any], convert: Convert | None
) -> Operation[Decision]:
    """Ask the policy. more contains further members: actor_type, action_kind, request_approval, on_behalf_of."""
    members = {**s.names, "tool_name": tool, "payload": recorded_members(payload, convert), **more}
    body = canonical_bytes(members, convert)
    headers = subject_headers(s) if "on_behalf_of" in more else {}
    answer = yield from fetch(ingest_request(s, "POST", "/v1/ingest/policy/evaluate", body, headers=headers), s.retry)
    return read_decision(read_object(answer.body))


def ask_approval(s: Settings, members: Mapping[str, Any], convert: Convert | None) -> Operation[Approval]:
    """Request approval, or find the open request with the same action, ingest key and trace."""
    payload = recorded_members(members["payload"], convert)
    body = canonical_bytes({**s.names, **members, "payload": payload}, convert)
    answer = yield from fetch(ingest_request(s, "POST", APPROVALS, body), s.retry)
    return read_approval(read_object(answer.body))


def get_approval(s: Settings, approval_id: str, wait: int = 0) -> Operation[Approval]:
    """Fetch the state of an approval; while it is pending, the service waits up to the given seconds."""
    path = f"{APPROVALS}/{quote(approval_id, safe='')}" + (f"?wait={wait}" if wait else "")
    request = ingest_request(s, "GET", path, timeout=s.timeout + wait)
    answer = yield from fetch(request, s.retry if not wait else Retry(1))
    return read_approval(read_object(answer.body), approval_id)


def approval_page(s: Settings, approval_id: str) -> str:
    """Return the address of the page where approvers vote, if the client's url is the service's public address."""
    return s.address.page(f"/console/approvals/{quote(approval_id, safe='')}")


def wait_approval(s: Settings, approval_id: str, clock: Any, deadline: float | None) -> Operation[Approval]:
    """Wait until an approval is no longer pending. The error is ApprovalRequired after the deadline.

    clock returns seconds; deadline is a time of that clock, or None for no deadline.
    """
    tried = 0
    while True:
        left = POLL_SECONDS if deadline is None else int(min(POLL_SECONDS, max(0.0, deadline - clock())))
        pause = 0.1
        try:
            approval = yield from get_approval(s, approval_id, left)
            tried = 0
        except (Refused, Unreachable) as why:
            if not is_retryable(why):
                raise
            tried += 1
            crowded = isinstance(why, Refused) and why.code == "overloaded"
            pause = CROWDED_PAUSE if crowded else pause_after(tried, why, s.retry)
            approval = None
        if approval is not None and approval.status != "pending":
            return approval
        if deadline is not None and clock() >= deadline:
            if approval is None:
                approval = yield from get_approval(s, approval_id)
            raise ApprovalRequired(approval)
        yield Pause(pause if deadline is None else min(pause, max(0.0, deadline - clock())))


def consume_approval(s: Settings, approval: Approval) -> Operation[str]:
    """Consume a granted approval with the agent's proof, and return the grant. A retry within five minutes is safe."""
    proof = s.require_signer().consume_proof(approval.approval_id, approval.action_digest)
    body = canonical_bytes({"action_digest": approval.action_digest, "proof_b64": proof})
    path = f"{APPROVALS}/{quote(approval.approval_id, safe='')}/consume"
    answer = yield from fetch(ingest_request(s, "POST", path, body), s.retry)
    grant = read_object(answer.body).get("grant")
    if not isinstance(grant, str) or not grant:
        raise BadAnswer("the answer has no grant")
    return grant


def cancel_approval(s: Settings, approval_id: str) -> Operation[None]:
    """Withdraw a request for approval."""
    path = f"{APPROVALS}/{quote(approval_id, safe='')}/cancel"
    yield from fetch(ingest_request(s, "POST", path, b"{}"), s.retry)


def is_final(approval: Approval) -> bool:
    """Return whether the state of an approval is final."""
    return approval.status in FINAL


def send_batch(s: Settings, events: Sequence[Signed]) -> Operation[list[Outcome]]:
    """Store events by one request, and return the outcome of each. Nothing is retried.

    A refused event does not prevent others from being stored. Errors are Refused and Unreachable, for the request as a
    whole. They are about no event, so they are never final.
    """
    body = b"".join(event.text + b"\n" for event in events)
    answer: Answer = yield from fetch(ingest_request(s, "POST", EVENTS + "/batch", body, NDJSON, subject_headers(s)), Retry(1))
    texts = answer.body.splitlines()
    if len(texts) != len(events):
        raise BadAnswer(f"the answer has {len(texts)} lines for {len(events)} events")
    outcomes = [_outcome(answer, text, event.event_id) for text, event in zip(texts, events, strict=True)]
    if any(isinstance(outcome, BadAnswer) for outcome in outcomes):
        # A line with an error names no event. If another line is not about its event, they may have changed places.
        for outcome in outcomes:
            if isinstance(outcome, Refused):
                outcome.proved = False
    return outcomes


def _outcome(answer: Answer, text: bytes, event_id: str) -> Outcome:
    try:
        members = read_object(text)
        status = members.get("status_code")
        if status in (200, 201):
            return read_stored(members, event_id)
        if not isinstance(status, int):
            raise BadAnswer("a line has no status_code")
    except BadAnswer as why:
        return about(event_id, why)
    return about(event_id, refusal(answer, status, members))


def undelivered(why: Refused | Unreachable, event_id: str) -> Refused | Unreachable:
    """Return the outcome of one event of a request that failed as a whole."""
    if isinstance(why, Refused):
        why = Refused(why.status, why.message, why.code, why.request_id, why.retry_after)
    else:
        why = type(why)(str(why))
    return about(event_id, why)
