#!/usr/bin/env python3
"""Verifies evidence packs of agentledger logs, by docs/evidence.md alone.

  pack.py FILE VKEY      a pack, or the folder of an unpacked one, under the log's pinned key

Exit 0: verified, with what is proved. 1: refused, with the reason. 2: the files of the pack can't be read.
"""
import os, re, struct, sys, zlib
from policy import policy
from strict import ERRORS, Refused, canonical, ijson, need, signed, unbase64
from verify import (HASH, ID, LIST, LOG, MOMENT, NATURAL, OBJECT, SOME, SOME_HASH, TEXT, UUID, consistency, entry, envelope, has_form, inclusion, leaf_hash,
    multikey, node, open_checkpoint, or_null, real_day, record, sha, verifier)
from votes import KIND, Voters

FLAG, HASHES = "true|false", r"\[(%s(,%s)*)?\]" % (HASH, HASH)
AGENT, GLOB = '"[A-Za-z0-9._-]{1,128}"', r'"(?=.{1,256}"$)([A-Za-z0-9_:/-]+|\*)(\.([A-Za-z0-9_:/-]+|\*))*(\.\*\*)?"|"\*\*"'
BOUND = '"(%s)"|' % NATURAL + MOMENT
MANIFEST = dict(v="1", origin=TEXT, organization_id=UUID, request=OBJECT, begin=NATURAL, end=NATURAL, tree_size=NATURAL, root_hash=HASH, edge=HASHES,
    prev=or_null(HASH), consistency=HASHES, counts=OBJECT, files=LIST)
REQUEST = dict(agent_id=or_null(AGENT), tool=or_null(GLOB), trace_id=or_null(ID), envelopes=FLAG, **{"from": or_null(BOUND), "to": or_null(BOUND)})
COUNTS = dict.fromkeys(("entries", "records", "envelopes", "approvals", "erasures", "erased", "agents", "policies"), NATURAL)
VOTERS = "voters.ndjson"
FILE = dict(name=TEXT, sha256=HASH, size=NATURAL)
LOG_KEY = dict(vkey=TEXT, use='"log"', from_size=NATURAL, to_size=or_null(NATURAL))
LISTED_AGENT = dict(agent_id=TEXT, display_name=or_null(TEXT), keys=LIST)
AGENT_KEY = dict(key_id=TEXT, public_key=TEXT, did=TEXT, custody='"(agent|server)"', status='"(active|retired|revoked)"', registered_at=MOMENT,
    ended_at=or_null(MOMENT), compromised_from=or_null(NATURAL))
ERASURE = dict(entry=TEXT, envelope=TEXT, proof=HASHES, record=TEXT)
POLICY_FILE = r"policies/[0-9a-f]{64}\.json"

class Unreadable(Refused): pass                     # the container: nothing is known about the pack

def readable(ok, why):
    if not ok: raise Unreadable(why)

def is_passed_over(name):                           # files of operating systems and archivers
    *folders, last = name.split(b"/")
    return last.startswith(b".") or last in (b"Thumbs.db", b"desktop.ini") or b"__MACOSX" in folders

def is_path(name):
    return not re.search(rb"[\x00-\x1f\x7f\\]", name) and all(step not in (b"", b".", b"..") for step in name.split(b"/"))

def inflate(raw, size):
    d = zlib.decompressobj(-15)
    try: content = d.decompress(raw, size + 1)
    except zlib.error as why: raise Unreadable(why)
    readable(d.eof and not d.unused_data and not d.unconsumed_tail and len(content) == size, "compressed bytes of a file")
    return content

def unzip(raw):                                     # the contents by name
    readable(22 <= len(raw) < 2**32, "size")
    at = raw.rfind(b"PK\5\6")
    while at >= max(0, len(raw) - 22 - 65535) and (at + 22 > len(raw) or at + 22 + struct.unpack("<H", raw[at + 20:at + 22])[0] != len(raw)):
        at = raw.rfind(b"PK\5\6", 0, at + 3)
    readable(at >= max(0, len(raw) - 22 - 65535), "end of a ZIP file")
    disks, first, count, length, offset = struct.unpack("<IHHII", raw[at + 4:at + 20])
    readable(disks == 0 and first == count <= 4096 and length <= 1 << 20 and offset + length == at, "end of a ZIP file")
    directory, files, used, total = raw[offset:at], {}, 0, 0
    for _ in range(count):
        readable(len(directory) >= 46 and directory[:4] == b"PK\1\2", "directory")
        flags, method, _, _, packed, size, n, extra, comment, disk, _, _, header = struct.unpack("<HHIIIIHHHHHII", directory[8:46])
        name, rest = directory[46:46 + n], 46 + n + extra + comment
        readable(len(directory) >= rest and disk == 0, "directory")
        directory, used = directory[rest:], used + 30 + n + packed
        readable(used <= offset, "size of a file")
        path = name[:-1] if name.endswith(b"/") else name
        readable(is_path(path), "name of a file")
        if path != name or is_passed_over(name): continue
        readable(name not in files, "a name twice")
        readable(not flags & 1 and method in (0, 8) and (method or packed == size), "compression of a file")
        readable(header + 30 <= offset and raw[header:header + 4] == b"PK\3\4", "header of a file")
        names, extra = struct.unpack("<HH", raw[header + 26:header + 30])
        begin, total = header + 30 + names + extra, total + size
        readable(names == n and raw[header + 30:header + 30 + n] == name and begin + packed <= offset and total < 2**32, "header of a file")
        files[name] = raw[begin:begin + packed], method, size
    readable(not directory, "directory")
    return {name: inflate(content, size) if method else content for name, (content, method, size) in files.items()}

