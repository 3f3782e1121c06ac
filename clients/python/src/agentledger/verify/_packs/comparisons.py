"""Comparisons of a tool's own record of its calls with the log, as shown events of the service state them.

That the service stated them is proved; the comparison itself is the operator's word (docs/guides/coverage.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..._grammar import INSTANT, is_time
from ..._shapes import is_object
from .._documents import is_hash, is_natural

MAX_COMPARISONS = 1000
_NUMBERS = ("calls", "outside", "matched", "unpermitted", "missing", "extra")


@dataclass(frozen=True)
class Comparison:
    """A comparison, by the log index of its event."""

    log_index: int
    file_sha256: str
    begin: str
    end: str
    covered: bool
    counts: dict[str, int]

    def __str__(self) -> str:
        """Return the line about it, in the words of `aps verify`."""
        n = self.counts
        word = "covered" if self.covered else "not covered"
        return (
            f"compared    {self.log_index}: calls from {self.begin} until before {self.end} {word}, as the service states: "
            f"{n['matched']} of {n['calls'] - min(n['outside'], n['calls'])} matched, {n['unpermitted']} unpermitted, "
            f"{n['missing']} missing, {n['extra']} extra; record {self.file_sha256}"
        )


def is_comparison(r: dict[str, Any], e: dict[str, Any]) -> bool:
    """Return whether an event with a record and an envelope is one."""
    return (r["signer"], e["action_kind"]) == ("system", "ledger_coverage_compared")


def comparison(r: dict[str, Any], e: dict[str, Any]) -> Comparison | None:
    """Return the comparison of an event; None for another event, and for a form such as that of a later version."""
    if not is_comparison(r, e):
        return None
    p = e["payload"]
    counts, sha256 = p.get("counts"), p.get("file_sha256")
    form = is_hash(sha256) and sha256 != "0" * 64 and is_time(p.get("from"), INSTANT) and is_time(p.get("to"), INSTANT)
    if not form or not isinstance(p.get("covered"), bool) or not is_object(counts):
        return None
    if not all(is_natural(counts.get(name)) for name in _NUMBERS):
        return None
    own = {name: counts[name] for name in _NUMBERS}
    return Comparison(r["sequence_num"] - 1, sha256, p["from"], p["to"], p["covered"], own)
