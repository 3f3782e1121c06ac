"""What the end of the process, and a fork, mean for the events that clients have queued.

- At the end of the process, queued events are sent for EXIT_SECONDS at most. What is left is counted in one line on
  standard error.
- A forked child has its own connections and threads, and an empty queue: the parent sends what it queued. A queue's
  file and a journal's folder stay with the process that opened them.
- A signal that ends the process at once, os._exit and a crash run none of this: a queue's file survives them.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import sys
import time
import weakref
from collections.abc import Callable
from typing import Protocol

from ._outbox import Outbox

EXIT_SECONDS = 5.0
"""How long the end of the process waits for the service."""
_MANY = 64


class Forked(Protocol):
    """Has locks, connections or files that a child must not share with its parent."""

    def after_fork(self) -> None:
        """Start anew in a forked child. No other thread runs."""


_forked: weakref.WeakSet[Forked] = weakref.WeakSet()
_outboxes: dict[Outbox, Callable[[float], object]] = {}  # strong: a client without references is finished too


def watch(part: Forked) -> None:
    """Call part.after_fork in every child that is forked from now on."""
    _register()
    _forked.add(part)


def hold(outbox: Outbox, finish: Callable[[float], object]) -> None:
    """Send the queued events of an outbox at the end of the process. finish does it for at most the given seconds."""
    if len(_outboxes) >= _MANY and outbox not in _outboxes:
        for other in list(_outboxes):  # other threads may add to it
            if not other.kept:
                _outboxes.pop(other, None)
    _outboxes[outbox] = finish


def release(outbox: Outbox) -> None:
    """Forget the outbox of a client that was closed: its caller knows what was not sent."""
    _outboxes.pop(outbox, None)


@functools.cache
def _register() -> None:
    atexit.register(_at_exit)
    os.register_at_fork(after_in_child=_after_fork)


def _at_exit() -> None:
    end = time.monotonic() + EXIT_SECONDS
    for outbox, finish in list(_outboxes.items()):
        if outbox.kept:
            with contextlib.suppress(Exception):  # what is left is counted below
                finish(max(0.1, end - time.monotonic()))
    for outbox in list(_outboxes):
        if (left := outbox.kept) and sys.stderr is not None:
            events = "1 queued event was" if left == 1 else f"{left} queued events were"
            text = f"agentledger: {events} not delivered before the process ended; {outbox.left_behind}"
            print(text, file=sys.stderr)


def _after_fork() -> None:
    _outboxes.clear()
    for part in list(_forked):
        part.after_fork()