def unfold(folder):                                 # the contents by name, of a folder
    files, count = {}, 0
    for path, folders, names in os.walk(os.fsencode(folder)):
        count += len(folders) + len(names)
        readable(count <= 4096, "number of files")
        for name in (os.path.join(path, n) for n in folders + names):
            relative = os.path.relpath(name, os.fsencode(folder)).replace(os.sep.encode(), b"/")
            readable(is_path(relative), "name of a file")
            if os.path.isdir(name) and not os.path.islink(name) or is_passed_over(relative): continue
            readable(os.path.isfile(name) and not os.path.islink(name), "a symbolic link or a special file")
            with open(name, "rb") as f: files[relative] = f.read()
    return files

def named(found):                                   # the files in order, and the names of policies
    manifests = [name for name in found if name.split(b"/")[-1] == b"manifest.json"]
    readable(len(manifests) == 1, "no file manifest.json, or two")
    folder = manifests[0][:-len(b"manifest.json")]
    contents = {name.removeprefix(folder).decode("latin-1"): content for name, content in found.items()}
    policies = sorted(name for name in contents if re.fullmatch(POLICY_FILE, name))
    names = ["checkpoint", "keys.json", "policy", "agents.json", *policies, "entries.bin", "records.ndjson", "envelopes.ndjson", "approvals.ndjson",
        "erasures.ndjson", *[VOTERS] * (VOTERS in contents), "report.html", "manifest.json"]
    need(len(contents) == len(found) and sorted(contents) == sorted(names), "pack: files")
    return {name: contents[name] for name in names}, policies

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
    has_form(m["request"], REQUEST), has_form(m["counts"], COUNTS | {"voter_keys": "[1-9][0-9]*"} if VOTERS in files else COUNTS)
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

def proven(m, line, kind):                          # a statement with its proof; returns its record and its envelope's members
    x = canonical_object(line, ERASURE)
    r, (_, digest, seq) = record(x["record"]), entry(x["entry"])
    need(sha(x["record"].encode()) == digest and seq == r["sequence_num"], "statement: entry")
    inclusion(seq - 1, m["tree_size"], leaf_hash(x["entry"]), bytes.fromhex(m["root_hash"]), [bytes.fromhex(h) for h in x["proof"]])
    check_system(r, m)
    e = belongs(x["envelope"], r)
    need(e["action_kind"] == kind, "statement: kind")
    return r, e

def voters(m, files):                               # the passkeys that sign votes
    v = Voters(m["origin"])
    for line in lines(files.get(VOTERS, b""), 10_000):
        r, e = proven(m, line, KIND)
        v.add(r["sequence_num"] - 1, e["payload"], r["received_at"])
    return v

def erasures(m, raw, shown):                        # which shown events have no envelope
    erased, last, number, spans = set(), 0, 0, 0
    for number, line in enumerate(lines(raw, 20_000), 1):
        r, e = proven(m, line, "ledger_envelope_erased")
        seq = r["sequence_num"]
        need(seq > last, "erasure: order")
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

def envelopes(m, raw, shown, erased, about_keys):
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
        if r["signer"] == "system" and e["action_kind"] == KIND: about_keys.append((r["sequence_num"] - 1, e["payload"]))
    return len(found)

