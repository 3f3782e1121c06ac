"""Dicts that callers give, with their members (docs/api.md, docs/guides/runs.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Required, TypedDict


class Event(TypedDict, total=False):
    """An event to be signed. Members that are missing get defaults, except action_kind. Further members are kept."""

    action_kind: Required[str]
    payload: Mapping[str, Any]
    tool_name: str
    event_id: str
    trace_id: str
    traceparent: str
    parent_event_id: str
    actor_type: str
    actor_principal: str
    policy_decision: Literal["allow", "allow_with_obligation", "deny"]
    emitted_at: str
    salt: str
    schema_version: Literal[1]
    organization_id: str
    agent_id: str
    key_id: str


EventInput = Event | Mapping[str, Any] | str | bytes
"""An event to be signed: its members, or a JSON text of them."""


class Workflow(TypedDict, total=False):
    """The workflow of a run."""

    name: Required[str]
    version: str
    tool: str


class StepInput(TypedDict, total=False):
    """One attempt at a step of a run."""

    step_key: Required[str]
    status: Required[str]
    attempt: int
    kind: str
    tool_name: str
    payload: Mapping[str, Any]
    started_at: str
    ended_at: str
    approval_id: str


def given(**members: Any) -> dict[str, Any]:
    """Return the members that are not None."""
    return {name: value for name, value in members.items() if value is not None}
