"""The effects of a call. A driver performs each of them, blocking or with asyncio."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Request:
    """One HTTP request. path begins with a slash, is escaped, and may have a query; timeout is in seconds."""

    method: str
    path: str
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    timeout: float = 30.0


@dataclass(frozen=True)
class Answer:
    """The answer to a request. Names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Pause:
    """Wait so many seconds."""

    seconds: float


@dataclass(frozen=True)
class Act:
    """Call the caller's function, which may be a coroutine function with asyncio."""

    do: Callable[[], Any]


@dataclass(frozen=True)
class Disk:
    """Call a function that waits for a disk."""

    do: Callable[[], Any]


@dataclass(frozen=True)
class Turn:
    """Wait until the function that ask gets is called. ask also gets who waits: a thread or a task."""

    ask: Callable[[Callable[[], None], object], None]


Effect = Request | Pause | Act | Disk | Turn
Operation = Generator[Effect, Any, T]
"""A call: it yields effects and returns its result."""

MAX_ANSWER = 64 << 20
"""Bytes of the largest answer that is read."""
MAX_INTERIM = 16
"""Number of interim answers, such as 103 Early Hints, before the answer of one request."""


def reason_of(why: BaseException) -> str:
    """Name a failure without the texts of libraries, which may contain addresses and headers."""
    if isinstance(why, ConnectionError) and why.errno:
        return os.strerror(why.errno)
    return why.strerror if isinstance(why, OSError) and why.strerror else type(why).__name__
