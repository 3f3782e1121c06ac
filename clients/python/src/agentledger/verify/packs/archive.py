"""The ZIP of a pack, which has one spelling: stored files, descriptors, no extra byte. It is read in portions."""

from __future__ import annotations

import hashlib
import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from ..flaw import MALFORMED, Flaw, need
from .source import Source

POLICY_FILE = re.compile(r"policies/[0-9a-f]{64}\.json", re.ASCII)
MAX_LINE = 4 << 20
"""Bytes of the longest line."""
_MAX_NAME = 128
_BEFORE = ("checkpoint", "keys.json", "policy", "agents.json")
_BEHIND = (
    "entries.bin",
    "records.ndjson",
    "envelopes.ndjson",
    "approvals.ndjson",
    "erasures.ndjson",
    "report.html",
    "manifest.json",
)
_BAD = "zip: the bytes of a file or its header"
_DIRECTORY = "zip: directory or end"


@dataclass(frozen=True)
class Member:
    """A file of a pack: where its bytes are, and their digest."""

    source: Source
    begin: int
    size: int
    sha256: str

    def read(self, begin: int = 0, size: int | None = None) -> bytes:
        """Return bytes of the file, all by default. The caller bounds their number."""
        return self.source.read(self.begin + begin, self.size - begin if size is None else size)

    def lines(self, what: str, most: int | None = None) -> Iterator[str]:
        """Return the lines of an .ndjson file one by one. Errors are Flaw."""
        rest, count = b"", 0
        for portion in self.source.portions(self.begin, self.size):
            *lines, rest = (rest + portion).split(b"\n")
            for line in lines:
                count += 1
                need(0 < len(line) <= MAX_LINE and (most is None or count <= most), f"{what}: lines", MALFORMED)
                yield _text(line, what)
            need(len(rest) <= MAX_LINE, f"{what}: lines", MALFORMED)
        need(not rest, f"{what}: lines", MALFORMED)


def _text(line: bytes, what: str) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise Flaw(f"{what}: not valid UTF-8", MALFORMED) from None


def open_archive(source: Source) -> dict[str, Member]:
    """Return the files of a pack by name, in their order. Each byte of the ZIP was checked then. Errors are Flaw."""
    need(22 <= source.size < 2**32, "zip: size", MALFORMED)
    count, _, first = struct.unpack("<HII", source.read(source.size - 12, 10))
    files: dict[str, Member] = {}
    at, place, same = first, 0, True
    for _ in range(count):
        name, crc, size = _directory_part(source, at)
        need(name.decode() not in files, "zip: a name twice", MALFORMED)
        part = _directory_bytes(name, crc, size, place)
        same = same and source.read(at, len(part)) == part
        files[name.decode()], place = _member(source, place, name, crc, size)
        at += 46 + len(name)
    end = b"PK\5\6\0\0\0\0" + struct.pack("<HHII", count, count, at - first, place) + b"\0\0"
    need(same and first == place and source.read(at, len(end) + 1) == end, _DIRECTORY, MALFORMED)
    policies = sorted(name for name in files if POLICY_FILE.fullmatch(name))
    need(list(files) == [*_BEFORE, *policies, *_BEHIND], "zip: names or order of the files", MALFORMED)
    return files


def _directory_part(source: Source, at: int) -> tuple[bytes, int, int]:
    head = source.read(at, 46)
    if len(head) < 46:
        raise Flaw("zip: directory", MALFORMED)
    crc, size, _, length = struct.unpack("<IIIH", head[16:30])
    need(length <= _MAX_NAME, "zip: name", MALFORMED)
    name = source.read(at + 46, length)
    need(len(name) == length and name.isascii(), "zip: name", MALFORMED)
    return name, crc, size


def _directory_bytes(name: bytes, crc: int, size: int, place: int) -> bytes:
    fixed = b"PK\1\2\x14\0\x14\0\x08\0\0\0\0\0\x21\0" + struct.pack("<IIIH", crc, size, size, len(name))
    return fixed + bytes(12) + struct.pack("<I", place) + name


def _member(source: Source, place: int, name: bytes, crc: int, size: int) -> tuple[Member, int]:
    head = b"PK\3\4\x14\0\x08\0\0\0\0\0\x21\0" + bytes(12) + struct.pack("<HH", len(name), 0) + name
    need(source.read(place, len(head)) == head, _BAD, MALFORMED)
    begin = place + len(head)
    found, digest = 0, hashlib.sha256()
    for portion in source.portions(begin, size):
        found = zlib.crc32(portion, found)
        digest.update(portion)
    end = begin + size
    descriptor = b"PK\7\x08" + struct.pack("<III", crc, size, size)
    need(found == crc and source.read(end, 16) == descriptor, _BAD, MALFORMED)
    return Member(source, begin, size, digest.hexdigest()), end + 16
