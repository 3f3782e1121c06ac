"""C2SP tlog-proofs: inclusion of one entry, without the chain and the event."""

from __future__ import annotations

from dataclasses import dataclass, field

from ._documents import parse_entry
from ._encoding import MAX_SIZE, base64_bytes, decimal
from ._flaw import MALFORMED, Flaw, need
from ._note import MAX_NOTE, Checkpoint, parse_note, read_checkpoint
from ._outcome import NO_QUORUM, Outcome
from ._report import FROM_ARGUMENT, Witnessed
from ._tree import check_inclusion, leaf_hash
from ._trust import Trust
from ._words import INCLUSION, checkpoint_words, printable, quorum_lines, soften, unknown_keys_words, verdict_line

_HEADER = "c2sp.org/tlog-proof@v1\n"
_MAX_HASHES = 63


@dataclass(frozen=True)
class Proof:
    """A tlog-proof: index, hashes from the leaf up, and a signed checkpoint."""

    index: int
    hashes: tuple[bytes, ...]
    checkpoint: str


@dataclass
class ProofResult:
    """The result for a tlog-proof. reason is None if it is proved."""

    outcome: Outcome
    reason: str | None
    index: int = 0
    checkpoint: Checkpoint | None = None
    inclusion_ok: bool = False
    quorum_ok: bool | None = None
    quorum_time: str | None = None
    cosignatures: list[Witnessed] = field(default_factory=list[Witnessed])
    unknown_keys: list[str] = field(default_factory=list[str])

    def __str__(self) -> str:
        signed = self.checkpoint is not None
        lines = [f"log         {printable(self.checkpoint.origin)}"] if self.checkpoint else []
        lines.append(verdict_line(signed, "checkpoint", checkpoint_words(FROM_ARGUMENT)))
        if signed:
            lines.append(verdict_line(self.inclusion_ok, "inclusion", INCLUSION))
        lines += quorum_lines(self.quorum_ok, self.quorum_time, self.cosignatures, "")
        if self.outcome is Outcome.PROVED and self.checkpoint:
            lines.append(
                f"proved: entry {self.index} in a tree of {self.checkpoint.size} entries. "
                "A tlog-proof says nothing about the chain and the event; a bundle does"
            )
        return "\n".join(soften(lines, self.unknown_keys))


def parse_proof(raw: str | bytes) -> Proof:
    """Parse a tlog-proof in its one spelling. Errors are Flaw."""
    try:
        text = raw.decode() if isinstance(raw, bytes) else raw
    except UnicodeDecodeError:
        raise Flaw("parse proof: header", MALFORMED) from None
    need(len(text.encode("utf-8", "surrogatepass")) <= 2 * MAX_NOTE, "parse proof: size", MALFORMED)
    need(text.startswith(_HEADER), "parse proof: header", MALFORMED)
    head, empty, note = text.removeprefix(_HEADER).partition("\n\n")
    lines = head.split("\n")
    if lines[0].startswith("extra "):
        need(bool(base64_bytes(lines.pop(0).removeprefix("extra "))), "parse proof: extra line", MALFORMED)
    named = bool(lines) and lines[0].startswith("index ")
    index = decimal(lines[0].removeprefix("index "), MAX_SIZE) if named else None
    if index is None:
        raise Flaw("parse proof: index line", MALFORMED)
    hashes = [base64_bytes(line) for line in lines[1:]]
    good = tuple(h for h in hashes if h is not None and len(h) == 32)
    need(bool(empty) and len(good) == len(hashes) <= _MAX_HASHES, "parse proof: hash lines", MALFORMED)
    try:
        size = read_checkpoint(parse_note(note)).size
    except Flaw as flaw:
        raise flaw.within("parse proof") from None
    need(index < size, "parse proof: index not below the tree size", MALFORMED)
    return Proof(index, good, note)


def verify_proof(text: str | bytes, entry: str | bytes, trust: Trust) -> ProofResult:
    """Check a tlog-proof for an entry, given as its exact text."""
    raw = entry.encode() if isinstance(entry, str) else entry
    try:
        proof = parse_proof(text)
    except Flaw as flaw:
        version = (text.encode() if isinstance(text, str) else text).startswith(_HEADER.encode())
        outcome = Outcome.WRONG if version else Outcome.CANT_TELL
        verdict = "not proved" if version else "not a tlog-proof that this program reads"
        return ProofResult(outcome, f"{verdict}: {flaw}")
    if not trust.keys:
        return ProofResult(Outcome.CANT_TELL, "a tlog-proof does not hold the key", proof.index)
    return _judge(proof, raw, trust)


def _judge(proof: Proof, entry: bytes, trust: Trust) -> ProofResult:
    result = ProofResult(Outcome.WRONG, None, proof.index)
    try:
        result.checkpoint = trust.open(proof.checkpoint)
    except Flaw as flaw:
        result.reason = f"not proved: checkpoint: {flaw}"
        if _is_included(proof, entry, read_checkpoint(parse_note(proof.checkpoint))) is None:
            result.unknown_keys = trust.unknown_signers(proof.checkpoint)
        if result.unknown_keys:
            result.outcome, result.reason = Outcome.CANT_TELL, unknown_keys_words(result.unknown_keys, "")
        return result
    result.cosignatures = trust.cosignatures(proof.checkpoint)
    result.quorum_ok = trust.quorum(True, proof.checkpoint)
    result.quorum_time = trust.quorum_time(True, proof.checkpoint)
    why = _is_included(proof, entry, result.checkpoint)
    if why is not None:
        result.reason = f"not proved: inclusion: {why}"
        return result
    result.inclusion_ok = True
    result.outcome, result.reason = (
        (Outcome.CANT_TELL, NO_QUORUM) if result.quorum_ok is False else (Outcome.PROVED, None)
    )
    return result


def _is_included(proof: Proof, entry: bytes, checkpoint: Checkpoint) -> Flaw | None:
    """Return why an entry is not at its index of a checkpoint's tree, or None if it is."""
    try:
        check_inclusion(proof.index, checkpoint.size, leaf_hash(entry), proof.hashes, checkpoint.root)
        need(parse_entry(entry.decode("utf-8", "replace")).seq == proof.index + 1, "entry and index")
    except Flaw as flaw:
        return flaw
    return None
