"""Verifies documents for the comparison of verifiers: each input line is a JSON object of kind, path, key and keys.

It prints the status and the report of each.
"""

import json
import pathlib
import sys
import traceback
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "src"))

from agentledger import NotAsked, verify  # noqa: E402


def judge(kind: str, path: str, key: str, keys: str) -> dict[str, Any]:
    """Return the result of the client's verifier."""
    listed = pathlib.Path(keys).read_bytes() if keys else None
    if kind == "pack":
        p = verify.pack(path, key=key, keys=listed)
        shows = p.facts.not_covered and not p.unknown_keys
        return {"status": p.outcome.value, "text": str(p) if shows else "", "reason": p.reason or ""}
    b = verify.bundle(pathlib.Path(path).read_bytes(), key=key, keys=listed)
    return {"status": b.outcome.value, "text": str(b) if b.report is not None else "", "reason": b.reason or ""}


for line in sys.stdin:
    try:
        outcome = judge(**json.loads(line))
    except NotAsked as why:
        outcome = {"status": 2, "text": "", "reason": str(why)}
    except Exception:
        outcome = {"status": 99, "text": "", "reason": traceback.format_exc()}
    print(json.dumps(outcome), flush=True)
