"""Reads one JSON text per line; prints the hex SHA-256 of its canonical form, or `error`, one per line."""

import hashlib
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "src"))

from agentledger.canonical import canonical_bytes  # noqa: E402
from agentledger.errors import Malformed  # noqa: E402
from agentledger.strictjson import parse  # noqa: E402


def digest(line: bytes) -> str:
    """Return what is printed for a line without its line end."""
    try:
        return hashlib.sha256(canonical_bytes(parse(line))).hexdigest()
    except Malformed:
        return "error"


if __name__ == "__main__":
    for raw in sys.stdin.buffer:
        sys.stdout.write(digest(raw.removesuffix(b"\n")) + "\n")
