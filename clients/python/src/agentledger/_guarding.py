"""Guarded acts: intent, decision, act, result. Fails closed, and runs an act at most once.

1. The intent is signed, written to the journal, and sent with X-Request-Approval. Its acceptance is the permission.
2. If approval is required, the call waits for it and consumes it once.
3. The journal durably records that the act begins. The act runs. The journal records how it ended.
4. The result is sent as an event that names the intent.

After any failure before step 3 the act does not run. An act that has begun without an end never begins again.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import _calls as calls
from ._answers import Approval, Stored
from ._batches import log
from ._errors import (
    ApprovalDenied,
    ApprovalRequired,
    Denied,
    FailedBefore,
    KeyReused,
    LedgerError,
    NotDecided,
    OutcomeUnknown,
    Refused,
    Unreachable,
    about,
    one_line,
)
from ._intents import (
    Disclosed,
    Options,
    Permit,
    digest_of,
    intent_action,
    intent_name,
    intent_payload,
    known,
    plain,
    sign_intent,
    sign_result,
)
from ._journal import BEGUN, DECIDING, ENDED, Entry, Journal, Turn
from ._settings import Retry, Settings
from ._signer import Signed, Signer, new_id, read_signed
from ._wire import effects
from ._wire.effects import Act, Disk, Operation

_MAX_LOST_QUORUMS = 8
_UNKNOWN = "the act was begun before, and how it ended is not known"
_DEFINITE = (400, 403, 404, 405, 409, 413, 415, 422)


@dataclass
class Opened:
    """An act that may be done, or was done before: then it has no permit. began is a time of the clock."""

    entry: Entry
    permit: Permit | None
    options: Options
    began: float
    turn: Turn = field(repr=False)


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
        act: Callable[[Permit], object],
        o: Options,
        key: str | None,
        trace: str | None,
    ) -> Operation[Any]:
        """Run an act that is allowed and has never begun, and return its output."""
        opened: Opened = yield from self.open(tool, payload, o, key, trace)
        if opened.permit is None:
            return opened.entry.output
        permit, output, failure = opened.permit, None, None
        try:
            output = yield Act(lambda: act(permit))
        except Exception as why:
            failure = why
        except BaseException:  # how far it came is unknown
            self.journal.leave(opened.turn)
            raise
        yield from self.close(opened, output, failure is not None)
        if failure is not None:
            raise failure
        return output

    def open(
        self, tool: str, payload: Mapping[str, Any], o: Options, key: str | None, trace: str | None
    ) -> Operation[Opened]:
        """Obtain permission for an act and record that it begins. Run the act then, and close it.

        If the result has no permit, the act was done before, and the entry has its output.
        """
        turn = Turn(key if key is not None else new_id("act"))
        try:
            yield effects.Turn(lambda wake, owner: self.journal.begin(turn, wake, owner))
            opened: Opened = yield from self._open(turn, tool, payload, o, trace, key is not None)
        except BaseException:
            self.journal.leave(turn)
            raise
        if opened.permit is None:
            self.journal.leave(turn)
        return opened

    def _open(
        self, turn: Turn, tool: str, payload: Mapping[str, Any], o: Options, trace: str | None, kept: bool
    ) -> Operation[Opened]:
        signer, key = self.settings.require_signer(), turn.key
        subject = o.on_behalf_of() if o.on_behalf_of else None
        digest = digest_of(tool, trace, payload, o.convert, subject)
        entry: Entry | None = yield Disk(lambda: self.journal.load(key))
        try:
            if entry is not None and entry.digest != digest:
                raise KeyReused("the key was used for another act")
            if entry is not None and entry.stage != DECIDING:
                done = yield from self._again(signer, entry, o)
                if done:
                    return Opened(entry, None, o, self.clock(), turn)
            if entry is None:
                intent, call_id = sign_intent(signer, tool, payload, o, trace, subject)
                entry = Entry(key, digest, DECIDING, call_id, intent.event_id, intent.text.decode(), kept, o.idempotent)
                yield from self._note(entry)
            try:
                permit = yield from self._permit(signer, entry, o)
            except Denied:
                yield Disk(lambda: self.journal.remove(key))
                raise
            entry.stage = BEGUN
            yield from self._note(entry)
        except LedgerError as why:
            about(None if entry is None else entry.event_id, why)
            raise
        return Opened(entry, permit, o, self.clock(), turn)

    def _note(self, entry: Entry) -> Operation[None]:
        """Write an entry before its act. Errors are NotDecided."""
        try:
            yield Disk(_storing(self.journal, entry))
        except OSError as why:
            raise NotDecided(f"the journal can't be written: {_reason(why)}: make room in its folder") from why

    def close(self, opened: Opened, output: Any, failed: bool) -> Operation[None]:
        """Record how an act ended, and state its result."""
        entry, o = opened.entry, opened.options
        try:
            grant = opened.permit.grant if opened.permit else None
            members: dict[str, str] = {}
            if isinstance(output, Disclosed):
                output, members = output.output, output.members
            entry.stage, entry.status, entry.ended_at = ENDED, "error" if failed else "ok", time.time()
            entry.output = plain(output, o.convert)
            spent = self.clock() - opened.began
            has_output = not failed and known(output, entry.output)
            result = sign_result(self.settings.require_signer(), entry, spent, has_output, o, grant, members)
            entry.result = result.text.decode()
            try:
                yield Disk(_storing(self.journal, entry))
            except OSError as why:  # the act is done, and remains begun in the journal: it never runs again
                log.warning("the journal can't note the end of an act: %s: make room in its folder", _reason(why))
        finally:
            self.journal.leave(opened.turn)
        yield Disk(lambda: self.tell(entry))

    def _permit(self, signer: Signer, entry: Entry, o: Options) -> Operation[Permit]:
        """Ask for the permission. After any failure there is none."""
        intent = read_signed(entry.envelope.encode())
        try:
            stored: Stored = yield from self._send(intent, o)
        except Refused as why:
            if why.proved and why.status in _DEFINITE:  # it will never be stored: another intent may be created
                yield Disk(lambda: self.journal.remove(entry.key))
            raise NotDecided(f"no decision on the act: {why}") from why
        except Unreachable as why:
            raise NotDecided(f"no decision on the act: {why}") from why
        if stored.status == "replayed" and not stored.policy_decision:  # another intent is needed
            yield Disk(lambda: self.journal.remove(entry.key))
            raise NotDecided("no decision on the act: the event was stored before, and the answer does not say how")
        decision = stored.policy_decision or "allow"
        if decision == "deny":
            raise Denied(one_line(stored.reason or "the policy denies it"), stored.decision)
        if decision == "allow":
            asked = (intent_name(intent), intent_payload(intent)) if o.receipt else (None, None)
            return Permit(intent.event_id, entry.call_id, decision, None, None, *asked)
        if stored.approval is None:
            raise NotDecided("people have to agree, and nobody could be asked: the token needs the scope approvals")
        approved = intent_action(intent)
        if stored.approval.action_digest != hashlib.sha256(approved).hexdigest():
            raise NotDecided("the answer does not fit: the approval is for another act")
        entry.approval_id = stored.approval.approval_id
        yield from self._note(entry)
        grant = yield from self._grant(signer, entry, stored, stored.approval, o)
        return Permit(intent.event_id, entry.call_id, decision, grant, intent_payload(intent))

    def _send(self, intent: Signed, o: Options) -> Operation[Stored]:
        """Send an intent and request its approval. A token that may not request it still gets the decision."""
        try:
            return (yield from calls.send_event(self.settings, intent, Retry(o.attempts), ask=True))
        except Refused as why:
            if why.status != 403 or not why.proved:
                raise
        return (yield from calls.send_event(self.settings, intent, Retry(o.attempts)))

    def _tell_waiting(self, approval: Approval, o: Options) -> None:
        if o.on_ask is not None:
            o.on_ask(approval)
        elif o.wait != 0:
            log.warning("an act waits for an approver: %s", calls.approval_page(self.settings, approval.approval_id))

    def _grant(self, signer: Signer, entry: Entry, stored: Stored, pending: Approval, o: Options) -> Operation[str]:
        """Wait for the approval and consume it."""
        deadline = None if o.wait is None else self.clock() + o.wait
        approval = pending
        try:
            if approval.status == "pending":
                self._tell_waiting(approval, o)
            for _ in range(_MAX_LOST_QUORUMS):
                if approval.status == "pending":
                    approval = yield from calls.wait_approval(self.settings, pending.approval_id, self.clock, deadline)
                if approval.status not in ("approved", "consumed"):
                    break
                try:
                    return (yield from calls.consume_approval(self.settings, approval))
                except Refused as why:
                    if why.code != "quorum_lost":  # otherwise it is pending again
                        raise
                approval = pending
        except ApprovalRequired:
            raise
        except (Refused, Unreachable) as why:
            if isinstance(why, Refused) and why.proved and why.status == 410:  # another intent asks again
                yield Disk(lambda: self.journal.remove(entry.key))
            raise NotDecided(f"no decision of people: {why}") from why
        entry.status = "denied"
        denial = sign_result(signer, entry, 0.0, False, o, None)
        yield Disk(lambda: self.queue(denial, lambda: None))
        raise ApprovalDenied(approval, stored.decision)

    def _again(self, signer: Signer, entry: Entry, o: Options) -> Operation[bool]:
        """Handle an act that began before. Return whether it is done."""
        if entry.stage == BEGUN and o.idempotent:
            entry.stage = DECIDING
            return False
        if entry.stage == BEGUN:
            _end_unknown(signer, entry, o)
            try:
                yield Disk(_storing(self.journal, entry))
            except OSError as why:  # not stated, because the next call would state it by another event
                raise OutcomeUnknown(f"{_UNKNOWN}. The journal can't be written: {_reason(why)}") from why
        if not entry.told:
            yield Disk(lambda: self.tell(entry))
        if entry.status == "unknown":
            raise OutcomeUnknown(_UNKNOWN)
        if entry.status == "error":
            raise FailedBefore("the act was done before and failed")
        return True

    def tell(self, entry: Entry) -> None:
        """Queue the result of an act. The journal keeps it until the service has stored it."""

        def on_stored() -> None:
            entry.told = True
            try:
                if entry.kept:
                    self.journal.store(entry)
                else:
                    self.journal.remove(entry.key)
            except OSError:  # the result is sent once more after a restart, and the answer is a replay
                return

        try:
            self.queue(read_signed(entry.result.encode()), on_stored)
        except (LedgerError, OSError) as why:  # the act is done
            log.warning("the result of an act is not queued, and resume() after the next start states it: %s", why)

    def resume(self) -> int:
        """Send the results that the service does not have yet, and state interrupted acts as unknown.

        Call it after a restart, before any act. Return the number of results sent.
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
    entry.result = sign_result(signer, entry, 0.0, False, o, None).text.decode()


def _reason(why: OSError) -> str:
    return why.strerror or type(why).__name__


def _storing(journal: Journal, entry: Entry) -> Callable[[], None]:
    return lambda: journal.store(entry)
