"""Events that wait to be sent: a bounded queue, in memory or in a file, and what goes as the next batch.

- The queue is told as full by Overflow. An event that was put is sent, or is told to its waiter, or stays.
- The order of the queue is kept, so events of a trace are stored in the order in which they were put.
- Nothing here waits or connects; a client calls under its own lock.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .calls import Outcome, batch_size
from .errors import Overflow, Refused, Unreachable
from .queuefile import QueueFile
from .signer import Signed

MAX_QUEUED = 10_000
"""Events that wait, unless the caller says otherwise."""


@dataclass(eq=False)
class Item:
    """An event that waits. done gets its outcome. A kept one is sent until it is stored or refused for good."""

    event: Signed
    kept: bool
    done: Callable[[Outcome], None] | None = None


def _tell(item: Item, outcome: Outcome) -> None:
    """Tell the waiter of an event. Its own fault is a warning, because the sender must outlive it.

    A journal that could not note a result sends it once more after a restart, and the service answers with a replay.
    """
    if item.done is None:
        return
    try:
        item.done(outcome)
    except Exception as why:
        warnings.warn(f"agentledger: an outcome could not be noted: {type(why).__name__}", RuntimeWarning, stacklevel=2)


class Outbox:
    """A bounded queue of signed events."""

    def __init__(self, most: int, file: QueueFile | None) -> None:
        self.most = most
        self._file = file
        self._items: deque[Item] = deque()
        self._out: list[Item] = []
        self.refused: list[tuple[Signed, Refused]] = []
        """Kept events that the service refused for good, until they are taken."""
        for event in file.waiting() if file else ():
            self._items.append(Item(event, True))

    def __len__(self) -> int:
        return len(self._items) + len(self._out)

    @property
    def ready(self) -> bool:
        """Whether anything waits that is not out."""
        return bool(self._items)

    @property
    def has_file(self) -> bool:
        """Whether put waits for a disk."""
        return self._file is not None

    @property
    def settles_on_disk(self) -> bool:
        """Whether settle waits for a disk: the queue's, or the journal's of results that are out."""
        return self._file is not None or any(item.kept and item.done is not None for item in self._out)

    def put(self, events: Sequence[Signed], done: Callable[[Outcome], None] | None = None) -> None:
        """Add kept events, all or none. With a file they are on disk afterwards.

        Errors are Overflow and those of the file.
        """
        self.check_room(len(events))
        if self._file is not None:
            self._file.append(events)
        self._items.extend(Item(event, True, done) for event in events)

    def put_waited(self, event: Signed, done: Callable[[Outcome], None]) -> None:
        """Add one event whose sender waits for done. It is not written to the file. Call check_room before."""
        self._items.append(Item(event, False, done))

    def check_room(self, count: int) -> None:
        """Check that so many more events fit. Errors are Overflow."""
        if len(self) + count > self.most:
            raise Overflow(f"the queue holds {len(self)} of {self.most} events: {count} more do not fit")

    def give_up(self) -> None:
        """Tell all waiters that nothing is sent any more. Kept events stay in the queue."""
        for item in self._items:
            if not item.kept:
                _tell(item, Unreachable("the client is closed"))
        self._items = deque(item for item in self._items if item.kept)

    def take(self) -> list[Item]:
        """Return what waits, as much as one request takes. It is out until settle is called."""
        size = batch_size([len(item.event.text) for item in self._first()])
        self._out = [self._items.popleft() for _ in range(size)]
        return self._out

    def _first(self) -> list[Item]:
        return [self._items[i] for i in range(min(len(self._items), 501))]

    def settle(self, outcomes: Sequence[Outcome]) -> bool:
        """Note the outcomes of what is out, and tell the waiters. Return whether anything has to be sent again.

        A kept event that was not decided goes back to the front.
        """
        again, stored = [], []
        for item, outcome in zip(self._out, outcomes, strict=True):
            final = not isinstance(outcome, Exception) or isinstance(outcome, Refused) and outcome.final
            if item.kept and not final:
                again.append(item)
                continue
            stored.append(item.event)
            _tell(item, outcome)
            if item.kept and isinstance(outcome, Refused):
                self.refused.append((item.event, outcome))
        self._items.extendleft(reversed(again))
        self._out = []
        if self._file is not None:
            try:
                self._file.remove(stored, [event for event, _ in self.refused])
            except OSError:  # they are sent once more after a restart, and answered as replays
                pass
        return bool(again)

    def take_refused(self) -> list[tuple[Signed, Refused]]:
        """Return the events that were refused for good, and forget them."""
        refused, self.refused = self.refused, []
        return refused

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
