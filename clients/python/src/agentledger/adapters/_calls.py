"""Code shared by the adapters: names of tools, and messages for the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .._errors import LedgerError, Malformed
from .._shapes import is_object
from .._strictjson import parse_exact

_JSON = (str, int, float, bool, dict, list, type(None))
NameTool = Callable[[str], str]
"""Returns the ledger's tool name (acme.payments.refund) of a framework's tool (refund)."""


def same_name(name: str) -> str:
    """Return the framework's name of a tool unchanged."""
    return name


def refusal_words(why: LedgerError) -> str:
    """Return the message to the model about a call that did not run: the policy's reason and the approvers' comment."""
    return f"The call was not made: {why}"


def read_arguments(text: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a call's arguments, which some frameworks give as JSON text. Numbers keep their digits.

    Errors are Malformed.
    """
    if text is None or text == "":
        return {}
    value: Any = parse_exact(text) if isinstance(text, str) else dict(text)
    if not is_object(value):
        raise Malformed("the arguments are no object")
    return value


def output_text(output: object) -> object:
    """Return a tool's output for the ledger: JSON values unchanged, everything else as text."""
    return output if issubclass(type(output), _JSON) else str(output)
