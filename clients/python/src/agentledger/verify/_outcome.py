"""Verification as `aps verify` does it: a report, and one of three outcomes.

PROVED: everything that is shown is correct under the given keys. WRONG: a check failed. CANT_TELL: nothing is proved
wrong, but too little is known, shown or cosigned.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ._bundles import Bundle, parse_bundle
from ._check import check_bundle
from ._documents import parse_envelope, parse_record
from ._flaw import VERSION, Flaw
from ._keys import VerifierKey, parse_log_key
from ._receipts import ToolReceipt, Unconfirmed, action_of, confirm_act, find_receipt
from ._report import Options, Report
from ._trust import Trust, options_with_directory
from ._words import bundle_lines, unknown_keys_words


class Outcome(enum.Enum):
    """The three outcomes; the value is the exit status of `aps verify`."""

    PROVED = 0
    WRONG = 1
    CANT_TELL = 2


NO_KEY = "can't tell whose log this is: neither --key nor --policy names it"
NO_QUORUM = "can't tell: too few witnesses of the policy have cosigned the checkpoint"
NO_DIRECTORY_QUORUM = "can't tell: too few witnesses of the directory's policy have cosigned its checkpoint"
NO_SECOND_PROOF = "can't tell: the bundle has no second proof by the directory"


@dataclass
class BundleResult:
    """The result for a bundle. reason is None if it is proved. report and bundle are None if it cannot be parsed."""

    outcome: Outcome
    reason: str | None
    bundle: Bundle | None = None
    report: Report | None = None
    quorum_ok: bool | None = None
    quorum_time: str | None = None
    directory_quorum_ok: bool | None = None
    directory_quorum_time: str | None = None
    unknown_keys: list[str] = field(default_factory=list[str])
    tool_receipt: ToolReceipt | None = None
    """The verdict on the tool's receipt; None if the bundle shows none or is not proved."""

    @property
    def proved(self) -> bool:
        """Whether the outcome is PROVED."""
        return self.outcome is Outcome.PROVED

    def members(self) -> dict[str, Any]:
        """Return the report in the form of `aps verify --json`, without checked_at."""
        members = self.report.members() if self.report else {}
        for name in ("quorum_ok", "quorum_time", "directory_quorum_ok", "directory_quorum_time"):
            if getattr(self, name) is not None:
                members[name] = getattr(self, name)
        if self.tool_receipt is not None:
            members["tool_receipt"] = self.tool_receipt.members()
        if self.unknown_keys:
            members["unknown_keys"] = self.unknown_keys
        return members

    def __str__(self) -> str:
        if self.bundle is None or self.report is None:
            return self.reason or ""
        quorums = (self.quorum_ok, self.quorum_time), (self.directory_quorum_ok, self.directory_quorum_time)
        return "\n".join(bundle_lines(self.bundle, self.report, quorums, self.unknown_keys, self.tool_receipt))


def verify_bundle(
    text: str | bytes,
    trust: Trust,
    directory: Trust | None = None,
    require: str = "commitment",
    tools: Sequence[VerifierKey] = (),
    intent: str | bytes | None = None,
) -> BundleResult:
    """Check a bundle. directory requires a second proof; require is commitment, record or full.

    tools are keys of tools, one of which must have signed a receipt, and intent is the bundle of the act's intent.
    """
    try:
        bundle = parse_bundle(text)
    except Flaw as flaw:
        return _unreadable(text, flaw)
    inner = directory or Trust()
    options = options_with_directory(trust, inner, bundle)
    report = check_bundle(bundle, options)
    result = BundleResult(Outcome.PROVED, None, bundle, report, unknown_keys=unknown_keys(bundle, options, report))
    result.quorum_ok = trust.quorum(report.checkpoint_ok, bundle.text("checkpoint"))
    result.quorum_time = trust.quorum_time(report.checkpoint_ok, bundle.text("checkpoint"))
    if bundle.directory is not None:
        second = bundle.directory.bundle.text("checkpoint")
        result.directory_quorum_ok = inner.quorum(report.directory_ok is True, second)
        result.directory_quorum_time = inner.quorum_time(report.directory_ok is True, second)
    if report.ok:
        result.tool_receipt = _check_receipt(bundle, trust, tools, intent)
    result.outcome, result.reason = _judge(result, bundle, report, trust, directory, require)
    if result.outcome is Outcome.PROVED and tools and (result.tool_receipt is None or result.tool_receipt.ok is None):
        result.outcome, result.reason = Outcome.CANT_TELL, _unconfirmed(result.tool_receipt, report)
    return result


