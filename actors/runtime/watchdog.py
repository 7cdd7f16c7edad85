"""The watchdog: a native thread that reports an actor which holds the hub, with the stack it is in.

gevent cannot see a plain ``time.sleep`` or a long computation; a thread that compares two looks can. It costs the
actors nothing: it reads the scheduler's turn counter.
"""

from __future__ import annotations

import logging
import sys
import traceback
import weakref
from typing import TYPE_CHECKING, Any

from gevent import monkey

from actors.runtime.waiting import allocate_lock

if TYPE_CHECKING:
    from actors.runtime.scheduler import Scheduler

__all__ = ["Watchdog"]

logger = logging.getLogger("actors.runtime")

start_native_thread: Any = monkey.get_original("_thread", "start_new_thread")


class Watchdog:
    """Looks twice per limit; reports each long turn once. Ends with ``close`` or with its runtime."""

    __slots__ = ("_closed", "_limit_ms", "_scheduler")

    def __init__(self, scheduler: weakref.ref[Scheduler], limit_ms: int) -> None:
        self._scheduler = scheduler
        self._limit_ms = limit_ms
        self._closed = allocate_lock()
        self._closed.acquire()
        start_native_thread(self._watch, ())

    def close(self) -> None:
        """End the thread."""
        if self._closed.locked():
            self._closed.release()

    def _watch(self) -> None:
        looks = seen = 0
        while not self._closed.acquire(timeout=self._limit_ms / 2000):
            scheduler = self._scheduler()
            if scheduler is None:
                return
            mailbox, turn = scheduler.current, scheduler.turns
            if mailbox is None or turn != seen:
                looks, seen = 0, turn
            else:
                looks += 1
                if looks == 2:
                    self._report(scheduler, str(mailbox))
            del scheduler, mailbox

    def _report(self, scheduler: Scheduler, name: str) -> None:
        frame = sys._current_frames().get(scheduler.owner or 0)
        stack = "".join(traceback.format_stack(frame)) if frame is not None else "(no stack)"
        scheduler.counters["held"] += 1
        logger.error("%s has held the hub for more than %d ms, at:\n%s", name, self._limit_ms, stack)
