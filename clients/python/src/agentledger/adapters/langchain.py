"""LangChain 1.x: a middleware whose wrap_tool_call guards each tool call of create_agent.

The protocol is that of langchain.agents.middleware.AgentMiddleware: wrap_tool_call(request, handler) and its twin
awrap_tool_call, where request.tool_call has name, args and id. A refused call is answered by a ToolMessage with the
status error, so that the model can continue. Tested against a stand-in for LangChain, not against LangChain itself.

    agent = create_agent(model, tools=[refund], middleware=[guard_tools(client, name=lambda n: f"acme.payments.{n}")])

With a key the same call (thread and call ID, for example) is made once, even after a restart:

    guard_tools(client, key=lambda request: request.tool_call["id"])

With interrupt, of langgraph.types, a call that waits for approval interrupts the graph of the agent. A graph that is
resumed asks again, whatever value it is resumed with, and is interrupted again until approvers have voted:

    guard_tools(client, key=lambda request: request.tool_call["id"], interrupt=interrupt)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, TypedDict

from .._aio import AsyncClient
from .._client import Client
from .._errors import ApprovalRequired, LedgerError
from .._intents import Options
from ._calls import NameTool, output_text, read_arguments, refusal_words, same_name

KeyOf = Callable[[Any], str]


class WaitingCall(TypedDict):
    """The value of an interrupt: url is the page where approvers vote, and tool the name in the log."""

    approval_id: str
    url: str
    tool: str
    message: str


@dataclass
class _Call:
    """A tool call of the model: the arguments of Client.act, and the framework's answer."""

    tool: str
    payload: dict[str, Any]
    key: str | None
    answers: list[Any] = field(default_factory=list[Any])

    def keep(self, answer: Any) -> object:
        """Keep the framework's answer, and return its text for the ledger."""
        self.answers.append(answer)
        return output_text(getattr(answer, "content", answer))


def guard_tools(
    client: Client | AsyncClient,
    *,
    name: NameTool = same_name,
    key: KeyOf | None = None,
    options: Options = Options(),
    interrupt: Callable[[WaitingCall], object] | None = None,
) -> Any:
    """Return the middleware. A Client supports invoke and stream, an AsyncClient ainvoke and astream.

    interrupt requires a key, so that a resumed graph makes the same act.
    """
    base: Any = import_module("langchain.agents.middleware").AgentMiddleware
    ToolMessage: Any = import_module("langchain_core.messages").ToolMessage
    if interrupt is not None:
        if key is None:
            raise TypeError("interrupt requires a key")
        options = replace(options, wait=0.0)

    def read(request: Any) -> _Call:
        call = request.tool_call
        arguments = read_arguments(call.get("args"))
        return _Call(name(call["name"]), arguments, None if key is None else key(request))

    def message(request: Any, content: str, status: str) -> Any:
        call = request.tool_call
        return ToolMessage(content=content, tool_call_id=call["id"], name=call["name"], status=status)

    def reply(request: Any, call: _Call, output: object) -> Any:
        return call.answers[0] if call.answers else message(request, str(output), "success")

    def fail(request: Any, call: _Call | None, why: LedgerError) -> Any:
        """Return the message about a call that was not made, or None if the call is repeated in a resumed graph."""
        if call is None or interrupt is None or not isinstance(why, ApprovalRequired):
            return message(request, refusal_words(why), "error")
        approval_id = why.approval.approval_id
        url = client.approvals.page_url(approval_id)
        interrupt({"approval_id": approval_id, "url": url, "tool": call.tool, "message": str(why)})
        return None

    class GuardTools(base):  # type: ignore[misc]
        """Asks the ledger before each tool call, and states its result."""

        def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            if not isinstance(client, Client):
                raise TypeError("an AsyncClient guards ainvoke and astream only")
            while True:
                call = None
                try:
                    call = read(request)
                    made = call
                    output = client.act(
                        call.tool,
                        call.payload,
                        lambda permit: made.keep(handler(request)),
                        key=call.key,
                        options=options,
                    )
                    return reply(request, call, output)
                except LedgerError as why:
                    if (answer := fail(request, call, why)) is not None:
                        return answer

        async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            if not isinstance(client, AsyncClient):
                raise TypeError("a Client guards invoke and stream only")
            while True:
                call = None
                try:
                    call = read(request)
                    made = call

                    async def do(permit: object) -> object:
                        return made.keep(await handler(request))

                    output = await client.act(call.tool, call.payload, do, key=call.key, options=options)
                    return reply(request, call, output)
                except LedgerError as why:
                    if (answer := fail(request, call, why)) is not None:
                        return answer

    return GuardTools()
