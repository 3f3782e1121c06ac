"""Keeps a fork from happening while another thread signs.

OpenSSL has locks of its own. A lock that another thread holds stays locked in a forked child, whose signatures would then
wait forever.
"""

from __future__ import annotations

import functools
import os
import threading
import time

_MOST = 1.0
"""Seconds that a fork waits for signatures, which take far less. A signal handler may fork during its own thread's signature."""


class ForkGate:
    """A context manager for what must not be interrupted by a fork. Any number of threads may be inside."""

    def __init__(self) -> None:
        self.after_fork()

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1

    def close(self) -> None:
        """Wait until no thread is inside, and let none in."""
        end = time.monotonic() + _MOST
        while (left := end - time.monotonic()) > 0:
            if self._lock.acquire(timeout=left):
                if not self._inside:
                    self._closed = True
                    return
                self._lock.release()
                time.sleep(0)

    def open(self) -> None:
        """Let threads in again."""
        if self._closed:
            self._closed = False
            self._lock.release()

    def after_fork(self) -> None:
        """Start anew in a forked child, which has one thread."""
        self._lock = threading.Lock()
        self._inside = 0
        self._closed = False


@functools.cache
def fork_gate() -> ForkGate:
    """Return the gate of this process, which every fork closes from now on."""
    gate = ForkGate()
    os.register_at_fork(before=gate.close, after_in_parent=gate.open, after_in_child=gate.after_fork)
    return gate
