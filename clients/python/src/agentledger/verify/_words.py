"""The printed lines of a report, the same as in `aps verify`."""

from __future__ import annotations

from .._shapes import is_object
from ._bundles import Bundle
from ._directory import succession_of
from ._documents import parse_record
from ._flaw import Flaw
from ._receipts import ToolReceipt
from ._report import FROM_ARGUMENT, Report, Witnessed

Quorums = tuple[tuple[bool | None, str | None], tuple[bool | None, str | None]]
"""Of the log's policy and of the directory's: whether the quorum is reached, and the time by which it was."""

INCLUSION = "the entry is in the tree that the checkpoint signs, at its index"
_CHAIN = "the entry names the one before it, which is in the same tree"
_RECORD = "the entry commits to this record of this event"
_ENVELOPE = "this envelope is the one that was signed"
_DIRECTORY = "the service's directory lists a tree of this log that has the entry"
_SIGNED = "the key in the record signed this event"
_SIGNERS = {
    "agent": "the agent's",
    "bridge": "the service's, which signs for tools without a key",
    "system": "the service's own",
}


def printable(text: str) -> str:
    """Return text with a question mark for each unprintable character."""
    return "".join(c if c == " " or c.isprintable() and not c.isspace() else "?" for c in text)


def verdict_line(ok: bool | None, name: str, words: str) -> str:
    """Return the line of one check. words describe the checked statement."""
    sign = "ok  "
    if ok is None:
        sign, words = "--  ", "not disclosed"
    elif not ok:
        sign, words = "FAIL", "it does not hold that " + words
    return f"{sign}  {name:<12}{words}"


def checkpoint_words(source: str) -> str:
    """Return whose key the checkpoint was checked under."""
    if source == FROM_ARGUMENT:
        return "the checkpoint is signed by the key given"
    return "the checkpoint is signed by the key that the bundle names itself"


def bundle_lines(
    b: Bundle, r: Report, quorums: Quorums, unknown_keys: list[str], receipt: ToolReceipt | None = None
) -> list[str]:
    """Return the printed report of a bundle."""
    lines = [f"event       {printable(b.text('event_id'))}", f"log         {printable(b.text('origin'))}"]
    lines += _verdict_lines(b, r)
    before = succession_of(b) if r.ok else None
    if before is not None:
        predecessor, reason = printable(before.predecessor), printable(before.reason)
        lines.append(f"succeeds    {predecessor}, last known with {before.size} entries: {reason}")
    if receipt is not None:
        lines.append(_receipt_line(receipt))
    lines += quorum_lines(*quorums[0], r.cosignatures, "")
    lines += quorum_lines(*quorums[1], r.directory_cosignatures, "the directory, ")
    if r.unchecked:
        lines.append("not covered: " + ", ".join(r.unchecked))
    lines += ["wrong: " + printable(e) for e in r.errors]
    lines = soften(lines, unknown_keys)
    statement = b.members.get("operator_statement")
    claim = statement.get("key_claim") if is_object(statement) else None
    if isinstance(claim, str) and claim:
        lines.append("the operator claims of the key that signed: " + printable(claim))
    return lines + _conclusion(r, quorums)


def _verdict_lines(b: Bundle, r: Report) -> list[str]:
    lines = [
        verdict_line(r.inclusion_ok, "inclusion", INCLUSION),
        verdict_line(r.checkpoint_ok, "checkpoint", checkpoint_words(r.log_key_source)),
        verdict_line(r.chain_ok, "chain", _CHAIN),
        verdict_line(r.record_ok, "record", _RECORD),
        verdict_line(r.signature_ok, "signature", _signature_words(b)),
        verdict_line(r.envelope_ok, "envelope", _ENVELOPE),
    ]
    if b.directory is not None:
        lines.append(verdict_line(r.directory_ok, "directory", _DIRECTORY))
    return lines


def _receipt_line(r: ToolReceipt) -> str:
    """Describe the receipt of a tool. Everything else in the event is what the agent says."""
    if r.ok is False:
        return f"FAIL  receipt     of the tool: {printable(r.error)}"
    if r.confirmed is None:
        return f"--    receipt     the tool's own statement about the act, unchecked: {printable(r.error)}"
    c = r.confirmed
    unchecked = "" if c.approval_id is not None else ", and checked no grant"
    return f"ok    receipt     confirmed by {printable(c.by)}: it answered with status {c.status} at {c.at}{unchecked}"


def _conclusion(r: Report, quorums: Quorums) -> list[str]:
    if not r.ok or any(reached is False for reached, _ in quorums):
        return []
    if r.log_key_source == FROM_ARGUMENT:
        return ["proved, as far as checked above"]
    return ["whole, but signed by a key that only the bundle vouches for"]


def _signature_words(b: Bundle) -> str:
    text = b.shown("record")
    if text is None:
        return ""
    try:
        record = parse_record(text)
    except Flaw:
        return _SIGNED
    words = f"{_SIGNED}; the record calls it {_SIGNERS[record['signer']]}"
    if record["signer"] == "agent" and record["custody"] == "server":
        words += ", with a key that the service made"
    return words


def quorum_lines(quorum: bool | None, at: str | None, by: list[Witnessed], of: str) -> list[str]:
    """Describe a policy's quorum, reached by the time at. of names the checkpoint's signer, if it is not the log."""
    lines = list[str]()
    if quorum is True:
        words = of + "enough witnesses of the policy have cosigned the checkpoint" + (f", by {at}" if at else "")
        lines.append(verdict_line(True, "quorum", words))
    elif quorum is False:
        lines.append(f"--    quorum      {of}not reached: too few witnesses of the policy have cosigned the checkpoint")
    return lines + [f"cosigned    {of}{c.time_words}, by {printable(c.name)}" for c in by]


def soften(lines: list[str], unknown_keys: list[str]) -> list[str]:
    """Write "can't tell" for failures whose only cause are unknown keys."""
    if not unknown_keys:
        return lines
    softened = list[str]()
    for line in lines:
        if line.startswith("FAIL"):
            line = "--  " + line.removeprefix("FAIL")
        elif line.startswith("wrong: "):
            line = "can't tell: " + line.removeprefix("wrong: ")
        softened.append(line)
    return softened


def unknown_keys_words(signers: list[str], slug: str) -> str:
    """Describe that the only error is a signature by unknown keys, and where to find the keys."""
    return (
        f"can't tell: signed by the key {printable(' and '.join(signers))}, which is not among those that you trust. "
        "If it is a key that the log had before or has got since, it is in the log's "
        f"/v1/public/orgs/{printable(slug or 'SLUG')}/transparency/keys: save that, at a time or from a source that "
        "you trust, and give it as --keys (--directory-keys for the directory's)"
    )
