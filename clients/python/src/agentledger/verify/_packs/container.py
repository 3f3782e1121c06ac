"""ZIP files and folders that contain a pack. They decide nothing: only the content of the files counts."""

from __future__ import annotations

import os
import re
import stat
import struct
import zlib
from collections.abc import Iterator
from typing import NoReturn, Protocol

from .._flaw import Unreadable
from .source import PORTION, Source

MAX_BYTES = 2**32 - 1
"""Of a ZIP file, and of the files in any container together."""
MAX_FILES = 4096
"""Including folders and ignored files."""
_MAX_DIRECTORY = 1 << 20
_MAX_COMMENT = 2**16 - 1
_STORED, _DEFLATED = 0, 8
_BAD_NAME = re.compile(rb"[\x00-\x1f\x7f\\]")


class Content(Protocol):
    """The content of a file. size is known before it is read."""

    size: int

    def portions(self) -> Iterator[bytes]:
        """Return the content in portions. Errors are Unreadable and OSError."""
        ...


def refuse(what: str) -> NoReturn:
    """Raise Unreadable."""
    raise Unreadable(f"the files of the pack can't be read: {what}")


def _require(holds: bool, what: str) -> None:
    if not holds:
        refuse(what)


class Stored:
    """An uncompressed file of a ZIP."""

    def __init__(self, source: Source, begin: int, size: int) -> None:
        """begin is the position of the content."""
        self._source, self._begin, self.size = source, begin, size

    def read(self, begin: int, size: int) -> bytes:
        """Return a part of the content."""
        return self._source.read(self._begin + begin, size)

    def portions(self) -> Iterator[bytes]:
        """Return the content in portions."""
        return self._source.portions(self._begin, self.size)


class Deflated(Stored):
    """A compressed file of a ZIP. Its content must have exactly the stated size."""

    def __init__(self, source: Source, begin: int, packed: int, size: int) -> None:
        """packed is the number of bytes in the ZIP."""
        super().__init__(source, begin, size)
        self._packed = packed

    def portions(self) -> Iterator[bytes]:
        """Return the content in portions."""
        inflater, left = zlib.decompressobj(-15), self.size
        for packed in self._source.portions(self._begin, self._packed):
            while packed and not inflater.eof:
                try:
                    content = inflater.decompress(packed, PORTION)
                except zlib.error:
                    refuse("compressed bytes of a file")
                packed, left = inflater.unconsumed_tail, left - len(content)
                _require(left >= 0, "compressed bytes of a file")
                yield content
            _require(not packed, "compressed bytes of a file")
        while not inflater.eof and left:
            content = inflater.decompress(b"", PORTION)
            left -= len(content)
            _require(left >= 0 and content != b"", "compressed bytes of a file")
            yield content
        _require(inflater.eof and not inflater.unused_data and left == 0, "compressed bytes of a file")


class InFolder:
    """A file of a folder."""

    def __init__(self, path: bytes, size: int) -> None:
        """size is from the listing: if the file changes, an OSError is raised."""
        self._path, self.size = path, size

    def portions(self) -> Iterator[bytes]:
        """Return the content in portions."""
        left = self.size
        with open(os.open(self._path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)), "rb") as f:
            while content := f.read(PORTION):
                left -= len(content)
                yield content
        if left:
            raise OSError("a file of the folder has changed")


def read_zip(source: Source) -> dict[bytes, Content]:
    """Return the files of a ZIP by name. Errors are Unreadable and OSError."""
    directory, count, offset = _read_directory(source)
    found: dict[bytes, Content] = {}
    at = used = total = 0
    for _ in range(count):
        part = directory[at : at + 46]
        _require(len(part) == 46 and part[:4] == b"PK\1\2", "directory")
        flags, method, packed, size, length, extra, comment, disk, header = struct.unpack("<8xHH8xIIHHHH6xI", part)
        name = directory[at + 46 : at + 46 + length]
        at += 46 + length + extra + comment
        _require(at <= len(directory) and disk == 0, "directory")
        used += 30 + length + packed
        _require(used <= offset, "size of a file")
        path = name.removesuffix(b"/")
        _require(_is_path(path), "name of a file")
        if path != name or _is_ignored(name):
            continue
        _require(name not in found, "a name twice")
        _require(not flags & 1, "an encrypted file")
        _require(method in (_STORED, _DEFLATED) and (method != _STORED or packed == size), "compression of a file")
        begin = _content_begin(source, name, header, offset)
        _require(begin + packed <= offset, "header of a file")
        total += size
        _require(total <= MAX_BYTES, "size of a file")
        found[name] = Stored(source, begin, size) if method == _STORED else Deflated(source, begin, packed, size)
    _require(at == len(directory), "directory")
    return found


