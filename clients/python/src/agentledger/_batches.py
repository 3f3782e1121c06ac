"""Pending events, and which of them may form the next request while others are in flight.

- At most one request per trace is in flight, so the events of a trace are stored in the order in which they were put.
- The same holds for all events in line: queued events, and those of lists. A single event with a waiter is in no line.
- A request that hangs holds back only its own traces.
- Each waiter is notified once: of its event's outcome, or by abandon that none is known.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from ._calls import Outcome
from ._errors import Refused, Unreachable, about
from ._exchange import is_retryable
from ._signer import Signed, Unsigned

MAX_LINES = 500
"""Maximum number of events per request. The service accepts 1,000; more than this is not faster."""
MAX_BYTES = 4 << 20
"""Maximum size of a request of several events."""
MAX_LOOK = 2 * MAX_LINES
"""Maximum number of pending events that are considered for one request."""

Done = Callable[[Outcome], None]

log = logging.getLogger("agentledger")


@dataclass(eq=False, slots=True)
class Item:
    """A pending event. done gets its outcome. A kept event is retried until it is stored or refused finally."""

    event: Signed | Unsigned
    kept: bool
    in_line: bool
    done: Done | None = None
    number: int = 0
    """The place in the order in which events were put."""
    tries: int = 0
    most: int = MAX_LINES
    """Maximum number of events of the next request with this one. It is halved when a request fails as a whole."""
    blocked: int = 0
    """How many of the last requests failed because of this event, it seems."""

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
        """Notify the waiter, unless that was done before. An exception of the waiter is logged.

        If the journal could not record a result, it is sent once more after a restart, and the answer is a replay.
        """
        done, self.done = self.done, None
        if done is None:
            return
        try:
            done(outcome)
        except Exception as why:
            log.warning("an outcome could not be recorded: %s", type(why).__name__)


@dataclass(eq=False)
class Batch:
    """The events of one request, in order.

    ended contains the kept events with a final outcome, and again the events with a waiter that are retried. failure is
    the error of the first event that is retried, and progress whether an outcome was final. blocked means that the
    answer to the request as a whole is not provably the service's, and that the same request will hardly succeed later.
    """

    items: list[Item] = field(default_factory=list[Item])
    traces: set[str] = field(default_factory=set[str])
    in_line: bool = False
    began: float = 0.0
    hangs: bool = False
    ended: list[tuple[Item, Outcome]] = field(default_factory=list[tuple[Item, Outcome]])
    again: set[int] = field(default_factory=set[int])
    failure: Refused | Unreachable | None = None
    progress: bool = False
    too_large: bool = False
    blocked: bool = False

    def signed(self) -> list[Signed]:
        """Return the events. Those that are not signed yet are signed here."""
        return [item.signed() for item in self.items]

    def settle(self, outcomes: Sequence[Outcome], attempts: int) -> None:
        """Notify the waiters of the outcomes, and record the final outcomes of kept events.

        An event with a waiter is sent at most the given number of times, unless other events of its request may be the
        reason of the failure.
        """
        divisible = self.blocked and len(self.items) > 1
        for item, outcome in zip(self.items, outcomes, strict=True):
            item.tries += 1
            final = not isinstance(outcome, Exception) or isinstance(outcome, Refused) and outcome.final
            self.progress = self.progress or final
            if item.kept and final:
                self.ended.append((item, outcome))
            elif isinstance(outcome, Exception) and (
                item.kept or divisible or item.tries < attempts and is_retryable(outcome)
            ):
                self.failure = self.failure or outcome
                if not item.kept:
                    self.again.add(id(item))
            else:
                item.tell(outcome)

    def divide(self) -> None:
        """Send the events in smaller requests, because this one was too large."""
        self.too_large = True
        self.again = {id(item) for item in self.items if not item.kept}

    def abandon(self, why: str) -> None:
        """Notify the remaining waiters that no outcome is known."""
        for item in self.items:
            if not item.kept and id(item) not in self.again:
                item.tell(about(item.event.event_id, Unreachable(why)))

    def kept(self) -> list[Item]:
        """Return the kept events, in order."""
        return [item for item in self.items if item.kept]

    def undecided(self) -> list[Item]:
        """Return the events that must be retried, in order."""
        ended = {id(item) for item, _ in self.ended}
        return [item for item in self.items if (id(item) not in ended if item.kept else id(item) in self.again)]


def take_batch(waiting: deque[Item], out: Sequence[Batch], lines: int) -> tuple[Batch, int]:
    """Remove the events that may form the next request from the pending ones. There may be none.

    Return also how many of the considered events had to stay. After an exception all of them are still pending.
    """
    traces = set[str]().union(*(batch.traces for batch in out))
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
        lines = min(lines, item.most)
        if batch.items and (size > MAX_BYTES or len(batch.items) >= lines):
            break
        batch.items.append(item)
        batch.traces.add(trace)
        batch.in_line = batch.in_line or item.in_line
    for _ in range(len(batch.items) + len(left)):
        waiting.popleft()
    waiting.extendleft(reversed(left))
    return batch, len(left)
