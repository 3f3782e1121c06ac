"""Events that wait, and which of them may go as the next request while others are out.

- Of one trace at most one request is out, so the events of a trace are stored in the order in which they were put.
- The same holds for all events in line: queued ones, and those of lists. A single one whose sender waits is in no line.
- Each waiter is told once: its event's outcome, or by abandon that none is known.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from .calls import MAX_BYTES, MAX_LINES, Outcome
from .errors import Refused, Unreachable
from .signer import Signed, Unsigned

MAX_LOOK = 2 * MAX_LINES
"""How many waiting events are looked at for one request."""

Done = Callable[[Outcome], None]


@dataclass(eq=False, slots=True)
class Item:
    """An event that waits. done gets its outcome. A kept one is sent until it is stored or refused for good."""

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
        """Tell the waiter, unless it was told before. A fault of the waiter's is a warning.

        A journal that could not note a result sends it once more after a restart, and gets a replay as the answer.
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
    """The events of one request, in their order. ended has the kept ones whose outcome stands."""

    items: list[Item] = field(default_factory=list)
    traces: set[str] = field(default_factory=set)
    in_line: bool = False
    ended: list[tuple[Item, Outcome]] = field(default_factory=list)

    def signed(self) -> list[Signed]:
        """Return the events. Those that are not signed yet are signed here."""
        return [item.signed() for item in self.items]

    def settle(self, outcomes: Sequence[Outcome]) -> None:
        """Tell the outcomes to those who wait, and note those of kept events that stand."""
        for item, outcome in zip(self.items, outcomes, strict=True):
            if not item.kept:
                item.tell(outcome)
            elif not isinstance(outcome, Exception) or isinstance(outcome, Refused) and outcome.final:
                self.ended.append((item, outcome))

    def abandon(self, why: str) -> None:
        """Tell those who still wait that no outcome is known."""
        for item in self.items:
            if not item.kept:
                item.tell(Unreachable(why))

    def kept(self) -> list[Item]:
        """Return the kept events, in their order."""
        return [item for item in self.items if item.kept]

    def undecided(self) -> list[Item]:
        """Return the kept events that have to be sent again, in their order."""
        ended = {id(item) for item, _ in self.ended}
        return [item for item in self.kept() if id(item) not in ended]


def take_batch(waiting: deque[Item], out: Sequence[Batch]) -> tuple[Batch, int]:
    """Take the events that may go as the next request out of those that wait. There may be none.

    Return also how many of those that were looked at had to stay. After a fault all still wait.
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
    """Warn of a fault in the background. A filter that makes warnings errors does not stop what goes on there."""
    try:
        warnings.warn(f"agentledger: {text}", RuntimeWarning, stacklevel=3)
    except RuntimeWarning:
        return
