"""The check of a pack, step by step (docs/spec/evidence-pack.md, The check)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..._grammar import ID
from ..._shapes import is_list, is_object
from ..._strictjson import parse_object
from .._documents import check_signature, genesis, is_natural, parse_record
from .._encoding import sha
from .._flaw import MALFORMED, MISMATCH, SIGNATURE, Flaw, need
from .._keys import VerifierKey, parse_log_key
from .._note import Checkpoint, open_checkpoint, parse_note, read_checkpoint
from .._policy import parse_policy
from .._tree import Tree, check_consistency, leaf_hash
from .acts import NO_ACTS, ActCounts, Acts
from .agents import read_agents
from .archive import ACTS, POLICY_FILE, VOTERS, Member, open_archive, reader
from .comparisons import MAX_COMPARISONS, Comparison, comparison, is_comparison
from .events import Events
from .manifest import COUNTS, MAX_DOCUMENT, filters, fits_subject, fits_tool, read_canonical, read_manifest
from .source import Source
from .statements import read_approvals, read_envelope, read_erasures
from .voters import Vote, Voters

MAX_POLICIES = 1000
_MAX_NOTE = 128 << 10
_NAMED = "agents: agents and records"
_KEY_MEMBERS = frozenset(("vkey", "use", "from_size", "to_size"))


@dataclass
class Facts:
    """What a pack proves: it is complete for [begin, end), and shows this many events."""

    origin: str | None = None
    begin: int = 0
    end: int = 0
    tree_size: int = 0
    shown: int = 0
    withheld: int = 0
    erased: int = 0
    envelopes: int = 0
    approvals: int = 0
    actions_unchecked: int = 0
    acts: ActCounts | None = None
    comparisons: list[Comparison] = field(default_factory=list[Comparison])
    votes_signed: int = 0
    votes_unsigned: int = 0
    votes: list[Vote] = field(default_factory=list[Vote])
    signatures_unchecked: int = 0
    manifest_sha256: str | None = None
    checkpoint: str | None = None
    filtered: bool = False
    has_envelopes: bool = False
    not_covered: list[str] = field(default_factory=list[str])


Open = Callable[[str], Checkpoint]


def check_pack(
    pack: Source | str | os.PathLike[str], open_note: Open | None, facts: Facts, tools: Sequence[VerifierKey] = ()
) -> None:
    """Check a pack, where a path names a folder, and fill in the facts as far as the check goes.

    Errors are Flaw, Unreadable and OSError. open_note opens the checkpoint under the pinned keys; None takes the keys
    of the pack. tools are keys of tools, whose receipts confirm acts.
    """
    files = open_archive(pack)
    m = read_manifest(files)
    request = m["request"]
    facts.origin, facts.begin, facts.end = m["origin"], m["begin"], m["end"]
    facts.manifest_sha256 = files["manifest.json"].sha256
    facts.filtered = filters(request)
    facts.has_envelopes = request["envelopes"]
    _check_checkpoint(m, files, open_note, facts)
    _check_entries(m, files["entries.bin"])
    events = Events(m["begin"], m["end"], reader(files["entries.bin"]))
    known = read_agents(files["agents.json"])
    policies = {name.removeprefix("policies/").removesuffix(".json") for name in files if POLICY_FILE.fullmatch(name)}
    used = _read_records(m, files["records.ndjson"], events, known)
    _check_policies(files, policies, used)
    found: dict[str, int] = dict.fromkeys(COUNTS, 0)
    found["erasures"] = read_erasures(m, files["erasures.ndjson"], events)
    found.update(entries=len(events), records=events.shown, agents=len(known))
    found.update(erased=events.erased, policies=len(policies))
    voters = Voters(m)
    if VOTERS in files:
        voters.read(files[VOTERS])
        found["voter_keys"] = len(voters)
    acts = Acts(m["acts"]) if ACTS in files else None
    found["envelopes"] = _check_envelopes(m, files, events, voters, acts, facts.comparisons)
    statements = files["approvals.ndjson"]
    names, facts.actions_unchecked = read_approvals(m, statements, events, voters, acts)
    found["approvals"] = len(names)
    if events.unlisted:
        _check_unlisted(facts, names, events, _shown_again(m, files, events))
    voters.check_used()
    if acts is not None:
        if acts.has_receipts and tools:
            acts.confirm(_shown_again(m, files, events), tools)
        facts.acts = acts.check(files[ACTS].lines("acts"), _shown_again(m, files, events), tools)
    need(found == m["counts"], "counts: counts and what was found")
    facts.tree_size, facts.shown, facts.withheld = m["tree_size"], events.shown, len(events) - events.shown
    facts.erased, facts.envelopes, facts.approvals = events.erased, found["envelopes"], found["approvals"]
    facts.signatures_unchecked = events.unchecked(request["envelopes"])
    facts.votes, facts.votes_signed, facts.votes_unsigned = voters.votes, voters.signed, voters.unsigned
    complete = not facts.filtered and facts.has_envelopes and (len(voters) == 0 or voters.begin >= facts.begin)
    facts.not_covered = _not_covered(facts, len(voters) > 0 and not complete)


def _check_checkpoint(m: dict[str, Any], files: dict[str, Member], open_note: Open | None, facts: Facts) -> None:
    note, keys = files["checkpoint"], files["keys.json"]
    good = note.size <= _MAX_NOTE and files["policy"].size <= _MAX_NOTE and keys.size <= MAX_DOCUMENT
    need(good, "checkpoint: size of a file", MALFORMED)
    text = note.read().decode("utf-8", "replace")
    facts.checkpoint = text
    vkeys = _read_keys(keys.read())
    parse_policy(files["policy"].read())
    need(text.encode() == note.read(), "checkpoint: not valid UTF-8", MALFORMED)
    checkpoint = open_note(text) if open_note else _open_by_any(text, vkeys)
    same = (checkpoint.origin, checkpoint.size, checkpoint.root.hex()) == (m["origin"], m["tree_size"], m["root_hash"])
    need(same, "checkpoint: manifest and checkpoint")


@dataclass(frozen=True)
class _Key:
    vkey: str
    begin: int
    end: int | None


def _read_keys(raw: bytes) -> list[_Key]:
    lines = read_canonical(raw, frozenset(("keys",)), "keys.json")["keys"]
    need(is_list(lines) and len(lines) > 0, "keys.json", MALFORMED)
    for line in lines:
        form = is_object(line) and line.keys() == _KEY_MEMBERS and isinstance(line["vkey"], str) and line["use"] == "log"
        need(form and _are_sizes(line["from_size"], line["to_size"]), "keys.json: a key", MALFORMED)
        parse_log_key(line["vkey"])
    return [_Key(line["vkey"], line["from_size"], line["to_size"]) for line in lines]


def _are_sizes(begin: Any, end: Any) -> bool:
    return is_natural(begin) and (end is None or is_natural(end) and begin <= end)


def _open_by_any(text: str, keys: list[_Key]) -> Checkpoint:
    last = Flaw("keys of the pack", SIGNATURE)
    size = read_checkpoint(parse_note(text)).size
    for key in keys:
        if key.begin <= size and (key.end is None or size < key.end):
            try:
                return open_checkpoint(parse_note(text), parse_log_key(key.vkey))
            except Flaw as flaw:
                last = flaw
    raise last


def _not_covered(f: Facts, may_hide_retirements: bool) -> list[str]:
    """List what no check covers, in the words of `aps verify`."""
    names = ["that no withheld event fits the request (docs/spec/evidence-pack.md)"] if f.filtered else []
    names.append("records.ndjson: received_at, custody, policy, and whose key public_key is")
    names.append("agents.json: display_name, custody, status, registered_at, ended_at, compromised_from")
    if f.approvals:
        names.append(
            "approvals.ndjson: trace_id, policy_id, policy_version, policy_digest, rule_id, quorum, created_at, "
            "expires_at, email and name of people, members that docs/spec/evidence-pack.md does not list"
        )
    if f.actions_unchecked:
        names.append(
            f"approvals.ndjson: agent_id and tool_name of the {f.actions_unchecked} approvals without payload"
        )
    if may_hide_retirements:
        names.append("voters.ndjson: that no retirement of a voter key before a vote is withheld")
    if f.filtered or not f.has_envelopes:
        names.append("approvals.ndjson: that no approval, and no event of one, is withheld")
    if f.acts is not None:
        names.append("acts.ndjson: that no approval, vote or result of an act is withheld or lies outside the range")
    else:
        names.append(f"acts.ndjson: {NO_ACTS}")
    return [*names, "keys.json, policy, report.html"]


def _check_entries(m: dict[str, Any], file: Member) -> None:
    """Check that the log has exactly these entries in the range. The file contains the hashes of their records."""
    count = m["end"] - m["begin"]
    need(file.size == 32 * count, "completeness: entries.bin", MALFORMED)
    before = bytes.fromhex(m["prev"]) if count else b""
    need(not count or m["begin"] or before == genesis(m["origin"]), "completeness: first entry and genesis value")
    tree = Tree(m["begin"], [bytes.fromhex(h) for h in m["edge"]])
    number = m["begin"]
    for portion in _whole_hashes(file):
        for at in range(0, len(portion), 32):
            number += 1
            own = _hex(portion[at : at + 32])
            before = leaf_hash(b'{"prev":"%s","record":"%s","seq":%d,"v":1}' % (_hex(before), own, number))
            tree.add(before)
    root, whole = tree.root(), bytes.fromhex(m["root_hash"])
    proof = [bytes.fromhex(h) for h in m["consistency"]]
    if m["end"] in (0, m["tree_size"]):
        need(not proof, "completeness: number of hashes", MALFORMED)
        need(m["end"] != m["tree_size"] or root == whole, "completeness: entries and root_hash")
    else:
        check_consistency(m["end"], m["tree_size"], root, whole, proof)


def _whole_hashes(file: Member) -> Iterator[bytes]:
    """Return the content in portions of whole hashes."""
    rest = b""
    for portion in file.portions():
        rest += portion
        whole = len(rest) - len(rest) % 32
        yield rest[:whole]
        rest = rest[whole:]


def _hex(value: bytes) -> bytes:
    return value.hex().encode()


def _read_records(
    m: dict[str, Any], file: Member, events: Events, known: dict[str, set[tuple[str, str]]]
) -> set[str]:
    """Read the shown records: they are in the range, match the request, and their keys signed.

    Return the digests of their policies, at most MAX_POLICIES and one.
    """
    policies: set[str] = set()
    named: set[str] = set()
    last = m["begin"]
    for text in file.lines("records"):
        r = parse_record(text)
        number = r["sequence_num"]
        need((r["origin"], r["organization_id"]) == (m["origin"], m["organization_id"]), "records: record and log")
        ids = r["event_id"], r["policy"].get("intent"), r["policy"]["approval_id"]
        form = ids[0] is not None and all(i is None or ID.fullmatch(i) is not None for i in ids)
        need(form, "records: event_id, intent, approval_id", MALFORMED)
        place = last < number and events.has(number) and sha(text.encode()) == events.record_hash(number)
        need(place, "records: record and entry")
        envelope_decides = "coverage" in m["request"] and r["signer"] == "system"
        need(envelope_decides or m["request"]["agent_id"] in (None, r["agent_id"]), "records: record and request")
        _check_signer(r, known)
        if r["signer"] != "system":
            need(r["agent_id"] in known, _NAMED)
            named.add(r["agent_id"])
        if r["policy"]["policy_digest"] is not None and len(policies) <= MAX_POLICIES:
            policies.add(r["policy"]["policy_digest"])
        events.show(number, r["signer"] != "system", r["sig_form"] == "canonical")
        last = number
    if not filters(m["request"]):
        need(events.shown == len(events), "records: not all events of the range")
    need(known.keys() == named, _NAMED)
    return policies


def _check_signer(r: dict[str, Any], known: dict[str, set[tuple[str, str]]]) -> None:
    if r["sig_form"] == "digest":
        check_signature(r, None)
    if r["signer"] == "agent":
        listed = (r["key_id"], r["public_key"]) in known.get(r["agent_id"], set())
        need(listed, "records: key and agents.json")


def _check_policies(files: dict[str, Member], policies: set[str], used: set[str]) -> None:
    need(used == policies, "policies: policies and records")
    need(len(policies) <= MAX_POLICIES, "policies: number", MALFORMED)
    for digest in policies:
        file = files[f"policies/{digest}.json"]
        need(file.size <= MAX_DOCUMENT, "policies: size", MALFORMED)
        need(file.sha256 == digest, "policies: digest")


def _shown_again(
    m: dict[str, Any], files: dict[str, Member], events: Events
) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None]]:
    """Return the records of shown events with the members of their envelopes. They were checked before."""
    lines = files["envelopes.ndjson"].lines("envelopes")
    for record in files["records.ndjson"].lines("records"):
        r = parse_object(record)
        has = m["request"]["envelopes"] and not events.is_erased(r["sequence_num"])
        yield r, parse_object(next(lines)) if has else None


def _check_unlisted(
    facts: Facts, names: set[bytes], events: Events, shown: Iterator[tuple[dict[str, Any], dict[str, Any] | None]]
) -> None:
    """Check that approvals.ndjson has the shown statements about approvals.

    With a filter, these may be about approvals that the filter excludes, so only those about the listed ones count. names
    are hashes of their IDs.
    """
    what = "approvals: a shown event that is not in approvals.ndjson"
    need(facts.filtered, what)
    for r, e in shown:
        name = e["payload"].get("approval_id") if e and events.is_unlisted(r["sequence_num"]) else None
        need(not isinstance(name, str) or sha(name.encode()) not in names, what)


def _check_envelopes(
    m: dict[str, Any],
    files: dict[str, Member],
    events: Events,
    voters: Voters,
    acts: Acts | None,
    comparisons: list[Comparison],
) -> int:
    """Check the envelopes of shown events, and return their number. The records are read once more."""
    request, lines = m["request"], files["envelopes.ndjson"].lines("envelopes")
    if not request["envelopes"]:
        need(files["envelopes.ndjson"].size == 0, "envelopes: not asked for")
    if not request["envelopes"] and acts is None:
        return 0
    count = 0
    for record in files["records.ndjson"].lines("records"):
        r = parse_record(record)
        if not request["envelopes"] or events.is_erased(r["sequence_num"]):
            if acts is not None:
                acts.add_event(r, None)
            continue
        text = next(lines, None)
        if text is None:
            raise Flaw("envelopes: number", MISMATCH)
        e = read_envelope(text, r).members
        if "coverage" not in request or not is_comparison(r, e):
            need(request["agent_id"] in (None, e["agent_id"]), "envelopes: agent and request")
            need(request["trace_id"] in (None, e["trace_id"]), "envelopes: trace and request")
            fits = request["tool"] is None or fits_tool(request["tool"], e.get("tool_name"))
            need(fits, "envelopes: tool and request")
            need(fits_subject(request, e.get("on_behalf_of")), "envelopes: subject and request")
        compared = comparison(r, e)
        if compared is not None and len(comparisons) < MAX_COMPARISONS:
            comparisons.append(compared)
        if r["signer"] == "system":
            voters.check_listed(e, r["sequence_num"] - 1)
            if e["action_kind"] == "ledger_approval":
                events.list(r["sequence_num"], False)
        if acts is not None:
            acts.add_event(r, e)
        count += 1
    need(next(lines, None) is None, "envelopes: number")
    return count
