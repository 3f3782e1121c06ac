"""Runs of tools without a key: the service signs their steps (docs/guides/runs.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from ._answers import BadAnswer, read_object, read_value
from ._canonical import Convert, canonical_bytes
from ._exchange import fetch, ingest_request
from ._grammar import DECISIONS
from ._settings import Settings
from ._shapes import is_list, is_object
from ._signer import new_id
from ._wire.effects import Operation

RUNS = "/v1/ingest/workflows/runs"


@dataclass(frozen=True)
class Run:
    """A run at the service. resumed means that it existed before."""

    run_id: str
    trace_id: str
    agent_id: str
    status: str
    resumed: bool


@dataclass(frozen=True)
class Step:
    """The service's answer to a step, which is in the ledger. A tool proceeds only if may_go_on is true."""

    decision: str
    policy_id: str | None
    rule_id: str | None
    reason: str | None
    event_id: str
    approval: Mapping[str, Any] | None

    @property
    def may_go_on(self) -> bool:
        """Whether the policy allows the step, or the step consumed an approval."""
        consumed = self.approval is not None and self.approval.get("status") == "consumed"
        return self.decision == "allow" or self.decision == "allow_with_obligation" and consumed


def start_run(
    s: Settings, workflow: Mapping[str, Any], external_run_id: str | None, more: Mapping[str, Any], c: Convert | None
) -> Operation[Run]:
    """Start a run, or find the one with the same external_run_id."""
    members = {**more, "workflow": workflow, "external_run_id": external_run_id or new_id("run")}
    answer = yield from fetch(ingest_request(s, "POST", RUNS, canonical_bytes(members, c)), s.retry)
    v = read_object(answer.body)
    event = v.get("event")
    texts = [v.get(n) for n in ("run_id", "trace_id", "agent_id", "status")]
    if not all(isinstance(t, str) and t for t in texts) or not is_object(event):
        raise BadAnswer("the answer has no run")
    return Run(v["run_id"], v["trace_id"], v["agent_id"], v["status"], event.get("status") == "replayed")


def report_steps(
    s: Settings, run_id: str, steps: Sequence[Mapping[str, Any]], c: Convert | None
) -> Operation[list[Step]]:
    """Report at most 50 steps: either all are stored or none. A step has at least step_key and status."""
    body = canonical_bytes([dict(x) for x in steps], c)
    answer = yield from fetch(ingest_request(s, "POST", f"{_path(run_id)}/steps", body), s.retry)
    values = read_value(answer.body)
    if not is_list(values) or len(values) != len(steps):
        raise BadAnswer("the answer has another number of steps")
    return [_read_step(v) for v in values]


def _read_step(v: Any) -> Step:
    event = v.get("event") if is_object(v) else None
    if not is_object(event) or v.get("decision") not in DECISIONS or not isinstance(event.get("event_id"), str):
        raise BadAnswer("the answer has no decision")
    approval = v.get("approval")
    text = {n: v[n] if isinstance(v.get(n), str) and v[n] else None for n in ("policy_id", "rule_id", "reason")}
    kept = approval if is_object(approval) else None
    return Step(v["decision"], text["policy_id"], text["rule_id"], text["reason"], event["event_id"], kept)


def complete_run(
    s: Settings, run_id: str, status: str, more: Mapping[str, Any], c: Convert | None
) -> Operation[dict[str, Any]]:
    """End a run as succeeded, failed or aborted, and return its summary."""
    body = canonical_bytes({**more, "status": status}, c)
    answer = yield from fetch(ingest_request(s, "POST", f"{_path(run_id)}/complete", body), s.retry)
    v = read_object(answer.body)
    if not isinstance(v.get("status"), str):
        raise BadAnswer("the answer has no status")
    return v


def _path(run_id: str) -> str:
    return f"{RUNS}/{quote(run_id, safe='')}"
