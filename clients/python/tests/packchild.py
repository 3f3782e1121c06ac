"""Checks a pack in a file: packchild.py FILE KEY. It prints the outcome and how much memory the check added."""

import json
import resource
import sys

import harness  # noqa: F401  (the path of the package)

from agentledger import verify


def peak() -> int:
    """Return the process's peak memory in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


before = peak()
result = verify.pack(sys.argv[1], key=sys.argv[2], full=True)
outcome = {"outcome": result.outcome.name, "reason": result.reason, "envelopes": result.facts.envelopes}
print(json.dumps({**outcome, "more": peak() - before}))
