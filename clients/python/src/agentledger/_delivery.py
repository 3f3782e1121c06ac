"""How the events of one client are sent: when a request starts, what its outcomes mean, and when everything ends.

Threads or tasks perform the deliveries. This module decides for both and never waits.

- While nothing is in flight, all pending events may be sent. A further request starts in parallel if enough events are
  new, so that events are created and signed while the service works.
- After queued events failed, one request at a time is sent, after a random pause of the back-off, or Retry-After.
- No exception while outcomes are settled ends a sender: waiters are notified, and kept events stay.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from ._batches import Batch, warn
from ._calls import Outcome, send_batch
from ._errors import LedgerError, Refused, Unreachable
from ._exchange import pause_after
from ._outbox import Outbox
from ._settings import Retry, Settings
from ._wire.effects import Disk, Operation

FAULT_PAUSE = 1.0
"""Seconds after an exception while events were taken."""
BACKOFF = Retry(base=1.0, most=30.0)
"""The pauses between two tries of a queue that cannot be sent."""
MAX_REQUESTS = 2
"""Maximum number of requests in flight."""
ENOUGH = 16
"""Number of new events at which a further request starts while another one is in flight."""


class Delivery:
    """Decides for the sender of one client. clock returns seconds."""

    def __init__(self, settings: Settings, outbox: Outbox, clock: Callable[[], float] = time.monotonic) -> None:
        self.outbox = outbox
        self._settings = settings
        self._clock = clock
        self._failures = 0
        self._next_try = 0.0
        self._closing = False

    def is_due(self) -> bool:
        """Return whether a request may start now."""
        o = self.outbox
        if self._failures:
            return not o.requests and o.waiting > 0 and not self._closing and self._clock() >= self._next_try
        if not o.requests:
            return o.waiting > 0
        return o.fresh >= ENOUGH and o.requests < MAX_REQUESTS

    def take(self) -> Batch | None:
        """Return the events of a request that starts now, or None. Deliver and end them then."""
        return self.outbox.take() if self.is_due() else None

    @property
    def pause(self) -> float | None:
        """Seconds until time alone makes a request due, or None."""
        o = self.outbox
        if not self._failures or o.requests or not o.waiting:
            return None
        return max(0.0, self._next_try - self._clock())

    def deliver(self, batch: Batch) -> Operation[None]:
        """Send a batch and settle it. Whatever the result, end the batch then."""
        try:
            batch.settle((yield from self._exchange(batch)))
            if batch.ended and (self.outbox.has_file or any(item.done for item, _ in batch.ended)):
                yield Disk(lambda: self.outbox.record(batch))
        except Exception as why:
            warn(f"outcomes could not be settled: {type(why).__name__}")

    def end(self, batch: Batch) -> None:
        """Notify each remaining waiter of a batch, and put kept events without an outcome back."""
        again = self.outbox.finish(batch)
        if again or batch.ended:
            self._failures = self._failures + 1 if again else 0
            self._next_try = self._clock() + pause_after(self._failures, batch.failure, BACKOFF)
            if self._failures == 1 and batch.failure is not None:
                warn(f"queued events were not delivered, and are sent again later: {batch.failure}")
        refused = [why for _, why in batch.ended if isinstance(why, Refused)]
        if refused:
            warn(f"queued events were refused for good, {len(refused)} in this request: {refused[0]}")

    def _exchange(self, batch: Batch) -> Operation[list[Outcome]]:
        try:
            return (yield from send_batch(self._settings, batch.signed(), self._settings.retry))
        except (Refused, Unreachable) as why:
            return [why] * len(batch.items)
        except Exception as why:  # callers wait for an outcome
            reason = str(why) if isinstance(why, LedgerError) else type(why).__name__
            return [Unreachable(reason)] * len(batch.items)

    def hurry(self, seconds: float) -> None:
        """Try each request once from now on, for at most the given seconds, and at once."""
        retry = replace(self._settings.retry, attempts=1)
        self._settings = replace(self._settings, timeout=min(self._settings.timeout, seconds), retry=retry)
        self._next_try = 0.0

    def after_fork(self) -> None:
        """Start anew in a forked child."""
        self.outbox.after_fork()
        self._failures = 0
        self._next_try = 0.0

    def close(self) -> None:
        """Accept no more events. Pending events are still sent, unless queued events have failed."""
        self.outbox.shut()
        self._closing = True

    @property
    def has_ended(self) -> bool:
        """Whether nothing is sent any longer."""
        o = self.outbox
        return self._closing and not o.requests and (self._failures > 0 or not o.waiting)
