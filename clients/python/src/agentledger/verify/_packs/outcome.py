"""The result for a pack, in the words of `aps verify`."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from .._flaw import SIGNATURE, Flaw, Unreadable
from .._keys import VerifierKey
from .._outcome import NO_KEY, NO_QUORUM, Outcome
from .._report import Witnessed
from .._trust import Trust
from .._words import printable, unknown_keys_words
from .acts import NO_ACTS
from .check import Facts, check_pack
from .source import Raw, Source, open_source


@dataclass
class PackResult:
    """The result for a pack. reason is None if it is proved; facts then contains what is proved."""

    outcome: Outcome
    reason: str | None
    facts: Facts
    pinned: bool
    quorum_ok: bool | None = None
    quorum_time: str | None = None
    cosignatures: list[Witnessed] = field(default_factory=list[Witnessed])
    unknown_keys: list[str] = field(default_factory=list[str])
    manifest_ok: bool | None = None
    """Whether the manifest has the given digest; None if none was given."""

    @property
    def proved(self) -> bool:
        """Whether the outcome is PROVED."""
        return self.outcome is Outcome.PROVED

    @property
    def _wrong(self) -> list[str]:
        acts = self.facts.acts
        return acts.receipts.errors if acts and acts.receipts else []

    def __str__(self) -> str:
        if self.outcome is Outcome.WRONG and self.manifest_ok is None and not self._wrong or self.unknown_keys or not self.facts.not_covered:
            return self.reason or ""
        f, key = self.facts, "the key given" if self.pinned else "a key that the pack names itself"
        shown = f"{_count(f.shown, 'event')} shown, {f.withheld} withheld, {f.erased} erased"
        lines = [
            f"log         {printable(f.origin or '')}",
            f"ok          complete for [{f.begin}, {f.end}): {shown}",
            f"ok          under the checkpoint of {_count(f.tree_size, 'event')}, signed by {key}",
            f"ok          {_count(f.envelopes, 'envelope')}, {_count(f.approvals, 'approval')}, "
            f"{f.approvals - f.actions_unchecked} of them with the payload that was decided on",
            *(f.acts.lines() if f.acts else [f"acts        none: {NO_ACTS}"]),
            *(f"wrong       {printable(e)}" for e in self._wrong),
            *(str(c) for c in f.comparisons),
            f"manifest    {f.manifest_sha256}",
        ]
        if self.manifest_ok:
            lines.append("ok          the manifest has the digest that was given")
        lines += [str(vote) for vote in f.votes]
        more = f.votes_signed + f.votes_unsigned - len(f.votes)
        if more > 0:
            lines.append(
                f"and {more} more votes; of all votes, {f.votes_signed} are signed and {f.votes_unsigned} are not"
            )
        lines += [f"cosigned    by {printable(c.name)} at {c.time_words}" for c in self.cosignatures]
        if self.quorum_time:
            lines.append(f"cosigned    by a quorum of the policy, by {self.quorum_time}")
        if f.signatures_unchecked:
            unchecked = _count(f.signatures_unchecked, "signature needs", "signatures need")
            lines.append(f"--          {unchecked} envelopes that are not in the pack")
        lines += [f"not covered: {what}" for what in f.not_covered]
        if self.manifest_ok is not False:
            lines.append("proved, as far as checked above")
        return "\n".join(lines)


def verify_pack(
    raw: Raw, trust: Trust, manifest: str | None = None, full: bool = False, tools: Sequence[VerifierKey] = ()
) -> PackResult:
    """Check a pack. manifest is the digest in the log's event of the export; full requires envelopes.

    tools are keys of tools, whose receipts confirm acts.

    Errors are NotAsked, and OSError for a pack that cannot be read.
    """
    if isinstance(raw, (str, os.PathLike)) and pathlib.Path(raw).is_dir():
        return _verify(raw, trust, manifest, full, tools)
    with open_source(raw) as source:
        return _verify(source, trust, manifest, full, tools)


_REPACKED = (
    "that this pack is as the service sent it: without the digest of its manifest, its carrier may have repacked it"
)


def _verify(
    pack: Source | str | os.PathLike[str], trust: Trust, manifest: str | None, full: bool, tools: Sequence[VerifierKey]
) -> PackResult:
    facts = Facts()
    result = PackResult(Outcome.PROVED, None, facts, bool(trust.keys))
    failed: Flaw | None = None
    try:
        check_pack(pack, trust.open if trust.keys else None, facts, tools)
    except Unreadable as why:
        result.outcome, result.reason = Outcome.CANT_TELL, f"can't tell: {why}"
        return result
    except Flaw as flaw:
        failed = flaw
    if failed is None and manifest is None:
        facts.not_covered.append(_REPACKED)
    elif failed is None:
        result.manifest_ok = manifest == facts.manifest_sha256
    result.cosignatures = trust.cosignatures(facts.checkpoint or "")
    result.quorum_ok = trust.quorum(failed is None, facts.checkpoint or "")
    result.quorum_time = trust.quorum_time(failed is None, facts.checkpoint or "")
    if failed is not None and failed.kind == SIGNATURE and trust.keys and _is_whole(pack):
        result.unknown_keys = trust.unknown_signers(facts.checkpoint or "")
    result.outcome, result.reason = _judge(result, failed, trust, manifest, full)
    return result


def _count(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def _is_whole(pack: Source | str | os.PathLike[str]) -> bool:
    try:
        check_pack(pack, None, Facts())
    except Flaw:
        return False
    return True


def _judge(r: PackResult, failed: Flaw | None, trust: Trust, manifest: str | None, full: bool) -> tuple[Outcome, str | None]:
    if r.unknown_keys:
        return Outcome.CANT_TELL, unknown_keys_words(r.unknown_keys, "")
    if failed is not None:
        return Outcome.WRONG, f"not proved: {failed}"
    if manifest is not None and manifest != r.facts.manifest_sha256:
        return Outcome.WRONG, "not proved: the pack has another manifest than was asked for"
    acts = r.facts.acts
    if acts and acts.receipts and acts.receipts.wrong:
        return Outcome.WRONG, f"not confirmed: {acts.receipts.errors[0]}"
    if not trust.keys:
        return Outcome.CANT_TELL, NO_KEY
    if r.quorum_ok is False:
        return Outcome.CANT_TELL, NO_QUORUM
    if full and not r.facts.has_envelopes:
        return Outcome.CANT_TELL, "can't tell: the pack was made without envelopes"
    return Outcome.PROVED, None
