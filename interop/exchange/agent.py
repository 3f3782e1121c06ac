"""Reads one line a request; prints one line an answer. See agent.mjs."""

import hashlib
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "clients" / "python" / "src"))

from agentledger import Client  # noqa: E402


def main() -> None:
    """Answer each line of the standard input."""
    with Client() as client:
        log = client.log(os.environ["LOG_SLUG"], os.environ["LOG_KEY"])

        def send(line: bytes) -> str:
            signed = client.sign(line)
            return f"{hashlib.sha256(signed.text).hexdigest()} {client.send(signed).status}"

        def verify(line: bytes) -> str:
            return log.bundle(line.decode()).outcome.name.lower()

        answer = {"send": send, "verify": verify}[sys.argv[1]]
        for line in sys.stdin.buffer:
            print(answer(line.removesuffix(b"\n")))


if __name__ == "__main__":
    main()