def _read_directory(source: Source) -> tuple[bytes, int, int]:
    """Return the directory, the number of files and the position of the directory."""
    _require(22 <= source.size <= MAX_BYTES, "size")
    tail = source.read(max(0, source.size - 22 - _MAX_COMMENT), 22 + _MAX_COMMENT)
    end = tail.rfind(b"PK\5\6")
    while end >= 0 and (len(tail) < end + 22 or int.from_bytes(tail[end + 20 : end + 22], "little") != len(tail) - end - 22):
        end = tail.rfind(b"PK\5\6", 0, end + 3)
    _require(end >= 0, "end of a ZIP file")
    disks, first, count, length, offset = struct.unpack("<4xIHHII", tail[end : end + 20])
    _require(disks == 0 and first == count, "end of a ZIP file")
    _require(count <= MAX_FILES and length <= _MAX_DIRECTORY, "number of files")
    _require(offset + length == source.size - (len(tail) - end), "place of the directory")
    return source.read(offset, length), count, offset


def _content_begin(source: Source, name: bytes, header: int, directory: int) -> int:
    """Return the position of a file's content from its header."""
    _require(header + 30 <= directory, "header of a file")
    local = source.read(header, 30 + len(name))
    names, extra = struct.unpack("<26xHH", local[:30])
    right = local[:4] == b"PK\3\4" and names == len(name) and local[30:] == name
    _require(right, "header of a file")
    return header + 30 + len(name) + int(extra)


def read_folder(folder: str | os.PathLike[str]) -> dict[bytes, Content]:
    """Return the files of a folder by name. It follows no symbolic link. Errors are Unreadable and OSError."""
    top = os.fsencode(folder)
    found: dict[bytes, Content] = {}
    waiting, count, total = [b""], 0, 0
    while waiting:
        prefix = waiting.pop()
        with os.scandir(os.path.join(top, prefix)) as entries:
            for entry in entries:
                count += 1
                _require(count <= MAX_FILES, "number of files")
                name = prefix + entry.name
                _require(_is_path(name), "name of a file")
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(name + b"/")
                    continue
                if _is_ignored(name):
                    continue
                info = entry.stat(follow_symlinks=False)
                _require(stat.S_ISREG(info.st_mode), "a symbolic link or a special file")
                total += info.st_size
                _require(total <= MAX_BYTES, "size of a file")
                found[name] = InFolder(entry.path, info.st_size)
    return found


def _is_path(name: bytes) -> bool:
    """Return whether a name refers to a file below its folder on every operating system."""
    return not _BAD_NAME.search(name) and all(step not in (b"", b".", b"..") for step in name.split(b"/"))


def _is_ignored(name: bytes) -> bool:
    """Return whether a file is not part of the pack: operating systems and archivers add such files."""
    *folders, last = name.split(b"/")
    return last.startswith(b".") or last in (b"Thumbs.db", b"desktop.ini") or b"__MACOSX" in folders


def without_folder(files: dict[bytes, Content]) -> dict[str, Content]:
    """Return the files by their names in the folder of the manifest. Files outside that folder keep their names."""
    manifests = [name for name in files if name.split(b"/")[-1] == b"manifest.json"]
    _require(len(manifests) > 0, "no file manifest.json")
    _require(len(manifests) == 1, "two files manifest.json")
    folder = manifests[0].removesuffix(b"manifest.json")
    named = {name.removeprefix(folder).decode("latin-1"): content for name, content in files.items()}
    return named if len(named) == len(files) else {}
