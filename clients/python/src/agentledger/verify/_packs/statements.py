"""The service's statements in a pack: approvals, and erasures of envelopes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ..._canonical import canonical_text
from ..._shapes import is_list, is_object
from .._documents import (
    Envelope,
    check_envelope,
    check_signature,
    is_hash,
    is_natural,
    parse_entry,
    parse_envelope,
    parse_record,
)
from .._encoding import sha
from .._flaw import MALFORMED, need
from .._tree import check_inclusion
from .archive import Member
from .events import Events
from .manifest import read_any_canonical, read_canonical

if TYPE_CHECKING:
    from .acts import Acts
    from .voters import Voters

_MAX_LINES = 20_000
_MAX_RANGES = 1024
_REASON = re.compile(r"[a-z0-9_]{1,32}", re.ASCII)
_PROVEN = frozenset(("entry", "envelope", "proof", "record"))


def read_envelope(text: str, record: dict[str, Any]) -> Envelope:
    """Parse an envelope that belongs to a record. Errors are Flaw."""
    envelope = parse_envelope(text)
    check_envelope(record, envelope)
    need(envelope.members["sig_value_b64"] == record["sig_value_b64"], "envelope and the record's sig_value_b64")
    if record["sig_form"] == "canonical":
        check_signature(record, envelope)
    return envelope


def check_system(record: dict[str, Any], m: dict[str, Any]) -> None:
    """Check that a record is one of the service's own, of this log, and signed. Errors are Flaw."""
    log = (record["origin"], record["organization_id"]) == (m["origin"], m["organization_id"])
    need(record["signer"] == "system" and log, "statement: not the service's own of this log")
    if record["sig_form"] == "digest":
        check_signature(record, None)


