"""The open run handles of one program: their leases are renewed, and those that were lost are torn down.

- A run that says nothing is renewed by `Alive`, as long as its block runs: a tool may take minutes. That is life, not
  progress, so stalls still show.
- A handle is *lost* when it was garbage-collected without an end, or when the asyncio task or greenlet that entered its
  block is gone. Its run is cancelled, with ``abandoned`` as reason, and that is logged.

What is kept of a handle is a `Pulse`, which does not hold it. `Keeper.beat` does the work; whoever has a thread or loop for
it calls it again after the time that it returns. Handles may be opened and ended meanwhile, in any thread.
"""

from __future__ import annotations

import logging
import sys
import time
import weakref
from collections.abc import Callable
from typing import Any

from protocol.events import Alive, Cancelled, Event

__all__ = ["ABANDONED", "Keeper", "Pulse", "owner_here"]

log = logging.getLogger("livesign.client")

ABANDONED = "abandoned"
LOOK_S = 1.0
"""Each handle is looked at so often, or as often as the shortest lease asks for."""
IDLE_S = 60.0
SLICE = 250
"""Looked at in one go: a program's loop is never held for long."""


class Pulse:
    """What is known of an open handle without holding it."""

    __slots__ = ("active", "due_s", "interval_s", "lost", "names", "owner")

    def __init__(self, names: dict[str, Any], interval_s: float) -> None:
        self.names = names
        """The fields that name the run in every event."""
        self.interval_s = interval_s
        self.due_s = 0.0
        self.active = True
        """Something was told since the last look."""
        self.lost = False
        """The handle was garbage-collected."""
        self.owner: weakref.ref[Any] | None = None
        """The task or greenlet that entered the block; None: it was not entered, or by a plain thread."""


class Keeper:
    """All open handles of one program."""

    def __init__(self, tell: Callable[[Event], object], now_s: Callable[[], float] = time.monotonic) -> None:
        """``tell`` takes checked events; called by `beat` only."""
        self._tell = tell
        self._now_s = now_s
        self._pulses: dict[Pulse, None] = {}
        self._round: list[Pulse] = []
        """Those that were not looked at yet in this round."""
        self._pause_s = LOOK_S
        self._next_s = 0.0
        self.abandoned = 0
        """Handles that were lost so far."""

    def __len__(self) -> int:
        return len(self._pulses)

    def add(self, pulse: Pulse) -> None:
        """A handle was opened."""
        self._pulses[pulse] = None

    def drop(self, pulse: Pulse) -> None:
        """Its run has ended."""
        self._pulses.pop(pulse, None)

    def beat(self) -> float:
        """Look at some of the handles, if it is time to. Returns how many seconds later to call again."""
        now_s = self._now_s()
        if now_s < self._next_s:
            return self._next_s - now_s
        if not self._round:
            self._round = list(self._pulses)
            if not self._round:
                return IDLE_S
            goes = -(-len(self._round) // SLICE)
            self._pause_s = min(LOOK_S, min(pulse.interval_s for pulse in self._round)) / goes
        for _ in range(min(len(self._round), SLICE)):
            pulse = self._round.pop()
            if pulse in self._pulses:
                self._look(pulse, now_s)
        self._next_s = now_s + self._pause_s
        return self._pause_s

    def _look(self, pulse: Pulse, now_s: float) -> None:
        if pulse.lost or (pulse.owner is not None and is_gone(pulse.owner)):
            self._tear_down(pulse)
        elif pulse.active:
            pulse.active = False
            pulse.due_s = now_s + pulse.interval_s
        elif now_s >= pulse.due_s:
            pulse.due_s = now_s + pulse.interval_s
            self._send(Alive(**pulse.names))

    def _tear_down(self, pulse: Pulse) -> None:
        self.drop(pulse)
        self.abandoned += 1
        names = pulse.names
        how = "its handle was garbage-collected" if pulse.lost else "its task is gone"
        log.warning(
            "the run %s in %s was left open (%s): cancelled; use it as a context manager, or end it",
            names["run"] or names["message"], names["conversation"], how,
        )  # fmt: skip
        self._send(Cancelled(**names, reason=ABANDONED))

    def _send(self, event: Event) -> None:
        try:
            self._tell(event)
        except Exception as error:
            log.warning("a run could not be renewed or ended: %s", error)


def owner_here() -> weakref.ref[Any] | None:
    """The asyncio task, or else the greenlet, that runs now. None: it is a plain thread.

    A plain thread always unwinds its blocks, so nobody has to look after it. Imports neither asyncio nor greenlet.
    """
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None:
        try:
            task = asyncio.current_task()
        except RuntimeError:  # no loop runs here
            task = None
        if task is not None:
            return weakref.ref(task)
    greenlet = sys.modules.get("greenlet")
    if greenlet is not None:
        current = greenlet.getcurrent()
        if current.parent is not None:
            return weakref.ref(current)
    return None


def is_gone(owner: weakref.ref[Any]) -> bool:
    """Whether this task or greenlet has ended, or will never go on."""
    now = owner()
    if now is None:
        return True
    if hasattr(now, "get_loop"):
        return bool(now.done() or now.get_loop().is_closed())
    return bool(now.dead)
