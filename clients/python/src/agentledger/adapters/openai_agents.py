"""OpenAI Agents SDK: tool guardrails that ask the ledger before a function tool runs, and state its result after.

The protocol is that of agents.tool_guardrails: an input guardrail gets data.context with tool_name, tool_arguments
(JSON text) and tool_call_id, and answers allow or reject_content; an output guardrail gets data.output too. Tested
against a stand-in for the SDK, not against the SDK itself.

    before, after = guard_tool(client, name=lambda n: f"acme.payments.{n}")

    @function_tool(tool_input_guardrails=[before], tool_output_guardrails=[after])
    def refund(order: str) -> str: ...

Put both on the tool, and `before` last: a later guardrail could still refuse a call that the ledger has begun.
Such a call has no result until AsyncClient.resume states it as unknown.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .._aio import AsyncClient
from .._errors import LedgerError
from .._guarding import Opened
from .._intents import Options
from ._calls import NameTool, output_text, read_arguments, refusal_words, same_name


def guard_tool(client: AsyncClient, *, name: NameTool = same_name, options: Options = Options()) -> tuple[Any, Any]:
    """Return the input guardrail and the output guardrail of function tools. One pair can serve many tools."""
    agents: Any = import_module("agents")
    opened: dict[str, Opened] = {}

    async def ask_ledger(data: Any) -> Any:
        call = data.context
        try:
            arguments = read_arguments(call.tool_arguments)
            opened[call.tool_call_id] = await client.open_act(name(call.tool_name), arguments, options=options)
        except LedgerError as why:
            return agents.ToolGuardrailFunctionOutput.reject_content(refusal_words(why))
        return agents.ToolGuardrailFunctionOutput.allow()

    async def tell_ledger(data: Any) -> Any:
        act = opened.pop(data.context.tool_call_id, None)
        if act is not None:
            await client.close_act(act, output_text(data.output))
        return agents.ToolGuardrailFunctionOutput.allow()

    return agents.tool_input_guardrail(ask_ledger), agents.tool_output_guardrail(tell_ledger)
