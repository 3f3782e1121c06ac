"""Approvals, runs and public logs of the asyncio client."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar

from . import _calls as calls
from ._answers import Approval
from ._canonical import Convert
from ._inputs import StepInput, Workflow, given
from ._publiclog import (
    Followed,
    Head,
    KnownLog,
    fetch_bundle,
    fetch_checkpoint,
    fetch_consistency,
    fetch_head,
    fetch_inclusion,
    follow,
)
from ._runs import Run, Step, complete_run, report_steps, start_run
from ._settings import Settings
from .verify._logkeys import LogKey
from .verify._note import Checkpoint
from .verify._outcome import BundleResult
from .verify._trust import read_trust
from ._wire.effects import Operation

T = TypeVar("T")


class Caller(Protocol):
    """A client: its settings, and how it runs an operation."""

    settings: Settings
    convert: Convert | None

    async def run(self, operation: Operation[T]) -> T:
        """Run an operation to its end."""
        ...


class AsyncApprovals:
    """Requests for approval."""

    def __init__(self, client: Caller) -> None:
        self._client = client

    async def ask(
        self,
        tool: str,
        payload: Mapping[str, Any] | None = None,
        *,
        trace_id: str | None = None,
        actor_principal: str | None = None,
        callback_url: str | None = None,
    ) -> Approval:
        """Request approval, or find the open request."""
        more = given(trace_id=trace_id, actor_principal=actor_principal, callback_url=callback_url)
        members = {"tool_name": tool, "payload": dict(payload or {}), **more}
        c = self._client
        return await c.run(calls.ask_approval(c.settings, members, c.convert))

    async def get(self, approval_id: str) -> Approval:
        """Return the state of an approval."""
        return await self._client.run(calls.get_approval(self._client.settings, approval_id))

    async def wait(self, approval_id: str, timeout: float | None = None) -> Approval:
        """Wait at most the given seconds until an approval is decided. The error is ApprovalRequired after that."""
        deadline = None if timeout is None else time.monotonic() + timeout
        operation = calls.wait_approval(self._client.settings, approval_id, time.monotonic, deadline)
        return await self._client.run(operation)

    async def consume(self, approval: Approval) -> str:
        """Consume a granted approval, and return the grant, a signed note."""
        return await self._client.run(calls.consume_approval(self._client.settings, approval))

    def page_url(self, approval_id: str) -> str:
        """Return the address of the page where approvers vote, if the client's url is the service's public address."""
        return calls.approval_page(self._client.settings, approval_id)

    async def cancel(self, approval_id: str) -> None:
        """Withdraw a request for approval."""
        await self._client.run(calls.cancel_approval(self._client.settings, approval_id))


class AsyncRuns:
    """Runs of tools without a signing key: the token's scope workflows is enough."""

    def __init__(self, client: Caller) -> None:
        self._client = client

    async def start(
        self,
        workflow: str | Workflow,
        external_run_id: str | None = None,
        *,
        agent_id: str | None = None,
        trace_id: str | None = None,
        planned_steps: int | None = None,
        input_digest: str | None = None,
    ) -> Run:
        """Start a run, or find it by external_run_id."""
        c = self._client
        named: Mapping[str, Any] = {"name": workflow} if isinstance(workflow, str) else workflow
        more = given(agent_id=agent_id, trace_id=trace_id, planned_steps=planned_steps, input_digest=input_digest)
        return await c.run(start_run(c.settings, named, external_run_id, more, c.convert))

    async def step(
        self,
        run_id: str,
        step_key: str,
        status: str,
        *,
        attempt: int | None = None,
        kind: str | None = None,
        tool_name: str | None = None,
        payload: Mapping[str, Any] | None = None,
        started_at: str | None = None,
        ended_at: str | None = None,
        approval_id: str | None = None,
    ) -> Step:
        """Report a step."""
        more = given(attempt=attempt, kind=kind, tool_name=tool_name, payload=payload, started_at=started_at)
        more |= given(ended_at=ended_at, approval_id=approval_id)
        c = self._client
        members = {"step_key": step_key, "status": status, **more}
        return (await c.run(report_steps(c.settings, run_id, [members], c.convert)))[0]

    async def steps(self, run_id: str, steps: Sequence[StepInput | Mapping[str, Any]]) -> list[Step]:
        """Report at most 50 steps: either all of them are stored or none."""
        c = self._client
        return await c.run(report_steps(c.settings, run_id, steps, c.convert))

    async def complete(
        self,
        run_id: str,
        status: Literal["succeeded", "failed", "aborted"],
        *,
        output_digest: str | None = None,
        error: str | None = None,
    ) -> dict[str, Any]:
        """End a run, and return its summary."""
        c = self._client
        more = given(output_digest=output_digest, error=error)
        return await c.run(complete_run(c.settings, run_id, status, more, c.convert))


class AsyncLog:
    """The public log of one organization. It returns only data that was checked under the pinned key."""

    def __init__(self, client: Caller, slug: str, key: str) -> None:
        self._client = client
        self._pinned = KnownLog(slug, (LogKey(read_trust(key).keys[0], 0, None),))
        self._log = self._pinned

    async def follow(self, memory: Mapping[str, Any] | None = None) -> Followed:
        """Return the latest head, which must extend the tree of a memory, and the memory for the next visit.

        Without a memory it is a first visit. If an unknown key signed the head, it is accepted if an entry of the log
        states it under a known key, in a tree of the same history; str() of an element of new_keys names both keys. The
        other methods accept it from then on, and the previous key only for smaller trees. After an error keep the old
        memory. Store the memory where nobody else can write.
        """
        operation = follow(self._client.settings, self._pinned, memory or {})
        followed, self._log = await self._client.run(operation)
        return followed

    async def head(self) -> Head:
        """Return the latest head. Errors of all methods here are Unproved, Refused and Unreachable."""
        return await self._client.run(fetch_head(self._client.settings, self._log))

    async def checkpoint(self) -> Head:
        """Return the latest checkpoint and its note."""
        return await self._client.run(fetch_checkpoint(self._client.settings, self._log))

    async def inclusion(self, index: int, leaf: bytes, at: Checkpoint) -> list[bytes]:
        """Return the checked proof that a leaf hash is at an index of a checkpoint's tree."""
        operation = fetch_inclusion(self._client.settings, self._log, index, leaf, at)
        return await self._client.run(operation)

    async def consistency(self, old: Checkpoint, new: Checkpoint) -> list[bytes]:
        """Return the checked proof that one tree extends an older one. Unproved is evidence of a fork."""
        operation = fetch_consistency(self._client.settings, self._log, old, new)
        return await self._client.run(operation)

    async def bundle(self, event_id: str) -> BundleResult:
        """Fetch and check the bundle of an event. Check the outcome of the result."""
        operation = fetch_bundle(self._client.settings, self._log, event_id, self._log.trust)
        return await self._client.run(operation)
