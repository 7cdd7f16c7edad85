"""Clocks. Deadlines are monotonic nanoseconds; actors and machines see the same clock in milliseconds.

The wall clock is only for people and for hours of the day: no deadline ever depends on it, so that setting
the system's time moves nothing.
"""

from __future__ import annotations

import time
from typing import Protocol

__all__ = ["NS_PER_MS", "Clock", "ManualClock", "MonotonicClock"]

NS_PER_MS = 1_000_000


class Clock(Protocol):
    """What the runtime asks of a clock."""

    def now_ns(self) -> int:
        """Monotonic nanoseconds."""
        ...

    def now_ms(self) -> int:
        """Monotonic milliseconds: ``now_ns`` rounded down."""
        ...

    def wall_ms(self) -> int:
        """Milliseconds since the Unix epoch."""
        ...


class MonotonicClock:
    """The system's clocks. Time that the machine sleeps does not count."""

    __slots__ = ()

    now_ns = staticmethod(time.monotonic_ns)

    def now_ms(self) -> int:
        """Monotonic milliseconds."""
        return time.monotonic_ns() // NS_PER_MS

    def wall_ms(self) -> int:
        """Milliseconds since the Unix epoch."""
        return time.time_ns() // NS_PER_MS


class ManualClock:
    """A clock that moves only when told to, and never backwards."""

    __slots__ = ("_now_ns", "_wall_offset_ms")

    def __init__(self, start_ms: int = 0, wall_ms: int = 1_700_000_000_000) -> None:
        """Begin at ``start_ms`` monotonic and ``wall_ms`` since the epoch."""
        self._now_ns = start_ms * NS_PER_MS
        self._wall_offset_ms = wall_ms - start_ms

    def now_ns(self) -> int:
        """Monotonic nanoseconds."""
        return self._now_ns

    def now_ms(self) -> int:
        """Monotonic milliseconds."""
        return self._now_ns // NS_PER_MS

    def wall_ms(self) -> int:
        """Milliseconds since the Unix epoch: moves with the monotonic clock and with ``jump_wall``."""
        return self.now_ms() + self._wall_offset_ms

    def advance(self, ms: int) -> None:
        """Move on by ``ms``. Timers fire only when the driver runs."""
        self.set_ns(self._now_ns + ms * NS_PER_MS)

    def set(self, ms: int) -> None:
        """Move on to ``ms``; ValueError if that is in the past."""
        self.set_ns(ms * NS_PER_MS)

    def set_ns(self, ns: int) -> None:
        """Move on to ``ns``; ValueError if that is in the past."""
        if ns < self._now_ns:
            raise ValueError("a monotonic clock cannot go back")
        self._now_ns = ns

    def jump_wall(self, ms: int) -> None:
        """Set the wall clock off by ``ms`` (also negative); the monotonic clock does not notice."""
        self._wall_offset_ms += ms
