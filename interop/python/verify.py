#!/usr/bin/env python3
"""Verifies bundles, proofs and checkpoints of agentledger logs, by their written contract alone.

  verify.py bundle FILE VKEY               a bundle under the log's pinned key; further keys in a saved transparency/keys by
                                           --keys FILE; for a second proof the directory's by --directory VKEY
  verify.py tlog-proof FILE ENTRY VKEY     a C2SP tlog-proof for the entry in the file ENTRY

Python's standard library and the package cryptography. Exit 0: verified. 1: refused, with the reason. 2: can't tell: all is right but
that another key signed than those given.
"""
import argparse, datetime, hashlib, re, sys, unicodedata
import mldsa
from strict import ERRORS, attempt, canonical, decimal, ijson, need, public_key, signed, unbase64

def sha(*parts): return hashlib.sha256(b"".join(parts)).digest()
def leaf_hash(entry): return sha(b"\0", entry.encode())
def node(left, right): return sha(b"\1", left, right)

# --- C2SP signed-note, tlog-checkpoint, tlog-cosignature, tlog-proof.
def good_name(name): return name and not any(c == "+" or c.isspace() or unicodedata.category(c) == "Cc" for c in name)

LOG, WITNESS = (1,), (4, 6)                         # signature types; 6 is ML-DSA-44, of which all bytes are a key
def verifier(vkey, types):                          # name, key id, key behind its type
    name, key_id, encoded = vkey.split("+", 2)
    typed = unbase64(encoded)
    need(good_name(name) and len(name.encode()) <= 255 and typed[0] in types, "verifier key")
    need(len(typed) == 1 + mldsa.KEY_SIZE if typed[0] == 6 else public_key(typed[1:]), "verifier key")
    need(sha(name.encode(), b"\n", typed)[:4].hex() == key_id, "key id")
    return name, bytes.fromhex(key_id), typed

def note(text):                                     # its text, and its signatures by name and key id
    need(len(text.encode()) <= 1 << 17 and not any(c < " " and c != "\n" for c in text), "note: size or characters")
    at = text.rfind("\n\n")
    need(at >= 0 and text.endswith("\n"), "note: no empty line, or no line end")
    body, lines, signatures = text[:at + 1], text[at + 2:].split("\n")[:-1], {}
    need(1 <= len(lines) <= 100, "note: number of signature lines")
    for line in lines:
        dash, name, encoded = line.split(" ")
        raw = unbase64(encoded)
        need(dash == "\u2014" and good_name(name) and len(raw) > 4, "note: signature line")
        need((name, raw[:4]) not in signatures, "note: two lines of one key")
        signatures[name, raw[:4]] = raw[4:]
    return body, signatures

def open_note(text, key):
    body, signatures = note(text)
    signed(key[2][1:], signatures[key[:2]], body.encode())
    return body

def checkpoint(body):                               # exactly three lines
    origin, size, root, end = body.split("\n")
    size, root = decimal(size), unbase64(root, 32)
    need(origin and not end and (size > 0 or root == sha()), "checkpoint: origin, a fourth line, or root of the empty tree")
    return origin, size, root

def open_checkpoint(text, key):
    origin, size, root = checkpoint(open_note(text, key))
    need(origin == key[0], "checkpoint: origin")
    return origin, size, root

def cosigned(text, key):                            # the time in seconds
    body, signatures = note(text)
    value = signatures[key[:2]]
    time = int.from_bytes(value[:8], "big")
    need(time <= 253402300799, "cosignature: time")
    if key[2][0] == 6:
        need(time > 0 and mldsa.verify(key[2][1:], cosigned_tree(key[0], time, body), value[8:]), "cosignature")
    else:
        signed(key[2][1:], value[8:], b"cosignature/v1\ntime %d\n" % time + body.encode())
    return time

def cosigned_tree(name, time, body):
    origin, size, root = checkpoint(body)
    opaque = lambda text: bytes([len(text.encode())]) + text.encode()
    return b"subtree/v1\n\0" + opaque(name) + time.to_bytes(8, "big") + opaque(origin) + bytes(8) + size.to_bytes(8, "big") + root

def signer(vkey): return "+".join(vkey.split("+")[:2])

def unknown_signers(text, key):                     # of a checkpoint, by name and key id, if the key is none of them
    body, signatures = note(text)
    return [] if key[:2] in signatures else [n + "+" + i.hex() for n, i in signatures if n == checkpoint(body)[0]]

