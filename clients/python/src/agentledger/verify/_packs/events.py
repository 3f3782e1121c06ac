"""The state of the events of a pack's range, one byte each, so that the memory does not depend on their sizes."""

from __future__ import annotations

from collections.abc import Callable


class Events:
    """Marks of the events of [begin, end), by position relative to begin. At most MAX_EVENTS bytes each."""

    def __init__(self, begin: int, end: int, read: Callable[[int, int], bytes]) -> None:
        """read returns bytes of entries.bin, which was already checked."""
        self._begin = begin
        self._read = read
        self._shown = bytearray(end - begin)
        self._of_agents = bytearray(end - begin)
        self._canonical = bytearray(end - begin)
        self._erased = bytearray(end - begin)
        self._unlisted = bytearray(end - begin)

    def __len__(self) -> int:
        return len(self._shown)

    def has(self, number: int) -> bool:
        """Return whether a sequence number is in the range."""
        return 0 <= number - 1 - self._begin < len(self)

    def record_hash(self, number: int) -> bytes:
        """Return the hash of the record of an event of the range."""
        return self._read(32 * (number - 1 - self._begin), 32)

    def show(self, number: int, of_agent: bool, canonical: bool) -> None:
        """Mark an event as shown. canonical means that its signature needs the envelope."""
        place = number - 1 - self._begin
        self._shown[place] = 1
        self._of_agents[place] = of_agent
        self._canonical[place] = canonical

    def erase(self, begin: int, end: int) -> bool:
        """Mark the envelopes of [begin, end) as erased, and return whether a shown event of an agent is among them."""
        first, last = max(0, begin - self._begin), min(len(self), end - self._begin)
        if first >= last:
            return False
        self._erased[first:last] = b"\1" * (last - first)
        return self._of_agents.find(1, first, last) >= 0

    def is_erased(self, number: int) -> bool:
        """Return whether the envelope of a shown event was erased."""
        place = number - 1 - self._begin
        return bool(self._erased[place] and self._of_agents[place])

    def list(self, number: int, listed: bool) -> None:
        """Mark a statement about an approval: shown, but not yet listed in approvals.ndjson; or listed."""
        self._unlisted[number - 1 - self._begin] = not listed

    def is_unlisted(self, number: int) -> bool:
        """Return whether an event is shown but not listed."""
        return bool(self._unlisted[number - 1 - self._begin])

    @property
    def unlisted(self) -> bool:
        """Whether an event is shown but not listed."""
        return 1 in self._unlisted

    @property
    def shown(self) -> int:
        """The number of shown events."""
        return self._shown.count(1)

    @property
    def erased(self) -> int:
        """The number of shown events with an erased envelope."""
        return _count(self._of_agents, self._erased)

    def unchecked(self, has_envelopes: bool) -> int:
        """Return how many signatures need envelopes that are missing."""
        return _count(self._canonical, self._of_agents, self._erased) if has_envelopes else self._canonical.count(1)


def _count(*marks: bytearray) -> int:
    """Return how many positions all of these mark."""
    both = int.from_bytes(marks[0])
    for other in marks[1:]:
        both &= int.from_bytes(other)
    return both.bit_count()
