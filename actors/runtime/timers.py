"""Timers: the queue of deadlines.

Rules:

- A ``Timer`` is its own generation. It is live while ``mailbox`` is set; cancel, replace, restart and stop
  clear that field, and whoever meets a dead timer later (queue or mailbox) drops it.
- A timer is never early: it leaves the queue only when the clock has reached ``due_ns``.
- Moving a deadline later changes one field. The timer is found at its old place, not yet due, and put back.
- Far deadlines lie unsorted on *shelves*, one per half second of time; only the nearest second is kept as a heap.
  So arming a far timer is an append, and reclaiming cancelled ones is a filter of one short shelf. A shelf is moved
  into the heap bit by bit during the half second before its own, so that this holds nobody up.
- A shelf that is mostly dead is swept at once: cancelled timers never wait for their time.
- Equal deadlines fire in the order in which they reached the heap, which is the order of arming.
"""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from actors.runtime.mailbox import Mailbox

__all__ = ["Timer", "TimerQueue"]

SHELF_SHIFT = 29  # a shelf covers 2**29 ns, 0.54 s
OPEN_MAX = 256  # timers moved into the heap at a time, while there is time
NEAR_DEAD_MIN = 64  # below this the heap's dead are not worth a sweep


class Shelf(list[Any]):
    """Timers of one stretch of time (or heap items, for the near heap), and how many of them are dead."""

    __slots__ = ("dead", "start_ns")

    def __init__(self, start_ns: int) -> None:
        super().__init__()
        self.dead = 0
        self.start_ns = start_ns


class Timer:
    """One armed deadline, later the tick in a mailbox.

    ``mailbox`` is the owner, None when dead. A timer of the runtime itself has ``OWN`` as owner and a
    callable as message.
    """

    __slots__ = ("due_ns", "floor_ns", "key", "mailbox", "message", "shelf")

    def __init__(self, mailbox: Mailbox | object, key: Hashable, message: Any, due_ns: int) -> None:
        self.mailbox: Any = mailbox
        self.key = key
        self.message = message
        self.due_ns = due_ns
        self.floor_ns = due_ns
        """Where the queue will look at it: it may move anywhere from here on without touching the heap."""
        self.shelf: Shelf | None = None
        """Where it lies; None: not armed (fired or cancelled)."""


OWN = object()


class TimerQueue:
    """All armed timers of one runtime."""

    __slots__ = ("_horizon_ns", "_near", "_opened", "_opening", "_order", "_seq", "_shelves", "armed")

    def __init__(self) -> None:
        self.armed = 0
        """Live timers that have not fired."""
        self._near = Shelf(0)
        self._horizon_ns = 0
        """What is due before this goes into the heap."""
        self._shelves: dict[int, Shelf] = {}
        self._order: list[int] = []
        self._opening: Shelf | None = None
        self._opened = 0
        self._seq = 0

    def arm(self, timer: Timer) -> None:
        """Put a new timer in."""
        self.armed += 1
        self._place(timer)

    def _place(self, timer: Timer) -> None:
        due_ns = timer.due_ns
        if due_ns < self._horizon_ns:
            self._heap(timer)
            return
        index = due_ns >> SHELF_SHIFT
        shelf = self._shelves.get(index)
        if shelf is None:
            shelf = self._shelves[index] = Shelf(index << SHELF_SHIFT)
            heappush(self._order, index)
        shelf.append(timer)
        timer.floor_ns = shelf.start_ns
        timer.shelf = shelf

    def _heap(self, timer: Timer) -> None:
        self._seq += 1
        heappush(self._near, (timer.due_ns, self._seq, timer))
        timer.floor_ns = timer.due_ns
        timer.shelf = self._near

    def cancel(self, timer: Timer) -> None:
        """Make it dead, whether armed or already a tick in a mailbox."""
        timer.mailbox = timer.message = None
        shelf = timer.shelf
        if shelf is not None:
            timer.shelf = None
            self.armed -= 1
            dead = shelf.dead = shelf.dead + 1
            if dead * 2 > len(shelf):
                self._sweep(shelf)

    def _sweep(self, shelf: Shelf) -> None:
        if shelf is self._near:
            if shelf.dead > NEAR_DEAD_MIN:
                shelf[:] = [item for item in shelf if item[2].mailbox is not None]
                heapify(shelf)
                shelf.dead = 0
        elif shelf is not self._opening:
            shelf[:] = [timer for timer in shelf if timer.mailbox is not None]
            shelf.dead = 0
            if not shelf:
                del self._shelves[shelf.start_ns >> SHELF_SHIFT]
                if len(self._order) > 2 * len(self._shelves) + NEAR_DEAD_MIN:
                    self._order = sorted(self._shelves)

    def next_ns(self) -> int | None:
        """When to look again: not later than the first deadline, and when the next shelf may be opened."""
        near = self._near
        due_ns: int | None = None
        while near:
            due_ns, _, timer = near[0]
            if timer.mailbox is None:
                heappop(near)
                near.dead -= 1
            elif timer.due_ns != due_ns:
                heappop(near)
                self._place(timer)
            else:
                break
        else:
            due_ns = None
        order = self._order
        while order and order[0] not in self._shelves:
            heappop(order)
        if not order:
            return due_ns
        open_ns = (order[0] - 1) << SHELF_SHIFT
        return open_ns if due_ns is None else min(due_ns, open_ns)

    def pop_due(self, now_ns: int, limit: int) -> list[Timer]:
        """Take out at most ``limit`` timers whose time has come, in order."""
        self._open_shelves(now_ns)
        near = self._near
        due: list[Timer] = []
        while near and near[0][0] <= now_ns and len(due) < limit:
            due_ns, _, timer = heappop(near)
            if timer.mailbox is None:
                near.dead -= 1
            elif timer.due_ns != due_ns:
                self._place(timer)
            else:
                timer.shelf = None
                due.append(timer)
        self.armed -= len(due)
        return due

    def _open_shelves(self, now_ns: int) -> None:
        """Move the shelf of the present into the heap, and ``OPEN_MAX`` timers of the one after it."""
        present = now_ns >> SHELF_SHIFT
        order = self._order
        while order and order[0] <= present + 1:
            index = order[0]
            shelf = self._shelves.get(index)
            if shelf is not None:
                if self._opening is not shelf:
                    self._opening, self._opened = shelf, 0
                stop = len(shelf) if index <= present else min(len(shelf), self._opened + OPEN_MAX)
                for place in range(self._opened, stop):
                    timer = shelf[place]
                    if timer.mailbox is None:
                        continue
                    if timer.due_ns >> SHELF_SHIFT == index:
                        self._heap(timer)
                    else:  # moved later
                        self._place(timer)
                self._opened = stop
                if stop < len(shelf):
                    return
                del self._shelves[index]
                self._opening = None
            heappop(order)
            self._horizon_ns = (index + 1) << SHELF_SHIFT
        self._horizon_ns = max(self._horizon_ns, (present + 2) << SHELF_SHIFT)

    def clear(self) -> None:
        """Forget everything."""
        self.__init__()  # type: ignore[misc]
