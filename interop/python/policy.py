"""C2SP tlog-policy: octets, of which ASCII alone has a meaning. Whatever is refused raises one of ERRORS of strict.py."""
import re
from strict import decimal, need
from verify import LOG, WITNESS, verifier

def policy(raw):
    text = raw.decode("latin-1")
    need(text.endswith("\n") and not any((c < " " and c not in "\t\n") or c == "\x7f" for c in text), "policy: characters")
    logs, witnesses, groups, free, quorum = [], {}, {}, set(), None
    def define(name, members=()):
        need(name != "none" and name not in witnesses and name not in groups, "policy: name")
        need(len(set(members)) == len(members) and free.issuperset(members), "policy: member")
        free.difference_update(members), free.add(name)
    for line in text.split("\n"):
        items = re.split("[ \t]+", line.strip(" \t"))
        if items[0] == "" or items[0].startswith("#"): continue
        keyword, rest = items[0], items[1:]
        vkey = lambda s, types: verifier(s.encode("latin-1").decode(), types)
        if keyword == "log" and len(rest) in (1, 2):
            logs.append(vkey(rest[0], LOG))
            need(len({key[2] for key in logs}) == len(logs), "policy: log twice")
        elif keyword == "witness" and len(rest) in (2, 3):
            define(rest[0])
            witnesses[rest[0]] = vkey(rest[1], WITNESS)
            need(len({key[2] for key in witnesses.values()}) == len(witnesses), "policy: witness twice")
        elif keyword == "group" and len(rest) >= 3:
            define(rest[0], rest[2:])
            k = {"any": 1, "all": len(rest) - 2}.get(rest[1]) or decimal(rest[1])
            need(1 <= k <= len(rest) - 2, "policy: threshold")
            groups[rest[0]] = k, rest[2:]
        else:
            need(keyword == "quorum" and len(rest) == 1 and quorum is None, "policy: line")
            quorum = rest[0]
            need(quorum == "none" or quorum in witnesses or quorum in groups, "policy: quorum")
    need(quorum, "policy: no quorum")
    return logs, witnesses, groups, quorum
