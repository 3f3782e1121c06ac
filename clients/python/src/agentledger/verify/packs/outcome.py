"""The result for a pack, in the words of `aps verify`."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..flaw import SIGNATURE, Flaw
from ..outcome import NO_KEY, NO_QUORUM, Outcome
from ..report import Witnessed
from ..trust import Trust
from ..words import printable, unknown_keys_words
from .check import Facts, check_pack
from .source import Raw, Source, open_source


@dataclass
class PackResult:
    """The result for a pack. reason is "" when it is proved; facts are then what is proved."""

    outcome: Outcome
    reason: str
    facts: Facts
    pinned: bool
    quorum_ok: bool | None = None
    cosignatures: list[Witnessed] = field(default_factory=list)
    unknown_keys: list[str] = field(default_factory=list)

    @property
    def proved(self) -> bool:
        """Whether the outcome is PROVED."""
        return self.outcome is Outcome.PROVED

    def __str__(self) -> str:
        if self.outcome is Outcome.WRONG or self.unknown_keys:
            return self.reason
        f, key = self.facts, "the key given" if self.pinned else "a key that the pack names itself"
        shown = f"{f.shown} events shown, {f.withheld} withheld, {f.erased} erased"
        lines = [
            f"log         {printable(f.origin)}",
            f"ok          complete for [{f.begin}, {f.end}): {shown}",
            f"ok          under the checkpoint of {f.tree_size} events, signed by {key}",
            f"ok          {f.envelopes} envelopes, {f.approvals} approvals",
            f"manifest    {f.manifest_sha256}",
        ]
        lines += [f"cosigned    by {printable(c.name)} at {c.time}" for c in self.cosignatures]
        if f.signatures_unchecked:
            lines.append(f"--          {f.signatures_unchecked} signatures need envelopes that are not in the pack")
        if f.filtered:
            lines.append("not covered: that no withheld event fits the request (docs/evidence.md)")
        lines.append("not covered: times, the owners of keys, names and addresses, report.html")
        return "\n".join([*lines, "proved, as far as checked above"])


def verify_pack(raw: Raw, trust: Trust, manifest: str | None = None, full: bool = False) -> PackResult:
    """Check a pack. manifest is the digest that the log's event of the export names; full asks for envelopes.

    Errors are NotAsked and OSError for a pack that can't be read.
    """
    with open_source(raw) as source:
        return _verify(source, trust, manifest, full)


def _verify(source: Source, trust: Trust, manifest: str | None, full: bool) -> PackResult:
    facts = Facts()
    result = PackResult(Outcome.PROVED, "", facts, bool(trust.keys))
    if source.read(0, 4) != b"PK\3\4":
        result.outcome, result.reason = Outcome.CANT_TELL, "not a pack that this program reads"
        return result
    failed: Flaw | None = None
    try:
        check_pack(source, trust.open if trust.keys else None, facts)
    except Flaw as flaw:
        failed = flaw
    result.cosignatures = trust.cosignatures(facts.checkpoint)
    result.quorum_ok = trust.quorum(failed is None, facts.checkpoint)
    if failed is not None and failed.kind == SIGNATURE and trust.keys and _is_whole(source):
        result.unknown_keys = trust.unknown_signers(facts.checkpoint)
    result.outcome, result.reason = _judge(result, failed, trust, manifest, full)
    return result


def _is_whole(source: Source) -> bool:
    try:
        check_pack(source, None, Facts())
    except Flaw:
        return False
    return True


def _judge(r: PackResult, failed: Flaw | None, trust: Trust, manifest: str | None, full: bool) -> tuple[Outcome, str]:
    if r.unknown_keys:
        return Outcome.CANT_TELL, unknown_keys_words(r.unknown_keys, "")
    if failed is not None:
        return Outcome.WRONG, f"not proved: {failed}"
    if manifest is not None and manifest != r.facts.manifest_sha256:
        return Outcome.WRONG, "not proved: the pack has another manifest than --manifest says"
    if not trust.keys:
        return Outcome.CANT_TELL, NO_KEY
    if r.quorum_ok is False:
        return Outcome.CANT_TELL, NO_QUORUM
    if full and not r.facts.has_envelopes:
        return Outcome.CANT_TELL, "can't tell: the pack was made without envelopes"
    return Outcome.PROVED, ""
