"""The rules for the members of an event (docs/api.md, POST /v1/ingest/events), with the service's messages."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ._errors import Malformed

ID = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._:-]{1,128}", re.ASCII)
AGENT = re.compile(r"[A-Za-z0-9._-]{1,128}", re.ASCII)
KEY = re.compile(r"[A-Za-z0-9._:#-]{1,256}", re.ASCII)
KIND = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)
TOOL = re.compile(r"(?=.{1,256}\Z)[A-Za-z0-9_:/-]+(\.[A-Za-z0-9_:/-]+)*", re.ASCII)
UUID = re.compile(r"[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}", re.ASCII)
MOMENT = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]{1,9})?Z", re.ASCII)
INSTANT = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})\.[0-9]{3}Z", re.ASCII)
_TRACEPARENT = re.compile(
    r"(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?", re.ASCII | re.DOTALL
)
DECISIONS = ("allow", "allow_with_obligation", "deny")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
"""Unicode's category Cc."""
_REQUIRED = (
    "schema_version",
    "organization_id",
    "event_id",
    "trace_id",
    "agent_id",
    "key_id",
    "actor_principal",
    "emitted_at",
    "actor_type",
    "action_kind",
    "policy_decision",
    "payload",
)

_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def trace_of(traceparent: Any) -> str | None:
    """Return the trace of a traceparent, or None for one that W3C Trace Context says must be ignored."""
    m = _TRACEPARENT.fullmatch(traceparent) if isinstance(traceparent, str) and len(traceparent) <= 512 else None
    return None if m is None or m[1] == "00" and m[3] is not None else m[2]


def is_time(text: Any, form: re.Pattern[str] = MOMENT) -> bool:
    """Return whether a value is a time of that form, on a day that there is (year 0000 is a leap year)."""
    match = form.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return False
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    if not 1 <= month <= 12:
        return False
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 1 <= day <= _DAYS[month - 1] + leap and hour < 24 and minute < 60 and second < 60


def is_principal(text: Any) -> bool:
    """Return whether a value can be actor_principal: 1 to 256 code points without control characters."""
    return isinstance(text, str) and 1 <= len(text) <= 256 and _CONTROL.search(text) is None


def _has_form(form: re.Pattern[str]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and form.fullmatch(value) is not None


_ID_WORDS = "must match [A-Za-z0-9._:-]{1,128} and not be . or .."
_RULES: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("organization_id", _has_form(UUID), "organization_id must be a UUID"),
    ("schema_version", lambda v: bool(v == 1) and not isinstance(v, bool), "schema_version must be the number 1"),
    ("event_id", _has_form(ID), f"event_id {_ID_WORDS}"),
    ("trace_id", _has_form(ID), f"trace_id {_ID_WORDS}"),
    ("agent_id", _has_form(AGENT), "agent_id must match [A-Za-z0-9._-]{1,128}"),
    ("key_id", _has_form(KEY), "key_id must match [A-Za-z0-9._:#-]{1,256}"),
    ("actor_type", _has_form(KIND), "actor_type must match [a-z][a-z0-9_]{0,63}"),
    ("action_kind", _has_form(KIND), "action_kind must match [a-z][a-z0-9_]{0,63}"),
    (
        "actor_principal",
        is_principal,
        "actor_principal must be a string of 1 to 256 characters without control characters",
    ),
    (
        "tool_name",
        _has_form(TOOL),
        "tool_name must be segments of [A-Za-z0-9_:/-]+ with dots between them, at most 256 characters",
    ),
    ("payload", lambda v: isinstance(v, dict), "payload must be an object"),
    ("emitted_at", is_time, "emitted_at must be a UTC time like 2026-01-31T12:00:00.000Z"),
    (
        "policy_decision",
        lambda v: v in DECISIONS,
        "policy_decision must be allow, deny or allow_with_obligation",
    ),
)
"""Member, rule and message, in the order in which errors are reported."""

_RESERVED: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("key_id", ("system_", "bridge_"), "A key_id that begins with system_ or bridge_ is reserved for the server"),
    ("action_kind", ("ledger_",), "An action_kind that begins with ledger_ is reserved for the server"),
    ("event_id", ("ledger_", "stp_"), "An event_id that begins with ledger_ or stp_ is reserved for the server"),
)
_RULE_OF = {name: rule for name, rule, _ in _RULES}
_RESERVED_OF = {name: beginnings for name, beginnings, _ in _RESERVED}


def check_members(event: dict[str, Any]) -> None:
    """Check the members of an event, except the signature. Errors are Malformed, in the service's words."""
    for name in _REQUIRED:
        if name not in event:
            raise Malformed(f"Missing {name}")
    for name, rule, words in _RULES:
        if name in event and not rule(event[name]):
            raise Malformed(words)


def check_reserved(event: dict[str, Any]) -> None:
    """Check that no name of an event is reserved for the server. Errors are Malformed."""
    if event["agent_id"] == "system":
        raise Malformed("agent_id system is reserved for the server")
    for name, beginnings, words in _RESERVED:
        if event[name].startswith(beginnings):
            raise Malformed(words)


def are_right(members: dict[str, Any]) -> bool:
    """Return whether check_members and check_reserved accept these members, except for the agent's names.

    It costs less, because it checks only the given members and does not return the reason.
    """
    for name, value in members.items():
        rule = _RULE_OF.get(name)
        if rule is not None and not rule(value):
            return False
        beginnings = _RESERVED_OF.get(name)
        if beginnings is not None and value.startswith(beginnings):
            return False
    return True
