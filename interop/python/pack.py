#!/usr/bin/env python3
"""Verifies evidence packs of agentledger logs, by docs/evidence.md alone.

  pack.py FILE VKEY      a pack under the log's pinned key

Exit 0: verified, with what is proved. 1: refused, with the reason.
"""
import re, struct, sys, zlib
from strict import ERRORS, canonical, ijson, need, signed, unbase64
from verify import (HASH, ID, LIST, LOG, MOMENT, NATURAL, OBJECT, SOME, TEXT, UUID, consistency, entry, envelope, has_form, inclusion, leaf_hash,
    multikey, node, open_checkpoint, or_null, real_day, record, sha, verifier)

FLAG, HASHES = "true|false", r"\[(%s(,%s)*)?\]" % (HASH, HASH)
AGENT, GLOB = '"[A-Za-z0-9._-]{1,128}"', r'"(?=.{1,256}"$)([A-Za-z0-9_:/-]+|\*)(\.([A-Za-z0-9_:/-]+|\*))*(\.\*\*)?"|"\*\*"'
BOUND = '"(%s)"|' % NATURAL + MOMENT
MANIFEST = dict(v="1", origin=TEXT, organization_id=UUID, request=OBJECT, begin=NATURAL, end=NATURAL, tree_size=NATURAL, root_hash=HASH, edge=HASHES,
    prev=or_null(HASH), consistency=HASHES, counts=OBJECT, files=LIST)
REQUEST = dict(agent_id=or_null(AGENT), tool=or_null(GLOB), trace_id=or_null(ID), envelopes=FLAG, **{"from": or_null(BOUND), "to": or_null(BOUND)})
COUNTS = dict.fromkeys(("entries", "records", "envelopes", "approvals", "erasures", "erased", "agents", "policies"), NATURAL)
FILE = dict(name=TEXT, sha256=HASH, size=NATURAL)
LOG_KEY = dict(vkey=TEXT, use='"log"', from_size=NATURAL, to_size=or_null(NATURAL))
LISTED_AGENT = dict(agent_id=TEXT, display_name=or_null(TEXT), keys=LIST)
AGENT_KEY = dict(key_id=TEXT, public_key=TEXT, did=TEXT, custody='"(agent|server)"', status='"(active|retired|revoked)"', registered_at=MOMENT,
    ended_at=or_null(MOMENT), compromised_from=or_null(NATURAL))
ERASURE = dict(entry=TEXT, envelope=TEXT, proof=HASHES, record=TEXT)
POLICY_FILE = r"policies/[0-9a-f]{64}\.json"

def unzip(raw):                                     # the files in order; whatever is spelled otherwise is refused
    need(len(raw) < 2**32, "pack: size")
    count, _, at = struct.unpack("<HII", raw[-12:-2])
    files, directory, place = {}, b"", 0
    for _ in range(count):                          # names and lengths from the directory, and all bytes are compared
        head = raw[at:at + 46]
        crc, size, _, length = struct.unpack("<IIIH", head[16:30])
        name = raw[at + 46:at + 46 + length]
        text = name.decode("ascii")
        need(text not in files and len(name) == length, "pack: name")
        directory += b"PK\1\2\x14\0\x14\0\x08\0\0\0\0\0\x21\0" + struct.pack("<IIIH", crc, size, size, length) + bytes(12) + struct.pack("<I", place) + name
        local = b"PK\3\4\x14\0\x08\0\0\0\0\0\x21\0" + bytes(12) + struct.pack("<HH", length, 0) + name
        content = raw[place + len(local):place + len(local) + size]
        part = local + content + b"PK\7\x08" + struct.pack("<III", crc, size, size)
        need(len(content) == size and zlib.crc32(content) == crc and raw[place:place + len(part)] == part, "pack: a file's bytes")
        files[text], place, at = content, place + len(part), at + 46 + length
    end = b"PK\5\6\0\0\0\0" + struct.pack("<HHII", count, count, len(directory), place) + b"\0\0"
    need(raw[place:] == directory + end, "pack: directory or end")
    policies = [name for name in files if re.fullmatch(POLICY_FILE, name)]
    names = ["checkpoint", "keys.json", "policy", "agents.json", *sorted(policies), "entries.bin", "records.ndjson", "envelopes.ndjson", "approvals.ndjson",
        "erasures.ndjson", "report.html", "manifest.json"]
    need(list(files) == names, "pack: files")
    return files, policies

