"""Read public logs as an auditor's program does, for the tests of dishonest servers (internal/test/readers).

Each line of standard input is a JSON array of URL, slug, key, policy, event and state. The reader keeps its memory of the log
in the file state, follows the log, and verifies the bundle of the event. Policy is a file or "". For each line it prints what
it reports about the log, as a JSON string.
"""

from __future__ import annotations

import json
import pathlib
import sys
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "src"))

from agentledger import Client, LedgerError, verify


def read(url: str, slug: str, key: str, policy: str, event: str, state: str) -> str:
    """Return what the reader reports about the log."""
    kept = pathlib.Path(state)
    with Client(url=url) as client:
        log = client.log(slug, key)
        try:
            followed = log.follow(json.loads(kept.read_text()) if kept.exists() else None)
            result = log.bundle(event)
            if policy:
                with urllib.request.urlopen(f"{url}/v1/public/orgs/{slug}/verify/{event}") as answer:
                    result = verify.bundle(answer.read(), key=key, policy=pathlib.Path(policy).read_bytes())
        except LedgerError as why:
            return str(why)
    if result.outcome.name != "PROVED":
        return result.reason
    kept.write_text(json.dumps(followed.memory))
    return "\n".join(["accepted: " + str(result), *map(str, followed.new_keys)])


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(read(*json.loads(line))), flush=True)