def _check_receipt(
    bundle: Bundle, trust: Trust, tools: Sequence[VerifierKey], intent: str | bytes | None
) -> ToolReceipt | None:
    """Return the verdict on the receipt of a tool in a proved bundle, or None if the bundle shows none."""
    record, envelope = bundle.shown("record"), bundle.shown("envelope")
    if record is None or envelope is None:
        return None
    result, of = parse_envelope(envelope).members, parse_record(record)["policy"].get("intent")
    if find_receipt(result) is None:
        return None
    if not tools:
        return ToolReceipt(error="no key of the tool is given")
    try:
        action = None if of is None or intent is None else _read_intent(intent, bundle, of, trust)
        return ToolReceipt(True, confirm_act(result, of, action, tools))
    except Unconfirmed as why:
        c = why.confirmed
        if c is None:
            return ToolReceipt(error=str(why))
        if of is None:
            return ToolReceipt(error="the event is not the result of an intent, so nothing shows which act the receipt is for")
        signed = f"signed by {c.by} with status {c.status}"
        return ToolReceipt(error=f"{signed}, and which act it is for is not known without the envelope of the intent {of}")
    except Flaw as flaw:
        return ToolReceipt(False, error=str(flaw))


def _read_intent(text: str | bytes, result: Bundle, intent: str, trust: Trust) -> str | None:
    """Return the digest of the act in the bundle of an intent, or None if it does not show the act."""
    try:
        b = parse_bundle(text)
    except Flaw as flaw:
        raise Unconfirmed(f"the bundle of the intent: {flaw}") from None
    report = check_bundle(b, trust.options(b))
    if not report.ok:
        raise Unconfirmed(f"the bundle of the intent is not proved: {report.errors[0]}")
    if (b.text("origin"), b.text("event_id")) != (result.text("origin"), intent):
        raise Unconfirmed(f"expected the bundle of the event {intent}")
    envelope = b.shown("envelope") if b.shown("record") is not None else None
    return None if envelope is None else action_of(parse_envelope(envelope).members)


def _unconfirmed(receipt: ToolReceipt | None, report: Report) -> str:
    why = "the event has no receipt of a tool" if report.envelope_ok else "the envelope is not disclosed"
    if receipt is not None:
        why = f"the receipt: {receipt.error}"
    return f"can't tell whether the tool did it: {why}"


def _judge(
    r: BundleResult, bundle: Bundle, report: Report, trust: Trust, directory: Trust | None, require: str
) -> tuple[Outcome, str | None]:
    if r.unknown_keys:
        return Outcome.CANT_TELL, unknown_keys_words(r.unknown_keys, bundle.text("organization_slug"))
    if not report.ok:
        return Outcome.WRONG, "not proved: " + report.errors[0]
    if r.tool_receipt is not None and r.tool_receipt.ok is False:
        return Outcome.WRONG, f"not confirmed: {r.tool_receipt.error}"
    if not trust.keys:
        return Outcome.CANT_TELL, NO_KEY
    if r.quorum_ok is False:
        return Outcome.CANT_TELL, NO_QUORUM
    if directory is not None and bundle.directory is None:
        return Outcome.CANT_TELL, NO_SECOND_PROOF
    if r.directory_quorum_ok is False:
        return Outcome.CANT_TELL, NO_DIRECTORY_QUORUM
    missing = _missing(report, require)
    return (Outcome.CANT_TELL, f"can't tell: the {missing} is not disclosed") if missing else (Outcome.PROVED, None)


def _missing(report: Report, require: str) -> str:
    if require == "full" and report.envelope_ok is None:
        return "envelope"
    if require != "commitment" and report.record_ok is None:
        return "record"
    if require != "commitment" and report.signature_ok is None:
        return "envelope, without which the signature can't be checked,"
    return ""


def _unreadable(text: str | bytes, flaw: Flaw) -> BundleResult:
    """Distinguish a bundle that violates the rules, which is wrong, from other texts and other versions."""
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    looks = raw.strip(b" \t\r\n").startswith(b"{") and b'"inclusion"' in raw and _is_json(raw)
    if flaw.kind == VERSION or not looks:
        return BundleResult(Outcome.CANT_TELL, f"not a bundle that this program reads: {flaw}")
    return BundleResult(Outcome.WRONG, f"not proved: {flaw}")


def _is_json(raw: bytes) -> bool:
    try:
        return isinstance(json.loads(raw.decode("utf-8", "replace"), parse_int=len, parse_float=len), dict)
    except (ValueError, RecursionError):
        return False


def unknown_keys(bundle: Bundle, options: Options, report: Report) -> list[str]:
    """Return name and key ID of the signers, if everything is correct except that unknown keys signed."""
    if report.ok:
        return []
    unknown: list[VerifierKey] = []
    believed = _believe(bundle, options, unknown)
    if options.directory is not None and bundle.directory is not None:
        inner = _believe(bundle.directory.bundle, options.directory, unknown)
        believed = Options(believed.key, believed.retired, inner, believed.witnesses, believed.now)
    if not unknown or not check_bundle(bundle, believed).ok:
        return []
    return [key.signer for key in unknown]


def _believe(bundle: Bundle, options: Options, unknown: list[VerifierKey]) -> Options:
    try:
        named = parse_log_key(bundle.text("log_key"))
    except Flaw:
        return options
    if options.key is None or bundle.names_key(str(options.key)) or any(k.key == named for k in options.retired):
        return options
    unknown.append(named)
    return Options(named, options.retired, options.directory, options.witnesses, options.now)
