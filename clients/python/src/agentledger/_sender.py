"""Threads that send pending events: events that arrive while a request is in flight form the next batch."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from . import _process as process
from ._batches import Batch, Done, log
from ._calls import Outcome
from ._delivery import FAULT_PAUSE, MAX_HOLD, MAX_REQUESTS, Delivery
from ._errors import Refused, Unreachable
from ._signer import Signed, Unsigned
from ._wire.blocking import Transport


STILL = 3
"""How often other threads may run without putting an event before a request starts."""


class _Waiter:
    """Waits for the outcomes of events, which arrive in order. A bare lock costs less than a future."""

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
    """Sends the events of one client. Each thread makes one request at a time; the first event starts the first thread.

    While events wait for a request, another thread waits with them, in case the request hangs. A thread that ended with
    an exception is replaced.
    """

    def __init__(self, delivery: Delivery, transport: Transport) -> None:
        self._delivery = delivery
        self._outbox = delivery.outbox
        self._transport = transport
        self._reset()
        process.watch(self)
        if len(self._outbox):
            process.hold(self._outbox, self._finish)
            self._start()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._due = threading.Condition(self._lock)
        self._settled = threading.Condition(self._lock)
        self._threads: set[threading.Thread] = set()
        self._idle = 0
        self._watched = 0.0  # when an idle thread checks for requests that hang
        self._told = 0

    def after_fork(self) -> None:
        """Start anew in a forked child: the threads are the parent's."""
        self._reset()
        self._delivery.after_fork()
        self._transport.after_fork()

    def queue(self, events: Sequence[Signed], done: Done | None = None) -> None:
        """Put events into the queue and return. Errors are Overflow, Unreachable without threads, and NotWritten."""
        self._start()
        self._outbox.put(events, done)
        process.hold(self._outbox, self._finish)
        self._wake()

    def send(self, events: Sequence[Signed | Unsigned]) -> list[Outcome]:
        """Send events and wait for their outcomes, in order. Errors are Overflow, and Unreachable without threads."""
        waiter = _Waiter(len(events))
        self._start()
        self._outbox.put_waited(events, [waiter.add] * len(events))
        self._wake()
        return waiter.wait()

    def _start(self) -> None:
        """Ensure that there is a thread before anything is put. Errors are Unreachable."""
        if self._threads:
            return
        with self._lock:
            if not self._threads and not self._delivery.has_ended:
                self._add_thread()

    def _add_thread(self) -> None:
        thread = threading.Thread(target=self._run, name="agentledger sender", daemon=True)
        self._threads.add(thread)
        try:
            thread.start()
        except RuntimeError as why:
            self._threads.discard(thread)
            raise Unreachable(f"nothing can be sent: {why}") from None

    def _wake(self) -> None:
        # Otherwise a thread checks for more when its request has ended, or another one when that hangs.
        now = time.monotonic()
        if self._delivery.is_due() or not now <= self._watched <= now + MAX_HOLD:
            with self._lock:
                self._summon()

    def _summon(self) -> None:
        """Let one more thread check for events, if another one is allowed."""
        if self._idle:
            self._due.notify()
        elif len(self._threads) < self._most:
            try:
                self._add_thread()
            except Unreachable as why:
                if not self._threads:  # otherwise the others do its work
                    self._outbox.give_up(str(why))

    @property
    def _most(self) -> int:
        """The maximum number of threads: one for each request, and one that waits."""
        return MAX_REQUESTS + self._outbox.hanging + 1

    def _run(self) -> None:
        try:
            while not self._delivery.has_ended and len(self._threads) <= self._most:
                try:
                    self._deliver_next()
                except Exception as why:
                    log.warning("the sender continues after a fault: %s", type(why).__name__)
                    with self._lock:
                        self._due.wait(FAULT_PAUSE)
        finally:
            self._leave()

    def _deliver_next(self) -> None:
        batch = self._next()
        if batch is None:
            return
        self._told = sum(not item.kept for item in batch.items)
        try:
            self._transport.run(self._delivery.deliver(batch))
        finally:
            try:
                self._delivery.end(batch)
            finally:
                with self._lock:
                    self._settled.notify_all()

    def _next(self) -> Batch | None:
        """Return the next batch, or None if nothing is sent any longer."""
        with self._lock:
            self._idle += 1
            try:
                while not self._delivery.has_ended:
                    if self._delivery.is_due():
                        self._gather()
                    batch = self._delivery.take()
                    if batch is not None:
                        return batch
                    pause = self._delivery.pause
                    self._watched = 0.0 if pause is None else time.monotonic() + pause
                    self._due.wait(pause)
                    self._watched = 0.0
                return None
            finally:
                self._idle -= 1

    def _gather(self) -> None:
        """Let the callers that the last answers released put their next events, so that these are sent together.

        It does not wait for a time: it ends when as many events are pending, or when other threads ran and put none.
        """
        most, seen, still = self._told, self._outbox.waiting, 0
        if seen >= most:
            return
        self._lock.release()
        try:
            while seen < most and still < STILL:
                time.sleep(0)
                now = self._outbox.waiting
                still = still + 1 if now <= seen else 0
                seen = now
        finally:
            self._lock.acquire()

    def _leave(self) -> None:
        """End this thread. After an exception another one continues; the last one closes the queue."""
        with self._lock:
            self._threads.discard(threading.current_thread())
            self._due.notify_all()
            self._settled.notify_all()
            if self._threads:
                return
            if not self._delivery.has_ended:
                try:
                    self._add_thread()
                    return
                except Unreachable as why:
                    log.warning("%s", why)
        self._outbox.give_up("the client is closed" if self._delivery.has_ended else "nothing can be sent: no thread")
        if self._delivery.has_ended:
            self._outbox.close()

    def flush(self, deadline: float) -> list[tuple[Signed, Refused]]:
        """Wait at most the given seconds until nothing is pending. Return the queued events that were refused finally.

        The error is Unreachable if the time expires. The events then stay in the queue.
        """
        end = time.monotonic() + deadline
        with self._lock:
            while len(self._outbox):
                left = end - time.monotonic()
                if left <= 0 or not self._threads:
                    raise Unreachable(f"{len(self._outbox)} events are still waiting")
                self._settled.wait(left)
        return self._outbox.take_refused()

    def _finish(self, seconds: float) -> None:
        """Send what is queued for at most the given seconds, at the end of the process, without waiting for a pause."""
        self._delivery.hurry(seconds)
        with self._lock:
            self._summon()
        self.flush(seconds)

    def close(self, deadline: float) -> list[tuple[Signed, Refused]]:
        """Flush, then stop. Errors are those of flush; the threads end nevertheless."""
        try:
            return self.flush(deadline)
        finally:
            process.release(self._outbox)
            self._delivery.close()
            with self._lock:
                self._due.notify_all()
                threads = list(self._threads)
            end = time.monotonic() + 1.0
            for thread in threads:
                thread.join(max(0.0, end - time.monotonic()))  # it may be in a request, and then ends automatically
            if not threads:
                self._outbox.close()
