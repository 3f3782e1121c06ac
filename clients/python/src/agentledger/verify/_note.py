"""Signed notes, checkpoints and cosignatures (C2SP signed-note, tlog-checkpoint, tlog-cosignature)."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from . import _mldsa as mldsa
from ._encoding import MAX_SIZE, base64_bytes, base64_text, sha
from ._flaw import MALFORMED, SIGNATURE, Flaw, need
from ._keys import MLDSA_TYPE, VerifierKey, is_key_name

MAX_NOTE = 128 << 10
"""Maximum size of a note in bytes."""
MAX_SIGNATURES = 100
MAX_COSIGNED = 253402300799
"""The latest time of a cosignature in seconds: the end of the year 9999."""


_DIGITS = re.compile("[0-9]{1,40}", re.ASCII)


@dataclass(frozen=True)
class Line:
    """A signature line of a note. Its key may be unknown."""

    name: str
    key_id: bytes
    value: bytes


@dataclass(frozen=True)
class Note:
    """A text, which ends in LF, and unverified signatures."""

    text: str
    lines: tuple[Line, ...]

    def line_of(self, key: VerifierKey) -> Line | None:
        """Return the line of a key, by name and key ID, or None."""
        return next((x for x in self.lines if (x.name, x.key_id) == (key.name, key.key_id)), None)


@dataclass(frozen=True)
class Checkpoint:
    """The statement of a log about its tree: size in leaves, root of 32 bytes."""

    origin: str
    size: int
    root: bytes


def parse_note(raw: str | bytes) -> Note:
    """Parse a note. Errors are Flaw."""
    data = raw.encode("utf-8", "surrogatepass") if isinstance(raw, str) else raw
    need(len(data) <= MAX_NOTE, "parse note: size", MALFORMED)
    form = Flaw("parse note: text, characters or signature lines", MALFORMED)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise form from None
    at = text.rfind("\n\n")
    if at < 0 or not text.endswith("\n") or at + 2 == len(text) or any(c < " " and c != "\n" for c in text):
        raise form
    lines = [_parse_line(line) for line in text[at + 2 : -1].split("\n")]
    if None in lines or len(lines) > MAX_SIGNATURES:
        raise form
    return _checked_note(text[: at + 1], [line for line in lines if line is not None])


def _parse_line(line: str) -> tuple[str, bytes, bool] | None:
    prefix, _, rest = line.partition(" ")
    name, _, encoded = rest.partition(" ")
    raw = base64_bytes(encoded)
    if prefix != "\u2014" or not name or "+" in name or not encoded:
        return None
    if raw is None or len(raw) < 5 or not is_key_name(name):
        return name, raw or b"", False
    return name, raw, True


def _checked_note(text: str, lines: list[tuple[str, bytes, bool]]) -> Note:
    for number, (_, _, good) in enumerate(lines, 1):
        need(good, f"parse note: name or base64 of signature line {number}", MALFORMED)
    need(len(set(lines)) == len(lines), "parse note: a line twice", MALFORMED)
    need(
        len({(name, raw[:4]) for name, raw, _ in lines}) == len(lines), "parse note: a second line of a key", MALFORMED
    )
    return Note(text, tuple(Line(name, raw[:4], raw[4:]) for name, raw, _ in lines))


def check_signed(note: Note, key: VerifierKey) -> None:
    """Check that a key signed the note. Errors are Flaw."""
    line = note.line_of(key)
    if line is None:
        raise Flaw("verify note: no line of the key", SIGNATURE)
    need(key.verifies(line.value, note.text.encode()), "verify note: wrong signature", SIGNATURE)


def parse_checkpoint(note: Note) -> Checkpoint:
    """Parse the text of a note as a checkpoint of exactly three lines, ignoring signatures."""
    lines = note.text.split("\n", 3)
    form = Flaw("checkpoint text: lines, size or root", MALFORMED)
    if len(lines) != 4 or not lines[0] or not _DIGITS.fullmatch(lines[1]) or int(lines[1]) >= 2**64:
        raise form
    size, root = int(lines[1]), _loose_base64(lines[2])
    if root is None or len(root) != 32:
        raise form
    need(size <= MAX_SIZE and (size > 0 or root == sha()), "checkpoint text: size or root", MALFORMED)
    same = note.text == f"{lines[0]}\n{size}\n{base64_text(root)}\n"
    need(same, "checkpoint text: another spelling", MALFORMED)
    return Checkpoint(lines[0], size, root)


def _loose_base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text.encode("ascii"), validate=True)
    except ValueError:
        return None


def read_checkpoint(note: Note) -> Checkpoint:
    """Parse a checkpoint regardless of who signed it. Errors are Flaw."""
    try:
        return parse_checkpoint(note)
    except Flaw as flaw:
        raise flaw.within("read checkpoint") from None


def open_checkpoint(note: Note, key: VerifierKey) -> Checkpoint:
    """Open a checkpoint that a key with the name of its origin signed. Errors are Flaw."""
    try:
        check_signed(note, key)
        checkpoint = parse_checkpoint(note)
        need(checkpoint.origin == key.name, "the key is of another origin", SIGNATURE)
    except Flaw as flaw:
        raise flaw.within("open checkpoint") from None
    return checkpoint


def cosigned_at(note: Note, key: VerifierKey) -> int:
    """Return the time in a witness's cosignature, in seconds since 1970. Errors are Flaw."""
    line = note.line_of(key)
    mldsa_key = key.typed[0] == MLDSA_TYPE
    size = 8 + (mldsa.SIGNATURE_SIZE if mldsa_key else 64)
    if line is None or len(line.value) != size:
        raise Flaw("verify cosignature: no line of the key", SIGNATURE)
    seconds, signature = int.from_bytes(line.value[:8], "big"), line.value[8:]
    need(seconds <= MAX_COSIGNED, "verify cosignature: time", SIGNATURE)
    if mldsa_key:
        good = seconds > 0 and mldsa.is_signature(key.public, signature, _cosigned_tree(note, key.name, seconds))
    else:
        good = key.verifies(signature, b"cosignature/v1\ntime %d\n" % seconds + note.text.encode())
    need(good, "verify cosignature: wrong signature", SIGNATURE)
    return seconds


def _cosigned_tree(note: Note, name: str, seconds: int) -> bytes:
    checkpoint = parse_checkpoint(note)
    origin = checkpoint.origin.encode()
    need(len(origin) <= 255, "verify cosignature: origin", SIGNATURE)
    return b"".join(
        (
            b"subtree/v1\n\0",
            bytes([len(name.encode())]) + name.encode(),
            seconds.to_bytes(8, "big"),
            bytes([len(origin)]) + origin,
            bytes(8),
            checkpoint.size.to_bytes(8, "big"),
            checkpoint.root,
        )
    )


def instant(seconds: int) -> str:
    """Format a time as the service does, with milliseconds."""
    at = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=seconds)
    return at.strftime("%Y-%m-%dT%H:%M:%S.000Z").rjust(24, "0")