def read_proven(m: dict[str, Any], line: str, kind: str, what: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parse a statement of a kind with its proof. Return its record and its envelope's members. Errors are Flaw."""
    x = read_canonical(line, _PROVEN, what)
    texts = all(isinstance(x[n], str) for n in ("entry", "envelope", "record")) and is_list(x["proof"])
    need(texts and all(is_hash(h) for h in x["proof"]), f"{what}: a member", MALFORMED)
    record, entry = parse_record(x["record"]), parse_entry(x["entry"])
    same = sha(x["record"].encode()) == entry.record and entry.seq == record["sequence_num"]
    need(same, f"{what}: record and entry")
    proof = [bytes.fromhex(h) for h in x["proof"]]
    check_inclusion(entry.seq - 1, m["tree_size"], entry.hash, proof, bytes.fromhex(m["root_hash"]))
    check_system(record, m)
    members = read_envelope(x["envelope"], record).members
    need(members["action_kind"] == kind, f"{what}: kind")
    return record, members


def read_erasures(m: dict[str, Any], file: Member, events: Events) -> int:
    """Read the statements that erased envelopes of shown events, and return their number. Errors are Flaw."""
    count = last = 0
    for line in file.lines("erasures", _MAX_LINES):
        ranges, last = _read_erasure(m, line, last)
        found = [events.erase(begin, end) for begin, end in ranges]
        need(any(found), "erasures: a statement about no shown event")
        count += 1
    return count


def _read_erasure(m: dict[str, Any], line: str, last: int) -> tuple[list[Any], int]:
    record, members = read_proven(m, line, "ledger_envelope_erased", "erasures")
    seq, payload = record["sequence_num"], members["payload"]
    need(seq > last, "erasures: order", MALFORMED)
    reason = payload.get("reason")
    form = payload.keys() == {"ranges", "reason"} and isinstance(reason, str) and _REASON.fullmatch(reason) is not None
    need(form and is_list(payload["ranges"]), "erasures: payload", MALFORMED)
    _check_ranges(payload["ranges"], seq - 1)
    return payload["ranges"], seq


def _check_ranges(ranges: list[Any], index: int) -> None:
    need(1 <= len(ranges) <= _MAX_RANGES, "erasures: number of ranges", MALFORMED)
    end = 0
    for pair in ranges:
        form = is_list(pair) and len(pair) == 2 and all(is_natural(n) for n in pair)
        need(form and end <= pair[0] < pair[1] <= index, "erasures: a range", MALFORMED)
        end = pair[1]


def read_approvals(
    m: dict[str, Any], file: Member, events: Events, voters: Voters, acts: Acts | None
) -> tuple[set[bytes], int]:
    """Check the service's statements about approvals.

    Return the hashes of the IDs of approvals, and how many of them have no payload. Errors are Flaw.
    """
    names: set[bytes] = set()  # a name may be as long as a line
    first_before = unchecked = 0
    for line in file.lines("approvals", _MAX_LINES):
        a = read_any_canonical(line, "approvals")
        name, own = a.get("approval_id"), a.get("events")
        form = isinstance(name, str) and name and is_list(own) and own
        digest = sha(str(name).encode())
        need(bool(form) and digest not in names, "approvals: approval_id or events", MALFORMED)
        names.add(digest)
        actors: set[str] = set()
        first, action = _check_events(m, str(name), own or [], events, voters, acts, actors)
        need(first > first_before, "approvals: order", MALFORMED)
        first_before = first
        _check_people(a.get("people", []), actors, acts)
        unchecked += not _check_action(m, a, action)
    return names, unchecked


def _check_people(people: Any, actors: set[str], acts: Acts | None) -> None:
    """Check that the voters of an approval act in its events."""
    accounts: set[str] = set()
    need(is_list(people), "approvals: people", MALFORMED)
    for p in people:
        form = is_object(p) and p.keys() - {"name"} == {"account_id", "email"}
        need(form and all(isinstance(v, str) for v in p.values()), "approvals: people", MALFORMED)
        need(p["account_id"] != "" and p["account_id"] not in accounts, "approvals: people", MALFORMED)
        need(p["account_id"] in actors, "approvals: people and the events")
        accounts.add(p["account_id"])
        if acts is not None:
            acts.add_person(p)


def _check_action(m: dict[str, Any], a: dict[str, Any], proved: str | None) -> bool:
    """Compare the action in a line with the digest that its events name. Return whether the line has a payload."""
    for name in ("action_digest", "agent_id", "tool_name"):
        need(name not in a or isinstance(a[name], str), f"approvals: {name}", MALFORMED)
    need("action_digest" not in a or a["action_digest"] == proved, "approvals: action_digest and the events")
    payload = a.get("payload")
    subject = "on_behalf_of" in a
    need(not subject or payload is not None and is_object(a["on_behalf_of"]), "approvals: on_behalf_of", MALFORMED)
    if payload is None:
        return False
    need(isinstance(payload, str) and "agent_id" in a and "tool_name" in a, "approvals: payload", MALFORMED)
    read_any_canonical(payload, "approvals: payload")
    behalf = f'"on_behalf_of":{canonical_text(a["on_behalf_of"])},' if subject else ""
    parts = canonical_text(a["agent_id"]), behalf, m["organization_id"], payload, canonical_text(a["tool_name"]), 1 + subject
    action = '{"agent_id":%s,%s"organization_id":"%s","payload":%s,"tool_name":%s,"v":%d}' % parts
    need(sha(action.encode()).hex() == proved, "approvals: agent_id, tool_name, payload, on_behalf_of and action_digest")
    return True


def _check_events(
    m: dict[str, Any], name: str, own: list[Any], events: Events, voters: Voters, acts: Acts | None, actors: set[str]
) -> tuple[int, str | None]:
    """Check the events of an approval, and add its actors. Return the first one's number and the action_digest."""
    last = first = 0
    action: str | None = None
    for x in own:
        form = is_object(x) and x.keys() == {"envelope", "record"}
        need(form and all(isinstance(v, str) for v in x.values()), "approvals: an event", MALFORMED)
        record = parse_record(x["record"])
        seq = record["sequence_num"]
        place = last < seq and events.has(seq) and sha(x["record"].encode()) == events.record_hash(seq)
        need(place, "approvals: record and entry")
        check_system(record, m)
        e = read_envelope(x["envelope"], record).members
        right = e["action_kind"] == "ledger_approval" and e["payload"].get("approval_id") == name
        need(right, "approvals: an event of another one")
        digest = e["payload"].get("action_digest")
        form = "action_digest" not in e["payload"] or is_hash(digest) and digest != "0" * 64
        need(form, "approvals: action_digest of an event", MALFORMED)
        need(not first or digest == action, "approvals: action_digest of the events")
        voters.check_vote(record, e)
        if acts is not None:
            acts.add_statement(name, seq - 1, e)
        events.list(seq, True)
        action = digest
        actors.add(e["actor_principal"].split("/")[0])
        last, first = seq, first or seq
    return first, action
