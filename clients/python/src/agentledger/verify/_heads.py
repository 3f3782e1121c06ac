"""Heads of logs, and proofs between checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._documents import is_hash, is_natural
from ._flaw import MALFORMED, need
from ._keys import VerifierKey
from ._note import Checkpoint, open_checkpoint, parse_note
from ._tree import check_consistency


def open_pinned(note: str | bytes, key: VerifierKey) -> Checkpoint:
    """Open a checkpoint that a pinned key signed. Errors are Flaw."""
    return open_checkpoint(parse_note(note), key)


def check_head(h: dict[str, Any], key: VerifierKey) -> Checkpoint:
    """Check a head: its key signed the checkpoint, and the other members agree with it. Errors are Flaw.

    Slug, fault, time and, in a log of more than one entry, the latest leaf hash are unverified operator claims.
    """
    texts = isinstance(h.get("origin"), str) and isinstance(h.get("checkpoint"), str)
    numbers = is_natural(h.get("tree_size")) and is_hash(h.get("root_hash"))
    need(texts and numbers, "check head: members", MALFORMED)
    need(key.name == h["origin"], "check head: origin and name of the log key")
    checkpoint = open_pinned(h["checkpoint"], key)
    same = (checkpoint.size, checkpoint.root.hex()) == (h["tree_size"], h["root_hash"])
    need(same, "check head: tree_size, root_hash and checkpoint")
    _check_latest(h, checkpoint)
    return checkpoint


def _check_latest(h: dict[str, Any], checkpoint: Checkpoint) -> None:
    index, leaf, at = (h.get(n) for n in ("latest_log_index", "latest_leaf_hash", "latest_published_at"))
    if checkpoint.size == 0:
        need(index is None and leaf is None and at is None, "check head: a latest entry of an empty log")
        return
    need(index == checkpoint.size - 1, "check head: latest_log_index and tree_size")
    if h.get("fault") and leaf is None and at is None:
        return
    need(leaf is not None and at is not None, "check head: no latest entry")
    alone = checkpoint.size > 1 or leaf == checkpoint.root.hex()
    need(alone, "check head: latest_leaf_hash and the root over it alone")


def check_consistency_answer(v: dict[str, Any], hashes: Sequence[bytes], old: Checkpoint, new: Checkpoint) -> None:
    """Check that an answer proves that the tree of new extends the tree of old. Open both first. Errors are Flaw."""
    need(old.origin == new.origin, "origins of the checkpoints")
    need((v.get("from"), v.get("to")) == (old.size, new.size), "from, to and the checkpoints' sizes")
    roots = (v.get("from_root"), v.get("to_root")) == (old.root.hex(), new.root.hex())
    need(roots, "from_root, to_root and the checkpoints' roots")
    check_consistency(old.size, new.size, old.root, new.root, hashes)
