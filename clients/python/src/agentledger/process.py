"""What the end of the process, and a fork, mean for the events that clients have queued.

- At the end of the process queued events are sent for EXIT_SECONDS at most. What is left is told in one line on
  standard error.
- A forked child has its own connections, threads and an empty queue: the parent sends what it queued. A queue's file
  and a journal's folder stay with the process that opened them.
- A signal that ends the process at once, os._exit and a crash run none of this: a queue's file survives them.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
import weakref
from typing import Protocol

EXIT_SECONDS = 5.0
"""How long the end of the process waits for the service."""
_MANY = 64


class Forked(Protocol):
    """Has locks, connections or files that a child must not share with its parent."""

    def after_fork(self) -> None:
        """Start anew in a forked child. No other thread runs."""


class Queueing(Protocol):
    """A sender of queued events."""

    def pending(self) -> int:
        """Return how many queued events are neither stored nor refused."""

    def left_behind(self) -> str:
        """Return where these events are once the process has ended, for people."""

    def finish(self, seconds: float) -> None:
        """Send them for at most the given seconds."""


_all: weakref.WeakSet[Forked] = weakref.WeakSet()
_queueing: set[Queueing] = set()  # strong, so that a client that nobody refers to any longer is finished too
_registered: list[bool] = []


def watch(part: Forked) -> None:
    """Call part.after_fork in every child that is forked from now on."""
    if not _registered:
        _registered.append(True)
        atexit.register(_at_exit)
        os.register_at_fork(after_in_child=_after_fork)
    _all.add(part)


def hold(sender: Queueing) -> None:
    """Finish a sender, which has queued an event, at the end of the process."""
    if len(_queueing) >= _MANY and sender not in _queueing:
        for other in [other for other in _queueing if not other.pending()]:
            _queueing.discard(other)
    _queueing.add(sender)


def release(sender: Queueing) -> None:
    """Forget a sender that was closed: its caller knows what was not sent."""
    _queueing.discard(sender)


def _at_exit() -> None:
    end = time.monotonic() + EXIT_SECONDS
    for sender in list(_queueing):
        if sender.pending():
            sender.finish(max(0.1, end - time.monotonic()))
    for sender in list(_queueing):
        if (left := sender.pending()) and sys.stderr is not None:
            events = "1 queued event was" if left == 1 else f"{left} queued events were"
            text = f"agentledger: {events} not delivered before the process ended; {sender.left_behind()}"
            print(text, file=sys.stderr)


def _after_fork() -> None:
    _queueing.clear()
    for part in list(_all):
        part.after_fork()
