"""Checked but not run: the public types accept correct uses and reject wrong ones."""

from __future__ import annotations

from collections.abc import Coroutine
from pathlib import Path
from typing import Any, assert_type

from agentledger import AsyncClient, Client, Event, Journal, Permit, Run, Signed, Stored, Unreachable, Workflow, verify


def blocking(client: Client) -> None:
    event: Event = {"action_kind": "tool_call", "payload": {"amount_usd": 12.5}}
    assert_type(client.send(event), Stored)
    assert_type(client.send({"action_kind": "tool_call", "own_member": 1}), Stored)
    assert_type(client.queue('{"action_kind":"tool_call"}'), Signed)
    misspelled: Event = {"action_kind": "tool_call", "payloads": {}}  # type: ignore[typeddict-item]
    client.send(misspelled)
    client.evaluate("acme.x", {}, action_kind="tool_call")
    client.evaluate("acme.x", {}, actionkind="tool_call")  # type: ignore[call-arg]
    assert_type(client.act("acme.x", {}, lambda permit: permit.event_id), str)

    @client.guard("acme.payments.refund", key=lambda arguments: str(arguments["order"]))
    def refund(order: str, permit: Permit | None = None) -> int:
        return len(order)

    assert_type(refund("A-1"), int)
    refund(1)  # type: ignore[arg-type]
    workflow: Workflow = {"name": "invoices", "version": "3"}
    run = client.runs.start(workflow, planned_steps=3)
    assert_type(run, Run)
    client.runs.step(run.run_id, "pay", "started", attempt=2, attempts=2)  # type: ignore[call-arg]
    client.runs.complete(run.run_id, "done")  # type: ignore[arg-type]
    verify.pack(Path("pack.zip"), key="acme+00000000+x")


async def tasks(client: AsyncClient) -> None:
    async def send(permit: Permit) -> bytes:
        return b"sent"

    assert_type(await client.act("acme.mail.send", {}, send), bytes)

    @client.guard("acme.payments.refund")
    def refund(order: str) -> int:
        return len(order)

    @client.guard("acme.payments.pay")
    async def pay(order: str) -> int:
        return len(order)

    coroutine: Coroutine[Any, Any, int] = refund("A-1")
    assert_type(await coroutine + await pay("A-1"), int)
    await pay(1)  # type: ignore[arg-type]


def settings(folder: Path) -> None:
    with Journal(folder / "journal") as journal, Client(queue_file=folder / "queue", journal=journal) as client:
        try:
            client.send({"action_kind": "tool_call"})
        except Unreachable as why:
            assert_type(why.event_id, str | None)
