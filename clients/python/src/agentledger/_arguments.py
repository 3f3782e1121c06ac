"""The arguments of a guarded function, as the payload that policies see."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ._intents import Permit

PERMIT = "permit"
"""A parameter of this name gets the Permit and is no argument."""

KeyOf = Callable[[Mapping[str, Any]], str]
"""Returns the key of an act from its arguments. The same key is the same act, even after a restart."""


class Bound:
    """A call of a function: its arguments by name, and the call itself once it is permitted."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Bind the arguments. Errors are TypeError, as for a call."""
        signature = inspect.signature(function)
        self._function = function
        self._wants_permit = PERMIT in signature.parameters
        given = dict(kwargs)
        if self._wants_permit:
            given[PERMIT] = None
        self._bound = signature.bind(*args, **given)
        self._bound.apply_defaults()

    @property
    def payload(self) -> dict[str, Any]:
        """The arguments by name. Positional extras are a list, keyword extras separate members."""
        members: dict[str, Any] = {}
        for name, value in self._bound.arguments.items():
            kind = self._bound.signature.parameters[name].kind
            if name == PERMIT or name == "self":
                continue
            if kind is inspect.Parameter.VAR_KEYWORD:
                members.update(value)
            elif kind is not inspect.Parameter.VAR_POSITIONAL:
                members[name] = value
            elif value:
                members[name] = list(value)
        return members

    def call(self, permit: Permit) -> Any:
        """Call the function. A coroutine function gives its coroutine."""
        if self._wants_permit:
            self._bound.arguments[PERMIT] = permit
        return self._function(*self._bound.args, **self._bound.kwargs)
