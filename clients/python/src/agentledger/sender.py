"""A thread that sends what waits: while one request is out events gather, and they go as the next batch."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from .answers import Stored
from .calls import Outcome, send_batch
from .errors import LedgerError, NotAsked, Refused, Unreachable
from .outbox import Outbox
from .settings import Settings
from .signer import Signed
from .wire.blocking import Transport

LONGEST_PAUSE = 30.0
"""Seconds between two tries of a queue that can't be sent."""


class _Waiter:
    """Waits for the outcomes of events, which come in their order. A bare lock costs less than a future."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._outcomes: list[Outcome] = []
        self._done = threading.Lock()
        if count:
            self._done.acquire()

    def add(self, outcome: Outcome) -> None:
        self._outcomes.append(outcome)
        if len(self._outcomes) == self._count:
            self._done.release()

    def wait(self) -> list[Outcome]:
        self._done.acquire()
        return self._outcomes


class Sender:
    """Sends the events of one client, one request at a time."""

    def __init__(self, settings: Settings, transport: Transport, outbox: Outbox) -> None:
        self._settings = settings
        self._transport = transport
        self._outbox = outbox
        self._change = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        with self._change:
            if len(outbox):
                self._start()

    def queue(self, events: Sequence[Signed], done: Callable[[Outcome], None] | None = None) -> None:
        """Put events into the queue and return. Errors are Overflow and those of the queue's file."""
        with self._change:
            self._check_open()
            self._outbox.put(events, done)
            self._start()

    def send(self, events: Sequence[Signed]) -> list[Outcome]:
        """Send events and wait for their outcomes, in their order. Errors are Overflow."""
        waiter = _Waiter(len(events))
        with self._change:
            self._check_open()
            self._outbox.check_room(len(events))
            for event in events:
                self._outbox.put_waited(event, waiter.add)
            self._start()
        return waiter.wait()

    def _check_open(self) -> None:
        if self._closed:
            raise NotAsked("the client is closed")

    def _start(self) -> None:
        self._change.notify_all()
        if self._thread is None:
            self._thread = threading.Thread(target=self._loop, name="agentledger sender", daemon=True)
            self._thread.start()

    def _loop(self) -> None:
        failures = 0
        while True:
            with self._change:
                while not self._outbox.ready and not self._closed:
                    self._change.wait()
                if self._closed and (failures or not self._outbox.ready):
                    self._outbox.give_up()
                    self._outbox.close()
                    return
                batch = [item.event for item in self._outbox.take()]
            outcomes = self._send(batch)
            with self._change:
                again = self._outbox.settle(outcomes)
                self._change.notify_all()
                failures = failures + 1 if again else 0
                if again and not self._closed:
                    self._change.wait_for(lambda: self._closed, min(LONGEST_PAUSE, 2.0 ** min(failures, 10) / 2))

    def _send(self, batch: list[Signed]) -> list[Outcome]:
        try:
            return self._transport.run(send_batch(self._settings, batch, self._settings.retry))
        except (Refused, Unreachable) as why:
            return [why] * len(batch)
        except Exception as why:  # the sender must outlive a fault, because callers wait for it
            said = str(why) if isinstance(why, LedgerError) else type(why).__name__
            return [Unreachable(said)] * len(batch)

    def flush(self, deadline: float) -> list[tuple[Signed, Refused]]:
        """Wait until nothing waits, at most so many seconds. Return the queued events that were refused for good.

        Errors are Unreachable when the time is over. The events stay in the queue then.
        """
        end = time.monotonic() + deadline
        with self._change:
            while len(self._outbox):
                left = end - time.monotonic()
                if left <= 0 or self._thread is None:
                    raise Unreachable(f"{len(self._outbox)} events are still waiting")
                self._change.wait(left)
            return self._outbox.take_refused()

    def close(self, deadline: float) -> list[tuple[Signed, Refused]]:
        """Flush, then stop. Errors are those of flush; the thread ends also then."""
        try:
            return self.flush(deadline) if len(self._outbox) else self._outbox.take_refused()
        finally:
            with self._change:
                self._closed = True
                self._change.notify_all()
            if self._thread is None:
                self._outbox.close()
            else:
                self._thread.join(1.0)  # it may be in a request, and ends by itself then


def result_of(outcome: Outcome) -> Stored:
    """Return the answer for an event, or raise the error."""
    if isinstance(outcome, Exception):
        raise outcome
    return outcome
