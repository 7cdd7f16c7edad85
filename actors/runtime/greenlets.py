"""The worker of a GreenletActor: one greenlet that has the actor's turns and may block in them.

Rules:

- The scheduler wakes the worker instead of having the turn itself; the turn is the same code.
- A kill or a stray ``gevent.Timeout`` is a failure of this actor: in a handler, of that message; while idle, of none.
- A greenlet that dies before its first step is noticed by its link.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gevent
from greenlet import getcurrent
from pykka import ActorDeadError

from actors.runtime import halting, lifecycle
from actors.runtime.clock import NS_PER_MS
from actors.runtime.mailbox import STOPPED, Mailbox

if TYPE_CHECKING:
    from actors.runtime.future import Future

__all__ = ["Worker"]


KILL_GRACE_MS = 1_000
"""How long after the deadline a killed greenlet may take to die before it is left behind,"""
KILL_LEAST_MS = 20
"""and how long at least after the kill."""


class Worker:
    """Runs one instance of a greenlet actor."""

    __slots__ = ("_greenlet", "_hub", "_mailbox", "_parked", "asked")

    def __init__(self, mailbox: Mailbox, hub: Any) -> None:
        self._mailbox = mailbox
        self._hub = hub
        self._greenlet: Any = None
        self._parked = False
        self.asked: Future[Any] | None = None
        """The future of the ask being handled."""

    def wake(self) -> None:
        """Have a turn soon (from the scheduler)."""
        if self._greenlet is None:
            self._greenlet = gevent.Greenlet(self._run)
            self._greenlet.link(self._died)
            self._greenlet.start()
        elif self._parked:
            self._parked = False
            self._hub.loop.run_callback(self._greenlet.switch)

    def is_here(self) -> bool:
        """Whether the caller runs in this worker's greenlet."""
        return getcurrent() is self._greenlet

    def _run(self) -> None:
        mailbox = self._mailbox
        scheduler = mailbox.scheduler
        while mailbox.worker is self:
            scheduler.turn(mailbox)
            self.asked = None
            if mailbox.worker is not self:
                return
            if mailbox.queued:  # it used up its turn
                scheduler.driver.wake()
            try:
                self._parked = True
                while self._parked:
                    self._hub.switch()
            except BaseException as error:
                self._parked = False
                lifecycle.crashed(mailbox, None, error)

    def _died(self, _greenlet: Any) -> None:
        mailbox = self._mailbox
        if mailbox.worker is self:  # killed before its first step
            lifecycle.crashed(mailbox, None, gevent.GreenletExit("killed before its first step"))

    def kill(self) -> None:
        """The deadline is over: kill the greenlet, and leave it behind if it does not die of that."""
        mailbox = self._mailbox
        if self._greenlet is None:
            halting.abandon(mailbox)
            return
        mailbox.scheduler.counters["killed"] += 1
        self._greenlet.kill(block=False)
        halt = mailbox.scheduler.halts.get(mailbox)
        if halt is not None:
            # Counted from the deadline, so that many stubborn ones in a row do not add up their graces.
            grace_ns = max(halt.deadline_ns + KILL_GRACE_MS * NS_PER_MS, halting.deadline_in(mailbox, KILL_LEAST_MS))
            halt.timer = mailbox.scheduler.call_at(grace_ns, self._leave_behind)

    def _leave_behind(self) -> None:
        mailbox = self._mailbox
        if mailbox.state != STOPPED and mailbox.worker is self:
            asked, self.asked = self.asked, None
            if asked is not None:
                halting.answer_error(asked, ActorDeadError(f"{mailbox} was left behind while it handled this"))
            halting.abandon(mailbox)
