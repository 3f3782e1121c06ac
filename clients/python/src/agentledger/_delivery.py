"""How the events of one client are sent: when a request starts, what its outcomes mean, and when everything ends.

Threads or tasks perform the deliveries. This module decides for both and never waits.

- While nothing is in flight, all pending events may be sent. A further request starts in parallel if enough events are
  new, so that events are created and signed while the service works.
- A request that is in flight for longer than MAX_HOLD hangs: others start as if it had ended, without its traces.
- After events failed, one request at a time is sent, after a random pause of the back-off, or Retry-After.
- A request that failed as a whole is repeated in parts, because a proxy may block a single event. A single event that
  failed is retried alone, with pauses of its own, and holds back only its trace.
- No exception while outcomes are settled ends a sender: waiters are notified, and kept events stay.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from ._batches import MAX_LINES, Batch, Item, log
from ._calls import Outcome, send_batch, undelivered
from ._errors import LedgerError, Refused, Unreachable
from ._exchange import is_retryable, pause_after
from ._outbox import Outbox
from ._settings import Retry, Settings
from ._wire.effects import Disk, Operation

FAULT_PAUSE = 1.0
"""Seconds after an exception while events were taken."""
BACKOFF = Retry(base=1.0, most=30.0)
"""The pauses between two tries of a queue that cannot be sent."""
MAX_REQUESTS = 2
"""Maximum number of requests in flight, in addition to those that hang."""
MAX_HOLD = 1.0
"""Seconds that a request in flight may hold back other events."""
MAX_HANGING = 64
"""Maximum number of requests that hang. If there are as many, the next ones hold back others."""
ENOUGH = 16
"""Number of new events at which a further request starts while another one is in flight."""


class Delivery:
    """Decides for the sender of one client. clock returns seconds."""

    def __init__(self, settings: Settings, outbox: Outbox, clock: Callable[[], float] = time.monotonic) -> None:
        self.outbox = outbox
        self._settings = settings
        self._clock = clock
        self._most = MAX_LINES  # less after a 413, because a proxy may limit bodies to less than the service does
        self._failures = 0
        self._next_try = 0.0
        self._closing = False

    def is_due(self) -> bool:
        """Return whether a request may start now."""
        o = self.outbox
        out = o.requests - o.hanging
        if self._failures:
            return not out and o.waiting > 0 and not self._closing and self._clock() >= self._next_try
        if not out:
            return o.waiting > 0
        return o.fresh >= ENOUGH and out < MAX_REQUESTS

    def take(self) -> Batch | None:
        """Return the events of a request that starts now, or None. Deliver and end them then."""
        o, now = self.outbox, self._clock()
        if o.hanging < MAX_HANGING and (oldest := o.oldest) is not None and oldest + MAX_HOLD <= now:
            o.let_others_pass(now - MAX_HOLD)
        if (returned := o.next_return) is not None and returned <= now:
            o.unpark(now)
        return o.take(self._most, now) if self.is_due() else None

    @property
    def pause(self) -> float | None:
        """Seconds until time alone may make a request due, or None. At most MAX_HOLD while a request is in flight."""
        o, times = self.outbox, list[float]()
        if (returned := o.next_return) is not None and not self._closing:
            times.append(returned)
        oldest = o.oldest
        if oldest is not None and o.hanging < MAX_HANGING:
            times.append(oldest + MAX_HOLD)
        elif oldest is None and self._failures and o.waiting and not self._closing:
            times.append(self._next_try)
        return max(0.0, min(times) - self._clock()) if times else None

    def deliver(self, batch: Batch) -> Operation[None]:
        """Send a batch and settle it. Whatever the result, end the batch then."""
        try:
            outcomes = yield from self._exchange(batch)
            if outcomes is None:
                batch.divide()
                return
            batch.settle(outcomes, self._settings.retry.attempts)
            if batch.ended and (self.outbox.has_file or any(item.done for item, _ in batch.ended)):
                yield Disk(lambda: self.outbox.record(batch))
        except Exception as why:
            log.warning("outcomes could not be settled: %s", type(why).__name__)

    def end(self, batch: Batch) -> None:
        """Notify each remaining waiter of a batch, and put events without an outcome back."""
        again, until = batch.kept(), None
        try:
            again = batch.undecided()
            until = self._next(batch, again)
        except BaseException:  # the kept events are retried, and the answers for stored ones are replays
            batch.again.clear()
            again = batch.kept()
            raise
        finally:
            self.outbox.finish(batch, again, until)
        refused = [why for _, why in batch.ended if isinstance(why, Refused)]
        if refused:
            log.warning("queued events were refused for good, %d in this request: %s", len(refused), refused[0])

    def _next(self, batch: Batch, again: list[Item]) -> float | None:
        """Decide when the next request starts. Return until when the events to be retried are parked, or None."""
        if batch.too_large:
            self._most = max(1, len(batch.items) // 2)
            return None
        if batch.progress:
            if self._failures:
                self._failures = 0
                self.outbox.unpark()
            if len(batch.items) >= self._most:
                self._most = min(MAX_LINES, self._most + self._most // 8 + 1)
        why, now = batch.failure, self._clock()
        if not again or why is None:
            return None
        if not batch.progress:
            for item in again:
                item.most = max(1, len(batch.items) // 2)
            if batch.blocked and len(batch.items) > 1 and not self._failures:
                return None
        retry = BACKOFF if all(item.kept for item in again) else self._settings.retry
        # Only these events failed, so the connection and the service work.
        apart = batch.progress and not is_retryable(why) or len(batch.items) == 1
        known = batch.progress or all(item.blocked for item in again)
        told_to_wait = isinstance(why, Refused) and bool(why.retry_after)
        report = apart and not all(item.blocked for item in again)
        if self._failures or told_to_wait or not (apart and known):
            self._failures += 1
            self._next_try = now + pause_after(self._failures, why, retry)
            report = self._failures == 1
        if report and any(item.kept for item in again):
            log.warning("queued events were not delivered, and are sent again later: %s", why)
        for item in again:
            item.blocked = item.blocked + 1 if apart else 0
        return now + pause_after(max(item.blocked for item in again), why, retry) if apart else None

    def _exchange(self, batch: Batch) -> Operation[list[Outcome] | None]:
        """Send a batch. The result is None if it is too large for one request."""
        try:
            return (yield from send_batch(self._settings, batch.signed()))
        except (Refused, Unreachable) as why:
            if isinstance(why, Refused) and why.status == 413 and len(batch.items) > 1:
                return None
            failure = why
            batch.blocked = isinstance(why, Refused) and not why.proved and not is_retryable(why)
        except Exception as why:  # callers wait for an outcome
            failure = Unreachable(str(why) if isinstance(why, LedgerError) else type(why).__name__)
        return [undelivered(failure, item.event.event_id) for item in batch.items]

    def hurry(self, seconds: float) -> None:
        """Try each request once from now on, for at most the given seconds, and at once."""
        retry = replace(self._settings.retry, attempts=1)
        self._settings = replace(self._settings, timeout=min(self._settings.timeout, seconds), retry=retry)
        self._next_try = 0.0
        self.outbox.unpark()

    def after_fork(self) -> None:
        """Start anew in a forked child."""
        self.outbox.after_fork()
        self._failures = 0
        self._next_try = 0.0

    def close(self) -> None:
        """Accept no more events. Pending events are still sent, unless events have failed."""
        self.outbox.shut()
        self._closing = True

    @property
    def has_ended(self) -> bool:
        """Whether nothing is sent any longer."""
        o = self.outbox
        return self._closing and not o.requests and (self._failures > 0 or not o.waiting)
