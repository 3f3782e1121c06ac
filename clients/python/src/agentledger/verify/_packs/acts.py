"""The acts of a pack (docs/spec/evidence-pack.md, The acts), derived from its events and approvals, and compared with acts.ndjson."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..._canonical import canonical_text
from ..._grammar import ID
from ..._shapes import is_list, is_object
from .._documents import is_natural
from .._encoding import sha
from .._flaw import MALFORMED, Flaw, need
from .._keys import VerifierKey
from .._receipts import Confirmation, Unconfirmed, action_of, confirm_act, find_receipt
from .._words import printable

MAX_COLUMNS = 8
NO_ACTS = "this pack has no table of acts, so no number in report.html is checked"
_MAX_VOTES = 100_000
_MAX_APPROVERS = 1000
_MAX_CLAIM = 512
_MAX_TEXT = 128
_MAX_STEPS = 16
_MAX_WRONG = 10
"""Receipts that a report describes."""
_OUTCOMES = ("done", "failed", "refused", "denied", "expired", "cancelled", "unknown", "waiting", "open")
_RESULTS = {"": "ok", "ok": "ok", "error": "error", "denied": "denied"}
_STEPS = {
    "ok": "ok",
    "done": "ok",
    "completed": "ok",
    "succeeded": "ok",
    "success": "ok",
    "error": "error",
    "failed": "error",
    "denied": "denied",
    "skipped": "skipped",
    "unknown": "unknown",
}
_STATUSES = {
    "requested": "waiting",
    "voted": "waiting",
    "pending": "waiting",
    "approved": "approved",
    "consumed": "approved",
    "denied": "refused",
    "revoked": "refused",
    "expired": "expired",
    "cancelled": "cancelled",
    "invalidated": "cancelled",
}
_PLACES = r"(?:\[(?:0|[1-9][0-9]{0,4})\])*"
_COLUMN = re.compile(rf"[A-Za-z0-9_-]+{_PLACES}(?:\.[A-Za-z0-9_-]+{_PLACES})*", re.ASCII)
_STEP_OF_PATH = re.compile(r"[^.\[\]]+|\[[0-9]+")


def is_column(name: Any) -> bool:
    """Return whether a value is the name of a column."""
    if not isinstance(name, str) or len(name) > _MAX_TEXT or _COLUMN.fullmatch(name) is None or len(_STEP_OF_PATH.findall(name)) > _MAX_STEPS:
        return False
    return all(int(place) < 1 << 16 for place in re.findall(r"\[([0-9]+)", name))


def _text(members: Any, name: str) -> str:
    value = members.get(name)
    return value if isinstance(value, str) else ""


def _column(payload: Any, name: str) -> Any:
    value = payload
    for step in _STEP_OF_PATH.findall(name):
        if step[0] == "[":
            place = int(step[1:])
            value = value[place] if is_list(value) and place < len(value) else None
        else:
            value = value.get(step) if is_object(value) else None
    if isinstance(value, str):
        return value if len(value.encode()) <= _MAX_TEXT else None
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _step(e: dict[str, Any], suffix: str) -> bytes | None:
    """Return the digest of the step that an envelope names with a suffix of its key."""
    run, key, attempt = _text(e, "run_id"), _text(e, "step_key"), e.get("attempt")
    if not run or not key.endswith(suffix) or key == suffix or not is_natural(attempt):
        return None
    return sha(canonical_text([run, attempt, key.removesuffix(suffix)]).encode())


@dataclass
class Approver:
    """An account that voted on acts. The operator claims its email address and name."""

    account_id: str
    email: str = ""
    name: str = ""
    approved: int = 0
    refused: int = 0

    def __str__(self) -> str:
        claims = ", ".join(printable(claim) for claim in (self.name, self.email) if claim)
        who = f"{self.account_id} ({claims}, as the operator states)" if claims else self.account_id
        return f"approver    {who}: {self.approved} approved, {self.refused} refused"


@dataclass
class Receipts:
    """The acts of a pack by the receipts of tools in their results, under the given keys of tools.

    claimed are done or failed acts that no tool confirms, unchecked and wrong those with such receipts. failed are
    confirmed acts that the tool answered with an error status, and without_grant those whose tool checked no grant.
    tools are the confirmed acts of each key's name.
    """

    confirmed: int = 0
    failed: int = 0
    without_grant: int = 0
    claimed: int = 0
    unchecked: int = 0
    wrong: int = 0
    tools: dict[str, int] = field(default_factory=dict[str, int])
    errors: list[str] = field(default_factory=list[str])

    def lines(self) -> list[str]:
        """Return the printed lines, in the words of `aps verify`."""
        if not self.tools:
            acts = "1 act has" if self.unchecked == 1 else f"{self.unchecked} acts have"
            words = f"receipts    {acts} the receipt of a tool, unchecked: no tool's key is given"
            return [words] if self.unchecked else []
        line = f"receipts    {self.confirmed} {'act' if self.confirmed == 1 else 'acts'} confirmed"
        by = [f"{number} by {printable(name)}" for name, number in self.tools.items() if number]
        if by:
            line += ": " + ", ".join(by)
        if self.without_grant:
            line += f"; {self.without_grant} of them without a grant"
        if self.failed:
            line += f"; {self.failed} of them failed at the tool"
        line += f"; {self.claimed} only claimed by the agent"
        if self.unchecked:
            line += f"; {self.unchecked} with a receipt that can't be checked"
        if self.wrong:
            line += f"; {self.wrong} with a wrong receipt"
        return [line]


@dataclass
class ActCounts:
    """The acts of a pack by what became of them in the range."""

    count: int = 0
    outcomes: dict[str, int] = field(default_factory=dict[str, int])
    approved_done: int = 0
    refused_done: int = 0
    receipts: Receipts | None = None
    approvers: list[Approver] = field(default_factory=list[Approver])

    def lines(self) -> list[str]:
        """Return the printed lines, in the words of `aps verify`."""
        line = f"acts        {self.count} {'act' if self.count == 1 else 'acts'}"
        parts = [f"{self.outcomes[o]} {o}" for o in _OUTCOMES if o in self.outcomes]
        if parts:
            line += ": " + ", ".join(parts)
        if self.approved_done:
            line += f"; {self.approved_done} approved and done"
        if self.refused_done:
            line += f"; {self.refused_done} done without the approval"
        receipts = self.receipts.lines() if self.receipts else []
        return [line, *receipts, *(str(a) for a in self.approvers)]


@dataclass
class _Approval:
    name: str
    status: str = ""
    intent: str = ""
    last: int = -1
    votes: list[dict[str, str]] = field(default_factory=list[dict[str, str]])


@dataclass
class _Act:
    index: int
    unseen: bool
    decision: str
    used: str | None
    announces: bool
    report: str | None = None
    result: int | None = None
    approval: _Approval | None = None
    has_receipt: bool = False
    action: str | None = None
    confirmed: Confirmation | None = None
    wrong: str | None = None

    @property
    def outcome(self) -> str:
        status = self.approval.status if self.approval else ""
        undecided = self.decision == "allow_with_obligation" and status != "approved"
        order = (
            ("done", self.report == "ok"),
            ("failed", self.report == "error"),
            ("refused", status == "refused"),
            ("denied", self.decision == "deny"),
            ("expired", status == "expired"),
            ("cancelled", status == "cancelled" or self.report == "skipped"),
            ("denied", self.report == "denied"),
            ("unknown", self.report == "unknown"),
            ("waiting", status == "waiting"),
            ("unknown", self.unseen),
            ("open", self.announces or undecided),
        )
        return next((outcome for outcome, applies in order if applies), "done")


class Acts:
    """The acts of a pack. Add all events and statements, and then call check."""

    def __init__(self, declared: dict[str, Any]) -> None:
        """declared is the manifest's member acts."""
        self._columns: list[str] = declared["columns"]
        self._lines: int = declared["lines"]
        self._acts: dict[str, _Act] = {}
        self._results: dict[str, tuple[int, str, bool]] = {}
        self._steps: dict[bytes, _Act] = {}
        self._ends: list[tuple[bytes, int, str]] = []
        self._approvals: dict[str, _Approval] = {}
        self._people: dict[str, tuple[str, str]] = {}
        self._votes = 0
        self._joined = False
        self.has_receipts = False
        """Whether a result has the receipt of a tool."""

    def add_event(self, r: dict[str, Any], e: dict[str, Any] | None) -> None:
        """Add a shown event, in the order of the log. e is None if the envelope is not in the pack. Errors are Flaw."""
        policy, index, bridge = r["policy"], r["sequence_num"] - 1, r["signer"] == "bridge"
        if r["signer"] == "system":
            return
        if bridge and e is not None and "tool_name" not in e and e["action_kind"] == "result":
            step = _step(e, ".result")
            if step is not None:
                self._ends.append((step, index, _STEPS.get(_text(e, "step_status"), "unknown")))
        elif "intent" in policy:
            report = "unknown"
            if e is not None:
                status = _text(e, "step_status") if bridge else _text(e["payload"], "status")
                report = (_STEPS if bridge else _RESULTS).get(status, "unknown")
            receipt = e is not None and find_receipt(e) is not None
            self.has_receipts = self.has_receipts or receipt
            self._results.setdefault(policy["intent"], (index, report, receipt))
        elif policy["evaluated"]:
            self._add_act(r, e, index, bridge)

    def _add_act(self, r: dict[str, Any], e: dict[str, Any] | None, index: int, bridge: bool) -> None:
        phase = "" if e is None else _text(e["payload"], "phase")
        if e is not None and ("tool_name" not in e or phase == "result"):
            return
        policy = r["policy"]
        act = _Act(index, e is None, policy["effective"], policy["approval_id"], phase == "intent")
        if e is not None and bridge and phase != "intent":
            status = _text(e, "step_status")
            act.report, act.announces = _STEPS.get(status), status == "started"
            step = _step(e, "") if act.report is None else None
            if step is not None:
                self._steps[step] = act
        need(r["event_id"] not in self._acts, "acts: event_id of two acts")
        self._acts[r["event_id"]] = act

    def add_statement(self, name: str, index: int, e: dict[str, Any]) -> None:
        """Add a statement about an approval; those about one approval in the order of the log. Errors are Flaw."""
        if ID.fullmatch(name) is None:
            return
        a = self._approvals.setdefault(name, _Approval(name))
        payload = e["payload"]
        intent = _text(payload, "intent_event_id")
        a.intent = a.intent or (intent if intent == "" or ID.fullmatch(intent) else " ")  # no event has another one
        transition = _text(payload, "transition")
        if transition not in _STATUSES:
            return
        a.status, a.last = _STATUSES[transition], index
        vote, account = _text(payload, "vote"), e["actor_principal"].split("/")[0]
        if vote == "" and transition != "revoked" or ID.fullmatch(account) is None:
            return
        self._votes += 1
        need(self._votes <= _MAX_VOTES, "approvals: number of votes", MALFORMED)
        represented = _text(payload, "deputy_for")
        deputy = {"deputy_for": represented} if ID.fullmatch(represented) else {}
        a.votes.append({"account_id": account, **deputy, "vote": "approve" if vote == "approve" else "deny"})

    def add_person(self, person: dict[str, str]) -> None:
        """Add a voter, as the operator states."""
        texts = person["account_id"], person["email"], person.get("name", "")
        short = all(len(text.encode()) <= _MAX_CLAIM for text in texts)
        if short and len(self._people) < _MAX_APPROVERS:
            self._people.setdefault(texts[0], texts[1:])

    def _join(self) -> None:
        if self._joined:
            return
        self._joined = True
        for name, (index, report, receipt) in self._results.items():
            if name in self._acts:
                of = self._acts[name]
                of.result, of.report, of.has_receipt = index, report, receipt
        for step, index, report in self._ends:
            act = self._steps.get(step)
            if act is not None and act.result is None and act.index < index:
                act.result, act.report = index, report
        for a in self._approvals.values():
            if a.intent:
                _link(self._acts.get(a.intent), a)
        for act in self._acts.values():
            if act.used is not None:
                _link(act, self._approvals.get(act.used))
                act.approval = act.approval or _Approval(act.used, "approved")

    def confirm(self, shown: Iterable[tuple[dict[str, Any], dict[str, Any] | None]], keys: Sequence[VerifierKey]) -> None:
        """Check the receipts of tools under their keys. shown are the events that were added."""
        self._join()
        used = set[bytes]()
        for r, e in shown:
            if e is None:
                continue
            index, intent = r["sequence_num"] - 1, self._acts.get(r["event_id"])
            if intent is not None and intent.index == index and intent.has_receipt:
                intent.action = action_of(e)
            act = self._acts.get(r["policy"].get("intent"))
            if act is None or not act.has_receipt or act.result != index:
                continue
            try:
                confirmed = confirm_act(e, r["policy"]["intent"], act.action, keys)
                text = sha((find_receipt(e) or "").split("\n\n")[0].encode())
                need(text not in used, "the receipt is for another act, which has it too")
                used.add(text)
                act.confirmed = confirmed
            except Unconfirmed:
                pass
            except Flaw as flaw:
                act.wrong = str(flaw)

    def check(
        self,
        lines: Iterator[str],
        shown: Iterable[tuple[dict[str, Any], dict[str, Any] | None]],
        keys: Sequence[VerifierKey] = (),
    ) -> ActCounts:
        """Compare the lines of acts.ndjson with the acts. shown are the events that were added. Errors are Flaw.

        keys are those of confirm.
        """
        self._join()
        counts, approvers = ActCounts(), dict[str, Approver]()
        receipts = Receipts(tools={k.name: 0 for k in keys})
        for r, e in shown:
            act = self._acts.get(r["event_id"])
            if act is None or act.index != r["sequence_num"] - 1:
                continue
            counts.count += 1
            same = next(lines, None) == canonical_text(self._line(act, r, e))
            need(same, f"acts: line {counts.count} and the act that follows from the pack")
            _count(counts, approvers, act)
            _count_receipt(receipts, act)
        need(next(lines, None) is None, "acts: a line without an act")
        need(counts.count == self._lines, "acts: lines of the manifest")
        counts.receipts = receipts if keys or self.has_receipts else None
        counts.approvers = [approvers[name] for name in sorted(approvers)]
        for p in counts.approvers:
            p.email, p.name = self._people.get(p.account_id, ("", ""))
        return counts

    def _line(self, act: _Act, r: dict[str, Any], e: dict[str, Any] | None) -> dict[str, Any]:
        a, policy = act.approval, r["policy"]
        return {
            "actor_principal": e["actor_principal"] if e else None,
            "agent_id": r["agent_id"],
            "approval_id": a.name if a else None,
            "approval_status": a.status if a else None,
            "columns": {name: _column(e["payload"], name) if e else None for name in self._columns},
            "decision": act.decision,
            "event_id": r["event_id"],
            "log_index": act.index,
            "outcome": act.outcome,
            "policy_id": policy["policy_id"],
            "policy_version": policy["policy_version"],
            "received_at": r["received_at"],
            "result_log_index": act.result,
            "rule_id": policy["rule_id"],
            "tool_name": e["tool_name"] if e else None,
            "votes": a.votes if a else [],
        }


