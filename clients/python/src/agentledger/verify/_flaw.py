"""The reason why a check fails: what is wrong, and the kind of error, in the words of `aps verify`."""

from __future__ import annotations

MALFORMED = "malformed"
MISMATCH = "mismatch"
SIGNATURE = "no valid signature of the key"
PROOF = "proof does not hold"
VERSION = "unknown version"
TOO_MANY_KEYS = "too many keys"


class Unreadable(Exception):
    """A container whose files cannot be read, so nothing is known about the pack."""


class Flaw(Exception):
    """A check that fails. kind is one of the constants of this module."""

    def __init__(self, what: str, kind: str, detail: str = "") -> None:
        super().__init__(": ".join(part for part in (what, kind, detail) if part))
        self.what = what
        self.kind = kind
        self.detail = detail

    def within(self, step: str) -> Flaw:
        """Return the same fault with the step that found it before its text."""
        return Flaw(f"{step}: {self.what}" if self.what else step, self.kind, self.detail)


def need(holds: bool, what: str, kind: str = MISMATCH) -> None:
    """Raise a Flaw unless the condition holds."""
    if not holds:
        raise Flaw(what, kind)
