"""The check of a bundle: six verdicts, and a seventh of a second proof (docs/spec/bundle.md, The verdicts).

The result depends only on the arguments. No part of a bundle counts because of another part that is not proved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._errors import Malformed
from .._shapes import is_object
from ._bundles import Bundle, Inclusion
from ._directory import check_listing
from ._documents import (
    Entry,
    Envelope,
    check_envelope,
    check_signature,
    genesis,
    parse_entry,
    parse_envelope,
    parse_record,
)
from ._encoding import sha
from ._flaw import MALFORMED, MISMATCH, Flaw, need
from ._keys import VerifierKey, parse_log_key
from ._note import Checkpoint, Note, cosigned_at, open_checkpoint, parse_note, read_checkpoint
from ._report import FROM_ARGUMENT, Options, Report, printable_name, witnessed
from ._tree import check_inclusion


class _Undisclosed(Exception):
    """A verdict that needs a part which is not disclosed."""


def check_bundle(bundle: Bundle, options: Options) -> Report:
    """Check a bundle. It never fails: the report contains the reasons."""
    return Checker(bundle, options).check()


class Checker:
    """One run of a check: the parts of the bundle, each with the reason if it is missing or malformed."""

    def __init__(self, bundle: Bundle, options: Options) -> None:
        self.bundle = bundle
        self.options = options
        self.report = Report()
        self.key: VerifierKey | None = None  # that counts
        self.vouched: list[VerifierKey] = []  # witnesses whose cosignatures verify
        self.inner: Checker | None = None  # of the second proof's bundle
        self.entry = _attempt(lambda: parse_entry(bundle.text("entry")))
        self.note = _attempt(lambda: parse_note(bundle.text("checkpoint")))
        self.checkpoint = _attempt(self._read_checkpoint)
        self.record = _attempt(lambda: parse_record(_shown(bundle, "record")))
        self.envelope = _attempt(lambda: parse_envelope(_shown(bundle, "envelope")))

    def check(self) -> Report:
        """Return all verdicts."""
        r = self.report
        r.tree_size = self.checkpoint.size if isinstance(self.checkpoint, Checkpoint) else 0
        self._read_cosignatures()
        r.inclusion_ok = self._verdict("inclusion", self._check_inclusion) is True
        r.checkpoint_ok = self._verdict("checkpoint", self._check_checkpoint) is True
        r.chain_ok = self._verdict("chain", self._check_chain) is True
        r.record_ok = self._verdict("record", self._check_record)
        r.signature_ok = self._verdict("signature", self._check_signature)
        r.envelope_ok = self._verdict("envelope", self._check_envelope)
        r.directory_ok = self._verdict("directory", self._check_directory)
        r.ok = not r.errors
        r.unchecked = self._list_unchecked()
        return r

    def _verdict(self, step: str, check: Callable[[], None]) -> bool | None:
        try:
            check()
        except _Undisclosed:
            return None
        except Flaw as flaw:
            self.report.errors.append(f"{step}: {flaw}")
            return False
        return True

    def _read_checkpoint(self) -> Checkpoint:
        if isinstance(self.note, Note):
            return read_checkpoint(self.note)
        raise _as_flaw(self.note).within("read checkpoint")

    def _read_cosignatures(self) -> None:
        if not isinstance(self.note, Note) or not isinstance(self.checkpoint, Checkpoint):
            return
        for key in self.options.witnesses:
            try:
                seconds = cosigned_at(self.note, key)
            except Flaw:  # as good as absent
                continue
            self.report.cosignatures.append(witnessed(key, seconds, self.options.now))
            self.vouched.append(key)

    def _check_inclusion(self) -> None:
        b, entry = self.bundle, _entry(self.entry)
        need(entry.hash.hex() == b.members["event_hash"], "entry and event_hash")
        same = entry.seq == b.members["sequence_num"] == b.log_index + 1
        need(same, "entry, sequence_num and log_index")
        self._check_proof(b.inclusion, b.log_index, entry.hash)

    def _check_proof(self, proof: Inclusion, index: int, leaf: bytes) -> None:
        checkpoint = self.checkpoint
        if not isinstance(checkpoint, Checkpoint):
            raise _as_flaw(checkpoint).within("checkpoint")
        check_proof(proof, index, leaf, checkpoint.size, checkpoint.root)

    def _check_checkpoint(self) -> None:
        self.key = self._select_key()
        self._check_signed_by(self.key)
        self._check_signers()

    def _select_key(self) -> VerifierKey:
        try:
            named: VerifierKey | Flaw = parse_log_key(self.bundle.text("log_key"))
        except Flaw as flaw:
            named = flaw.within("log_key")
        given = self.options.key
        if given is None:
            if isinstance(named, Flaw):
                raise named
            return named
        self.report.log_key_source = FROM_ARGUMENT
        return given if self.bundle.names_key(str(given)) else self._retired_key(given)

    def _retired_key(self, given: VerifierKey) -> VerifierKey:
        why = "log_key and the key given"
        for k in self.options.retired:
            if str(k.key) != self.bundle.text("log_key") or k.key.name != given.name:
                continue
            if not isinstance(self.checkpoint, Checkpoint) or k.signed(self.checkpoint.size):
                return k.key
            why = "log_key and the size of the tree"
        raise Flaw(why, MISMATCH)

    def _check_signed_by(self, key: VerifierKey) -> None:
        need(key.name == self.bundle.text("origin"), "origin and name of the log key")
        if not isinstance(self.note, Note):
            raise _as_flaw(self.note).within("open checkpoint")
        open_checkpoint(self.note, key)

    def _check_signers(self) -> None:
        keys = self.bundle.log_keys
        if not keys:
            return
        need(self.bundle.text("log_key") in keys, "log_keys without log_key")
        for number, text in enumerate(keys):
            try:
                self._check_signed_by(parse_log_key(text))
            except Flaw as flaw:
                raise flaw.within("log_keys") from None
            need(text not in keys[:number], "log_keys: a key twice")

    def _check_chain(self) -> None:
        b, entry = self.bundle, _entry(self.entry)
        before, proof = b.shown("previous_entry"), b.previous_inclusion
        if b.log_index == 0:
            need(entry.seq == 1 and before is None and proof is None, "first entry with one before it")
            need(entry.prev == genesis(b.text("origin")), "first entry and genesis value")
            return
        if before is None or proof is None:
            raise Flaw("no previous entry", MALFORMED)
        try:
            previous = parse_entry(before)
        except Flaw:
            raise Flaw("previous_entry", MALFORMED) from None
        need(previous.hash == entry.prev, "previous_entry and what the entry names")
        need(previous.seq == entry.seq - 1, "sequence numbers of entry and previous_entry")
        self._check_proof(proof, b.log_index - 1, entry.prev)

    def _check_record(self) -> None:
        b, text = self.bundle, self.bundle.shown("record")
        promised = b.members["disclosure"] in ("record", "full")
        need(text is not None or not promised, "missing, though disclosure promises it")
        record, entry = _object(self.record), _entry(self.entry)
        need(sha((text or "").encode()) == entry.record, "record and what the entry commits to")
        same = all(record[n] == b.members[n] for n in ("origin", "sequence_num", "event_id"))
        same = same and record["organization_id"] == b.text_lower("organization_id")
        need(same, "record and the bundle's origin, organization_id, sequence_num, event_id")

    def _check_signature(self) -> None:
        if not is_object(self.record):
            raise _Undisclosed
        envelope = self.envelope if isinstance(self.envelope, Envelope) else None
        if self.record["sig_form"] == "canonical" and envelope is None:
            raise _Undisclosed
        check_signature(self.record, envelope)

    def _check_envelope(self) -> None:
        b = self.bundle
        promised = b.members["disclosure"] == "full" and b.shown("erased_at") is None
        need(b.shown("envelope") is not None or not promised, "missing, though disclosure promises it")
        if not isinstance(self.envelope, Envelope):
            raise self.envelope
        if not is_object(self.record):
            raise _Undisclosed
        check_envelope(self.record, self.envelope)

    def _check_directory(self) -> None:
        second = self.bundle.directory
        if second is None:
            raise _Undisclosed
        options = self.options.directory or Options(witnesses=self.options.witnesses, now=self.options.now)
        self.inner = Checker(second.bundle, options)
        r = self.inner.check()
        self.report.directory_cosignatures = r.cosignatures
        need(r.ok, f"bundle: {r.errors[0]}" if r.errors else "bundle")
        full = r.record_ok and r.signature_ok and r.envelope_ok
        record, envelope = self.inner.record, self.inner.envelope
        own = is_object(record) and record["signer"] == "system"
        need(bool(full) and own, "bundle: not shown in full, or not the service's own")
        if isinstance(envelope, Envelope):
            size, root = check_listing(envelope.members, self.bundle.text("origin"))
            check_proof(
                second.inclusion, self.bundle.log_index, bytes.fromhex(self.bundle.text("event_hash")), size, root
            )

    def _list_unchecked(self) -> list[str]:
        b, covered = self.bundle, self.report.record_ok is True
        names = ["organization_slug", "disclosure"]
        names += [] if covered else ["organization_id", "event_id"]
        given = self.options.is_given
        if self.report.log_key_source != FROM_ARGUMENT or b.log_keys and not given(b.text("log_key")):
            names.append("log_key")
        names += ["log_keys"] if any(not given(k) for k in b.log_keys) else []
        names += self._unknown_lines()
        names += ["record.public_key", "record.custody", "record.received_at", "record.policy"] if covered else []
        if isinstance(self.envelope, Envelope):
            value = self.envelope.members["sig_value_b64"]
            same = is_object(self.record) and value == self.record["sig_value_b64"]
            names += [] if same else ["envelope.sig_value_b64"]
        names += ["erased_at"] if b.shown("erased_at") is not None else []
        names += [f"directory.bundle.{n}" for n in self.inner.report.unchecked] if self.inner else []
        names += [n for n in ("verification", "operator_statement") if b.members.get(n) is not None]
        return names + [printable_name(n) for n in b.unknown]

    def _unknown_lines(self) -> list[str]:
        if not isinstance(self.note, Note):
            return []
        known = [*self.vouched, *([self.key] if self.key else [])]
        made = {(k.name, k.key_id) for k in known}
        return ["checkpoint: " + printable_name(x.name) for x in self.note.lines if (x.name, x.key_id) not in made]


def check_proof(proof: Inclusion, index: int, leaf: bytes, size: int, root: bytes) -> None:
    """Check that a proof of a bundle proves a leaf at an index of a tree. Errors are Flaw."""
    need(proof.log_index == index, "log_index and the proof's")
    need((proof.tree_size, proof.root_hash) == (size, root), "tree_size, root_hash and checkpoint")
    check_inclusion(index, size, leaf, proof.hashes, root)


def _attempt(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (Flaw, _Undisclosed) as why:
        return why
    except Malformed as why:
        return Flaw("", MALFORMED, str(why))


def _shown(bundle: Bundle, name: str) -> str:
    text = bundle.shown(name)
    if text is None:
        raise _Undisclosed
    return text


def _as_flaw(why: Any) -> Flaw:
    return why if isinstance(why, Flaw) else Flaw("", MALFORMED)


def _entry(part: Any) -> Entry:
    if isinstance(part, Entry):
        return part
    raise part


def _object(part: Any) -> dict[str, Any]:
    if is_object(part):
        return part
    raise part