def tlog_proof(text, entry, key, believe=False):    # believe: whoever signed the checkpoint
    head, empty, rest = text.partition("\n\n")
    title, *lines = head.split("\n")
    need(empty and title == "c2sp.org/tlog-proof@v1", "tlog-proof: header")
    if lines[0].startswith("extra "): need(unbase64(lines.pop(0)[6:]), "tlog-proof: extra line")
    need(lines[0].startswith("index ") and len(lines) <= 64, "tlog-proof: index line, or number of hashes")
    index, hashes = decimal(lines[0][6:]), [unbase64(line, 32) for line in lines[1:]]
    _, size, root = checkpoint(note(rest)[0]) if believe else open_checkpoint(rest, key)
    inclusion(index, size, leaf_hash(entry), root, hashes)
    return unknown_signers(rest, key) if believe else (index, size)

# --- RFC 6962 section 2.1.1 and 2.1.2, from the root down: the last hash is the topmost one's.
def split(n): return 1 << (n - 1).bit_length() - 1  # the largest power of two below n

def inclusion(index, size, leaf, root, hashes):
    def root_of(at, n):
        if n == 1: return leaf
        k, sibling = split(n), hashes.pop()
        return node(root_of(at, k), sibling) if at < k else node(sibling, root_of(at - k, n - k))
    hashes = list(hashes)
    need(0 <= index < size < 2**63 and root_of(index, size) == root and not hashes, "inclusion: index, size, number of hashes, or another root")

def consistency(old, new, old_root, new_root, hashes):
    def roots_of(m, n, whole):                      # of the first m leaves of n, and of all
        if m == n:
            root = old_root if whole else hashes.pop()
            return root, root
        k, sibling = split(n), hashes.pop()
        first, second = roots_of(m, k, whole) if m <= k else roots_of(m - k, n - k, False)
        return (first, node(second, sibling)) if m <= k else (node(sibling, first), node(sibling, second))
    hashes = list(hashes)
    need(0 <= old <= new < 2**63 and (old > 0 or old_root == sha()), "consistency: sizes, or root of the empty tree")
    need(old == 0 < new or roots_of(old, new, True) == (old_root, new_root), "consistency: another root")
    need(not hashes, "consistency: number of hashes")

# --- Forms: the canonical text of each member matches its expression.
UUID, HASH, TEXT, SOME, DECISION = '"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}"', '"[0-9a-f]{64}"', '".*"', '".+"', '"(allow|deny|allow_with_obligation)"'
ANY_UUID, OBJECT, LIST, NATURAL, POSITIVE = UUID.replace("a-f", "a-fA-F"), r"\{.*\}", r"\[.*\]", "0|[1-9][0-9]*", "[1-9][0-9]{0,15}"
SOME_HASH = HASH.replace('"[', '"(?!0{64})[')             # zeros stand for null
TIME = '"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}%sZ"'
MOMENT, ID, KIND = TIME % r"\.[0-9]{3}", '"(?![.]{1,2}")[A-Za-z0-9._:-]{1,128}"', '"[a-z][a-z0-9_]{0,63}"'
TOOL = r'"(?=.{1,256}"$)[A-Za-z0-9_:/-]+(\.[A-Za-z0-9_:/-]+)*"'
def or_null(form): return "null|" + form

POLICY = dict(evaluated="true|false", declared=DECISION, effective=DECISION, policy_id=or_null(SOME), policy_version=or_null(POSITIVE), policy_digest=or_null(SOME_HASH),
    rule_id=or_null(SOME), engine=or_null(SOME), input_digest=or_null(SOME_HASH), evaluated_at=or_null('(?!"1970-01-01T00:00:00.000Z")' + MOMENT), limits=or_null(LIST), approval_id=or_null(SOME), intent=SOME)
RECORD = dict(v="1", origin=TEXT, organization_id=UUID, sequence_num=POSITIVE, event_id=TEXT, agent_id=TEXT, key_id=TEXT, public_key=TEXT,
    signer='"(agent|bridge|system)"', custody='"(agent|server)"', event_digest=HASH, sig_form='"(digest|canonical)"', sig_value_b64=TEXT,
    ingest_key_id=or_null(SOME), received_at=MOMENT, policy=OBJECT)
ENVELOPE = dict(schema_version="1", organization_id=ANY_UUID, event_id=ID, trace_id=ID, agent_id='"[A-Za-z0-9._-]{1,128}"', key_id='"[A-Za-z0-9._:#-]{1,256}"',
    actor_type=KIND, actor_principal=SOME, action_kind=KIND, tool_name=or_null(TOOL), policy_decision=DECISION, emitted_at=TIME % r"(\.[0-9]{1,9})?",
    payload=OBJECT, sig_alg='"ed25519"', sig_value_b64=TEXT)
