"""Guarded acts: intent, decision, act, result. Fails closed, and runs an act at most once.

1. The intent is signed, written to the journal, and sent with X-Request-Approval. Its acceptance is the permission.
2. Where people have to agree, the call waits for them and uses their approval once.
3. The journal notes durably that the act begins. The act runs. The journal notes how it ended.
4. The result is sent as an event that names the intent.

After any failure before step 3 the act does not run. An act that has begun without an end never begins again.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import calls
from .answers import Approval, Stored
from .canonical import Convert, canonical_bytes
from .errors import (
    ApprovalDenied,
    ApprovalRequired,
    Denied,
    FailedBefore,
    KeyReused,
    LedgerError,
    Malformed,
    NotDecided,
    OutcomeUnknown,
    Overflow,
    Refused,
    Unreachable,
    one_line,
)
from .journal import BEGUN, DECIDING, ENDED, Entry, Journal
from .settings import Retry, Settings
from .strictjson import parse_object
from .signer import Signed, Signer, new_id, read_signed
from .wire.effects import Act, Disk, Operation

_DEFINITE = (400, 403, 404, 405, 409, 413, 415, 422)


@dataclass(frozen=True)
class Options:
    """How acts of one tool are guarded.

    action_kind: of the intent. wait: seconds to wait for people, None for as long as it takes, 0 for not at all.
    digest: arguments go as payload.input_digest with the members named in shown. record_output: the result event has
    the output itself, beside its digest. idempotent: an act that was interrupted may run again. on_ask is called with
    an approval that is waited for. attempts: how often the intent is sent.
    """

    action_kind: str = "tool_call"
    wait: float | None = None
    digest: bool = False
    shown: tuple[str, ...] = ()
    record_output: bool = False
    idempotent: bool = False
    principal: str | None = None
    on_ask: Callable[[Approval], None] | None = None
    attempts: int = 3
    convert: Convert | None = None


@dataclass(frozen=True)
class Permit:
    """The permission of an act: the intent's event, and the grant (a signed note) of an approval, "" for none."""

    event_id: str
    call_id: str
    decision: str
    grant: str = ""


