"""Pending events, and which of them may form the next request while others are in flight.

- At most one request per trace is in flight, so the events of a trace are stored in the order in which they were put.
- The same holds for all events in line: queued events, and those of lists. A single event with a waiter is in no line.
- Each waiter is notified once: of its event's outcome, or by abandon that none is known.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from ._calls import MAX_BYTES, MAX_LINES, Outcome
from ._errors import Refused, Unreachable
from ._signer import Signed, Unsigned

MAX_LOOK = 2 * MAX_LINES
"""Maximum number of pending events that are considered for one request."""

Done = Callable[[Outcome], None]


@dataclass(eq=False, slots=True)
class Item:
    """A pending event. done gets its outcome. A kept event is retried until it is stored or refused finally."""

    event: Signed | Unsigned
    kept: bool
    in_line: bool
    done: Done | None = None

    @property
    def size(self) -> int:
        """The length of the signed text in bytes."""
        return len(self.event.text) if isinstance(self.event, Signed) else self.event.size

    def signed(self) -> Signed:
        """Return the event, signed once."""
        if isinstance(self.event, Unsigned):
            self.event = self.event.sign()
        return self.event

    def tell(self, outcome: Outcome) -> None:
        """Notify the waiter, unless that was done before. An exception of the waiter is a warning.

        If the journal could not record a result, it is sent once more after a restart, and the answer is a replay.
        """
        done, self.done = self.done, None
        if done is None:
            return
        try:
            done(outcome)
        except Exception as why:
            warn(f"an outcome could not be noted: {type(why).__name__}")


@dataclass(eq=False)
class Batch:
    """The events of one request, in order. ended contains the kept events with a final outcome.

    failure is the error of the first kept event that was not delivered.
    """

    items: list[Item] = field(default_factory=list)
    traces: set[str] = field(default_factory=set)
    in_line: bool = False
    ended: list[tuple[Item, Outcome]] = field(default_factory=list)
    failure: Refused | Unreachable | None = None

    def signed(self) -> list[Signed]:
        """Return the events. Those that are not signed yet are signed here."""
        return [item.signed() for item in self.items]

    def settle(self, outcomes: Sequence[Outcome]) -> None:
        """Notify the waiters of the outcomes, and record the final outcomes of kept events."""
        for item, outcome in zip(self.items, outcomes, strict=True):
            if not item.kept:
                item.tell(outcome)
            elif not isinstance(outcome, Exception) or isinstance(outcome, Refused) and outcome.final:
                self.ended.append((item, outcome))
            else:
                self.failure = self.failure or outcome

    def abandon(self, why: str) -> None:
        """Notify the remaining waiters that no outcome is known."""
        for item in self.items:
            if not item.kept:
                item.tell(Unreachable(why))

    def kept(self) -> list[Item]:
        """Return the kept events, in order."""
        return [item for item in self.items if item.kept]

    def undecided(self) -> list[Item]:
        """Return the kept events that must be retried, in order."""
        ended = {id(item) for item, _ in self.ended}
        return [item for item in self.kept() if id(item) not in ended]


def take_batch(waiting: deque[Item], out: Sequence[Batch]) -> tuple[Batch, int]:
    """Remove the events that may form the next request from the pending ones. There may be none.

    Return also how many of the considered events had to stay. After an exception all of them are still pending.
    """
    traces: set[str] = set().union(*(batch.traces for batch in out))
    in_line = any(batch.in_line for batch in out)
    batch, left, size = Batch(), list[Item](), 0
    for item in islice(waiting, MAX_LOOK):
        trace = item.event.trace_id
        if trace in traces or item.in_line and in_line:
            traces.add(trace)
            in_line = in_line or item.in_line
            left.append(item)
            continue
        size += item.size + 1
        if batch.items and size > MAX_BYTES or len(batch.items) == MAX_LINES:
            break
        batch.items.append(item)
        batch.traces.add(trace)
        batch.in_line = batch.in_line or item.in_line
    for _ in range(len(batch.items) + len(left)):
        waiting.popleft()
    waiting.extendleft(reversed(left))
    return batch, len(left)


def warn(text: str) -> None:
    """Warn of an exception in the background. A filter that turns warnings into errors does not stop the background."""
    try:
        warnings.warn(f"agentledger: {text}", RuntimeWarning, stacklevel=3)
    except RuntimeWarning:
        return
