"""Pending events: a bounded queue, in memory or in a file.

- A full queue raises Overflow. An event that was put is sent, or its waiter is notified, or it stays.
- Whatever fails, finish notifies each waiter of a batch, and kept events without an outcome return to the front.
- The events of some traces are parked, so that they hold back no others: while a request with this trace hangs, and
  while its first event, which no request delivers, waits for its next try. After such a wait they go to the back,
  behind events that may be delivered.
- After shut nothing is added, and after give_up nobody waits.
- Nothing here connects. It is thread-safe. put, record and close may wait for a disk; nothing else waits.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from ._batches import Batch, Done, Item, take_batch
from ._errors import NotAsked, Overflow, Refused, Unreachable, about
from ._queuefile import QueueFile
from ._signer import Signed, Unsigned

MAX_QUEUED = 10_000
"""The default maximum number of pending events."""


@dataclass
class _Parked:
    """The pending events of a trace that is not sent now. until is a time, or None: until the request of it ends."""

    until: float | None
    items: list[Item] = field(default_factory=list[Item])


class Outbox:
    """A bounded queue of events."""

    def __init__(self, most: int, file: QueueFile | None) -> None:
        self.most = most
        self._file = file
        self._lock = threading.Lock()
        self._disk = threading.Lock()
        self._waiting = deque[Item]()
        self._parked: dict[str, _Parked] = {}
        self._out: list[Batch] = []
        self._number = self._count = self._fresh = 0
        if file is not None:
            items = [Item(event, True, True) for event in file.waiting()]
            self._count = len(items)
            self._add(items)
        self._shut = False
        self._refused = deque[tuple[Signed, Refused]](maxlen=most)

    def after_fork(self) -> None:
        """Forget everything in a forked child: the parent sends it."""
        self._lock = threading.Lock()
        self._disk = threading.Lock()
        self._waiting, self._parked, self._out = deque[Item](), {}, []
        self._refused.clear()
        self._count = self._fresh = 0
        if self._file is not None:
            self._file.after_fork()

    def __len__(self) -> int:
        """Return how many events are pending or in flight."""
        return self._count

    @property
    def kept(self) -> int:
        """The number of pending events that were queued, so that nobody waits for them."""
        with self._lock:
            return sum(item.kept for item in self._pending()) + sum(
                sum(item.kept for item in batch.undecided()) for batch in self._out
            )

    def _pending(self) -> list[Item]:
        return [*self._waiting, *(item for parked in self._parked.values() for item in parked.items)]

    @property
    def left_behind(self) -> str:
        """Where queued events are once the process has ended, for people."""
        if self._file is None:
            return "they are lost"
        return f"the next client with queue_file {self._file.path} sends them"

    def recover(self) -> None:
        """Put the events in flight back, after the tasks that sent them have gone."""
        for batch in list(self._out):
            self.finish(batch, batch.kept())

    @property
    def waiting(self) -> int:
        """The number of pending events that are neither in flight nor parked."""
        return len(self._waiting)

    @property
    def fresh(self) -> int:
        """The number of those that no take has considered."""
        return self._fresh

    @property
    def requests(self) -> int:
        """The number of batches in flight."""
        return len(self._out)

    @property
    def hanging(self) -> int:
        """The number of those that hang."""
        return sum(batch.hangs for batch in self._out)

    @property
    def oldest(self) -> float | None:
        """When the first of those that do not hang began, or None."""
        return min((batch.began for batch in list(self._out) if not batch.hangs), default=None)

    @property
    def next_return(self) -> float | None:
        """When the first parked events return, or None if time returns none."""
        return min((p.until for p in list(self._parked.values()) if p.until is not None), default=None)

    @property
    def has_file(self) -> bool:
        """Whether put waits for a disk."""
        return self._file is not None

    def put(self, events: Sequence[Signed], done: Done | None = None) -> None:
        """Add kept events, all or none. If there is a file, they are on disk afterwards.

        Errors are Overflow, NotAsked after shut, and NotWritten.
        """
        items = [Item(event, True, True, done) for event in events]
        if self._file is None:
            self._put(items)
            return
        with self._disk:
            with self._lock:
                self._reserve(len(items))
            try:
                self._file.append(events)
            except BaseException:
                with self._lock:
                    self._count -= len(items)
                raise
            with self._lock:
                self._add(items)

    def put_waited(self, events: Sequence[Signed | Unsigned], dones: Sequence[Done]) -> None:
        """Add events whose sender waits, all or none, but not to the file. Errors are Overflow and NotAsked."""
        in_line = len(events) > 1
        self._put([Item(event, False, in_line, done) for event, done in zip(events, dones, strict=True)])

    def _put(self, items: list[Item]) -> None:
        with self._lock:
            self._reserve(len(items))
            self._add(items)

    def _reserve(self, count: int) -> None:
        if self._shut:
            raise NotAsked("the client is closed")
        if self._count + count > self.most:
            raise Overflow(f"the queue holds {self._count} of {self.most} events: {count} more do not fit")
        self._count += count

    def _add(self, items: list[Item]) -> None:
        for item in items:
            self._number += 1
            item.number = self._number
            parked = self._parked.get(item.event.trace_id) if self._parked else None
            if parked is not None:
                parked.items.append(item)
            else:
                self._waiting.append(item)
                self._fresh += 1

    def take(self, lines: int, now: float) -> Batch | None:
        """Return the events of the next request, or None. They are in flight until finish is called."""
        with self._lock:
            batch, left = take_batch(self._waiting, [batch for batch in self._out if not batch.hangs], lines)
            self._fresh = len(self._waiting) - left
            if not batch.items:
                return None
            batch.began = now
            self._out.append(batch)
            return batch

    def let_others_pass(self, began: float) -> None:
        """Treat the requests that began by then as hanging: they hold back only their own traces."""
        with self._lock:
            for batch in self._out:
                if batch.began <= began and not batch.hangs:
                    batch.hangs = True
                    self._park(batch.traces, None)

    def _park(self, traces: set[str], until: float | None) -> None:
        for trace in traces:
            self._parked[trace] = _Parked(until)
        waiting, self._waiting = self._waiting, deque[Item]()
        for item in waiting:
            parked = self._parked.get(item.event.trace_id)
            (self._waiting if parked is None else parked.items).append(item)

    def unpark(self, now: float | None = None) -> None:
        """Move parked events whose time has come to the back of the queue. Without a time, all that wait for one."""
        with self._lock:
            due = [
                trace
                for trace, parked in self._parked.items()
                if parked.until is not None and (now is None or parked.until <= now)
            ]
            items = [item for trace in due for item in self._parked.pop(trace).items]
            self._waiting.extend(sorted(items, key=lambda item: item.number))

    def _return(self, again: list[Item], traces: set[str]) -> None:
        """Return events, and those that are parked with these traces, to the front."""
        for trace in traces if self._parked else ():
            if (parked := self._parked.pop(trace, None)) is not None:
                again = again + parked.items
        self._waiting.extendleft(sorted(again, key=lambda item: item.number, reverse=True))

    def record(self, batch: Batch) -> None:
        """Record the kept events of a batch with a final outcome, in the journal of acts and in the queue's file."""
        for item, outcome in batch.ended:
            item.tell(outcome)
        if self._file is None:
            return
        ended = [item.signed() for item, _ in batch.ended]
        refused = [(item.signed(), outcome) for item, outcome in batch.ended if isinstance(outcome, Refused)]
        with self._disk:
            try:
                self._file.remove(ended, refused)
            except OSError:  # they are sent once more after a restart, and the answers are replays
                return

    def finish(self, batch: Batch, again: list[Item], until: float | None = None) -> None:
        """End a batch. The events that must be retried return to the front, or are parked until the given time."""
        try:
            with self._lock:
                self._out.remove(batch)
                self._return(again, batch.traces)
                self._count -= len(batch.items) - len(again)
                if until is not None:
                    self._park({item.event.trace_id for item in again}, until)
                self._refused += [(item.signed(), why) for item, why in batch.ended if isinstance(why, Refused)]
        finally:
            batch.abandon("the client failed before it knew the outcome, so the event may be stored")

    def take_refused(self) -> list[tuple[Signed, Refused]]:
        """Return the last kept events that the service refused finally, at most self.most, and remove them."""
        with self._lock:
            refused = list(self._refused)
            self._refused.clear()
        return refused

    def shut(self) -> None:
        """Add nothing from now on."""
        with self._lock:
            self._shut = True

    def give_up(self, why: str = "the client is closed") -> None:
        """Notify all waiters that nothing is sent any longer. Kept events stay in the queue."""
        with self._lock:
            left = [item for item in self._pending() if not item.kept]
            self._waiting = deque[Item](item for item in self._waiting if item.kept)
            for parked in self._parked.values():
                parked.items = [item for item in parked.items if item.kept]
            self._count -= len(left)
        for item in left:
            item.tell(about(item.event.event_id, Unreachable(why)))

    def close(self) -> None:
        """Close the file."""
        with self._disk:
            if self._file is not None:
                self._file.close()
