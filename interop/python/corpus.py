#!/usr/bin/env python3
"""Runs verify.py over a corpus: corpus.py DIR, the folder testdata/vectors. What its README.md says is checked here,
policies too. The last line is "N passed, N failed"; exit 1 if any failed.
"""
import base64, glob, json, os, re, struct, sys
from pack import Unreadable, check_pack
from policy import policy
from strict import *
from verify import *
from votes import Voters, thumbprint

def quorum_of(raw, text):                           # who cosigned, and if it is enough
    _, witnesses, groups, quorum = policy(raw)
    by = [name for name, key in witnesses.items() if attempt(cosigned, text, key) is not False]
    reached = lambda name: sum(map(reached, groups[name][1])) >= groups[name][0] if name in groups else name in by
    return by, quorum == "none" or reached(quorum)

def witnessed(raw, text):                           # who cosigned, if a log signed and it is enough
    logs = policy(raw)[0]
    need(any(attempt(open_checkpoint, text, key) for key in logs), "no log of the policy")
    by, enough = quorum_of(raw, text)
    need(enough, "quorum")
    return by

def quorum_time(raw, text, now):                    # what the times of the cosignatures prove
    _, witnesses, groups, quorum = policy(raw)
    at = {name: attempt(cosigned, text, key) for name, key in witnesses.items()}
    at = {name: t for name, t in at.items() if t is not False}
    future = [name for name, t in at.items() if t > now + 300]
    def enough(names):
        reached = lambda name: sum(map(reached, groups[name][1])) >= groups[name][0] if name in groups else name in names
        return quorum != "none" and reached(quorum)
    times = [t for name, t in at.items() if name not in future]
    by = [t for t in times if enough([n for n in at if at[n] <= t and n not in future])]
    since = [t for t in times if enough([n for n in at if at[n] >= t and n not in future])]
    need(by and since, "no time")
    return dict(by=str(min(by)), since=str(max(since)), in_future=future)

def unhex(text):                                    # of a hash: 64 lower-case digits
    need(re.fullmatch("[0-9a-f]{64}", text, re.A), "hash")
    return bytes.fromhex(text)

def told_unknown(said, *given):
    unknown = unknown_keys(*given)
    return dict(said, unknown_keys=unknown) if unknown else said

