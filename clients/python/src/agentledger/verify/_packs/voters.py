"""Signed votes in a pack: the passkeys registered as voter keys, and the votes that they signed."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Any

from ..._grammar import ID
from .._encoding import sha
from .._flaw import MALFORMED, MISMATCH, Flaw, need
from .._passkeys import Credential, PasskeyKey, check_assertion, key_text, read_assertion, unbase64url, vote_text
from .archive import Member
from .statements import read_proven

KIND = "ledger_voter_key"
MAX_VOTES = 1000
_FILE = "voters.ndjson"
_MAX_LINES = 10_000
_RETIRED = frozenset(("transition", "account_id", "credential_id"))
_REGISTERED = _RETIRED | {"consent", "possession", "public_key", "rp_id", "web_origin"}
_ORIGIN = re.compile(r"(https?)://([a-z0-9._-]{1,253})(:[1-9][0-9]{0,4})?", re.ASCII)


@dataclass(frozen=True)
class VoterKey:
    """The passkey that signed a vote, as stated by the event that registered it."""

    thumbprint: str
    registered_at: str
    log_index: int
    consent: VoterKey | None

    def __str__(self) -> str:
        return f"{self.thumbprint}, registered {self.registered_at} (entry {self.log_index})"


@dataclass(frozen=True)
class Vote:
    """A vote on an approval. If signed is None, only the operator claims that the account cast it."""

    approval_id: str
    account_id: str
    vote: str
    signed: VoterKey | None
    deputy_for: str | None = None  # the account in whose place the account voted, according to the operator

    def __str__(self) -> str:
        words = f"vote of {self.account_id} on {self.approval_id}: {self.vote}, "
        if self.deputy_for is not None:
            words += f"in place of {self.deputy_for}, "
        if self.signed is None:
            return words + "unsigned: an unverified operator claim"
        words += f"signed by the passkey {self.signed}"
        if self.signed.consent is None:
            return words + (
                " without the consent of another passkey: whose passkey it is, is an unverified operator claim"
            )
        return f"{words}, with the consent of the passkey {self.signed.consent}"


@dataclass
class _Event:
    at: int
    of: bytes
    credential: Credential | None = None  # if None, the event retires the key
    voter_key: VoterKey | None = None
    consent: bytes = b""


@dataclass
class _Key:
    events: list[_Event] = field(default_factory=list[_Event])
    used_until: int = 0
    unlisted: int | None = None  # the first shown registration without a line

    def place(self, at: int) -> int:
        """Return the position of the first event at or after an index."""
        return bisect_left(self.events, at, key=lambda e: e.at)


def _name(account: str, credential: str) -> bytes:
    return sha(f"{account}\n{credential}".encode())


class Voters:
    """The voter keys of a pack, and its votes."""

    def __init__(self, m: dict[str, Any]) -> None:
        """m is the manifest."""
        self._m = m
        self._keys: dict[bytes, _Key] = {}
        self._events: list[_Event] = []
        self.votes: list[Vote] = []
        self.signed = 0
        self.unsigned = 0

    def __len__(self) -> int:
        return len(self._events)

    @property
    def begin(self) -> int:
        """The log index of the first event."""
        return self._events[0].at

    def read(self, file: Member) -> None:
        """Read voters.ndjson. Errors are Flaw."""
        for line in file.lines("voters", _MAX_LINES):
            record, members = read_proven(self._m, line, KIND, "voters")
            self.add(members["payload"], record["received_at"], record["sequence_num"] - 1)
        need(bool(self._events), "voters: no line")

    def add(self, payload: dict[str, Any], received_at: str, at: int) -> None:
        """Check and add the event at an index, which must exceed the previous ones. Errors are Flaw."""
        event = self._read_event(payload, received_at, at)
        need(not self._events or event.at > self._events[-1].at, "voters: order", MALFORMED)
        self._events.append(event)
        self._keys.setdefault(event.of, _Key()).events.append(event)

    def _read_event(self, payload: dict[str, Any], received_at: str, at: int) -> _Event:
        account, credential = payload.get("account_id"), payload.get("credential_id")
        need(isinstance(account, str) and ID.fullmatch(account) is not None, "voters: account_id", MALFORMED)
        need(1 <= len(unbase64url(credential)) <= 1023, "voters: credential_id", MALFORMED)
        event = _Event(at, _name(str(account), str(credential)))
        if payload.get("transition") == "retired":
            need(payload.keys() == _RETIRED, "voters: payload", MALFORMED)
        else:
            self._read_registration(event, payload, received_at)
        return event

    def _read_registration(self, event: _Event, payload: dict[str, Any], received_at: str) -> None:
        form = payload.keys() == _REGISTERED and payload["transition"] == "registered"
        need(form and _is_party(payload["rp_id"], payload["web_origin"]), "voters: payload", MALFORMED)
        account, credential_id = payload["account_id"], payload["credential_id"]
        key = PasskeyKey(payload["public_key"])
        event.credential = Credential(credential_id, key, payload["rp_id"], payload["web_origin"])
        possession = read_assertion(payload["possession"])
        text = key_text(self._m["origin"], account, credential_id, key, possession.time)
        check_assertion(event.credential, text, possession, received_at)
        by = None
        if payload["consent"] is not None:
            consent = read_assertion(payload["consent"])
            need(consent.credential != credential_id, "voters: consent by the same credential", MALFORMED)
            event.consent = _name(account, consent.credential)
            credential, by = self._registered(event.consent, event.at)
            text = key_text(self._m["origin"], account, credential_id, key, consent.time)
            check_assertion(credential, text, consent, received_at)
            by = VoterKey(by.thumbprint, by.registered_at, by.log_index, None)
        event.voter_key = VoterKey(key.thumbprint, received_at, event.at, by)

    def _registered(self, name: bytes, before: int) -> tuple[Credential, VoterKey]:
        """Return the registration that is in force before an index. Errors are Flaw."""
        key = self._keys.get(name)
        place = key.place(before) if key else 0
        if key is None or place == 0:
            raise Flaw("no registration of the voter key", MISMATCH)
        last = key.events[place - 1]
        if last.credential is None or last.voter_key is None:
            raise Flaw("voter key was retired", MISMATCH)
        return last.credential, last.voter_key

    def check_listed(self, members: dict[str, Any], at: int) -> None:
        """Record a shown event: one about a listed voter key must have a line if a vote needs it. Errors are Flaw."""
        if members["action_kind"] != KIND or not self._events:
            return
        values = [members["payload"].get(name) for name in ("transition", "account_id", "credential_id")]
        if not all(isinstance(v, str) for v in values):
            return
        key = self._keys.get(_name(values[1], values[2]))
        if key is None:
            return
        place = key.place(at)
        if place < len(key.events) and key.events[place].at == at:
            return
        need(values[0] != "retired", f"a retirement that is not in {_FILE}")
        if values[0] == "registered" and key.unlisted is None:
            key.unlisted = at

    def check_vote(self, record: dict[str, Any], members: dict[str, Any]) -> None:
        """Check the vote, if any, in an event about an approval. Errors are Flaw."""
        payload, account = members["payload"], members["actor_principal"].split("/")[0]
        approval, vote = payload.get("approval_id"), payload.get("vote")
        ids = isinstance(approval, str) and ID.fullmatch(approval) is not None and ID.fullmatch(account) is not None
        is_vote = ids and vote in ("approve", "deny")
        by = None
        if "signed" in payload:
            need(is_vote and "action_digest" in payload, "signed, but not a vote on an action", MALFORMED)
            by = self._check_signed(record, payload, account)
            self.signed += 1
        elif is_vote:
            self.unsigned += 1
        if is_vote and len(self.votes) < MAX_VOTES:
            deputy_for = payload.get("deputy_for")
            if not isinstance(deputy_for, str) or ID.fullmatch(deputy_for) is None:
                deputy_for = None
            self.votes.append(Vote(str(approval), account, str(vote), by, deputy_for))

    def _check_signed(self, record: dict[str, Any], payload: dict[str, Any], account: str) -> VoterKey:
        for member in ("reason", "reason_code"):
            value = payload.get(member)
            need(value is None or isinstance(value, str), f"signed: {member}", MALFORMED)
        a = read_assertion(payload["signed"])
        text = vote_text(self._m["origin"], payload, a.time)
        at, name = record["sequence_num"] - 1, _name(account, a.credential)
        credential, voter_key = self._registered(name, at)
        check_assertion(credential, text, a, record["received_at"])
        key = self._keys[name]
        key.used_until = max(key.used_until, at)
        return voter_key

    def check_used(self) -> None:
        """Check that the file has exactly the events that the votes need. Errors are Flaw."""
        for event in reversed(self._events):
            if event.credential is None:
                continue
            need(self._keys[event.of].used_until > event.at, "voters: a voter key that no vote needs")
            if event.consent:
                by = self._keys[event.consent]
                by.used_until = max(by.used_until, event.at)
        for key in self._keys.values():
            need(key.used_until > 0, "voters: a retirement that no vote needs")
            listed = key.unlisted is None or key.unlisted >= key.used_until
            need(listed, "voters: a registration that is not in the file")


def _is_party(rp_id: Any, origin: Any) -> bool:
    """Return whether pages of an origin may use passkeys of a relying party."""
    match = _ORIGIN.fullmatch(origin) if isinstance(origin, str) else None
    if match is None or not isinstance(rp_id, str) or not rp_id:
        return False
    if match[1] == "http" and match[2] != "localhost":
        return False
    return match[2] == rp_id or match[2].endswith("." + rp_id)
