"""What is known of the events of a pack's range, a byte for each, so that the memory does not follow their sizes."""

from __future__ import annotations

from collections.abc import Callable


class Events:
    """Marks of the events of [begin, end), by their places from begin. At most MAX_EVENTS bytes each."""

    def __init__(self, begin: int, end: int, read: Callable[[int, int], bytes]) -> None:
        """read returns bytes of entries.bin, which was checked."""
        self._begin = begin
        self._read = read
        self._shown = bytearray(end - begin)
        self._of_agents = bytearray(end - begin)
        self._canonical = bytearray(end - begin)
        self._erased = bytearray(end - begin)

    def __len__(self) -> int:
        return len(self._shown)

    def has(self, number: int) -> bool:
        """Tell whether a sequence number lies in the range."""
        return 0 <= number - 1 - self._begin < len(self)

    def record_hash(self, number: int) -> bytes:
        """Return the hash of the record of an event of the range."""
        return self._read(32 * (number - 1 - self._begin), 32)

    def show(self, number: int, of_agent: bool, canonical: bool) -> None:
        """Mark an event as shown. canonical says that its signature needs the envelope."""
        place = number - 1 - self._begin
        self._shown[place] = 1
        self._of_agents[place] = of_agent
        self._canonical[place] = canonical

    def erase(self, begin: int, end: int) -> bool:
        """Mark the envelopes of [begin, end) as erased, and tell whether a shown event of an agent is among them."""
        first, last = max(0, begin - self._begin), min(len(self), end - self._begin)
        if first >= last:
            return False
        self._erased[first:last] = b"\1" * (last - first)
        return self._of_agents.find(1, first, last) >= 0

    def is_erased(self, number: int) -> bool:
        """Tell whether the envelope of a shown event was erased."""
        place = number - 1 - self._begin
        return bool(self._erased[place] and self._of_agents[place])

    @property
    def shown(self) -> int:
        """How many events are shown."""
        return self._shown.count(1)

    @property
    def erased(self) -> int:
        """How many shown events have an erased envelope."""
        return _count(self._of_agents, self._erased)

    def unchecked(self, has_envelopes: bool) -> int:
        """Return how many signatures need envelopes that are not there."""
        return _count(self._canonical, self._of_agents, self._erased) if has_envelopes else self._canonical.count(1)


def _count(*marks: bytearray) -> int:
    """Return how many places all of these mark."""
    both = int.from_bytes(marks[0])
    for other in marks[1:]:
        both &= int.from_bytes(other)
    return both.bit_count()