def approvals(m, raw, hashes, voters):
    names, first_before, number = set(), 0, 0
    for number, line in enumerate(lines(raw, 20_000), 1):
        a = ijson(line)
        has_form(a, dict(approval_id=SOME, events=LIST), closed=False)
        need(canonical(a) == line and a["approval_id"] not in names and a["events"], "approval: not canonical, twice, or without events")
        names.add(a["approval_id"])
        last, actions, actors = 0, set(), set()
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
            if "action_digest" in e["payload"]: need(re.fullmatch(SOME_HASH, canonical(e["payload"]["action_digest"])), "approval: action_digest")
            voters.vote(at, e, r["received_at"])
            actions.add(e["payload"].get("action_digest"))
            actors.add(e["actor_principal"].split("/")[0])
        action(m, a, actions)
        people = a.get("people", [])
        need(isinstance(people, list), "approval: people")
        for p in people: has_form(p, dict(account_id=SOME, email=TEXT))
        accounts = [p["account_id"] for p in people]
        need(len(set(accounts)) == len(accounts) and actors.issuperset(accounts), "approval: people and the events")
    return number

def action(m, a, actions):                          # what a line shows of it, and the digest that the events name
    need(len(actions) == 1, "approval: several action_digests")
    for n in "action_digest", "agent_id", "tool_name": need(isinstance(a.get(n, ""), str), "approval: " + n)
    if "action_digest" in a: need({a["action_digest"]} == actions, "approval: action_digest")
    payload = a.get("payload")
    if payload is None: return
    value = ijson(payload)
    need(isinstance(value, dict) and canonical(value) == payload, "approval: payload")
    parts = canonical(a["agent_id"]), m["organization_id"], payload, canonical(a["tool_name"])
    text = '{"agent_id":%s,"organization_id":"%s","payload":%s,"tool_name":%s,"v":1}' % parts
    need({sha(text.encode()).hex()} == actions, "approval: payload and action_digest")

def check_pack(raw, vkey):
    """Returns what is proved: begin, end, shown, withheld, erased; how many signatures were not checked; and a line for each vote."""
    files, policies = named(unfold(raw) if isinstance(raw, str) else unzip(raw))
    m = manifest(files)
    need(len(files["checkpoint"]) <= 128 << 10 and len(files["policy"]) <= 128 << 10 and len(files["keys.json"]) <= 1 << 20, "size of a file")
    head = open_checkpoint(files["checkpoint"].decode(), verifier(vkey, LOG))
    need(head == (m["origin"], m["tree_size"], bytes.fromhex(m["root_hash"])), "manifest and checkpoint")
    policy(files["policy"])
    keys = canonical_object(files["keys.json"], dict(keys=LIST))["keys"]
    need(keys, "keys: none")
    for k in keys:
        has_form(k, LOG_KEY), verifier(k["vkey"], LOG), naturals(k["from_size"], k["to_size"])
        need(k["to_size"] is None or k["from_size"] <= k["to_size"], "keys: sizes")
    hashes, known = entries(m, files["entries.bin"]), agents(files["agents.json"])
    shown = records(m, files, hashes, known)
    digests = {r["policy"]["policy_digest"] for r in shown} - {None}
    need({"policies/%s.json" % d for d in digests} == set(policies) and len(policies) <= 1000, "policies")
    need(all(sha(files[n]).hex() == n[9:-5] and len(files[n]) <= 1 << 20 for n in policies), "policies: digest")
    (erased, statements), keys, about_keys = erasures(m, files["erasures.ndjson"], shown), voters(m, files), []
    counts = dict(entries=len(hashes), records=len(shown), envelopes=envelopes(m, files["envelopes.ndjson"], shown, erased, about_keys),
        approvals=approvals(m, files["approvals.ndjson"], hashes, keys), erasures=statements, erased=len(erased), agents=len(known), policies=len(policies))
    keys.done(about_keys)
    need(counts | ({"voter_keys": len(keys.log)} if VOTERS in files else {}) == m["counts"], "counts")
    unchecked = sum(r["sig_form"] == "canonical" and (not m["request"]["envelopes"] or r["sequence_num"] in erased) for r in shown)
    return dict(begin=m["begin"], end=m["end"], shown=len(shown), withheld=len(hashes) - len(shown), erased=len(erased)), unchecked, keys.report

def main():
    if len(sys.argv) != 3: sys.exit(__doc__)
    raw = sys.argv[1]
    if not os.path.isdir(raw):
        with open(raw, "rb") as f: raw = f.read()
    try: said, unchecked, votes = check_pack(raw, sys.argv[2])
    except Unreadable as why:
        print("can't tell: the files of the pack can't be read:", why)
        return 2
    except (*ERRORS, struct.error) as why:
        print("refused:", why)
        return 1
    print("complete for [%(begin)d, %(end)d), %(shown)d events shown, %(withheld)d withheld, %(erased)d erased" % said)
    for line in votes: print(line)
    if unchecked: print("%d signatures are of envelopes that are not in the pack, and were not checked" % unchecked)
    return 0

if __name__ == "__main__": sys.exit(main())
