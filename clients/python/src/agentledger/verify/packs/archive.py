"""The ZIP of a pack, which has one spelling: stored files, descriptors, no extra byte."""

from __future__ import annotations

import re
import struct
import zlib

from ..flaw import MALFORMED, Flaw, need

POLICY_FILE = re.compile(r"policies/[0-9a-f]{64}\.json", re.ASCII)
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


def open_archive(raw: bytes) -> dict[str, bytes]:
    """Return the files of a pack by name, in their order. Errors are Flaw."""
    need(len(raw) < 2**32 and len(raw) >= 22, "zip: size", MALFORMED)
    count, _, at = struct.unpack("<HII", raw[-12:-2])
    files: dict[str, bytes] = {}
    directory = bytearray()
    place = 0
    for _ in range(count):
        name, crc, size = _directory_part(raw, at)
        need(name.decode() not in files, "zip: a name twice", MALFORMED)
        directory += _directory_bytes(name, crc, size, place)
        content, place = _content(raw, place, name, crc, size)
        files[name.decode()] = content
        at += 46 + len(name)
    end = b"PK\5\6\0\0\0\0" + struct.pack("<HHII", count, count, len(directory), place) + b"\0\0"
    need(raw[place:] == bytes(directory) + end, "zip: directory or end", MALFORMED)
    policies = sorted(name for name in files if POLICY_FILE.fullmatch(name))
    need(list(files) == [*_BEFORE, *policies, *_BEHIND], "zip: names or order of the files", MALFORMED)
    return files


def _directory_part(raw: bytes, at: int) -> tuple[bytes, int, int]:
    head = raw[at : at + 46]
    if len(head) < 46:
        raise Flaw("zip: directory", MALFORMED)
    crc, size, _, length = struct.unpack("<IIIH", head[16:30])
    name = raw[at + 46 : at + 46 + length]
    need(len(name) == length and name.isascii(), "zip: name", MALFORMED)
    return name, crc, size


def _directory_bytes(name: bytes, crc: int, size: int, place: int) -> bytes:
    fixed = b"PK\1\2\x14\0\x14\0\x08\0\0\0\0\0\x21\0" + struct.pack("<IIIH", crc, size, size, len(name))
    return fixed + bytes(12) + struct.pack("<I", place) + name


def _content(raw: bytes, place: int, name: bytes, crc: int, size: int) -> tuple[bytes, int]:
    head = b"PK\3\4\x14\0\x08\0\0\0\0\0\x21\0" + bytes(12) + struct.pack("<HH", len(name), 0) + name
    begin = place + len(head)
    end = begin + size
    content = raw[begin:end]
    need(raw[place:begin] == head and len(content) == size and zlib.crc32(content) == crc, _BAD, MALFORMED)
    need(raw[end : end + 16] == b"PK\7\x08" + struct.pack("<III", crc, size, size), _BAD, MALFORMED)
    return content, end + 16
