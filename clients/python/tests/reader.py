"""Read a public log as an auditor's program does, for the tests of dishonest servers (internal/test/readers).

reader.py URL SLUG KEY POLICY EVENT STATE: it keeps the checkpoint in the file STATE, proves that the head extends it, and
verifies the bundle of an event. POLICY is a file or "".
"""

from __future__ import annotations

import json
import pathlib
import sys
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "src"))

from agentledger import Client, LedgerError, verify
from agentledger.verify.note import Checkpoint


def main(url: str, slug: str, key: str, policy: str, event: str, state: str) -> str:
    """Return what the reader says of the log."""
    kept = pathlib.Path(state)
    with Client(url=url) as client:
        log = client.log(slug, key)
        try:
            head = log.head().checkpoint
            if kept.exists():
                before = json.loads(kept.read_text())
                log.consistency(Checkpoint(before["origin"], before["size"], bytes.fromhex(before["root"])), head)
            log.bundle(event)
            with urllib.request.urlopen(f"{url}/v1/public/orgs/{slug}/verify/{event}") as answer:
                trusted = {"key": key, "policy": pathlib.Path(policy).read_bytes() if policy else None}
                result = verify.bundle(answer.read(), **trusted)
        except LedgerError as why:
            return str(why)
    if result.outcome.name != "PROVED":
        return result.reason
    kept.write_text(json.dumps({"origin": head.origin, "size": head.size, "root": head.root.hex()}))
    return "accepted: " + str(result)


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