def _link(act: _Act | None, a: _Approval | None) -> None:
    """Give an act an approval, unless it has one with a later statement."""
    if act is not None and a is not None and a.status and (act.approval is None or act.approval.last < a.last):
        act.approval = a


def _count_receipt(r: Receipts, act: _Act) -> None:
    if act.confirmed is not None:
        r.confirmed += 1
        r.failed += act.confirmed.status >= 400
        r.without_grant += act.confirmed.approval_id is None
        r.tools[act.confirmed.by] += 1
        return
    r.claimed += act.outcome in ("done", "failed")
    if act.wrong is not None:
        r.wrong += 1
        if r.wrong <= _MAX_WRONG:
            r.errors.append(f"act {act.index}: {act.wrong}")
    elif act.has_receipt:
        r.unchecked += 1


def _count(counts: ActCounts, approvers: dict[str, Approver], act: _Act) -> None:
    outcome, a = act.outcome, act.approval
    counts.outcomes[outcome] = counts.outcomes.get(outcome, 0) + 1
    if a is None:
        return
    approved = a.status == "approved" and any(v["vote"] == "approve" for v in a.votes)
    counts.approved_done += outcome == "done" and approved
    counts.refused_done += outcome == "done" and a.status in ("refused", "expired", "cancelled")
    wanted = {"approved": "approve", "refused": "deny"}.get(a.status)
    for account in dict.fromkeys(v["account_id"] for v in a.votes if v["vote"] == wanted):
        if account not in approvers and len(approvers) >= _MAX_APPROVERS:
            continue
        p = approvers.setdefault(account, Approver(account))
        p.approved += wanted == "approve"
        p.refused += wanted == "deny"
