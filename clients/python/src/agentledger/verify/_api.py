"""The functions for callers. Keys are given by the caller and never taken from a document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._errors import Malformed, NotAsked, Unproved
from .._shapes import is_list
from .._strictjson import parse_object
from ._documents import is_hash
from ._flaw import Flaw
from ._heads import check_consistency_answer, check_head, open_pinned
from ._keys import VerifierKey, parse_log_key
from ._note import Checkpoint
from ._outcome import BundleResult, verify_bundle
from ._packs.outcome import PackResult, verify_pack
from ._packs.source import Raw
from ._proof import ProofResult, verify_proof
from ._trust import Trust, read_trust

Text = str | bytes


def bundle(
    text: Text,
    *,
    key: str | None = None,
    policy: Text | None = None,
    keys: Text | None = None,
    directory: Trust | None = None,
    require: str = "commitment",
    now: float | None = None,
    tool_keys: Sequence[str] = (),
    intent: Text | None = None,
) -> BundleResult:
    """Check a bundle under a pinned vkey, a tlog-policy, or both, with a saved list of further keys.

    directory (from read_trust) requires a second proof by the service's directory. require is commitment, record or
    full: less is CANT_TELL. now is the time of the check in seconds since 1970, by default the current time; later
    cosignatures are listed and prove no time. tool_keys are the vkeys of tools, one of which must have signed a receipt
    for the act that the event is the result of, and intent is the bundle of that act's intent. Errors are NotAsked for
    malformed keys; a wrong bundle is a result.
    """
    return verify_bundle(text, read_trust(key, policy, keys, now), directory, require, _tools(tool_keys), intent)


def tlog_proof(
    text: Text,
    entry: Text,
    *,
    key: str | None = None,
    policy: Text | None = None,
    keys: Text | None = None,
    now: float | None = None,
) -> ProofResult:
    """Check a C2SP tlog-proof for an entry's text. now is as for bundle.

    Errors are NotAsked; a wrong proof is a result.
    """
    return verify_proof(text, entry, read_trust(key, policy, keys, now))


def pack(
    raw: Raw,
    *,
    key: str | None = None,
    policy: Text | None = None,
    keys: Text | None = None,
    manifest: str | None = None,
    full: bool = False,
    now: float | None = None,
    tool_keys: Sequence[str] = (),
) -> PackResult:
    """Check an evidence pack: its bytes, the path of a file or folder, or a seekable binary file, which stays open.

    A file is read in portions, so the memory does not depend on the pack's size. If the files of a ZIP or of a folder
    cannot be read, the result is CANT_TELL. A symbolic link in a folder is never followed. manifest is the digest in
    the log's event of the export, in hex. With full, a pack without envelopes is CANT_TELL. now is as for bundle.
    tool_keys are the vkeys of tools, whose receipts confirm acts; a wrong receipt under one of them is WRONG. Errors are NotAsked, and OSError for a file that cannot be read; a wrong pack is a result.
    """
    return verify_pack(raw, read_trust(key, policy, keys, now), manifest, full, _tools(tool_keys))


def head(text: Text, key: str) -> Checkpoint:
    """Check an answer of transparency/head under a pinned vkey, and return its checkpoint. Errors are Unproved."""
    pinned = read_trust(key).keys[0]
    try:
        return check_head(_members(text), pinned)
    except Flaw as flaw:
        raise Unproved(str(flaw)) from None


def consistency(text: Text, old_note: Text, new_note: Text, key: str) -> None:
    """Check an answer of transparency/consistency between two signed checkpoints. Errors are Unproved.

    An error is evidence of a fork, or of a broken service: keep both checkpoints.
    """
    pinned = read_trust(key).keys[0]
    try:
        old, new = open_pinned(old_note, pinned), open_pinned(new_note, pinned)
        members = _members(text)
        hashes = members.get("hashes")
        if not is_list(hashes) or not all(is_hash(h) for h in hashes):
            raise Unproved("consistency: hashes")
        check_consistency_answer(members, [bytes.fromhex(h) for h in hashes], old, new)
    except Flaw as flaw:
        raise Unproved(str(flaw)) from None


def _tools(vkeys: Sequence[str]) -> tuple[VerifierKey, ...]:
    try:
        return tuple(parse_log_key(vkey.strip()) for vkey in vkeys)
    except Flaw as flaw:
        raise NotAsked(f"no check without good keys: {flaw}") from None


def _members(text: Text) -> dict[str, Any]:
    try:
        return parse_object(text)
    except Malformed as why:
        raise Unproved(str(why)) from None
