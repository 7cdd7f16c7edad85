"""The watchdog: a native thread that reports an actor which holds the hub, with the stack it is in.

gevent cannot see a plain ``time.sleep`` or a long computation; a thread that waits for a sign of life can. Once per
limit it hands the runtime a call, as any other thread would; what holds the hub longer than that is reported at
the next look, so within twice the limit.
"""

from __future__ import annotations

import logging
import sys
import traceback
import weakref
from typing import TYPE_CHECKING, Any

from gevent import monkey

from actors.runtime.errors import RuntimeClosedError
from actors.runtime.waiting import allocate_lock

if TYPE_CHECKING:
    from actors.runtime.scheduler import Scheduler

__all__ = ["Watchdog"]

logger = logging.getLogger("actors.runtime")

start_native_thread: Any = monkey.get_original("_thread", "start_new_thread")


class Watchdog:
    """Asks the runtime for a sign of life, and reports once when it stays away. Ends with ``close`` or its runtime."""

    __slots__ = ("_closed", "_limit_ms", "_scheduler", "_seen")

    def __init__(self, scheduler: weakref.ref[Scheduler], limit_ms: int) -> None:
        self._scheduler = scheduler
        self._limit_ms = limit_ms
        self._seen = True
        self._closed = allocate_lock()
        self._closed.acquire()
        start_native_thread(self._watch, ())

    def close(self) -> None:
        """End the thread."""
        if self._closed.locked():
            self._closed.release()

    def _beat(self) -> None:
        self._seen = True

    def _watch(self) -> None:
        reported = False
        while not self._closed.acquire(timeout=self._limit_ms / 1000):
            scheduler = self._scheduler()
            if scheduler is None:
                return
            if self._seen:
                self._seen = reported = False
                try:
                    scheduler.handover.call(self._beat)
                except RuntimeClosedError:
                    return
            elif not reported:
                reported = True
                self._report(scheduler)
            del scheduler

    def _report(self, scheduler: Scheduler) -> None:
        frame = sys._current_frames().get(scheduler.owner or 0)
        if frame is not None and frame.f_globals.get("__name__") == "gevent.hub":
            return  # it is the hub itself that does not get to run
        stack = "".join(traceback.format_stack(frame)) if frame is not None else "(no stack)"
        who = scheduler.current or "A greenlet"
        scheduler.counters["held"] += 1
        logger.error("%s has held the hub for more than %d ms, at:\n%s", who, self._limit_ms, stack)