@dataclass
class Guarding:
    """What guarded acts of one client share."""

    settings: Settings
    journal: Journal
    queue: Callable[[Signed, Callable[[], None]], None]
    clock: Callable[[], float] = time.monotonic
    options: Options = field(default_factory=Options)

    def run(
        self,
        tool: str,
        payload: Mapping[str, Any],
        act: Callable[[Permit], Any],
        o: Options,
        key: str | None,
        trace: str | None,
    ) -> Operation[Any]:
        """Run an act that is allowed and was never begun, and return its output."""
        name = key if key is not None else new_id("act")
        self.journal.begin(name)
        try:
            return (yield from self._run(name, tool, payload, act, o, trace, key is not None))
        finally:
            self.journal.leave(name)

    def _run(
        self,
        key: str,
        tool: str,
        payload: Mapping[str, Any],
        act: Callable[[Permit], Any],
        o: Options,
        trace: str | None,
        kept: bool,
    ) -> Operation[Any]:
        signer = self.settings.require_signer()
        digest = _digest_of(tool, trace, payload, o.convert)
        entry: Entry | None = yield Disk(lambda: self.journal.load(key))
        if entry is not None and entry.digest != digest:
            raise KeyReused("the key was used for another act")
        if entry is not None and entry.stage != DECIDING:
            done, output = yield from self._again(signer, entry, o)
            if done:
                return output
        if entry is None:
            intent = _sign_intent(signer, tool, payload, o, trace)
            entry = Entry(
                key, digest, DECIDING, intent[1], intent[0].event_id, intent[0].text.decode(), kept, o.idempotent
            )
            yield Disk(_storing(self.journal, entry))
        try:
            permit = yield from self._permit(signer, entry, o)
        except Denied:
            yield Disk(lambda: self.journal.remove(key))
            raise
        return (yield from self._act(signer, entry, act, permit, o))

    def _permit(self, signer: Signer, entry: Entry, o: Options) -> Operation[Permit]:
        """Ask for the permission. After any failure there is none."""
        intent = read_signed(entry.envelope.encode())
        try:
            stored: Stored = yield from calls.send_event(self.settings, intent, Retry(o.attempts), ask=True)
        except Refused as why:
            if why.status in _DEFINITE:  # it is not stored and never will be: another intent may be made
                yield Disk(lambda: self.journal.remove(entry.key))
            raise NotDecided(f"no decision on the act: {why}") from why
        except Unreachable as why:
            raise NotDecided(f"no decision on the act: {why}") from why
        if stored.status == "replayed" and not stored.policy_decision:
            raise NotDecided("no decision on the act: the event was stored before, and the answer does not say how")
        decision = stored.policy_decision or "allow"
        if decision == "deny":
            raise Denied(one_line(stored.reason or "the policy denies it"), stored.decision)
        if decision == "allow":
            return Permit(intent.event_id, entry.call_id, decision)
        if stored.approval is None:
            raise NotDecided("people have to agree, and the answer has no approval to wait for")
        entry.approval_id = stored.approval.approval_id
        yield Disk(_storing(self.journal, entry))
        grant = yield from self._grant(signer, entry, stored, stored.approval, o)
        return Permit(intent.event_id, entry.call_id, decision, grant)

    def _grant(self, signer: Signer, entry: Entry, stored: Stored, asked: Approval, o: Options) -> Operation[str]:
        """Wait for people and use their approval."""
        deadline = None if o.wait is None else self.clock() + o.wait
        approval = asked
        try:
            if approval.status == "pending":
                if o.on_ask is not None:
                    o.on_ask(approval)
                approval = yield from calls.wait_approval(self.settings, asked.approval_id, self.clock, deadline)
            if approval.status in ("approved", "consumed"):
                return (yield from calls.consume_approval(self.settings, approval))
        except ApprovalRequired:
            raise
        except (Refused, Unreachable) as why:
            if isinstance(why, Refused) and why.status == 410:  # used or over: another intent asks anew
                yield Disk(lambda: self.journal.remove(entry.key))
            raise NotDecided(f"no decision of people: {why}") from why
        entry.status = "denied"
        denial = _sign_result(signer, entry, 0.0, False, o, "")
        yield Disk(lambda: self.queue(denial, lambda: None))
        raise ApprovalDenied(approval, stored.decision)

    def _act(
        self, signer: Signer, entry: Entry, act: Callable[[Permit], Any], permit: Permit, o: Options
    ) -> Operation[Any]:
        entry.stage = BEGUN
        try:
            yield Disk(_storing(self.journal, entry))
        except OSError as why:
            raise NotDecided(f"the journal can't be written: {why.strerror}") from why
        began, output, failure = self.clock(), None, None
        try:
            output = yield Act(lambda: act(permit))
        except Exception as why:
            failure = why
        spent = self.clock() - began
        entry.stage, entry.status, entry.ended_at = ENDED, "ok" if failure is None else "error", time.time()
        entry.output = _plain(output, o.convert)
        result = _sign_result(signer, entry, spent, _known(output, entry.output), o, permit.grant)
        entry.result = result.text.decode()
        try:
            yield Disk(_storing(self.journal, entry))
        except OSError:  # the act is done, and stays begun in the journal: it never runs again
            pass
        yield Disk(lambda: self.tell(entry))
        if failure is not None:
            raise failure
        return output

    def _again(self, signer: Signer, entry: Entry, o: Options) -> Operation[tuple[bool, Any]]:
        """Answer for an act that was begun before. Return whether that is all, and its output."""
        if entry.stage == BEGUN and o.idempotent:
            entry.stage = DECIDING
            return False, None
        if entry.stage == BEGUN:
            _end_unknown(signer, entry, o)
            yield Disk(_storing(self.journal, entry))
        if not entry.told:
            yield Disk(lambda: self.tell(entry))
        if entry.status == "unknown":
            raise OutcomeUnknown("the act was begun before, and how it ended is not known")
        if entry.status == "error":
            raise FailedBefore("the act was done before and failed")
        return True, entry.output

    def tell(self, entry: Entry) -> None:
        """Give the result of an act to the queue. The journal keeps it until the service has it."""

        def told() -> None:
            entry.told = True
            try:
                if entry.kept:
                    self.journal.store(entry)
                else:
                    self.journal.remove(entry.key)
            except OSError:  # the result is told once more after a restart, and answered as a replay
                return

        try:
            self.queue(read_signed(entry.result.encode()), told)
        except (Overflow, OSError):  # the act is done: its result waits in the journal for resume
            return

    def resume(self) -> int:
        """Tell the results that the service does not have yet, and note interrupted acts as unknown.

        Call it after a restart, before any act. Return how many results were told.
        """
        signer, count = self.settings.require_signer(), 0
        for entry in self.journal.entries():
            if entry.stage == BEGUN and not entry.idempotent:
                _end_unknown(signer, entry, self.options)
                self.journal.store(entry)
            if entry.stage == ENDED and not entry.told:
                self.tell(entry)
                count += 1
        return count


