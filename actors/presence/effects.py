"""What a machine wants done, and the timers it has armed."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from actors.presence.terms import Cancel, Effect, Schedule

__all__ = ["Effects"]


class Effects:
    """Collects the effects of one input, in order; keeps the armed timers across inputs."""

    __slots__ = ("_out", "deadlines")

    def __init__(self) -> None:
        self.deadlines: dict[Hashable, int] = {}
        """Armed timers: key to time."""
        self._out: list[Effect] | None = None

    def add(self, effect: Effect) -> None:
        if self._out is None:
            self._out = []
        self._out.append(effect)

    def take(self) -> Sequence[Effect]:
        """What came together since the last time, in order."""
        out = self._out or ()
        self._out = None
        return out

    def schedule(self, key: Hashable, at_ms: int) -> None:
        """Arm the timer ``key``, or move it."""
        if self.deadlines.get(key) != at_ms:
            self.deadlines[key] = at_ms
            self.add(Schedule(key, at_ms))

    def cancel(self, key: Hashable) -> None:
        """Disarm the timer ``key``, if armed."""
        if self.deadlines.pop(key, None) is not None:
            self.add(Cancel(key))

    def fired(self, key: Hashable, now_ms: int) -> int | None:
        """When the timer ``key`` that fires now was due; it is disarmed. None: it was moved or cancelled."""
        at_ms = self.deadlines.get(key)
        if at_ms is None or at_ms > now_ms:
            return None
        return self.deadlines.pop(key)

    def retell_timers(self) -> None:
        """All armed timers are to be armed again: whoever kept them was restarted."""
        for key, at_ms in self.deadlines.items():
            self.add(Schedule(key, at_ms))