PROOF = dict(log_index=NATURAL, tree_size=NATURAL, root_hash=HASH, hashes=r"\[(%s(,%s)*)?\]" % (HASH, HASH))
BUNDLE = dict(version="1", organization_id=ANY_UUID, organization_slug=TEXT, origin=TEXT, event_id=TEXT, sequence_num=NATURAL, log_index=NATURAL, event_hash=HASH,
    entry=TEXT, inclusion=OBJECT, previous_entry=or_null(TEXT), previous_inclusion=or_null(OBJECT), checkpoint=TEXT, log_key=TEXT, log_keys=or_null(LIST),
    disclosure='"(commitment|record|full)"', record=or_null(TEXT), envelope=or_null(TEXT), erased_at=or_null(MOMENT), directory=or_null(OBJECT))
KEY = dict(vkey=TEXT, use=TEXT, from_size=NATURAL, to_size=or_null(NATURAL))
LISTED = dict(origin=TEXT, tree_size=POSITIVE, root_hash=HASH, log_key=TEXT)

def has_form(v, form, closed=True):                 # closed: no other members
    need(form.keys() == v.keys() if closed else form.keys() <= v.keys(), "members")
    for name, expression in form.items(): need(re.fullmatch(expression, canonical(v[name]), re.A), name)

def real_day(text):                                 # years repeat after 400; Python has no year 0
    datetime.datetime.strptime("%04d" % (int(text[:4]) % 400 + 2000) + text[4:19], "%Y-%m-%dT%H:%M:%S")

def entry(text):
    m = re.fullmatch(r'\{"prev":"([0-9a-f]{64})","record":"([0-9a-f]{64})","seq":([1-9][0-9]*),"v":1\}', text, re.A)
    return bytes.fromhex(m[1]), bytes.fromhex(m[2]), decimal(m[3], 2**53 - 1)

def record(text):
    r = ijson(text)
    p = r["policy"]
    has_form(r, RECORD), has_form({"intent": "none", **p}, POLICY)
    need(canonical(r) == text and max(r["sequence_num"], p["policy_version"] or 0) < 2**53, "record: not canonical, or a number")
    need(p["limits"] is not None or not p["evaluated"], "record: limits")
    canonical(p["limits"], 57)                      # at most 8 levels
    real_day(r["received_at"]), real_day(p["evaluated_at"] or r["received_at"])
    return r

def envelope(text):                                 # its members, and what was signed
    e = ijson(text)
    has_form({"tool_name": None, **e}, ENVELOPE, closed=False)
    need(canonical(e) == text and e.get("tool_name", "") is not None, "envelope: not canonical, or tool_name")
    need(len(e["actor_principal"]) <= 256 and not any(unicodedata.category(c) == "Cc" for c in e["actor_principal"]), "actor_principal")
    real_day(e["emitted_at"]), unbase64(e["sig_value_b64"], 64)
    return e, canonical({n: v for n, v in e.items() if n not in ("sig_alg", "sig_value_b64")}).encode()

def multikey(text):                                 # z and base58btc of ed 01 and the key
    alphabet, n, again = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz", 0, ""
    for c in text[1:]: n = n * 58 + alphabet.index(c)
    raw = n.to_bytes(34, "big")
    while n: n, again = n // 58, alphabet[n % 58] + again
    need(text == "z" + again and len(text) == 48 and raw[:2] == b"\xed\x01", "public_key")
    return raw[2:]

def listing(payload):                               # of an event of a directory: size and root by origin
    has_form(payload, dict(checkpoints=LIST))
    trees, last = {}, ""
    for c in payload["checkpoints"]:
        has_form(c, LISTED)
        need(verifier(c["log_key"], LOG)[0] == c["origin"] > last and c["tree_size"] < 2**53, "listing: key, order, or size")
        trees[c["origin"]], last = (c["tree_size"], bytes.fromhex(c["root_hash"])), c["origin"]
    need(1 <= len(trees) <= 256, "listing: number of logs")
    return trees

def has_proof_form(p):
    has_form(p, PROOF)
    need(max(p["log_index"], p["tree_size"]) < 2**53, "inclusion: number")

