#!/usr/bin/env python3
"""Judges documents for the comparison of verifiers. Each line of standard input is a JSON object with kind, path, key and keys. For each of them it
prints the status and, for a bundle, the verdicts. If other keys signed, the status is 1 too.
"""
import json, os, struct, sys, traceback
from pack import Unreadable, check_pack
from strict import ERRORS
from verify import check_bundle, log_keys, parse_bundle

VERDICTS = "inclusion_ok checkpoint_ok chain_ok record_ok signature_ok envelope_ok".split()

def judge(kind, path, key, keys):
    raw = path
    if not os.path.isdir(path):
        with open(path, "rb") as f: raw = f.read()
    if kind == "pack":
        check_pack(raw, key)
        return dict(status=0)
    listed = ()
    if keys:
        with open(keys, encoding="utf-8") as f: listed = log_keys(f.read())
    said = check_bundle(parse_bundle(raw.decode()), key, listed)
    return dict(status=int(False in said.values()), verdicts=[said[v] for v in VERDICTS])

for line in sys.stdin:
    try: said = judge(**json.loads(line))
    except Unreadable as why: said = dict(status=2, reason=str(why))
    except (*ERRORS, struct.error) as why: said = dict(status=1, reason=repr(why))
    except Exception: said = dict(status=99, reason=traceback.format_exc())
    print(json.dumps(said), flush=True)
