"""CrewAI: hooks before and after each tool call.

The protocol is that of crewai.hooks: a hook before a call gets a context with tool_name and tool_input, and blocks the
call by returning False; a hook after it gets tool_result too. Tested against a stand-in for CrewAI, not against CrewAI.

    with guard_tools(client, name=lambda n: f"acme.payments.{n}"):  # all crews of this process
        crew.kickoff()

Without `with`, call the result to remove the hooks.

CrewAI only tells the model that a hook blocked the call; on_refused gets the reason. Register this hook last: a later
hook could still block a call that the ledger has begun, or change its input.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib import import_module
from types import TracebackType
from typing import Any

from .._client import Client
from .._errors import LedgerError
from .._guarding import Opened
from .._intents import Options
from ._calls import NameTool, output_text, read_arguments, same_name


def guard_tools(
    client: Client,
    *,
    name: NameTool = same_name,
    options: Options = Options(),
    on_refused: Callable[[str, LedgerError], None] | None = None,
) -> Registration:
    """Register the hooks until the result is called or left. on_refused gets the tool and the reason."""
    hooks: Any = import_module("crewai.hooks")
    under_way = UnderWay()

    def ask_ledger(context: Any) -> bool | None:
        try:
            arguments = read_arguments(context.tool_input)
            under_way.add(context, client.open_act(name(context.tool_name), arguments, options=options))
        except LedgerError as why:
            if on_refused is not None:
                on_refused(context.tool_name, why)
            return False
        return None

    def tell_ledger(context: Any) -> str | None:
        act = under_way.take(context)
        if act is not None:
            client.close_act(act, output_text(context.tool_result))
        return None

    def unregister() -> None:
        hooks.unregister_before_tool_call_hook(ask_ledger)
        hooks.unregister_after_tool_call_hook(tell_ledger)

    hooks.register_before_tool_call_hook(ask_ledger)
    hooks.register_after_tool_call_hook(tell_ledger)
    return Registration(unregister)


class Registration:
    """The hooks that are registered. Call it to remove them, or use it as a context manager."""

    def __init__(self, remove: Callable[[], None]) -> None:
        self._remove = remove

    def __call__(self) -> None:
        """Remove the hooks."""
        self._remove()

    def __enter__(self) -> Registration:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, why: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove()


class UnderWay:
    """Calls between their two hooks. CrewAI has no call IDs, so a call is found by its input object or an equal one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: list[tuple[str, Any, Opened]] = []

    def add(self, context: Any, act: Opened) -> None:
        """Record a call that begins."""
        with self._lock:
            self._calls.append((context.tool_name, context.tool_input, act))

    def take(self, context: Any) -> Opened | None:
        """Return the call that ended, or None if it was blocked."""
        with self._lock:
            same = [c for c in self._calls if c[0] == context.tool_name and c[1] is context.tool_input]
            equal = [c for c in self._calls if c[0] == context.tool_name and c[1] == context.tool_input]
            for call in (same or equal)[-1:]:
                self._calls = [c for c in self._calls if c is not call]
                return call[2]
        return None
