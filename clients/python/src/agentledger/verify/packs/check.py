"""The check of a pack, step by step (docs/evidence.md, The check)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..documents import check_signature, genesis, is_natural, parse_record
from ..encoding import sha
from ..flaw import MALFORMED, Flaw, need
from ..keys import parse_log_key
from ..note import Checkpoint, open_checkpoint, parse_note
from ..tree import Tree, check_consistency, leaf_hash
from .agents import read_agents
from .archive import POLICY_FILE, open_archive
from .manifest import COUNTS, MAX_DOCUMENT, fits_tool, read_canonical, read_lines, read_manifest
from .statements import Erasures, read_approvals, read_envelope, read_erasures

_MAX_NOTE = 128 << 10
_KEY = frozenset(("vkey", "use", "from_size", "to_size"))


@dataclass
class Facts:
    """What a pack proves: it is complete for [begin, end), and shows so many events."""

    origin: str = ""
    begin: int = 0
    end: int = 0
    tree_size: int = 0
    shown: int = 0
    withheld: int = 0
    erased: int = 0
    envelopes: int = 0
    approvals: int = 0
    signatures_unchecked: int = 0
    manifest_sha256: str = ""
    checkpoint: str = ""
    filtered: bool = False
    has_envelopes: bool = False


Open = Callable[[str], Checkpoint]


def check_pack(raw: bytes, open_note: Open | None, facts: Facts) -> None:
    """Check a pack and fill the facts as far as the check comes. Errors are Flaw.

    open_note opens the checkpoint under the pinned keys; None takes the keys of the pack.
    """
    files = open_archive(raw)
    m = read_manifest(files)
    request = m["request"]
    facts.origin, facts.begin, facts.end = m["origin"], m["begin"], m["end"]
    facts.manifest_sha256 = sha(files["manifest.json"]).hex()
    facts.filtered = any(request[n] is not None for n in ("agent_id", "tool", "trace_id"))
    facts.has_envelopes = request["envelopes"]
    _check_checkpoint(m, files, open_note, facts)
    hashes = _check_entries(m, files["entries.bin"])
    known = read_agents(files["agents.json"])
    shown = _read_records(m, files["records.ndjson"], hashes, known)
    _check_policies(files, shown)
    erasures = read_erasures(m, files["erasures.ndjson"], shown)
    found = dict.fromkeys(COUNTS, 0)
    found.update(entries=len(hashes), records=len(shown), agents=len(known))
    found.update(erasures=erasures.lines, erased=len(erasures.covered))
    found["policies"] = sum(POLICY_FILE.fullmatch(n) is not None for n in files)
    found["envelopes"] = _check_envelopes(m, files["envelopes.ndjson"], shown, erasures)
    found["approvals"] = read_approvals(m, files["approvals.ndjson"], hashes)
    need(found == m["counts"], "counts: counts and what was found")
    facts.tree_size, facts.shown, facts.withheld = m["tree_size"], len(shown), len(hashes) - len(shown)
    facts.erased, facts.envelopes, facts.approvals = len(erasures.covered), found["envelopes"], found["approvals"]
    facts.signatures_unchecked = sum(
        r["sig_form"] == "canonical" and (not request["envelopes"] or r["sequence_num"] in erasures.covered)
        for r in shown
    )


def _check_checkpoint(m: dict[str, Any], files: dict[str, bytes], open_note: Open | None, facts: Facts) -> None:
    note, keys = files["checkpoint"], files["keys.json"]
    good = len(note) <= _MAX_NOTE and len(files["policy"]) <= _MAX_NOTE and len(keys) <= MAX_DOCUMENT
    need(good, "checkpoint: size of a file", MALFORMED)
    text = note.decode("utf-8", "replace")
    facts.checkpoint = text
    vkeys = _read_keys(keys)
    need(text.encode() == note, "checkpoint: not valid UTF-8", MALFORMED)
    checkpoint = open_note(text) if open_note else _open_by_any(text, vkeys)
    same = (checkpoint.origin, checkpoint.size, checkpoint.root.hex()) == (m["origin"], m["tree_size"], m["root_hash"])
    need(same, "checkpoint: manifest and checkpoint")


def _read_keys(raw: bytes) -> list[str]:
    lines = read_canonical(raw, frozenset(("keys",)), "keys.json")["keys"]
    need(isinstance(lines, list), "keys.json", MALFORMED)
    for line in lines:
        form = isinstance(line, dict) and line.keys() == _KEY and isinstance(line["vkey"], str) and line["use"] == "log"
        need(form and _are_sizes(line["from_size"], line["to_size"]), "keys.json: a key", MALFORMED)
        parse_log_key(line["vkey"])
    return [line["vkey"] for line in lines]


def _are_sizes(begin: Any, end: Any) -> bool:
    return is_natural(begin) and (end is None or is_natural(end))


def _open_by_any(text: str, vkeys: list[str]) -> Checkpoint:
    last: Flaw = Flaw("checkpoint: no key", MALFORMED)
    for vkey in vkeys:
        try:
            return open_checkpoint(parse_note(text), parse_log_key(vkey))
        except Flaw as flaw:
            last = flaw
    raise last


def _check_entries(m: dict[str, Any], raw: bytes) -> list[bytes]:
    """Check that the log has exactly these entries in the range, and return the hashes of their records."""
    count = m["end"] - m["begin"]
    need(len(raw) == 32 * count, "completeness: entries.bin", MALFORMED)
    before = bytes.fromhex(m["prev"]) if count else b""
    need(not count or m["begin"] or before == genesis(m["origin"]), "completeness: first entry and genesis value")
    tree = Tree(m["begin"], [bytes.fromhex(h) for h in m["edge"]])
    hashes = [raw[at : at + 32] for at in range(0, len(raw), 32)]
    for number, h in enumerate(hashes, m["begin"] + 1):
        before = leaf_hash(b'{"prev":"%s","record":"%s","seq":%d,"v":1}' % (_hex(before), _hex(h), number))
        tree.add(before)
    root, whole = tree.root(), bytes.fromhex(m["root_hash"])
    proof = [bytes.fromhex(h) for h in m["consistency"]]
    if m["end"] in (0, m["tree_size"]):
        need(not proof, "completeness: number of hashes", MALFORMED)
        need(m["end"] != m["tree_size"] or root == whole, "completeness: entries and root_hash")
    else:
        check_consistency(m["end"], m["tree_size"], root, whole, proof)
    return hashes


def _hex(value: bytes) -> bytes:
    return value.hex().encode()


def _read_records(
    m: dict[str, Any], raw: bytes, hashes: list[bytes], known: dict[str, set[tuple[str, str]]]
) -> list[dict[str, Any]]:
    """Read the shown records: they lie in the range, fit the request, and their keys signed."""
    shown: list[dict[str, Any]] = []
    last = -1
    for text in read_lines(raw, "records"):
        r = parse_record(text)
        at = r["sequence_num"] - 1
        need((r["origin"], r["organization_id"]) == (m["origin"], m["organization_id"]), "records: record and log")
        place = max(last + 1, m["begin"]) <= at < m["end"] and sha(text.encode()) == hashes[at - m["begin"]]
        need(place, "records: record and entry")
        need(m["request"]["agent_id"] in (None, r["agent_id"]), "records: record and request")
        if r["sig_form"] == "digest":
            check_signature(r, None)
        if r["signer"] == "agent":
            listed = (r["key_id"], r["public_key"]) in known.get(r["agent_id"], set())
            need(listed, "records: key and agents.json")
        last = at
        shown.append(r)
    if all(m["request"][n] is None for n in ("agent_id", "tool", "trace_id")):
        need(len(shown) == len(hashes), "records: not all events of the range")
    named = {r["agent_id"] for r in shown if r["signer"] != "system"}
    need(known.keys() == named, "agents: agents and records")
    return shown


def _check_policies(files: dict[str, bytes], shown: list[dict[str, Any]]) -> None:
    digests = {r["policy"]["policy_digest"] for r in shown} - {None}
    policies = {name: raw for name, raw in files.items() if POLICY_FILE.fullmatch(name)}
    need({f"policies/{d}.json" for d in digests} == set(policies), "policies: policies and records")
    need(len(policies) <= 1000, "policies: number", MALFORMED)
    for name, raw in policies.items():
        need(len(raw) <= MAX_DOCUMENT, "policies: size", MALFORMED)
        need(sha(raw).hex() == name.removeprefix("policies/").removesuffix(".json"), "policies: digest")


def _check_envelopes(m: dict[str, Any], raw: bytes, shown: list[dict[str, Any]], erasures: Erasures) -> int:
    """Check the envelopes of shown events, and return their number."""
    request, lines = m["request"], read_lines(raw, "envelopes")
    if not request["envelopes"]:
        need(not lines, "envelopes: not asked for")
        return 0
    wanted = [r for r in shown if r["sequence_num"] not in erasures.covered]
    need(len(lines) == len(wanted), "envelopes: number")
    for text, r in zip(lines, wanted, strict=True):
        e = read_envelope(text, r).members
        need(request["trace_id"] in (None, e["trace_id"]), "envelopes: trace and request")
        need(request["tool"] is None or fits_tool(request["tool"], e.get("tool_name")), "envelopes: tool and request")
    return len(lines)
