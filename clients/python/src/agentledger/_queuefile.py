"""A queue of signed events in a file, so that a crash loses none. Only one process at a time can use it.

Lines are JSON: {"event": text} for an event that was put, {"done": event_id} for one that is stored or refused.
Each append is synced before it returns. A line that a crash cut off is dropped at the next start: its event was
never acknowledged to the caller. Refused events are kept in a second file, NAME.refused, with the reason, one JSON
object per line: {"status", "code", "message", "event"}. aps send reads such a file.
"""

from __future__ import annotations

import fcntl
import json
import os
import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ._errors import NotAsked, NotWritten, Refused
from ._signer import Signed, read_signed

_COMPACT_BYTES = 8 << 20


class QueueFile:
    """An append-only file of events and of their ends."""

    def __init__(self, name: str | os.PathLike[str]) -> None:
        """Open or create the file. Errors are NotAsked while another process uses it, and those of the file system."""
        self._path = pathlib.Path(name)
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise NotAsked(f"the queue {self._path} is in use by another process") from None
        sync_folder(self._path.parent)
        self._waiting: dict[str, Signed] = {}
        self._told: set[str] = set()
        self._size = self._load()
        self._foreign = False

    @property
    def path(self) -> pathlib.Path:
        """The name of the file."""
        return self._path

    def waiting(self) -> list[Signed]:
        """Return the pending events, oldest first."""
        return list(self._waiting.values())

    def _load(self) -> int:
        size = 0
        for line in _whole_lines(self._path.read_bytes()):
            try:
                members = json.loads(line)
                if "event" in members:
                    event = read_signed(members["event"].encode())
                    self._waiting[event.event_id] = event
                else:
                    self._waiting.pop(members["done"], None)
            except (ValueError, KeyError, TypeError, AttributeError):
                raise NotAsked(f"the queue {self._path} is damaged at byte {size}: move it away") from None
            size += len(line) + 1
        os.ftruncate(self._file, size)
        return size

    def append(self, events: Sequence[Signed]) -> None:
        """Write events durably. After the error NotWritten the events are not in the queue.

        The error is NotAsked in a forked child.
        """
        if self._foreign:
            raise NotAsked(
                f"the queue {self._path} belongs to the process that opened it: "
                "create a client with another queue_file after the fork"
            )
        try:
            self._write_or_clear([{"event": event.text.decode()} for event in events])
        except OSError as why:
            advice = "The events are not queued: make room, and queue them again"
            raise NotWritten(f"the queue {self._path}", why, advice) from why
        self._waiting.update({event.event_id: event for event in events})

    def remove(self, events: Iterable[Signed], refused: Iterable[tuple[Signed, Refused]]) -> None:
        """Record events that are stored or refused. Refused ones are first kept in the second file.

        An event may come twice, because a result that the file kept is queued again after a restart.
        """
        self._keep([(event, why) for event, why in refused if event.event_id not in self._told])
        names = [e.event_id for e in events if self._waiting.pop(e.event_id, None) is not None]
        if not self._waiting and self._size > _COMPACT_BYTES:
            self._clear()
        elif names:
            self._write_or_clear([{"done": name} for name in names])

    def _keep(self, refused: list[tuple[Signed, Refused]]) -> None:
        if not refused:
            return
        with self._path.with_name(f"{self._path.name}.refused").open("ab", buffering=0) as out:
            end = out.tell()
            try:
                write_all(out.fileno(), b"".join(_refused_line(event, why) for event, why in refused))
                os.fsync(out.fileno())
            except OSError:
                out.truncate(end)
                raise
        self._told.update(event.event_id for event, _ in refused)

    def _write_or_clear(self, lines: list[dict[str, Any]]) -> None:
        """Write lines. If the disk is full and nothing is pending, the content of the file is no longer needed."""
        try:
            self._write(lines)
        except OSError:
            if self._waiting or not self._size:
                raise
            self._clear()
            self._write(lines)

    def _clear(self) -> None:
        os.ftruncate(self._file, 0)
        self._size = 0

    def _write(self, lines: list[dict[str, Any]]) -> None:
        text = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        try:
            write_all(self._file, text)
            os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, self._size)
            raise
        self._size += len(text)

    def close(self) -> None:
        """Close the file and release it for other processes."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def after_fork(self) -> None:
        """Leave the file, with its lock, to the parent."""
        self.close()
        self._foreign = True
        self._waiting = {}


def write_all(file: int, text: bytes) -> None:
    """Write all bytes. Errors are those of the file system."""
    while text:
        text = text[os.write(file, text) :]


def sync_folder(folder: pathlib.Path) -> None:
    """Make new names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _refused_line(event: Signed, why: Refused) -> bytes:
    reason = json.dumps({"status": why.status, "code": why.code or "", "message": why.message})
    return reason[:-1].encode() + b', "event": ' + event.text + b"}\n"


def _whole_lines(data: bytes) -> Iterator[bytes]:
    begin = 0
    while (end := data.find(b"\n", begin)) >= 0:
        yield data[begin:end]
        begin = end + 1