def lines(raw, most=None):                          # of .ndjson
    text = raw.decode()
    need(text == "" or text.endswith("\n"), "line end")
    found = text.split("\n")[:-1]
    need(all(0 < len(line.encode()) <= 4 << 20 for line in found) and (most is None or len(found) <= most), "lines")
    return found

def canonical_object(raw, form):
    v = ijson(raw if isinstance(raw, str) else raw.decode())
    need(canonical(v) == (raw if isinstance(raw, str) else raw.decode()), "not canonical")
    has_form(v, form)
    return v

def naturals(*values): need(all(v < 2**53 for v in values if v is not None), "number")

def manifest(files):
    need(len(files["manifest.json"]) <= 1 << 20, "manifest: size")
    m = canonical_object(files["manifest.json"], MANIFEST)
    has_form(m["request"], REQUEST), has_form(m["counts"], COUNTS)
    naturals(m["begin"], m["end"], m["tree_size"], *m["counts"].values())
    need(m["begin"] <= m["end"] <= m["tree_size"] and m["end"] - m["begin"] <= 1_000_000, "manifest: range")
    need((m["prev"] is None) == (m["begin"] == m["end"]), "manifest: prev")
    need([f["name"] for f in m["files"]] == [n for n in files if n != "manifest.json"], "manifest: files")
    for f in m["files"]:
        has_form(f, FILE)
        need(f["size"] == len(files[f["name"]]) and bytes.fromhex(f["sha256"]) == sha(files[f["name"]]), "manifest: a file")
    for name, edge in ("from", "begin"), ("to", "end"):
        wanted = m["request"][name]
        if wanted is None: need(m[edge] == (0 if name == "from" else m["tree_size"]), "request: " + name)
        elif wanted.isdigit():
            naturals(int(wanted))
            need(m[edge] == (int(wanted) if name == "from" else min(int(wanted), m["tree_size"])), "request: " + name)
        else: real_day(wanted)
    return m

def fits_tool(glob, tool):
    if tool is None: return False
    glob, tool = glob.split("."), tool.split(".")
    if glob[-1] == "**": glob[-1:] = ["*"] * max(1, len(tool) - len(glob) + 1)
    return len(glob) == len(tool) and all(g in ("*", t) for g, t in zip(glob, tool))

def entries(m, raw):                                # completeness; returns the entries' record hashes
    count = m["end"] - m["begin"]
    need(len(raw) == 32 * count == 32 * m["counts"]["entries"], "entries: number")
    before = bytes.fromhex(m["prev"]) if count else b""
    if count and m["begin"] == 0: need(before == sha(b"agentledger/genesis/v1\n", m["origin"].encode(), b"\n"), "entries: genesis")
    edge = [bytes.fromhex(h) for h in m["edge"]]
    need(len(edge) == bin(m["begin"]).count("1"), "edge: number of hashes")
    subtrees = list(zip([1 << b for b in reversed(range(64)) if m["begin"] >> b & 1], edge))
    hashes = [raw[32 * i:32 * i + 32] for i in range(count)]
    for i, h in enumerate(hashes):
        before = leaf_hash('{"prev":"%s","record":"%s","seq":%d,"v":1}' % (before.hex(), h.hex(), m["begin"] + i + 1))
        subtrees.append((1, before))
        while len(subtrees) > 1 and subtrees[-1][0] == subtrees[-2][0]:
            (n, left), (_, right) = subtrees[-2:]
            subtrees[-2:] = [(2 * n, node(left, right))]
    root = subtrees.pop()[1] if subtrees else sha()
    while subtrees: root = node(subtrees.pop()[1], root)
    whole, proof = bytes.fromhex(m["root_hash"]), [bytes.fromhex(h) for h in m["consistency"]]
    if m["end"] in (0, m["tree_size"]):
        need(not proof and (m["end"] != m["tree_size"] or root == whole), "completeness: root")
    else: consistency(m["end"], m["tree_size"], root, whole, proof)
    return hashes

def check_signature(r, message): signed(multikey(r["public_key"]), unbase64(r["sig_value_b64"], 64), message)

