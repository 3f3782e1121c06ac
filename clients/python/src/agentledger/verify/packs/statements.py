"""What the service states in a pack: approvals, and erasures of envelopes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from ..documents import (
    Envelope,
    check_envelope,
    check_signature,
    is_hash,
    is_natural,
    parse_entry,
    parse_envelope,
    parse_record,
)
from ..encoding import sha
from ..flaw import MALFORMED, need
from ..tree import check_inclusion
from .manifest import read_any_canonical, read_canonical, read_lines

_MAX_LINES = 20_000
_MAX_RANGES = 1024
_REASON = re.compile(r"[a-z0-9_]{1,32}", re.ASCII)
_ERASURE = frozenset(("entry", "envelope", "proof", "record"))


def read_envelope(text: str, record: dict[str, Any]) -> Envelope:
    """Read an envelope that belongs to a record. Errors are Flaw."""
    envelope = parse_envelope(text)
    check_envelope(record, envelope)
    need(envelope.members["sig_value_b64"] == record["sig_value_b64"], "envelope and the record's sig_value_b64")
    if record["sig_form"] == "canonical":
        check_signature(record, envelope)
    return envelope


def check_system(record: dict[str, Any], m: dict[str, Any]) -> None:
    """Check that a record is the service's own, of this log, and signed. Errors are Flaw."""
    log = (record["origin"], record["organization_id"]) == (m["origin"], m["organization_id"])
    need(record["signer"] == "system" and log, "statement: not the service's own of this log")
    if record["sig_form"] == "digest":
        check_signature(record, None)


@dataclass
class Erasures:
    """Which shown events have no envelope, by sequence number, and how many statements say so."""

    covered: set[int] = field(default_factory=set)
    lines: int = 0


def read_erasures(m: dict[str, Any], raw: bytes, shown: list[dict[str, Any]]) -> Erasures:
    """Read the statements that erased envelopes of shown events. Errors are Flaw."""
    found, last = Erasures(), 0
    numbers = [r["sequence_num"] for r in shown if r["signer"] != "system"]
    for line in read_lines(raw, "erasures", _MAX_LINES):
        x = read_canonical(line, _ERASURE, "erasures")
        texts = all(isinstance(x[n], str) for n in ("entry", "envelope", "record")) and isinstance(x["proof"], list)
        need(texts and all(is_hash(h) for h in x["proof"]), "erasures: a member", MALFORMED)
        ranges, last = _read_erasure(m, x, last)
        covered = {n for n in numbers if any(begin < n <= end for begin, end in ranges)}
        need(bool(covered), "erasures: a statement about no shown event")
        found.covered |= covered
        found.lines += 1
    return found


def _read_erasure(m: dict[str, Any], x: dict[str, Any], last: int) -> tuple[list[Any], int]:
    record, entry = parse_record(x["record"]), parse_entry(x["entry"])
    seq = entry.seq
    need(sha(x["record"].encode()) == entry.record and seq == record["sequence_num"], "erasures: record and entry")
    need(seq > last, "erasures: order", MALFORMED)
    proof = [bytes.fromhex(h) for h in x["proof"]]
    check_inclusion(seq - 1, m["tree_size"], entry.hash, proof, bytes.fromhex(m["root_hash"]))
    check_system(record, m)
    e = read_envelope(x["envelope"], record).members
    need(e["action_kind"] == "ledger_envelope_erased", "erasures: kind")
    payload = e["payload"]
    reason = payload.get("reason")
    form = payload.keys() == {"ranges", "reason"} and isinstance(reason, str) and _REASON.fullmatch(reason) is not None
    need(form and isinstance(payload["ranges"], list), "erasures: payload", MALFORMED)
    _check_ranges(payload["ranges"], seq - 1)
    return payload["ranges"], seq


def _check_ranges(ranges: list[Any], index: int) -> None:
    need(1 <= len(ranges) <= _MAX_RANGES, "erasures: number of ranges", MALFORMED)
    end = 0
    for pair in ranges:
        form = isinstance(pair, list) and len(pair) == 2 and all(is_natural(n) for n in pair)
        need(form and end <= pair[0] < pair[1] <= index, "erasures: a range", MALFORMED)
        end = pair[1]


def read_approvals(m: dict[str, Any], raw: bytes, hashes: list[bytes]) -> int:
    """Check the service's statements about approvals, and return the number of approvals. Errors are Flaw."""
    names: set[str] = set()
    first_before = 0
    for line in read_lines(raw, "approvals", _MAX_LINES):
        a = read_any_canonical(line, "approvals")
        name, events = a.get("approval_id"), a.get("events")
        form = isinstance(name, str) and name and isinstance(events, list) and events
        need(bool(form) and name not in names, "approvals: approval_id or events", MALFORMED)
        names.add(str(name))
        first = _check_events(m, str(name), events or [], hashes)
        need(first > first_before, "approvals: order", MALFORMED)
        first_before = first
    return len(names)


def _check_events(m: dict[str, Any], name: str, events: list[Any], hashes: list[bytes]) -> int:
    """Check the events of an approval, and return the first one's number."""
    last = first = 0
    for x in events:
        form = isinstance(x, dict) and x.keys() == {"envelope", "record"}
        need(form and all(isinstance(v, str) for v in x.values()), "approvals: an event", MALFORMED)
        record = parse_record(x["record"])
        seq = record["sequence_num"]
        place = last < seq and m["begin"] < seq <= m["end"]
        need(place and sha(x["record"].encode()) == hashes[seq - 1 - m["begin"]], "approvals: record and entry")
        check_system(record, m)
        e = read_envelope(x["envelope"], record).members
        right = e["action_kind"] == "ledger_approval" and e["payload"].get("approval_id") == name
        need(right, "approvals: an event of another one")
        last, first = seq, first or seq
    return first
