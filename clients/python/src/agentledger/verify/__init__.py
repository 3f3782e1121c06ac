"""Checks what a log says, offline: bundles, heads, consistency, tlog-proofs and evidence packs.

- A check depends on its arguments alone: no network, no state. The clock is read only for the default of now, which
  tells cosignatures from the future.
- A report asserts recomputed facts, and names the parts that no check covers.
- There are three outcomes: proved, proved wrong, can't tell. They are those of `aps verify`, in its words.
"""

from .api import bundle, consistency, head, pack, tlog_proof
from .outcome import BundleResult, Outcome
from .packs.outcome import PackResult
from .proof import ProofResult
from .trust import Trust, read_trust

__all__ = [
    "BundleResult",
    "Outcome",
    "PackResult",
    "ProofResult",
    "Trust",
    "bundle",
    "consistency",
    "head",
    "pack",
    "read_trust",
    "tlog_proof",
]