def belongs(text, r):                               # an envelope to its record; returns its members
    e, content = envelope(text)
    need(sha(b"APS1\n", e["key_id"].encode(), b"\n", content).hex() == r["event_digest"], "envelope and digest")
    need(all(e[n] == r[n] for n in ("event_id", "agent_id", "key_id", "sig_value_b64")), "envelope and record")
    need(e["organization_id"].lower() == r["organization_id"] and e["policy_decision"] == r["policy"]["declared"], "envelope and record")
    if "intent" in r["policy"]:
        parent = e.get("parent_event_id")
        if not isinstance(parent, str) or not parent: parent = e["payload"].get("parent_event_id")
        need("tool_name" in e and e["payload"].get("phase") == "result" and parent == r["policy"]["intent"], "envelope and intent")
        need(re.fullmatch(ID, canonical(parent), re.A), "parent_event_id")
    if r["sig_form"] == "canonical": check_signature(r, content)
    return e

def check_system(r, m):                             # a statement of the service
    need(r["signer"] == "system" and (r["origin"], r["organization_id"]) == (m["origin"], m["organization_id"]), "statement: signer or log")
    check_signature(r, bytes.fromhex(r["event_digest"]))

def agents(raw):
    need(len(raw) <= 16 << 20, "agents: size")
    found, last = {}, ""
    for a in canonical_object(raw, dict(agents=LIST))["agents"]:
        has_form(a, LISTED_AGENT)
        need(a["agent_id"] > last, "agents: order")
        last, last_key, keys = a["agent_id"], "", set()
        for k in a["keys"]:
            has_form(k, AGENT_KEY), multikey(k["public_key"]), naturals(k["compromised_from"])
            real_day(k["registered_at"]), real_day(k["ended_at"] or k["registered_at"])
            need(k["key_id"] > last_key and k["did"] == "did:key:" + k["public_key"], "agents: order of keys, or did")
            last_key = k["key_id"]
            keys.add((k["key_id"], k["public_key"]))
        found[last] = keys
    need(len(found) <= 10_000, "agents: number")
    return found

def records(m, files, hashes, known):               # the shown records
    request, shown, last = m["request"], [], -1
    for text in lines(files["records.ndjson"]):
        r = record(text)
        at = r["sequence_num"] - 1
        need((r["origin"], r["organization_id"]) == (m["origin"], m["organization_id"]), "record: log")
        need(max(last + 1, m["begin"]) <= at < m["end"] and sha(text.encode()) == hashes[at - m["begin"]], "record: place or hash")
        need(request["agent_id"] in (None, r["agent_id"]), "record: agent")
        if r["sig_form"] == "digest": check_signature(r, bytes.fromhex(r["event_digest"]))
        if r["signer"] == "agent": need((r["key_id"], r["public_key"]) in known.get(r["agent_id"], ()), "record: key")
        last = at
        shown.append(r)
    if all(request[n] is None for n in ("agent_id", "tool", "trace_id")): need(len(shown) == len(hashes), "records: not all")
    need(known.keys() == {r["agent_id"] for r in shown if r["signer"] != "system"}, "agents: others than those of the records")
    return shown

def erasures(m, raw, shown):                        # which shown events have no envelope
    erased, last, number, spans = set(), 0, 0, 0
    for number, line in enumerate(lines(raw, 20_000), 1):
        x = canonical_object(line, ERASURE)
        r, (_, digest, seq) = record(x["record"]), entry(x["entry"])
        need(sha(x["record"].encode()) == digest and seq == r["sequence_num"] > last, "erasure: entry, or order")
        inclusion(seq - 1, m["tree_size"], leaf_hash(x["entry"]), bytes.fromhex(m["root_hash"]), [bytes.fromhex(h) for h in x["proof"]])
        check_system(r, m)
        e = belongs(x["envelope"], r)
        need(e["action_kind"] == "ledger_envelope_erased", "erasure: kind")
        has_form(e["payload"], dict(ranges=LIST, reason='"[a-z0-9_]{1,32}"'))
        ranges, end = e["payload"]["ranges"], 0
        spans += len(ranges)
        need(1 <= len(ranges) <= 1024 and spans <= 1 << 20, "erasure: ranges")
        for pair in ranges:
            need(re.fullmatch(r"\[(%s),(%s)\]" % (NATURAL, NATURAL), canonical(pair)) and end <= pair[0] < pair[1] <= seq - 1, "erasure: range")
            end = pair[1]
        covered = {s["sequence_num"] for s in shown if s["signer"] != "system" and any(a < s["sequence_num"] <= b for a, b in ranges)}
        need(covered, "erasure: of no shown event")
        erased |= covered
        last = seq
    return erased, number

