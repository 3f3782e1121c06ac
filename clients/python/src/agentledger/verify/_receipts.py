"""Receipts of tools: what a tool states about an act, signed by its own key. docs/guides/tool-receipts.md has the contract."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from hashlib import sha256
from typing import Any

from .._canonical import canonical_text
from .._errors import Unproved
from ._flaw import MALFORMED, Flaw, need
from ._keys import VerifierKey, parse_log_key
from ._note import Note, check_signed, parse_note

TIME = r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)\n"
_RECEIPT = re.compile(
    "agentledger/receipt/v1\n([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\n([A-Za-z0-9._-]{1,128})\n"
    + r"([A-Za-z0-9_:/-]+(?:\.[A-Za-z0-9_:/-]+)*)" + "\n([0-9a-f]{64})\n(?:-\n(?![.][.]?\n)([A-Za-z0-9_.:-]{1,128})|([a-z0-9_]{1,64})\n([0-9a-f]{32}))\n"
    + "([2-5][0-9]{2})\n"
    + TIME,
    re.ASCII,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Receipt:
    """What a tool states about an act, signed by the tool's own key. docs/guides/tool-receipts.md has the contract.

    status is the HTTP status of the answer, 200 to 599, and at its time in milliseconds since 1970. approval_id and
    nonce are None if the tool checked no grant. Organization, agent and intent_event_id are then what the request
    stated; otherwise intent_event_id is None.
    """

    organization: str
    agent: str
    tool: str
    action_digest: str
    approval_id: str | None
    nonce: str | None
    intent_event_id: str | None
    status: int
    at: int

    def text(self) -> str:
        """Return the text that is signed."""
        at = (_EPOCH + timedelta(milliseconds=self.at)).isoformat(timespec="milliseconds")
        lines = (
            "agentledger/receipt/v1",
            self.organization,
            self.agent,
            self.tool,
            self.action_digest,
            self.approval_id or "-",
            self.nonce or self.intent_event_id or "",
            str(self.status),
            at.replace("+00:00", "Z"),
        )
        return "\n".join(lines) + "\n"


def open_receipt(note: str | bytes, key: str) -> Receipt:
    """Return the receipt in a note that a tool signed, by the tool's verifier key. Errors are Unproved."""
    try:
        return _open(parse_note(note), parse_log_key(key))
    except Flaw as why:
        raise Unproved(str(why)) from None


def _open(note: Note, key: VerifierKey) -> Receipt:
    check_signed(note, key)
    found = _RECEIPT.fullmatch(note.text)
    need(found is not None and len(found[3]) <= 256, "receipt: form", MALFORMED)
    assert found is not None
    organization, agent, tool, act, intent, approval, nonce, status, at = found.groups()
    try:
        return Receipt(organization, agent, tool, act, approval, nonce, intent, int(status), milliseconds(at))
    except ValueError:
        raise Flaw("receipt: time", MALFORMED) from None


def milliseconds(text: str) -> int:
    """Return the milliseconds since 1970. A time that does not exist is a ValueError."""
    at = datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc)
    return (at - _EPOCH) // timedelta(milliseconds=1)


class Unconfirmed(Exception):
    """A receipt that proves nothing and is no proof of a fault: no given key signed it, or the act is not known."""

    def __init__(self, why: str, confirmed: Confirmation | None = None) -> None:
        super().__init__(why)
        self.confirmed = confirmed


@dataclass(frozen=True)
class Confirmation:
    """What a tool states about an act: the name of its key, the HTTP status of its answer, and the time by its clock.

    approval_id is the approval whose grant the tool checked, None if it checked none.
    """

    by: str
    status: int
    at: str
    approval_id: str | None = None

    def members(self) -> dict[str, Any]:
        """Return the confirmation in the form of `aps verify --json`."""
        members: dict[str, Any] = {"by": self.by, "status": self.status, "at": self.at}
        return members if self.approval_id is None else {**members, "approval_id": self.approval_id}


@dataclass(frozen=True)
class ToolReceipt:
    """The verdict on the receipt of a tool in an event. ok is None if nothing is known, and error then says why."""

    ok: bool | None = None
    confirmed: Confirmation | None = None
    error: str = ""

    def members(self) -> dict[str, Any]:
        """Return the verdict in the form of `aps verify --json`."""
        members: dict[str, Any] = {} if self.ok is None else {"ok": self.ok}
        if self.confirmed is not None:
            members["confirmed"] = self.confirmed.members()
        return {**members, "error": self.error} if self.error else members


def find_receipt(result: dict[str, Any]) -> str | None:
    """Return the unverified receipt in the envelope of a result. Other texts are none: agents may record what they want."""
    note = result["payload"].get("receipt")
    return note if isinstance(note, str) and note.startswith("agentledger/receipt/v1\n") else None


def action_of(e: dict[str, Any]) -> str:
    """Return the digest of the act that an envelope announces, as receipts name it: without on_behalf_of."""
    return sha256(action_text({name: e[name] for name in e if name != "on_behalf_of"}).encode()).hexdigest()


def action_text(e: dict[str, Any]) -> str:
    """Return the text of the act that an envelope announces. With on_behalf_of, the act has it too, and v is 2."""
    members = {name: e.get(name) for name in ("agent_id", "payload", "tool_name")}
    version = {"on_behalf_of": e["on_behalf_of"], "v": 2} if "on_behalf_of" in e else {"v": 1}
    return canonical_text({**members, "organization_id": e["organization_id"].lower(), **version})


def confirm_act(
    result: dict[str, Any], intent: str | None, action: str | None, keys: Sequence[VerifierKey]
) -> Confirmation:
    """Check the receipt in the envelope of a result under pinned keys of tools.

    intent is the intent that the record of the result names, and action the digest of its act. Errors are Unconfirmed
    and Flaw.
    """
    note = parse_note(find_receipt(result) or "")
    key = next((k for k in keys if note.line_of(k) is not None), None)
    if key is None:
        raise Unconfirmed("signed by none of the tools' keys that were given")
    r, payload = _open(note, key), result["payload"]
    need(r.organization == result["organization_id"].lower(), "the receipt is for another organization")
    need(r.agent == result["agent_id"], "the receipt is for another agent")
    need(r.tool == result.get("tool_name"), "the receipt is for another tool")
    same = (r.approval_id, r.nonce) == (payload.get("approval_id"), payload.get("grant_nonce"))
    need(same, "the receipt is for another approval")
    confirmed = Confirmation(key.name, r.status, r.text().split("\n")[8], r.approval_id)
    need(intent is None or r.intent_event_id in (None, intent), "the receipt is for another intent")
    if intent is None or action is None:
        raise Unconfirmed("the event of the intent is not known, so the act is not", confirmed)
    need(r.action_digest == action, "the receipt is for another act")
    return confirmed
