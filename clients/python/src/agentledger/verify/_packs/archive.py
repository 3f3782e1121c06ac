"""The files of a pack. They are read in portions."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from .._flaw import MALFORMED, Flaw, need
from .container import Content, Stored, read_folder, read_zip, without_folder
from .source import Source

POLICY_FILE = re.compile(r"policies/[0-9a-f]{64}\.json", re.ASCII)
MAX_LINE = 4 << 20
"""Maximum length of a line with its end, in bytes."""
VOTERS = "voters.ndjson"
"""The file that only packs with signed votes have."""
ACTS = "acts.ndjson"
"""The file that packs of older services do not have."""
_BEFORE = ("checkpoint", "keys.json", "policy", "agents.json")
_AFTER = (
    "entries.bin",
    "records.ndjson",
    "envelopes.ndjson",
    "approvals.ndjson",
    "erasures.ndjson",
    VOTERS,
    ACTS,
    "report.html",
    "manifest.json",
)


@dataclass
class Member:
    """A file of a pack."""

    content: Content

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.content.size

    @cached_property
    def sha256(self) -> str:
        """The digest of the content, which is read once to compute it."""
        digest = hashlib.sha256()
        for portion in self.portions():
            digest.update(portion)
        return digest.hexdigest()

    def read(self) -> bytes:
        """Return the bytes of the file. The caller must bound their number."""
        return b"".join(self.portions())

    def portions(self) -> Iterator[bytes]:
        """Return the bytes of the file in portions."""
        return self.content.portions()

    def lines(self, what: str, most: int | None = None) -> Iterator[str]:
        """Return the lines of an .ndjson file one by one. Errors are Flaw."""
        rest, count = b"", 0
        for portion in self.portions():
            *lines, rest = (rest + portion).split(b"\n")
            for line in lines:
                count += 1
                need(0 < len(line) < MAX_LINE and (most is None or count <= most), f"{what}: lines", MALFORMED)
                yield _text(line, what)
            need(len(rest) < MAX_LINE, f"{what}: lines", MALFORMED)
        need(not rest, f"{what}: lines", MALFORMED)


def _text(line: bytes, what: str) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise Flaw(f"{what}: not valid UTF-8", MALFORMED) from None


def open_archive(pack: Source | str | os.PathLike[str]) -> dict[str, Member]:
    """Return the files of a pack by name, in the order of the manifest. A path names a folder.

    Errors are Flaw, Unreadable and OSError.
    """
    files = without_folder(read_zip(pack) if isinstance(pack, Source) else read_folder(pack))
    policies = sorted(name for name in files if POLICY_FILE.fullmatch(name))
    names = [*_BEFORE, *policies, *(name for name in _AFTER if name not in (VOTERS, ACTS) or name in files)]
    need(len(names) == len(files) and files.keys() == set(names), "names of the files", MALFORMED)
    return {name: Member(files[name]) for name in names}


def reader(member: Member) -> Callable[[int, int], bytes]:
    """Return the function that reads a part of a file. A file that can only be read sequentially is kept in memory."""
    if type(member.content) is Stored:
        return member.content.read
    raw = member.read()
    return lambda begin, size: raw[begin : begin + size]