def envelopes(m, raw, shown, erased):
    found, request = lines(raw), m["request"]
    if not request["envelopes"]:
        need(not found, "envelopes: not asked for")
        return 0
    wanted = [r for r in shown if r["sequence_num"] not in erased]
    need(len(found) == len(wanted), "envelopes: number")
    for text, r in zip(found, wanted):
        e = belongs(text, r)
        need(request["trace_id"] in (None, e["trace_id"]), "envelope: trace")
        need(request["tool"] is None or fits_tool(request["tool"], e.get("tool_name")), "envelope: tool")
    return len(found)

def approvals(m, raw, hashes):
    names, first_before, number = set(), 0, 0
    for number, line in enumerate(lines(raw, 20_000), 1):
        a = ijson(line)
        has_form(a, dict(approval_id=SOME, events=LIST), closed=False)
        need(canonical(a) == line and a["approval_id"] not in names and a["events"], "approval: not canonical, twice, or without events")
        names.add(a["approval_id"])
        last = 0
        for x in a["events"]:
            has_form(x, dict(envelope=TEXT, record=TEXT))
            r = record(x["record"])
            at = r["sequence_num"] - 1
            need(last < at + 1 and m["begin"] <= at < m["end"] and sha(x["record"].encode()) == hashes[at - m["begin"]], "approval: place or hash")
            check_system(r, m)
            e = belongs(x["envelope"], r)
            need(e["action_kind"] == "ledger_approval" and e["payload"]["approval_id"] == a["approval_id"], "approval: another one")
            if not last: need(at + 1 > first_before, "approvals: order")
            first_before, last = at + 1 if not last else first_before, at + 1
    return number

def check_pack(raw, vkey):
    """Returns what is proved: begin, end, shown, withheld, erased, and how many signatures were not checked."""
    files, policies = unzip(raw)
    m = manifest(files)
    need(len(files["checkpoint"]) <= 128 << 10 and len(files["policy"]) <= 128 << 10 and len(files["keys.json"]) <= 1 << 20, "size of a file")
    head = open_checkpoint(files["checkpoint"].decode(), verifier(vkey, LOG))
    need(head == (m["origin"], m["tree_size"], bytes.fromhex(m["root_hash"])), "manifest and checkpoint")
    for k in canonical_object(files["keys.json"], dict(keys=LIST))["keys"]:
        has_form(k, LOG_KEY), verifier(k["vkey"], LOG), naturals(k["from_size"], k["to_size"])
    hashes, known = entries(m, files["entries.bin"]), agents(files["agents.json"])
    shown = records(m, files, hashes, known)
    digests = {r["policy"]["policy_digest"] for r in shown} - {None}
    need({"policies/%s.json" % d for d in digests} == set(policies) and len(policies) <= 1000, "policies")
    need(all(sha(files[n]).hex() == n[9:-5] and len(files[n]) <= 1 << 20 for n in policies), "policies: digest")
    erased, statements = erasures(m, files["erasures.ndjson"], shown)
    counts = dict(entries=len(hashes), records=len(shown), envelopes=envelopes(m, files["envelopes.ndjson"], shown, erased),
        approvals=approvals(m, files["approvals.ndjson"], hashes), erasures=statements, erased=len(erased), agents=len(known), policies=len(policies))
    need(counts == m["counts"], "counts")
    unchecked = sum(r["sig_form"] == "canonical" and (not m["request"]["envelopes"] or r["sequence_num"] in erased) for r in shown)
    return dict(begin=m["begin"], end=m["end"], shown=len(shown), withheld=len(hashes) - len(shown), erased=len(erased)), unchecked

def main():
    if len(sys.argv) != 3: sys.exit(__doc__)
    with open(sys.argv[1], "rb") as f: raw = f.read()
    try: said, unchecked = check_pack(raw, sys.argv[2])
    except (*ERRORS, struct.error) as why:
        print("refused:", why)
        return 1
    print("complete for [%(begin)d, %(end)d), %(shown)d events shown, %(withheld)d withheld, %(erased)d erased" % said)
    if unchecked: print("%d signatures are of envelopes that are not in the pack, and were not checked" % unchecked)
    return 0

if __name__ == "__main__": sys.exit(main())