def _end_unknown(signer: Signer, entry: Entry, o: Options) -> None:
    entry.stage, entry.status, entry.ended_at = ENDED, "unknown", time.time()
    entry.result = _sign_result(signer, entry, 0.0, False, o, "").text.decode()


def _storing(journal: Journal, entry: Entry) -> Callable[[], None]:
    return lambda: journal.store(entry)


def _digest_of(tool: str, trace: str | None, payload: Mapping[str, Any], convert: Convert | None) -> str:
    text = canonical_bytes([tool, trace, dict(payload)], convert)
    return hashlib.sha256(text).hexdigest()


def _sign_intent(
    signer: Signer, tool: str, payload: Mapping[str, Any], o: Options, trace: str | None
) -> tuple[Signed, str]:
    """Return the signed intent and its call_id."""
    for name in ("phase", "call_id", "salt"):
        if name in payload:
            raise Malformed("is a member of the intent's own: give the argument another name", f"/{name}")
    call_id = new_id("call")
    members = dict(payload)
    if o.digest:
        whole = hashlib.sha256(canonical_bytes(members, o.convert)).hexdigest()
        members = {**{n: members[n] for n in o.shown if n in members}, "input_digest": whole}
    members.update(phase="intent", call_id=call_id, salt=secrets.token_hex(16))
    event: dict[str, Any] = {"action_kind": o.action_kind, "tool_name": tool, "payload": members}
    event.update({"trace_id": trace} if trace else {}, **({"actor_principal": o.principal} if o.principal else {}))
    text = canonical_bytes(event, o.convert)
    return signer.sign(text), call_id


def _sign_result(signer: Signer, entry: Entry, spent: float, known: bool, o: Options, grant: str) -> Signed:
    intent = parse_object(entry.envelope)
    payload: dict[str, Any] = {
        "phase": "result",
        "call_id": entry.call_id,
        "status": entry.status,
        "duration_ms": round(spent * 1000),
        "salt": secrets.token_hex(16),
    }
    if known:
        payload["output_digest"] = hashlib.sha256(canonical_bytes(entry.output)).hexdigest()
        payload.update({"output": entry.output} if o.record_output else {})
    if entry.approval_id:
        payload["approval_id"] = entry.approval_id
    nonce = _nonce_of(grant)
    payload.update({"grant_nonce": nonce} if nonce else {})
    return signer.sign(
        {
            "action_kind": intent["action_kind"],
            "tool_name": intent["tool_name"],
            "trace_id": intent["trace_id"],
            "actor_principal": intent["actor_principal"],
            "parent_event_id": entry.event_id,
            "payload": payload,
        }
    )


def _nonce_of(grant: str) -> str:
    """Return the nonce of a grant: the seventh line of its text."""
    lines = grant.split("\n")
    return lines[6] if len(lines) > 9 else ""


def _plain(output: Any, convert: Convert | None) -> Any:
    """Return an output as JSON, None where it has no such form: the act is done, so its output is no error."""
    try:
        canonical_bytes(output)
        return output
    except LedgerError:
        pass
    if convert is None:
        return None
    try:
        return json.loads(canonical_bytes(output, convert))
    except Exception:
        return None


def _known(output: Any, plain: Any) -> bool:
    return plain is not None or output is None
