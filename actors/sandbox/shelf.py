"""A table of limited room. It makes room by forgetting what was longest unused, but nothing that is held.

Both sides of the table keep the order of use, so making room and finding the newest cost the same however
much there is.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from itertools import islice
from typing import Generic, TypeVar


class ShelfFullError(Exception):
    """There is no room, and everything on the shelf is held."""


class Shelved:
    """What can stand on a shelf. The fields belong to the shelf."""

    __slots__ = ("holds", "used")

    def __init__(self) -> None:
        self.holds = 0
        self.used = 0


T = TypeVar("T", bound=Shelved)


class Shelf(Generic[T]):
    """Items by name. Holding an item twice takes two releases."""

    __slots__ = ("_clock", "_free", "_held", "_room")

    def __init__(self, room: int) -> None:
        self._room = room
        self._free: OrderedDict[str, T] = OrderedDict()
        self._held: OrderedDict[str, T] = OrderedDict()
        self._clock = 0

    def __len__(self) -> int:
        return len(self._free) + len(self._held)

    def __iter__(self) -> Iterator[T]:
        yield from self._held.values()
        yield from self._free.values()

    def get(self, name: str) -> T | None:
        return self._held.get(name) or self._free.get(name)

    def add(self, name: str, item: T) -> None:
        """Put a new item on the shelf, as the one used last.

        Raises:
            ShelfFullError: no room can be made; nothing has changed.
        """
        if len(self) >= self._room:
            if not self._free:
                raise ShelfFullError
            self._free.popitem(last=False)
        self._free[name] = item
        self.use(name)

    def use(self, name: str) -> None:
        """The item is in use now."""
        side = self._held if name in self._held else self._free
        side.move_to_end(name)
        self._clock += 1
        side[name].used = self._clock

    def hold(self, name: str, times: int = 1) -> None:
        """The item must stay until it was released as often. A use of it."""
        item = self._free.pop(name, None)
        if item is not None:
            self._held[name] = item
        self._held[name].holds += times
        self.use(name)

    def release(self, name: str, times: int = 1) -> None:
        """Undo a hold; with the last one the item may be forgotten. A use of it."""
        item = self._held[name]
        item.holds -= times
        if item.holds == 0:
            self._free[name] = self._held.pop(name)
        self.use(name)

    def newest(self, count: int) -> list[T]:
        """At most ``count`` items, the one used last first."""
        ends = [*islice(reversed(self._held.values()), count), *islice(reversed(self._free.values()), count)]
        return sorted(ends, key=lambda item: item.used, reverse=True)[:count]
