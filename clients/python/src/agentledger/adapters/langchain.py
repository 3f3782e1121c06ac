"""LangChain 1.x: a middleware whose wrap_tool_call guards each tool call of create_agent.

The protocol is that of langchain.agents.middleware.AgentMiddleware: wrap_tool_call(request, handler) and its twin
awrap_tool_call, where request.tool_call has name, args and id. A refused call is answered by a ToolMessage with the
status error, so that the model can continue. Tested against a stand-in for LangChain, not against LangChain itself.

    agent = create_agent(model, tools=[refund], middleware=[guard_tools(client, name=lambda n: f"acme.payments.{n}")])

With a key the same call (thread and call ID, for example) is made once, even after a restart:

    guard_tools(client, key=lambda request: request.tool_call["id"])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._aio import AsyncClient
from .._client import Client
from .._errors import LedgerError
from .._intents import Options
from ._calls import NameTool, output_text, read_arguments, refusal_words, same_name

KeyOf = Callable[[Any], str]


def guard_tools(
    client: Client | AsyncClient, *, name: NameTool = same_name, key: KeyOf | None = None, options: Options = Options()
) -> Any:
    """Return the middleware. A Client supports invoke and stream, an AsyncClient ainvoke and astream."""
    from langchain.agents.middleware import AgentMiddleware
    from langchain_core.messages import ToolMessage

    def message(request: Any, content: str, status: str) -> Any:
        call = request.tool_call
        return ToolMessage(content=content, tool_call_id=call["id"], name=call["name"], status=status)

    def question(request: Any) -> dict[str, Any]:
        return {
            "tool": name(request.tool_call["name"]),
            "payload": read_arguments(request.tool_call.get("args")),
            "key": None if key is None else key(request),
            "options": options,
        }

    class GuardTools(AgentMiddleware):  # type: ignore[misc]
        """Asks the ledger before each tool call, and states its result."""

        def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            if not isinstance(client, Client):
                raise TypeError("an AsyncClient guards ainvoke and astream only")
            answers: list[Any] = []
            try:
                text = client.act(do=lambda permit: keep(answers, handler(request)), **question(request))
            except LedgerError as why:
                return message(request, refusal_words(why), "error")
            return answers[0] if answers else message(request, str(text), "success")

        async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            if not isinstance(client, AsyncClient):
                raise TypeError("a Client guards invoke and stream only")
            answers: list[Any] = []

            async def do(permit: Any) -> Any:
                return keep(answers, await handler(request))

            try:
                text = await client.act(do=do, **question(request))
            except LedgerError as why:
                return message(request, refusal_words(why), "error")
            return answers[0] if answers else message(request, str(text), "success")

    return GuardTools()


def keep(answers: list[Any], answer: Any) -> Any:
    """Keep the framework's answer, and return its text for the ledger."""
    answers.append(answer)
    return output_text(getattr(answer, "content", answer))
