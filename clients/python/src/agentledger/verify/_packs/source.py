"""The bytes of a pack, in memory or in a file, read in portions of at most PORTION bytes."""

from __future__ import annotations

import io
import os
import pathlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import BinaryIO

from ..._errors import NotAsked

PORTION = 1 << 20
"""Bytes that are read at once."""

Raw = bytes | str | os.PathLike[str] | BinaryIO
"""A pack: its bytes, the path of a file or of a folder, or a seekable binary file."""


class Source:
    """Reads a pack at any position. It moves the file's own position. The file must not change in the meantime."""

    def __init__(self, file: BinaryIO) -> None:
        """The error is NotAsked for a text file and for a file that is not seekable."""
        if not file.seekable():
            raise NotAsked("a pack must be bytes, a path, or a binary file that can seek")
        self._file = file
        self.size = file.seek(0, os.SEEK_END)
        if not isinstance(self.read(0, 1), bytes):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise NotAsked("a pack must be opened as a binary file")

    def read(self, begin: int, size: int) -> bytes:
        """Return the bytes at a position, fewer at the end of the file. Errors are OSError."""
        self._file.seek(begin)
        content = self._file.read(size)
        while len(content) < size and (more := self._file.read(size - len(content))):
            content += more
        return content

    def portions(self, begin: int, size: int) -> Iterator[bytes]:
        """Return the bytes at a position in portions, fewer bytes at the end of the file."""
        end = min(begin + size, self.size)
        while begin < end and (content := self.read(begin, min(PORTION, end - begin))):
            yield content
            begin += len(content)


@contextmanager
def open_source(raw: Raw) -> Generator[Source, None, None]:
    """Open a pack. The file of a path is closed at the end, a given file is not. Errors are NotAsked and OSError."""
    if isinstance(raw, (bytes, bytearray, memoryview)):
        yield Source(io.BytesIO(raw))
    elif isinstance(raw, (str, os.PathLike)):
        with pathlib.Path(raw).open("rb") as file:
            yield Source(file)
    else:
        yield Source(raw)