# --- The bundle. A verdict is True, False, or None for what is not disclosed.
def check_bundle_form(b, outer=True):
    optional = dict.fromkeys(("log_keys", "record", "envelope", "erased_at", "directory"))
    has_form({**optional, **b}, BUNDLE, closed=False)
    need(all(isinstance(k, str) for k in b.get("log_keys") or []), "log_keys")
    need(max(b["sequence_num"], b["log_index"]) < 2**53, "sequence_num or log_index")
    b.get("erased_at") and real_day(b["erased_at"])
    for proof in b["inclusion"], b["previous_inclusion"]: proof is None or has_proof_form(proof)
    second = b.get("directory")
    if second is not None:
        need(outer, "directory in a directory")
        has_form(second, dict(inclusion=OBJECT, bundle=OBJECT))
        has_proof_form(second["inclusion"]), check_bundle_form(second["bundle"], outer=False)

def parse_bundle(text):
    b = ijson(text)
    check_bundle_form(b)
    return b

def log_keys(text):
    keys = ijson(text)["keys"]
    for k in keys:
        has_form(k, KEY, closed=False)
        need(k["from_size"] <= (2**53 - 1 if k["to_size"] is None else k["to_size"]) < 2**53, "keys: sizes")
        if k["use"] == "log": verifier(k["vkey"], LOG)
    need(any(k["use"] == "log" for k in keys), "keys: none of a log")
    return [k for k in keys if k["use"] == "log"]

def check_bundle(b, vkey, keys=(), directory_key=None, directory_keys=()):
    """Returns the verdicts. keys and directory_keys are further keys, as log_keys returns them. Without a directory_key the second proof's counts."""
    disclosed = lambda name: b.get(name) is not None
    e, c = attempt(entry, b["entry"]), attempt(lambda: checkpoint(note(b["checkpoint"])[0]))
    r, v = disclosed("record") and attempt(record, b["record"]), disclosed("envelope") and attempt(envelope, b["envelope"])

    def proves(p, index, leaf, tree):
        need((p["log_index"], p["tree_size"], bytes.fromhex(p["root_hash"])) == (index, *tree), "inclusion and checkpoint")
        inclusion(index, tree[0], leaf, tree[1], [bytes.fromhex(h) for h in p["hashes"]])
    def check_inclusion():
        need(leaf_hash(b["entry"]).hex() == b["event_hash"] and e[2] == b["sequence_num"] == b["log_index"] + 1, "entry")
        proves(b["inclusion"], b["log_index"], leaf_hash(b["entry"]), c[1:])
    def check_checkpoint():
        name, pinned = vkey.split("+")[0], [vkey]
        for k in keys:
            if c and k["vkey"].split("+")[0] == name and k["from_size"] <= c[1] and (k["to_size"] is None or c[1] < k["to_size"]): pinned.append(k["vkey"])
        signers = b.get("log_keys") or [b["log_key"]]       # two while a key is being rotated: the pinned one counts
        counts = vkey if vkey in signers else b["log_key"]
        need(counts in pinned and b["origin"] == name, "log_key")
        need(b["log_key"] in signers and len(set(signers)) == len(signers), "log_keys")
        for k in {counts, *signers}: open_checkpoint(b["checkpoint"], verifier(k, LOG))
    def check_chain():
        before = b["previous_entry"], b["previous_inclusion"]
        if b["log_index"] == 0:
            need(e[2] == 1 and before == (None, None) and e[0] == sha(b"agentledger/genesis/v1\n", b["origin"].encode(), b"\n"), "genesis")
            return
        need(leaf_hash(before[0]) == e[0] and entry(before[0])[2] == e[2] - 1, "previous entry")
        proves(before[1], b["log_index"] - 1, e[0], c[1:])
    def check_record():
        need(sha(b["record"].encode()) == e[1], "record and entry")
        need(all(r[n] == b[n] for n in ("origin", "sequence_num", "event_id")) and r["organization_id"] == b["organization_id"].lower(), "record and bundle")
    def check_signature():
        message = v[1] if r["sig_form"] == "canonical" else bytes.fromhex(r["event_digest"])
        signed(multikey(r["public_key"]), unbase64(r["sig_value_b64"], 64), message)
    def check_envelope():
        need(sha(b"APS1\n", v[0]["key_id"].encode(), b"\n", v[1]).hex() == r["event_digest"], "envelope and digest")
        need(all(v[0][n] == r[n] for n in ("event_id", "agent_id", "key_id")), "envelope and record")
        need(v[0]["organization_id"].lower() == r["organization_id"] and v[0]["policy_decision"] == r["policy"]["declared"], "envelope and record")
        if "intent" in r["policy"]:
            payload = v[0]["payload"]
            parent = v[0].get("parent_event_id")
            if not isinstance(parent, str) or not parent: parent = payload.get("parent_event_id")
            need("tool_name" in v[0] and payload.get("phase") == "result" and parent == r["policy"]["intent"], "envelope and intent")
            need(re.fullmatch(ID, canonical(parent), re.A), "parent_event_id")
    def check_directory():
        inner = b["directory"]["bundle"]
        said = check_bundle(inner, directory_key or inner["log_key"], directory_keys)
        need(all(said[n] for n in said if n != "directory_ok") and record(inner["record"])["signer"] == "system", "directory: its bundle")
        event = envelope(inner["envelope"])[0]
        need(event["action_kind"] == "ledger_directory", "directory: another event")
        proves(b["directory"]["inclusion"], b["log_index"], bytes.fromhex(b["event_hash"]), listing(event["payload"])[b["origin"]])

    said = dict(inclusion_ok=attempt(check_inclusion), checkpoint_ok=attempt(check_checkpoint), chain_ok=attempt(check_chain))
    promised = b["disclosure"] in ("record", "full")
    said["record_ok"] = r is not False and attempt(check_record) if promised or disclosed("record") else None
    said["signature_ok"] = attempt(check_signature) if r and (r["sig_form"] == "digest" or v) else None
    lost = b["disclosure"] == "full" and not disclosed("envelope") and not disclosed("erased_at")
    said["envelope_ok"] = False if lost or disclosed("envelope") and not v else attempt(check_envelope) if v and r else None
    said["directory_ok"] = attempt(check_directory) if disclosed("directory") else None
    return said

