"""The rules for the members of an event (docs/api.md, POST /v1/ingest/events), with the service's messages."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from .errors import Malformed

ID = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._:-]{1,128}", re.ASCII)
AGENT = re.compile(r"[A-Za-z0-9._-]{1,128}", re.ASCII)
KEY = re.compile(r"[A-Za-z0-9._:#-]{1,256}", re.ASCII)
KIND = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)
TOOL = re.compile(r"(?=.{1,256}\Z)[A-Za-z0-9_:/-]+(\.[A-Za-z0-9_:/-]+)*", re.ASCII)
UUID = re.compile(r"[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}", re.ASCII)
MOMENT = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]{1,9})?Z", re.ASCII)
INSTANT = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})\.[0-9]{3}Z", re.ASCII)
DECISIONS = ("allow", "allow_with_obligation", "deny")

_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

_FORMS: tuple[tuple[str, re.Pattern[str], str], ...] = (
    ("event_id", ID, "must match [A-Za-z0-9._:-]{1,128} and not be . or .."),
    ("trace_id", ID, "must match [A-Za-z0-9._:-]{1,128} and not be . or .."),
    ("agent_id", AGENT, "must match [A-Za-z0-9._-]{1,128}"),
    ("key_id", KEY, "must match [A-Za-z0-9._:#-]{1,256}"),
    ("actor_type", KIND, "must match [a-z][a-z0-9_]{0,63}"),
    ("action_kind", KIND, "must match [a-z][a-z0-9_]{0,63}"),
)


def is_time(text: Any, form: re.Pattern[str] = MOMENT) -> bool:
    """Tell whether a value is a time of that form, on a day that there is (year 0000 is a leap year)."""
    match = form.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return False
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    if not 1 <= month <= 12:
        return False
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 1 <= day <= _DAYS[month - 1] + leap and hour < 24 and minute < 60 and second < 60


def is_principal(text: Any) -> bool:
    """Tell whether a value can be actor_principal: 1 to 256 code points without control characters."""
    return isinstance(text, str) and 1 <= len(text) <= 256 and not any(unicodedata.category(c) == "Cc" for c in text)


def check_members(event: dict[str, Any]) -> None:
    """Check the members of an event, signature members aside. Errors are Malformed, in the service's words."""
    for name in (
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
    ):
        if name not in event:
            raise Malformed(f"Missing {name}")
    version, organization = event["schema_version"], event["organization_id"]
    _need(isinstance(organization, str) and UUID.fullmatch(organization), "organization_id must be a UUID")
    _need(version == 1 and not isinstance(version, bool), "schema_version must be the number 1")
    for name, form, words in _FORMS:
        _need(isinstance(event[name], str) and form.fullmatch(event[name]), f"{name} {words}")
    _need(
        is_principal(event["actor_principal"]),
        "actor_principal must be a string of 1 to 256 characters without control characters",
    )
    tool = event.get("tool_name", "x")
    _need(
        isinstance(tool, str) and TOOL.fullmatch(tool),
        "tool_name must be segments of [A-Za-z0-9_:/-]+ with dots between them, at most 256 characters",
    )
    _need(isinstance(event["payload"], dict), "payload must be an object")
    _need(is_time(event["emitted_at"]), "emitted_at must be a UTC time like 2026-01-31T12:00:00.000Z")
    _need(event["policy_decision"] in DECISIONS, "policy_decision must be allow, deny or allow_with_obligation")


def check_reserved(event: dict[str, Any]) -> None:
    """Check that no name of an event is one of the server's. Errors are Malformed."""
    _need(event["agent_id"] != "system", "agent_id system is reserved for the server")
    _need(
        not event["key_id"].startswith(("system_", "bridge_")),
        "A key_id that begins with system_ or bridge_ is reserved for the server",
    )
    _need(
        not event["action_kind"].startswith("ledger_"),
        "An action_kind that begins with ledger_ is reserved for the server",
    )
    _need(
        not event["event_id"].startswith(("ledger_", "stp_")),
        "An event_id that begins with ledger_ or stp_ is reserved for the server",
    )


def _need(holds: object, why: str) -> None:
    if not holds:
        raise Malformed(why)
