#!/usr/bin/env python3
"""Verifies bundles, proofs and checkpoints of agentledger logs, by their written contract alone.

  verify.py bundle FILE VKEY [KEYS]        a bundle under the log's pinned key (and a saved transparency/keys)
  verify.py tlog-proof FILE ENTRY VKEY     a C2SP tlog-proof for the entry in the file ENTRY

Python's standard library and the package cryptography. Exit 0: verified. 1: refused, with the reason.
"""
import base64, datetime, functools, hashlib, json, re, sys, unicodedata
from decimal import Decimal
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

class Refused(Exception): pass
ERRORS = (Refused, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)

def need(ok, why):
    if not ok: raise Refused(why)

def sha(*parts): return hashlib.sha256(b"".join(parts)).digest()
def leaf_hash(entry): return sha(b"\0", entry.encode())
def node(left, right): return sha(b"\1", left, right)

def accepts(call, *arguments):
    try: return call(*arguments) or True
    except ERRORS: return False

def unbase64(text, size=None):                      # one spelling, with padding
    try: raw = base64.b64decode(text, validate=True)
    except ValueError: raise Refused("base64")
    need(base64.b64encode(raw).decode() == text and size in (None, len(raw)), "base64")
    return raw

def unhex(text):                                    # of a hash: 64 lower-case digits
    need(isinstance(text, str) and re.fullmatch("[0-9a-f]{64}", text, re.A), "hash")
    return bytes.fromhex(text)

def decimal(text, limit=2**63 - 1):
    need(re.fullmatch("0|[1-9][0-9]{0,19}", text, re.A) and int(text) <= limit, "number")
    return int(text)