def unknown_keys(b, vkey, keys=(), directory_key=None, directory_keys=()):
    """Returns who signed, by name and key id, if all that is wrong is that these keys are not given."""
    inner, unknown = (b.get("directory") or {}).get("bundle"), []
    def believed(b, given, more):
        if given in (b.get("log_keys") or []) or b["log_key"] in (given, *(k["vkey"] for k in more)): return given
        unknown.append(signer(b["log_key"]))
        return b["log_key"]
    vkey = believed(b, vkey, keys)
    if inner and directory_key: directory_key = believed(inner, directory_key, directory_keys)
    return unknown if unknown and False not in check_bundle(b, vkey, keys, directory_key, directory_keys).values() else []

def key_statement(b, known):
    """Returns the key that a bundle states, the known one that vouches for it, and the size from which it signs. known is as log_keys returns it."""
    size = checkpoint(note(b["checkpoint"])[0])[1]
    signs = lambda vkey: attempt(open_checkpoint, b["checkpoint"], verifier(vkey, LOG))
    by = [k["vkey"] for k in known if k["to_size"] is None and k["from_size"] <= size and signs(k["vkey"])]
    need(by and size == b["log_index"] + 1, "no known key that still signs, or not the last entry")
    said = check_bundle(b, by[0])
    need(all(said[n] for n in said if n != "directory_ok") and said["directory_ok"] is not False, "the bundle")
    event = envelope(b["envelope"])[0]
    need(record(b["record"])["signer"] == "system" and event["action_kind"] == "ledger_log_key", "another event")
    stated = event["payload"]["vkey"]
    need(event["payload"]["transition"] == "log_key_created" and stated not in [k["vkey"] for k in known] and signs(stated), "the stated key")
    return stated, by[0], size

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS)
    commands = parser.add_subparsers(dest="command", required=True)
    bundle, proof = commands.add_parser("bundle"), commands.add_parser("tlog-proof")
    for name in "file", "vkey", "--keys", "--directory": bundle.add_argument(name)
    for name in "file", "entry", "vkey": proof.add_argument(name)
    a = parser.parse_args()
    read = lambda name: open(name, encoding="utf-8", newline="").read()
    def cannot_tell(unknown):
        if unknown: print("can't tell: signed by", " and ".join(unknown))
        return 2 if unknown else 1
    try:
        if a.command == "tlog-proof":
            proof = read(a.file), read(a.entry), verifier(a.vkey, LOG)
            unknown = attempt(tlog_proof, *proof, True)
            if isinstance(unknown, list): return cannot_tell(unknown)
            print("entry %d of %d is in the log" % tlog_proof(*proof))
            return 0
        given = parse_bundle(read(a.file)), a.vkey, log_keys(read(a.keys)) if a.keys else (), a.directory
        said = check_bundle(*given)
    except ERRORS as why:
        print("refused:", why)
        return 1
    if a.directory and said["directory_ok"] is None: said["directory_ok"] = False  # whoever pins a directory wants its proof
    for name, ok in said.items(): print("%-14s%s" % (name, {True: "yes", False: "NO", None: "not disclosed"}[ok]))
    return cannot_tell(unknown_keys(*given)) if False in said.values() else 0

if __name__ == "__main__": sys.exit(main())
