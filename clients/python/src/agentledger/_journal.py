"""The journal of guarded acts: which acts began and how they ended, so that no act runs twice.

A journal in a folder has one file per act, which is replaced durably (file and folder are synced) before the next step
begins. The calls of one key run one after the other, so a later one gets the output of the first. A folder contains
arguments and results, so it has mode 0700. A journal in memory is lost when the process ends: it is for acts without a
key. Only one process at a time can use a folder.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import pathlib
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any

from . import _process as process
from ._errors import NotAsked
from ._queuefile import sync_folder, write_all

DECIDING = "deciding"
BEGUN = "begun"
ENDED = "ended"
_TEMPORARY = ".new"


@dataclass
class Entry:
    """One act. envelope is the signed intent, and result is the event of its end.

    told means that the service has stored the result. kept is false for an act without its own key,
    which is then forgotten.
    """

    key: str
    digest: str
    stage: str
    call_id: str
    event_id: str
    envelope: str
    kept: bool = True
    idempotent: bool = False
    status: str = ""
    output: Any = None
    result: str = ""
    told: bool = False
    approval_id: str = ""
    ended_at: float = 0.0


@dataclass(eq=False)
class Turn:
    """One call of a key, from its begin to its leave."""

    key: str
    wake: Callable[[], None] = lambda: None
    owner: object = None


class Journal:
    """Entries by key. keep is how long an ended act is remembered, in seconds."""

    def __init__(self, folder: str | os.PathLike[str] | None = None, keep: float = 7 * 86400.0) -> None:
        """Open the journal in a folder, which is created if missing, or one in memory.

        Errors are NotAsked while another process uses it, and those of the file system.
        """
        self._folder = None if folder is None else pathlib.Path(folder)
        self._memory: dict[str, Entry] = {}
        self._lock = threading.Lock()
        self._turns: dict[str, list[Turn]] = {}
        self._handle = -1
        self._foreign = False
        process.watch(self)
        if self._folder is not None:
            self._open(self._folder)
            self._forget(time.time() - keep)

    def _open(self, folder: pathlib.Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._handle)
            raise NotAsked("the journal is in use by another process") from None

    def _forget(self, before: float) -> None:
        for entry in self.entries():
            if entry.told and 0 < entry.ended_at < before:
                self.remove(entry.key)

    def begin(self, turn: Turn, wake: Callable[[], None], owner: object) -> None:
        """Call wake once it is the turn of a call: the calls of one key have it one after the other.

        Errors are NotAsked if the owner would wait for itself, and in a forked child.
        """
        if self._foreign:
            raise NotAsked(
                "the journal belongs to the process that opened it: create a Journal with another folder after the fork"
            )
        with self._lock:
            turns = self._turns.setdefault(turn.key, [])
            if turns and turns[0].owner is owner:
                raise NotAsked("an act of this key is under way, and this call is a part of it")
            turn.wake, turn.owner = wake, owner
            turns.append(turn)
            if len(turns) > 1:
                return
        wake()

    def leave(self, turn: Turn) -> None:
        """End the turn of a call, or its wait for it."""
        with self._lock:
            turns = self._turns.get(turn.key, [])
            had_turn = turns[:1] == [turn]
            if turn in turns:
                turns.remove(turn)
            if not turns:
                self._turns.pop(turn.key, None)
            following = turns[0] if had_turn and turns else None
        if following is not None:
            following.wake()

    def load(self, key: str) -> Entry | None:
        """Return the entry of a key, or None. The error is NotAsked if it is damaged."""
        if self._folder is None:
            return self._memory.get(key)
        try:
            text = self._file(self._folder, key).read_bytes()
        except FileNotFoundError:
            return None
        return _read(text)

    def store(self, entry: Entry) -> None:
        """Write an entry durably. Errors are those of the file system; the older entry then remains."""
        if self._folder is None:
            self._memory[entry.key] = entry
            return
        name = self._file(self._folder, entry.key)
        new = name.with_suffix(_TEMPORARY)
        try:
            _write_synced(new, json.dumps(asdict(entry)).encode())
            os.replace(new, name)
        except OSError:
            new.unlink(missing_ok=True)  # otherwise it keeps space that the disk lacks
            raise
        sync_folder(self._folder)

    def remove(self, key: str) -> None:
        """Forget an act."""
        if self._folder is None:
            self._memory.pop(key, None)
        else:
            self._file(self._folder, key).unlink(missing_ok=True)

    def entries(self) -> list[Entry]:
        """Return all entries, in no order. Errors are NotAsked for a damaged one."""
        if self._folder is None:
            return list(self._memory.values())
        return [_read(name.read_bytes()) for name in self._folder.glob("*.json")]

    @staticmethod
    def _file(folder: pathlib.Path, key: str) -> pathlib.Path:
        return folder / (hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest() + ".json")

    def after_fork(self) -> None:
        """Leave a folder, with its lock, to the parent. A journal in memory starts with what the parent knows."""
        self._lock = threading.Lock()
        self._turns = {}
        self._foreign = self._folder is not None
        self.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, why: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the folder for other processes. A client closes its journal too."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def _write_synced(name: pathlib.Path, text: bytes) -> None:
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        write_all(handle, text)
        os.fsync(handle)
    finally:
        os.close(handle)


def _read(text: bytes) -> Entry:
    try:
        return Entry(**json.loads(text))
    except (ValueError, TypeError):
        raise NotAsked("an entry of the journal is damaged: move it away") from None