# --- Ed25519: keys of the prime-order subgroup in their one encoding; no R of small order.
P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
Y8 = int.from_bytes(bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"), "little")
SMALL = {0, 1, P - 1, Y8, P - Y8}                   # y of the points of small order

def add(p, q):                                      # extended coordinates, RFC 8032 section 5.1.4
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P

@functools.lru_cache(None)
def public_key(raw):
    need(len(raw) == 32, "length of the key")
    n = int.from_bytes(raw, "little")
    y, sign = n & (2**255 - 1), n >> 255
    need(y < P and y not in SMALL, "key not canonical, or of small order")
    u, v = (y * y - 1) % P, (D * y * y + 1) % P
    x = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    if v * x * x % P != u: x = x * pow(2, (P - 1) // 4, P) % P
    need(v * x * x % P == u, "key not on the curve")
    if x & 1 != sign: x = P - x
    sum, power, k = (0, 1, 1, 0), (x, y, 1, x * y % P), L
    while k:
        if k & 1: sum = add(sum, power)
        power, k = add(power, power), k >> 1
    need(sum[0] == 0 and sum[1] == sum[2], "key with a torsion component")
    return Ed25519PublicKey.from_public_bytes(raw)

def signed(raw, signature, message):
    key = public_key(raw)
    need(len(signature) == 64, "length of the signature")
    need((int.from_bytes(signature[:32], "little") & (2**255 - 1)) % P not in SMALL, "R of small order")
    try: key.verify(signature, message)
    except InvalidSignature: raise Refused("signature")

# --- C2SP signed-note, tlog-checkpoint, tlog-cosignature, tlog-proof.
def good_name(name): return name and not any(c == "+" or c.isspace() or unicodedata.category(c) == "Cc" for c in name)
def key_id(name, typed): return sha(name.encode(), b"\n", typed)[:4]

def verifier(vkey, kind):                           # kind 1: a log's key, 4: a witness's
    need(vkey.count("+") >= 2, "verifier key")
    name, id, encoded = vkey.split("+", 2)
    typed = unbase64(encoded, 33)
    need(good_name(name) and len(name.encode()) <= 255 and typed[0] == kind, "verifier key")
    public_key(typed[1:])
    need(key_id(name, typed).hex() == id, "key id")
    return name, bytes.fromhex(id), typed[1:]

def note(text):
    need(len(text.encode()) <= 1 << 17 and not any(c < " " and c != "\n" for c in text), "note: size or characters")
    at = text.rfind("\n\n")
    need(at >= 0 and text.endswith("\n"), "note: no empty line, or no line end")
    body, lines, signatures = text[:at + 1], text[at + 2:].split("\n")[:-1], {}
    need(1 <= len(lines) <= 100, "note: number of signature lines")
    for line in lines:
        parts = line.split(" ")
        need(len(parts) == 3 and parts[0] == "\u2014" and good_name(parts[1]), "note: signature line")
        raw = unbase64(parts[2])
        need(len(raw) > 4 and (parts[1], raw[:4]) not in signatures, "note: signature line, or a second of one key")
        signatures[parts[1], raw[:4]] = raw[4:]
    return body, signatures

def open_note(text, key):
    body, signatures = note(text)
    need((key[0], key[1]) in signatures, "no signature of the key")
    signed(key[2], signatures[key[0], key[1]], body.encode())
    return body

def checkpoint(body):                               # exactly three lines
    lines = body.split("\n")
    need(len(lines) == 4 and lines[0] and not lines[3], "checkpoint: not three lines")
    size, root = decimal(lines[1]), unbase64(lines[2], 32)
    need(size > 0 or root == sha(), "checkpoint: root of the empty tree")
    return lines[0], size, root

def open_checkpoint(text, key):
    origin, size, root = checkpoint(open_note(text, key))
    need(origin == key[0], "checkpoint: origin")
    return origin, size, root

def cosigned(text, key):                            # the time in seconds
    body, signatures = note(text)
    value = signatures.get((key[0], key[1]), b"")
    need(len(value) == 72, "no cosignature of the key")
    time = int.from_bytes(value[:8], "big")
    need(time <= 253402300799, "cosignature: time")
    signed(key[2], value[8:], b"cosignature/v1\ntime %d\n" % time + body.encode())
    return time

def tlog_proof(text, entry, key):
    head, empty, rest = text.partition("\n\n")
    lines = head.split("\n")
    need(empty and lines.pop(0) == "c2sp.org/tlog-proof@v1" and lines, "tlog-proof: header")
    if lines[0].startswith("extra "): need(unbase64(lines.pop(0)[6:]) and lines, "tlog-proof: extra line")
    need(lines[0].startswith("index "), "tlog-proof: index line")
    index, hashes = decimal(lines[0][6:]), [unbase64(line, 32) for line in lines[1:]]
    _, size, root = open_checkpoint(rest, key)
    inclusion(index, size, leaf_hash(entry), root, hashes)
    return index, size

# --- RFC 6962 section 2.1, checked as in RFC 9162 section 2.1.3 and 2.1.4.
def inclusion(index, size, leaf, root, hashes):
    need(0 <= index < size < 2**63, "inclusion: index or size")
    at, last, got = index, size - 1, leaf
    for h in hashes:
        need(last > 0, "inclusion: too many hashes")
        while not at & 1 and at == last: at, last = at >> 1, last >> 1
        got = node(h, got) if at & 1 else node(got, h)
        at, last = at >> 1, last >> 1
        while last and at == last and not at & 1: at, last = at >> 1, last >> 1
    need(last == 0 and got == root, "inclusion: number of hashes, or another root")

def consistency(old, new, old_root, new_root, hashes):
    need(0 <= old <= new < 2**63, "consistency: sizes")
    if old in (0, new):
        need(not hashes and (old or old_root == sha()) and (old < new or old_root == new_root), "consistency: root, or hashes")
        return
    at, last, hashes = old - 1, new - 1, list(hashes)
    while at & 1: at, last = at >> 1, last >> 1
    need(hashes or at == 0, "consistency: number of hashes")
    first = second = hashes.pop(0) if at else old_root
    for h in hashes:
        need(last > 0, "consistency: too many hashes")
        while not at & 1 and at == last: at, last = at >> 1, last >> 1
        if at & 1: first, second = node(h, first), node(h, second)
        else: second = node(second, h)
        at, last = at >> 1, last >> 1
        while last and at == last and not at & 1: at, last = at >> 1, last >> 1
    need(last == 0 and first == old_root and second == new_root, "consistency: number of hashes, or another root")

# --- I-JSON with the number rule, and RFC 8785.
def number_text(f):
    if f == 0: return "0"
    sign, digits, exponent = Decimal(repr(f)).as_tuple()
    s = "".join(map(str, digits))
    n, s = len(s) + exponent, s.rstrip("0")         # 0.s times 10^n
    if len(s) <= n <= 21: text = s + "0" * (n - len(s))
    elif 0 < n <= 21: text = s[:n] + "." + s[n:]
    elif -6 < n <= 0: text = "0." + "0" * -n + s
    else: text = s[0] + ("." + s[1:] if s[1:] else "") + "e" + ("+" if n > 0 else "-") + str(abs(n - 1))
    return "-" * sign + text

def number(text):
    need(text.isascii(), "number")
    f = float(text)
    digits = re.sub("[eE].*|[-.]", "", text).strip("0")
    need(abs(f) != float("inf") and (f != 0 or not digits), "number beyond doubles")
    if re.fullmatch("-?[0-9]+", text): need(Decimal(number_text(f)) == Decimal(text), "number that is not exact")
    else: need(len(digits) <= 17, "number with too many digits")
    written = number_text(f)
    return int(written) if re.fullmatch("-?[0-9]+", written) else f

def members(pairs):
    need(len({name for name, _ in pairs}) == len(pairs), "member twice")
    return dict(pairs)

def never(text): raise Refused("literal")

def ijson(text):
    value = json.loads(text, object_pairs_hook=members, parse_int=number, parse_float=number, parse_constant=never)
    canonical(value).encode()                       # no lone surrogates, no great depth
    return value

def canonical(v, depth=1):
    if v is None or isinstance(v, bool): return json.dumps(v)
    if isinstance(v, (int, float)): return number_text(float(v))
    if isinstance(v, str): return json.dumps(v, ensure_ascii=False)
    need(depth <= 64, "depth")
    if isinstance(v, list): return "[" + ",".join(canonical(e, depth + 1) for e in v) + "]"
    names = sorted(v, key=lambda name: name.encode("utf-16-be"))
    return "{" + ",".join(canonical(n) + ":" + canonical(v[n], depth + 1) for n in names) + "}"

# --- Entry, record, envelope.
def entry(text):
    m = re.fullmatch(r'\{"prev":"([0-9a-f]{64})","record":"([0-9a-f]{64})","seq":([1-9][0-9]*),"v":1\}', text, re.A)
    need(m and int(m[3]) < 2**53, "entry")
    return bytes.fromhex(m[1]), bytes.fromhex(m[2]), int(m[3])

def is_date(text, form):
    if not re.fullmatch(form, text, re.A): return False
    try: return bool(datetime.datetime.strptime(text[:19], "%Y-%m-%dT%H:%M:%S"))
    except ValueError: return False

TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
UUID = "[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
DECISIONS = ("allow", "deny", "allow_with_obligation")
nullable = lambda rule: lambda v: v is None or rule(v)
some = lambda v: isinstance(v, str) and v != ""
is_text = lambda v: isinstance(v, str)
is_hash = lambda v: accepts(unhex, v)
is_number = lambda v: type(v) is int and 0 < v < 2**53
is_time = lambda v: is_date(v, TIME + r"\.[0-9]{3}Z")
one_of = lambda *words: lambda v: v in words
POLICY = dict(evaluated=lambda v: isinstance(v, bool), declared=one_of(*DECISIONS), effective=one_of(*DECISIONS), policy_id=nullable(some),
    policy_version=nullable(is_number), policy_digest=nullable(is_hash), rule_id=nullable(some), engine=nullable(some), input_digest=nullable(is_hash),
    evaluated_at=nullable(is_time), limits=nullable(lambda v: isinstance(v, list)), approval_id=nullable(some))
RECORD = dict(v=lambda v: v == 1 and type(v) is int, origin=is_text, organization_id=lambda v: re.fullmatch(UUID, v) and v == v.lower(),
    sequence_num=is_number, event_id=is_text, agent_id=is_text, key_id=is_text, public_key=is_text, signer=one_of("agent", "bridge", "system"),
    custody=one_of("agent", "server"), event_digest=is_hash, sig_form=one_of("digest", "canonical"), sig_value_b64=is_text, ingest_key_id=nullable(some),
    received_at=is_time, policy=lambda p: p.keys() == POLICY.keys() and all(POLICY[n](p[n]) for n in POLICY))

def record(text):
    r = ijson(text)
    need(canonical(r) == text and r.keys() == RECORD.keys() and all(RECORD[n](r[n]) for n in RECORD), "record")
    return r

ID, KIND = "(?![.]{1,2}$)[A-Za-z0-9._:-]{1,128}", "[a-z][a-z0-9_]{0,63}"
ENVELOPE = dict(organization_id=UUID, event_id=ID, trace_id=ID, agent_id="[A-Za-z0-9._-]{1,128}", key_id="[A-Za-z0-9._:#-]{1,256}",
    actor_type=KIND, action_kind=KIND, policy_decision="|".join(DECISIONS), sig_alg="ed25519")
TOOL = r"(?=.{1,256}$)[A-Za-z0-9_:/-]+(\.[A-Za-z0-9_:/-]+)*"

def envelope(text):                                 # its members, and what was signed
    e = ijson(text)
    need(canonical(e) == text and type(e["schema_version"]) is int and e["schema_version"] == 1, "envelope: form")
    need(all(re.fullmatch(rule, e[name], re.A) for name, rule in ENVELOPE.items()), "envelope: member")
    need("tool_name" not in e or re.fullmatch(TOOL, e["tool_name"], re.A), "envelope: tool_name")
    need(1 <= len(e["actor_principal"]) <= 256 and not any(unicodedata.category(c) == "Cc" for c in e["actor_principal"]), "envelope: actor_principal")
    need(is_date(e["emitted_at"], TIME + r"(\.[0-9]{1,9})?Z") and isinstance(e["payload"], dict), "envelope: emitted_at or payload")
    unbase64(e["sig_value_b64"], 64)
    return e, canonical({n: v for n, v in e.items() if n not in ("sig_alg", "sig_value_b64")}).encode()

def multikey(text):                                 # z and base58btc of ed 01 and the key
    alphabet, n, again = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz", 0, ""
    for c in text[1:]: n = n * 58 + alphabet.index(c)
    raw = n.to_bytes(34, "big")
    while n: n, again = n // 58, alphabet[n % 58] + again
    need(text == "z" + again and len(text) == 48 and raw[:2] == b"\xed\x01", "public_key")
    return raw[2:]

# --- The bundle. A verdict is True, False, or None for what is not disclosed.
REQUIRED = dict(version=int, organization_id=str, organization_slug=str, origin=str, event_id=str, sequence_num=int, log_index=int, event_hash=str,
    entry=str, inclusion=dict, checkpoint=str, log_key=str, disclosure=str)

def proof_of(p):
    need(p.keys() == {"log_index", "tree_size", "root_hash", "hashes"}, "inclusion: members")
    need(all(type(p[n]) is int and 0 <= p[n] < 2**64 for n in ("log_index", "tree_size")) and isinstance(p["hashes"], list), "inclusion: types")
    return p["log_index"], p["tree_size"], unhex(p["root_hash"]), [unhex(h) for h in p["hashes"]]

def parse_bundle(text):
    b = ijson(text)
    need(isinstance(b, dict) and all(type(b.get(n)) is kind for n, kind in REQUIRED.items()) and b["version"] == 1, "bundle: members")
    need(re.fullmatch(UUID, b["organization_id"], re.A) and b["disclosure"] in ("commitment", "record", "full"), "bundle: members")
    need("previous_entry" in b and "previous_inclusion" in b and min(b["sequence_num"], b["log_index"]) >= 0, "bundle: members")
    need(all(b.get(n) is None or isinstance(b[n], str) for n in ("previous_entry", "record", "envelope", "erased_at")), "bundle: members")
    unhex(b["event_hash"]), proof_of(b["inclusion"]), b["previous_inclusion"] is None or proof_of(b["previous_inclusion"])
    return b

def log_keys(text):
    keys = ijson(text)["keys"]
    for k in keys:
        need(isinstance(k["vkey"], str) and isinstance(k["use"], str) and "to_size" in k, "keys: member")
        ends = k["from_size"], 2**63 if k["to_size"] is None else k["to_size"]
        need(all(type(n) is int for n in ends) and 0 <= ends[0] <= ends[1] <= 2**63, "keys: sizes")
        if k["use"] == "log": verifier(k["vkey"], 1)
    need(any(k["use"] == "log" for k in keys), "keys: none of a log")
    return [k for k in keys if k["use"] == "log"]

def check_bundle(b, vkey, keys=()):
    """Returns the verdicts; keys are further keys of the log, as log_keys returns them."""
    disclosed = lambda name: b.get(name) is not None
    parse = lambda call, *arguments: call(*arguments) if accepts(call, *arguments) else None
    e, c = parse(entry, b["entry"]), parse(lambda: checkpoint(note(b["checkpoint"])[0]))
    r, v = disclosed("record") and parse(record, b["record"]), disclosed("envelope") and parse(envelope, b["envelope"])

    def proves(p, index, leaf):
        at, size, root, hashes = proof_of(p)
        need(c and (at, size, root) == (index, c[1], c[2]), "inclusion and checkpoint")
        inclusion(index, size, leaf, root, hashes)
    def check_inclusion():
        need(e and leaf_hash(b["entry"]).hex() == b["event_hash"] and e[2] == b["sequence_num"] == b["log_index"] + 1, "entry")
        proves(b["inclusion"], b["log_index"], leaf_hash(b["entry"]))
    def check_checkpoint():
        name, pinned = vkey.split("+")[0], [vkey]
        for k in keys:
            if c and k["vkey"].split("+")[0] == name and k["from_size"] <= c[1] and (k["to_size"] is None or c[1] < k["to_size"]): pinned.append(k["vkey"])
        need(b["log_key"] in pinned and b["origin"] == name, "log_key")
        open_checkpoint(b["checkpoint"], verifier(b["log_key"], 1))
    def check_chain():
        before = b["previous_entry"], b["previous_inclusion"]
        if b["log_index"] == 0:
            need(e[2] == 1 and before == (None, None) and e[0] == sha(b"agentledger/genesis/v1\n", b["origin"].encode(), b"\n"), "genesis")
            return
        need(None not in before and leaf_hash(before[0]) == e[0] and entry(before[0])[2] == e[2] - 1, "previous entry")
        proves(before[1], b["log_index"] - 1, e[0])
    def check_record():
        need(r and e and sha(b["record"].encode()) == e[1], "record and entry")
        need(all(r[n] == b[n] for n in ("origin", "sequence_num", "event_id")) and r["organization_id"] == b["organization_id"].lower(), "record and bundle")
    def check_signature():
        message = v[1] if r["sig_form"] == "canonical" else bytes.fromhex(r["event_digest"])
        signed(multikey(r["public_key"]), unbase64(r["sig_value_b64"], 64), message)
    def check_envelope():
        need(v and sha(b"APS1\n", v[0]["key_id"].encode(), b"\n", v[1]).hex() == r["event_digest"], "envelope and digest")
        need(all(v[0][n] == r[n] for n in ("event_id", "agent_id", "key_id")), "envelope and record")
        need(v[0]["organization_id"].lower() == r["organization_id"] and v[0]["policy_decision"] == r["policy"]["declared"], "envelope and record")

    said = dict(inclusion_ok=accepts(check_inclusion), checkpoint_ok=accepts(check_checkpoint), chain_ok=accepts(check_chain))
    promised = b["disclosure"] in ("record", "full")
    said["record_ok"] = accepts(check_record) if promised or disclosed("record") else None
    said["signature_ok"] = accepts(check_signature) if r and (r["sig_form"] == "digest" or v) else None
    lost = b["disclosure"] == "full" and not disclosed("envelope") and not disclosed("erased_at")
    said["envelope_ok"] = False if lost or disclosed("envelope") and not v else accepts(check_envelope) if v and r else None
    return said

def main(command="", *arguments):
    read = lambda name: open(name, encoding="utf-8", newline="").read()
    try:
        if command == "tlog-proof" and len(arguments) == 3:
            print("entry %d of %d is in the log" % tlog_proof(read(arguments[0]), read(arguments[1]), verifier(arguments[2], 1)))
            return 0
        if command == "bundle" and len(arguments) in (2, 3):
            said = check_bundle(parse_bundle(read(arguments[0])), arguments[1], log_keys(read(arguments[2])) if arguments[2:] else ())
            for name, ok in said.items(): print("%-14s%s" % (name, {True: "yes", False: "NO", None: "not disclosed"}[ok]))
            return 1 if False in said.values() else 0
    except ERRORS as why:
        print("refused:", why)
        return 1
    print(__doc__)
    return 2

if __name__ == "__main__": sys.exit(main(*sys.argv[1:]))
