"""Verifies the documents of a log offline: bundles, heads, consistency, tlog-proofs and evidence packs.

- The result of a check depends only on its arguments: no network, no state. The clock is read only for the default of
  now, which distinguishes cosignatures from the future.
- A report asserts only recomputed facts, and lists the parts that no check covers.
- There are three outcomes: proved, proved wrong, can't tell. They are the outcomes of `aps verify`, in its words.
"""

from ._api import bundle, consistency, head, pack, tlog_proof
from ._outcome import BundleResult, Outcome
from ._packs.outcome import PackResult
from ._proof import ProofResult
from ._trust import Trust, read_trust

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
