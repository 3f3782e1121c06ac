"""The service's directory, whose events list trees of its logs, and successions of logs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._shapes import is_list, is_object
from ._bundles import Bundle
from ._documents import check_signature, genesis, is_hash, is_positive, parse_entry, parse_envelope, parse_record
from ._encoding import sha
from ._flaw import MALFORMED, Flaw, need
from ._keys import parse_log_key
from ._note import parse_note, read_checkpoint

DIRECTORY_KIND = "ledger_directory"
SUCCESSOR_KIND = "ledger_successor"
MAX_LISTED = 256

_LISTED = frozenset(("origin", "tree_size", "root_hash", "log_key"))


def check_listing(members: dict[str, Any], origin: str) -> tuple[int, bytes]:
    """Return size and root of a log's tree in an event of a directory. Errors are Flaw."""
    need(members["action_kind"] == DIRECTORY_KIND, "listing: not an event of a directory")
    payload = members["payload"]
    lines = payload.get("checkpoints")
    good = payload.keys() == {"checkpoints"} and is_list(lines) and all(_is_listed(x) for x in lines)
    need(good, "listing", MALFORMED)
    need(1 <= len(lines) <= MAX_LISTED, "listing: number of logs", MALFORMED)
    last = b""
    for line in lines:
        name = line["origin"].encode()
        need(_is_named(line) and name > last, "listing: a log's origin, tree_size or log_key", MALFORMED)
        last = name
    for line in lines:
        if line["origin"] == origin:
            return line["tree_size"], bytes.fromhex(line["root_hash"])
    raise Flaw("the log is not listed", "mismatch")


def _is_listed(line: Any) -> bool:
    return (
        is_object(line)
        and line.keys() == _LISTED
        and isinstance(line["origin"], str)
        and isinstance(line["log_key"], str)
        and is_positive(line["tree_size"])
        and is_hash(line["root_hash"])
    )


def _is_named(line: dict[str, Any]) -> bool:
    try:
        return parse_log_key(line["log_key"]).name == str(line["origin"])
    except Flaw:
        return False


@dataclass(frozen=True)
class Succession:
    """Which log another log succeeds: its last known number of entries, and the operator's reason."""

    predecessor: str
    size: int
    reason: str


def succession_of(bundle: Bundle) -> Succession | None:
    """Return the succession that a bundle's event states, or None for any other event. Check the bundle, too."""
    record_text, envelope_text = bundle.shown("record"), bundle.shown("envelope")
    if bundle.log_index != 0 or record_text is None or envelope_text is None:
        return None
    try:
        return _read_succession(bundle.text("origin"), bundle.text("entry"), record_text, envelope_text)
    except Flaw:
        return None


def _read_succession(origin: str, entry_text: str, record_text: str, envelope_text: str) -> Succession:
    entry, record, envelope = parse_entry(entry_text), parse_record(record_text), parse_envelope(envelope_text)
    need(sha(record_text.encode()) == entry.record and entry.seq == 1 and entry.prev == genesis(origin), "succession")
    check_signature(record, envelope)
    own = record["signer"] == "system" and record["origin"] == origin
    need(own and envelope.digest.hex() == record["event_digest"], "succession: envelope and record")
    payload = envelope.members["payload"]
    texts = all(isinstance(payload.get(n), str) and payload[n] for n in ("predecessor", "checkpoint", "reason"))
    need(texts and len(payload) == 3 and envelope.members["action_kind"] == SUCCESSOR_KIND, "succession", MALFORMED)
    need(_next_origin(payload["predecessor"]) == origin, "succession: predecessor", MALFORMED)
    last = read_checkpoint(parse_note(payload["checkpoint"]))
    need(last.origin == payload["predecessor"], "succession: checkpoint of another log")
    return Succession(payload["predecessor"], last.size, payload["reason"])


def _next_origin(origin: str) -> str:
    """Return the origin of a log's successor, which ends in /2, then /3."""
    head, _, number = origin.rpartition("/")
    if number.isascii() and number.isdigit() and int(number) >= 2:
        return f"{head}/{int(number) + 1}"
    return origin + "/2"
