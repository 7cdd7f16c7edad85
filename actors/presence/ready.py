"""Who is next: waiting lanes by class, conversations in turns, oldest first inside one; every step O(log n).

A `Waiting` thing (a lane) is in one of three places:

- **ready**: in the bin of its class, group and conversation. The bins of a class and group stand in a queue
  in the order of their tickets, one ticket per turn: a bin that got its turn, and its conversation's other
  bins of that class, go to the back, so that conversations take turns however many lanes they have. Of
  several groups in a class (calls that are paced differently on the account) the bin with the lowest ticket
  goes first.
- **parked**: alone, until a time.
- **nowhere**: it wants nothing.

A bin can be held back as a whole, when its conversation may not be called: until a time, or until something
happens there (``set_aside``, ``release``). It then stands in no queue, so a blocked conversation costs
nothing however many lanes it has, and neither does a class that is held back on the account: nobody looks
into its queue.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Final

from actors.presence.terms import Rank


class Sleeper:
    """Something that can have an alarm."""

    __slots__ = ("alarm",)

    def __init__(self) -> None:
        self.alarm = 0
        """The number of its alarm; 0: none."""


class Waiting(Sleeper):
    """Something that waits to be called."""

    __slots__ = ("bin", "conversation")

    def __init__(self, conversation: str) -> None:
        super().__init__()
        self.conversation = conversation
        self.bin: Bin | None = None


class Bin(Sleeper):
    """The waiting lanes of one conversation in one class and group, oldest first."""

    __slots__ = ("aside", "conversation", "group", "items", "queued", "rank", "ticket")

    def __init__(self, conversation: str, rank: Rank, group: int) -> None:
        super().__init__()
        self.conversation = conversation
        self.rank = rank
        self.group = group
        self.items: OrderedDict[Waiting, None] = OrderedDict()
        self.ticket = 0
        self.queued = False
        self.aside: str | None = None
        """What it stands aside for."""

    @property
    def first(self) -> Waiting:
        return next(iter(self.items))


class Alarms:
    """A heap of times. Replaced and cancelled alarms are skipped, and thrown out when they pile up."""

    _SLACK: Final = 64

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Sleeper]] = []
        self._number = 0
        self.armed = 0

    def set(self, sleeper: Sleeper, at_ms: int) -> None:
        """Wake ``sleeper`` at ``at_ms``; an earlier alarm of its own is replaced."""
        self.cancel(sleeper)
        self._number += 1
        sleeper.alarm = self._number
        self.armed += 1
        heappush(self._heap, (at_ms, self._number, sleeper))
        if len(self._heap) > 2 * self.armed + self._SLACK:
            self._heap = [entry for entry in self._heap if entry[2].alarm == entry[1]]
            heapify(self._heap)

    def cancel(self, sleeper: Sleeper) -> None:
        if sleeper.alarm:
            sleeper.alarm = 0
            self.armed -= 1

    def next_ms(self) -> int | None:
        """When the first alarm is due."""
        heap = self._heap
        while heap and heap[0][2].alarm != heap[0][1]:
            heappop(heap)
        return heap[0][0] if heap else None

    def due(self, now_ms: int) -> Iterator[Sleeper]:
        """Everything due by now, first alarm first."""
        while (at_ms := self.next_ms()) is not None and at_ms <= now_ms:
            sleeper = heappop(self._heap)[2]
            self.cancel(sleeper)
            yield sleeper


class Ready:
    """The waiting lanes of one account. ``groups``: how many groups of ops are paced differently."""

    def __init__(self, groups: int) -> None:
        self._bins: dict[tuple[str, Rank, int], Bin] = {}
        self._queues: dict[Rank, list[OrderedDict[Bin, None]]] = {
            rank: [OrderedDict() for _ in range(groups)] for rank in Rank
        }
        self._aside: dict[str, dict[Bin, None]] = {}
        self._alarms = Alarms()
        self._ticket = 0
        self.counts: dict[Rank, int] = dict.fromkeys(Rank, 0)
        """Lanes in bins, by class."""

    # --- one lane -------------------------------------------------------------------------------------------

    def put(self, item: Waiting, rank: Rank, group: int) -> None:
        """``item`` waits for a call of this class; it keeps its place if it already does."""
        old = item.bin
        if old is not None and old.rank is rank and old.group == group:
            return
        self.remove(item)
        key = (item.conversation, rank, group)
        found = self._bins.get(key)
        if found is None:
            found = self._bins[key] = Bin(item.conversation, rank, group)
            self._enqueue(found)
        found.items[item] = None
        item.bin = found
        self.counts[rank] += 1

    def park(self, item: Waiting, at_ms: int) -> None:
        """``item`` wants nothing before ``at_ms``; `woken` hands it out then."""
        self.remove(item)
        self._alarms.set(item, at_ms)

    def remove(self, item: Waiting) -> None:
        """``item`` wants nothing."""
        if item.alarm:
            self._alarms.cancel(item)
        found, item.bin = item.bin, None
        if found is not None:
            del found.items[item]
            self.counts[found.rank] -= 1
            if not found.items:
                self._discard(found)

    # --- bins -----------------------------------------------------------------------------------------------

    def first(self, rank: Rank, open_groups: Sequence[bool], held: Callable[[Bin], bool]) -> Waiting | None:
        """The next lane of a class. ``open_groups``: which groups the account lets through. ``held`` is
        asked for each bin on the way; it holds back (`hold`, `set_aside`) those for which it answers True."""
        queues = [queue for queue, is_open in zip(self._queues[rank], open_groups, strict=True) if is_open]
        while True:
            heads = [next(iter(queue)) for queue in queues if queue]
            if not heads:
                return None
            head = min(heads, key=_ticket)
            if not held(head):
                return head.first

    def hold(self, held: Bin, until_ms: int) -> None:
        """Out of the queue until a time."""
        self._dequeue(held)
        self._alarms.set(held, until_ms)

    def set_aside(self, held: Bin, cause: str) -> None:
        """Out of the queue until `release` of the same cause."""
        self._dequeue(held)
        held.aside = cause
        self._aside.setdefault(cause, {})[held] = None

    def release(self, cause: str) -> None:
        """What was set aside for this cause comes back."""
        for held in self._aside.pop(cause, ()):
            held.aside = None
            self._enqueue(held)

    def take(self, item: Waiting) -> None:
        """``item`` is being called: it leaves, and its conversation has had its turn in this class."""
        found = item.bin
        self.remove(item)
        if found is not None:
            for group in range(len(self._queues[found.rank])):
                other = self._bins.get((found.conversation, found.rank, group))
                if other is not None and other.queued:
                    self._dequeue(other)
                    self._enqueue(other)

    # --- time -----------------------------------------------------------------------------------------------

    def woken(self, now_ms: int) -> list[Waiting]:
        """Parked lanes whose time has come. Bins whose time has come are back in their queues."""
        items: list[Waiting] = []
        for sleeper in self._alarms.due(now_ms):
            if isinstance(sleeper, Bin):
                self._enqueue(sleeper)
            elif isinstance(sleeper, Waiting):
                items.append(sleeper)
        return items

    def next_ms(self) -> int | None:
        """When `woken` will have something."""
        return self._alarms.next_ms()

    def queued_groups(self, rank: Rank) -> list[int]:
        """Groups of this class that have a bin in the queue."""
        return [group for group, queue in enumerate(self._queues[rank]) if queue]

    @property
    def waiting(self) -> bool:
        """Whether any lane waits for anything."""
        return bool(self._bins) or self.parked > 0

    @property
    def parked(self) -> int:
        """Lanes and bins that wait for a time."""
        return self._alarms.armed

    # --- inside ---------------------------------------------------------------------------------------------

    def _enqueue(self, entering: Bin) -> None:
        self._ticket += 1
        entering.ticket = self._ticket
        entering.queued = True
        self._queues[entering.rank][entering.group][entering] = None

    def _dequeue(self, leaving: Bin) -> None:
        leaving.queued = False
        del self._queues[leaving.rank][leaving.group][leaving]

    def _discard(self, empty: Bin) -> None:
        if empty.queued:
            self._dequeue(empty)
        self._alarms.cancel(empty)
        if empty.aside is not None:
            del self._aside[empty.aside][empty]
        del self._bins[(empty.conversation, empty.rank, empty.group)]


def _ticket(waiting: Bin) -> int:
    return waiting.ticket
