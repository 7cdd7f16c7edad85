"""A table that forgets: what means nothing any more is dropped, a few entries at a time.

Budgets, blocks, circuits and refused emojis are kept per conversation or message. Each has a state in which
it is the same as no entry at all; ``meaningless(value, now_ms)`` says when. A write looks at the two
entries that were looked at longest ago, keeps them or drops them, so the cost is the same for every write,
no sweep ever takes long, and the table follows the traffic down. Over its capacity the entry looked at
longest ago goes, whatever its state.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_LOOKS: Final = 2


class Expiring(Generic[K, V]):
    """A mapping whose meaningless entries go away."""

    __slots__ = ("_capacity", "_entries", "_meaningless")

    def __init__(self, meaningless: Callable[[V, int], bool], capacity: int | None = None) -> None:
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._meaningless = meaningless
        self._capacity = capacity

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[K]:
        return iter(self._entries)

    def get(self, key: K) -> V | None:
        return self._entries.get(key)

    def put(self, key: K, value: V, now_ms: int) -> None:
        """Set ``key``; at most two other entries are dropped on the way."""
        entries = self._entries
        entries[key] = value
        for _ in range(_LOOKS):
            oldest = next(iter(entries))
            if self._meaningless(entries[oldest], now_ms):
                del entries[oldest]
                if not entries:
                    return
            else:
                entries.move_to_end(oldest)
        if self._capacity is not None and len(entries) > self._capacity:
            entries.popitem(last=False)

    def drop(self, key: K) -> None:
        """Forget ``key``, if it is there."""
        self._entries.pop(key, None)

    def meaningful(self, now_ms: int) -> Iterator[tuple[K, V]]:
        """The entries that still mean something; O(n), for snapshots and tests."""
        return ((key, value) for key, value in self._entries.items() if not self._meaningless(value, now_ms))

    def sweep(self, now_ms: int) -> None:
        """Drop everything meaningless now; O(n), for housekeeping at quiet times."""
        for key in [key for key, value in self._entries.items() if self._meaningless(value, now_ms)]:
            del self._entries[key]
