"""Proofs of Merkle trees (RFC 6962, sections 2.1.1 and 2.1.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ._encoding import MAX_SIZE, sha
from ._flaw import MALFORMED, PROOF, Flaw, need


def leaf_hash(entry: bytes) -> bytes:
    """Return the leaf hash of an entry."""
    return sha(b"\0", entry)


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of an inner node."""
    return sha(b"\1", left, right)


EMPTY_ROOT = sha()
"""The root of a tree without leaves."""


def check_inclusion(index: int, size: int, leaf: bytes, hashes: Sequence[bytes], root: bytes) -> None:
    """Check that a leaf is at an index of a tree of that size and root. Errors are Flaw."""
    need(0 <= index < size <= MAX_SIZE, "check inclusion: index or size out of range", PROOF)
    rest = iter(hashes)
    at, last, result = index, size - 1, leaf
    while last:
        if at & 1 or at < last:
            sibling = _next(rest, "check inclusion")
            result = node_hash(sibling, result) if at & 1 else node_hash(result, sibling)
        at, last = at >> 1, last >> 1
    need(next(rest, None) is None, "check inclusion: number of hashes", PROOF)
    need(result == root, "check inclusion: another root", PROOF)


def check_consistency(old: int, new: int, old_root: bytes, new_root: bytes, hashes: Sequence[bytes]) -> None:
    """Check that the tree of new leaves extends the tree of old leaves. Errors are Flaw."""
    need(0 <= old <= new <= MAX_SIZE, "check consistency: sizes out of range", PROOF)
    need(old > 0 or old_root == EMPTY_ROOT, "check consistency: another root", PROOF)
    rest = iter(hashes)
    roots = (old_root, new_root)
    if old == new:
        roots = (new_root, new_root)
    elif old > 0:
        roots = _roots(old, new, old_root, rest)
    need(next(rest, None) is None, "check consistency: number of hashes", PROOF)
    need(roots == (old_root, new_root), "check consistency: another root", PROOF)


def _roots(old: int, new: int, old_root: bytes, rest: Iterator[bytes]) -> tuple[bytes, bytes]:
    """Return the roots of the first old leaves and of all, from a proof."""
    at, last = old - 1, new - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    first = second = _next(rest, "check consistency") if at else old_root
    while last:
        if at & 1:
            sibling = _next(rest, "check consistency")
            first, second = node_hash(sibling, first), node_hash(sibling, second)
        elif at < last:
            second = node_hash(second, _next(rest, "check consistency"))
        at, last = at >> 1, last >> 1
    return first, second


def _next(rest: Iterator[bytes], what: str) -> bytes:
    found = next(rest, None)
    if found is None or len(found) != 32:
        raise Flaw(f"{what}: number of hashes", PROOF)
    return found


class Tree:
    """A tree that grows leaf by leaf and keeps only the roots of its perfect subtrees."""

    def __init__(self, size: int, edge: Sequence[bytes]) -> None:
        """Begin with a tree of size leaves; edge has the roots of its perfect subtrees, the largest first."""
        if bin(size).count("1") != len(edge):
            raise Flaw("edge: number of hashes", MALFORMED)
        sizes = [1 << b for b in range(size.bit_length() - 1, -1, -1) if size >> b & 1]
        self._parts = list(zip(sizes, edge, strict=True))

    def add(self, leaf: bytes) -> None:
        """Add a leaf hash."""
        size = 1
        while self._parts and self._parts[-1][0] == size:
            leaf = node_hash(self._parts.pop()[1], leaf)
            size *= 2
        self._parts.append((size, leaf))

    def root(self) -> bytes:
        """Return the root of the tree."""
        if not self._parts:
            return EMPTY_ROOT
        root = self._parts[-1][1]
        for _, left in reversed(self._parts[:-1]):
            root = node_hash(left, root)
        return root