# --- The corpus: what this program says of each vector, and what it should.
def judge(kind, given):
    text = lambda name: given[name] if name in given else base64.b64decode(given[name + "_b64"]).decode()
    raw = lambda name: text(name).encode() if name in given else base64.b64decode(given[name + "_b64"])
    listed = lambda name: log_keys(text(name)) if name in given else ()
    told = lambda key: dict(name=key[0], key_id=key[1].hex(), public_key=key[2][1:].hex())
    if kind == "public-key": public_key(bytes.fromhex(text("public_key")))
    elif kind == "signature": signed(*(bytes.fromhex(text(n)) for n in ("public_key", "signature", "message")))
    elif kind == "log-key": return told(verifier(text("vkey"), LOG))
    elif kind in ("witness-key", "mldsa-witness-key"): return told(verifier(text("vkey"), WITNESS))
    elif kind == "note": return dict(text=open_note(text("note"), verifier(text("key"), LOG)))
    elif kind == "checkpoint":
        origin, size, root = open_checkpoint(text("note"), verifier(text("key"), LOG))
        return dict(origin=origin, size=str(size), root=root.hex())
    elif kind in ("cosignature", "mldsa-cosignature"): return dict(time=str(cosigned(text("note"), verifier(text("witness"), WITNESS))))
    elif kind == "inclusion":
        inclusion(decimal(text("index")), decimal(text("size")), unhex(text("leaf")), unhex(text("root")), [unhex(h) for h in given["hashes"]])
    elif kind == "consistency":
        consistency(decimal(text("from")), decimal(text("to")), unhex(text("from_root")), unhex(text("to_root")), [unhex(h) for h in given["hashes"]])
    elif kind == "tlog-proof":
        proof = text("proof"), text("entry"), verifier(text("key"), LOG)
        unknown = attempt(tlog_proof, *proof, True)
        if isinstance(unknown, list): return dict(unknown_keys=unknown, ok=False)
        index, size = tlog_proof(*proof)
        return dict(index=str(index), size=str(size))
    elif kind == "policy": policy(raw("policy"))
    elif kind == "quorum": return dict(witnessed_by=witnessed(raw("policy"), text("note")))
    elif kind == "quorum-time": return quorum_time(raw("policy"), text("note"), int(text("now")))
    elif kind == "keys": return dict(log_keys=[k["vkey"] for k in log_keys(text("keys"))])
    elif kind == "key-statement":
        vkey, by, size = key_statement(parse_bundle(text("bundle")), log_keys(text("keys")))
        return dict(vkey=vkey, by=by, from_size=str(size))
    elif kind == "signed-vote":
        voters, registration = Voters(text("origin")), ijson(text("registration"))
        voters.add(0, registration, text("registered_at"))
        voters.vote(1, dict(payload=ijson(text("vote")), actor_principal=registration["account_id"]), text("voted_at"))
        need(voters.report and "signed by" in voters.report[0], "not signed")
        return dict(thumbprint=thumbprint(registration["public_key"]))
    elif kind == "canonical-json": return dict(canonical=canonical(ijson(text("json"))))
    elif kind == "entry": return dict(seq=str(entry(text("entry"))[2]), event_hash=leaf_hash(text("entry")).hex())
    elif kind == "bundle":
        said = check_bundle(parse_bundle(text("bundle")), text("key"), listed("keys"))
        need(said.pop("directory_ok") is None, "second proof")
        return told_unknown(dict(said, ok=False not in said.values()), parse_bundle(text("bundle")), text("key"), listed("keys"))
    elif kind == "second-proof":
        b = parse_bundle(text("bundle"))
        said = check_bundle(b, text("key"), listed("keys"), given.get("directory_key"), listed("directory_keys"))
        said["ok"] = False not in said.values() and ("directory_key" not in given or said["directory_ok"] is not None)
        if "directory_policy" in given:
            said["directory_witnessed_by"], enough = quorum_of(raw("directory_policy"), b["directory"]["bundle"]["checkpoint"])
            said["ok"] = said["ok"] and enough
        return told_unknown(said, b, text("key"), listed("keys"), given.get("directory_key"), listed("directory_keys"))
    elif kind == "evidence-pack":
        try: facts, _, votes = check_pack(raw("pack"), text("key"))
        except Unreadable: return dict(cant_tell=True, ok=False)
        except struct.error as why: raise Refused(why)
        voted = any("signed by the passkey" in line for line in votes)
        return {name: str(n) for name, n in facts.items()} | ({"vote_lines": votes} if voted else {})
    else: raise SystemExit("unknown kind: " + kind)

def corpus(folder):
    passed = failed = 0
    for file in sorted(glob.glob(os.path.join(folder, "*.json"))):
        with open(file, encoding="utf-8") as f: vectors = json.load(f)
        for v in vectors["vectors"]:
            try: said, verdict = judge(vectors["kind"], v["input"]), "accept"
            except ERRORS as why: said, verdict = None, "refuse"
            if said and "ok" in said: verdict = "accept" if said.pop("ok") else "refuse"
            right = verdict == v["verdict"] and (said == v["expect"] if "expect" in v else True)
            passed, failed = passed + right, failed + (not right)
            if not right: print(f"{vectors['kind']}: {v['name']}: got {verdict} {said}, want {v['verdict']} {v.get('expect')}")
    print(f"{passed} passed, {failed} failed")
    return 0 if passed and not failed else 1

if __name__ == "__main__": sys.exit(corpus(sys.argv[1]))
