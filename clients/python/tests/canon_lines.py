"""Reads one JSON text per line; prints the hex SHA-256 of its canonical form, or `error`, one per line.

With the argument `arguments` it takes each text for the arguments of a tool: the digest is of the exact form, LF and the
payload.
"""

import hashlib
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "src"))

from agentledger._canonical import canonical_bytes  # noqa: E402
from agentledger._errors import Malformed  # noqa: E402
from agentledger._exact import exact_text, recorded_members  # noqa: E402
from agentledger._strictjson import parse, parse_exact  # noqa: E402


def digest(line: bytes) -> str:
    """Return what is printed for a line without its line end."""
    try:
        if sys.argv[1:] != ["arguments"]:
            return hashlib.sha256(canonical_bytes(parse(line))).hexdigest()
        arguments = parse_exact(line)
        if not isinstance(arguments, dict):
            return "error"
        payload = recorded_members(arguments)
        canonical_bytes({"payload": payload})
        return hashlib.sha256(exact_text(arguments).encode() + b"\n" + canonical_bytes(payload)).hexdigest()
    except Malformed:
        return "error"


if __name__ == "__main__":
    for raw in sys.stdin.buffer:
        sys.stdout.write(digest(raw.removesuffix(b"\n")) + "\n")
