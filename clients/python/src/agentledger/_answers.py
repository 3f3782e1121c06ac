"""Answers of the service, parsed and checked. An answer of another form is BadAnswer, and never counts as approval."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from ._errors import Unreachable
from ._grammar import DECISIONS
from ._shapes import is_list, is_object

FINAL = ("consumed", "denied", "expired", "cancelled", "revoked", "invalidated")
STATUSES = ("pending", "approved", *FINAL)


class BadAnswer(Unreachable):
    """The service answered 2xx with a body that is malformed or does not match the request."""


@dataclass(frozen=True)
class Approval:
    """The state of a request for approval. Times are UTC texts."""

    approval_id: str
    status: str
    action_digest: str
    expires_at: str | None = None
    quorum: int = 0
    approvals: int = 0
    comment: str | None = None
    reason_code: str | None = None


@dataclass(frozen=True)
class Decision:
    """The decision of the policy: allow, deny or allow_with_obligation, by which rule, and why."""

    decision: str
    policy_id: str | None = None
    rule_id: str | None = None
    reason: str | None = None
    engine: str | None = None
    policy_version: int | None = None
    policy_digest: str | None = None
    input_digest: str | None = None
    obligations: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    approval: Approval | None = None


@dataclass(frozen=True)
class Stored:
    """The answer for an event that is stored. status is created or replayed.

    policy_decision is the effective decision if the service returned it, otherwise None.
    """

    event_id: str
    status: str
    sequence_num: int | None = None
    event_hash: str | None = None
    chain_valid: bool | None = None
    policy_decision: str | None = None
    policy_id: str | None = None
    rule_id: str | None = None
    reason: str | None = None
    approval: Approval | None = None

    @property
    def decision(self) -> Decision:
        """The decision on the event."""
        return Decision(
            self.policy_decision or "allow", self.policy_id, self.rule_id, self.reason, approval=self.approval
        )


def read_object(body: bytes) -> dict[str, Any]:
    """Return an answer that must be a JSON object. Errors are BadAnswer."""
    value = read_value(body)
    if not is_object(value):
        raise BadAnswer("the answer is no JSON object")
    return value


def read_value(body: bytes) -> Any:
    """Return an answer in JSON. Errors are BadAnswer."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise BadAnswer("the answer is no JSON") from None


def read_stored(v: dict[str, Any], event_id: str) -> Stored:
    """Return the answer for one event. Errors are BadAnswer, also for an answer about another event."""
    status, decision, approval = v.get("status"), v.get("policy_decision") or None, v.get("approval")
    _need(v.get("event_id") == event_id, "names another event")
    _need(status in ("created", "replayed"), "is neither created nor replayed")
    _need(decision is None or decision in DECISIONS, "has an unknown decision")
    if status == "created":
        number = v.get("sequence_num")
        _need(_is_positive(number) and isinstance(v.get("chain_valid"), bool), "has no sequence_num or chain_valid")
        _need(isinstance(v.get("event_hash"), str), "has no event_hash")
    return Stored(
        event_id=event_id,
        status=str(status),
        sequence_num=v.get("sequence_num"),
        event_hash=v.get("event_hash"),
        chain_valid=v.get("chain_valid"),
        policy_decision=decision,
        policy_id=_text(v, "policy_id"),
        rule_id=_text(v, "rule_id"),
        reason=_text(v, "reason"),
        approval=None if approval is None else read_approval(approval),
    )


def read_decision(v: dict[str, Any]) -> Decision:
    """Return the answer to an evaluation. Errors are BadAnswer."""
    _need(v.get("decision") in DECISIONS, "has no decision")
    obligations, approval = v.get("obligations", []), v.get("approval")
    _need(is_list(obligations), "has no list of obligations")
    return Decision(
        decision=v["decision"],
        policy_id=_text(v, "policy_id"),
        rule_id=_text(v, "rule_id"),
        reason=_text(v, "reason"),
        engine=_text(v, "engine"),
        policy_version=v.get("policy_version"),
        policy_digest=v.get("policy_digest"),
        input_digest=v.get("input_digest"),
        obligations=obligations,
        approval=None if approval is None else read_approval(approval),
    )


def read_approval(v: Any, approval_id: str | None = None) -> Approval:
    """Return the state of an approval. Errors are BadAnswer, also for an approval other than the requested one."""
    _need(is_object(v), "has no approval")
    name, status, digest = v.get("approval_id"), v.get("status"), v.get("action_digest")
    _need(isinstance(name, str) and name != "" and isinstance(digest, str), "has no approval")
    _need(approval_id in (None, name), "names another approval")
    _need(status in STATUSES, "has an unknown status")
    comment, code = v.get("comment"), v.get("reason_code")
    _need(isinstance(comment, str | None) and isinstance(code, str | None), "has no text for a comment")
    return Approval(
        approval_id=name,
        status=status,
        action_digest=digest,
        expires_at=_text(v, "expires_at"),
        quorum=v.get("quorum", 0),
        approvals=v.get("approvals", 0),
        comment=comment,
        reason_code=code,
    )


def _text(v: dict[str, Any], name: str) -> str | None:
    value = v.get(name)
    return value if isinstance(value, str) and value else None


def _is_positive(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _need(holds: bool, why: str) -> None:
    if not holds:
        raise BadAnswer(f"the answer {why}")
