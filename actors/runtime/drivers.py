"""Drivers: who calls the scheduler, and when.

``HubDriver`` runs it on a gevent hub: in the thread that first uses the runtime, or in one of its own
(``Runtime.start_thread``). It works in slices of about a millisecond and lets the hub serve sockets and greenlets in
between; a slice may take as long as the hub took since the last one, 5 ms at most, so that busy greenlets and
actors share the thread. A flood leaves the process's other threads their share of the interpreter.

``ManualDriver`` runs it when told to, on the calling thread, under a ``ManualClock``: no hub, no sleeping, the same
order every time.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Protocol

import gevent
import pykka

from actors.runtime.clock import NS_PER_MS, ManualClock
from actors.runtime.errors import DeadlockError, LivelockError, WrongDriverError
from actors.runtime.future import Future
from actors.runtime.greenlets import Worker
from actors.runtime.waiting import get_ident, native_sleep
from actors.runtime.watchdog import Watchdog

if TYPE_CHECKING:
    from actors.runtime.mailbox import Mailbox
    from actors.runtime.scheduler import Scheduler

__all__ = ["Driver", "HubDriver", "ManualDriver"]

SLICE_NS = 1 * NS_PER_MS
SLICE_MAX_NS = 5 * NS_PER_MS
BREATH_EVERY_NS = 3 * NS_PER_MS
BREATH_S = 0.000_02
NEVER_NS = 1 << 62
NS_PER_S = 1_000_000_000


class Driver(Protocol):
    """What the scheduler asks of a driver."""

    def attach(self, scheduler: Scheduler) -> None:
        """Become this scheduler's driver, in the present thread, which becomes its owner."""
        ...

    def wake(self) -> None:
        """There is something to do, or an earlier timer (owner's thread)."""
        ...

    def wake_from_afar(self) -> None:
        """Something has been handed over (any thread, signal handlers included)."""
        ...

    def pump(self, future: Future[Any], timeout: float | None) -> bool:
        """Run until the future has an answer, if waiting means running here; False: wait some other way."""
        ...

    def make_worker(self, mailbox: Mailbox) -> Worker:
        """A worker for a greenlet actor."""
        ...

    def close(self) -> None:
        """The runtime has stopped: release everything (owner's thread)."""
        ...


class HubDriver:
    """Runs the scheduler on a gevent hub.

    ``watchdog_ms``: an actor that holds the hub for longer is reported with its stack; 0: no watchdog.
    ``speed``: how fast the runtime's clock runs against real time.
    """

    def __init__(self, watchdog_ms: int = 1_000, speed: float = 1.0) -> None:
        self._watchdog_ms = watchdog_ms
        self._ns_per_s = NS_PER_S * speed
        self._watchdog: Watchdog | None = None
        self._scheduler: Any = None
        self._hub: Any = None
        self._doorbell: Any = None
        self._again: Any = None
        self._timer: Any = None
        self._timer_ns = NEVER_NS
        self._posted = False
        """A slice will come without being asked for."""
        self._left_ns = 0
        """When the last slice left work behind; 0: it did not."""
        self._breath_ns = 0
        """When other threads had their last chance since then."""

    def attach(self, scheduler: Scheduler) -> None:
        """Take the present thread's hub."""
        self._scheduler = scheduler
        self._hub = gevent.get_hub()
        loop = self._hub.loop
        self._doorbell = loop.async_()
        self._doorbell.start(self._slice)
        self._doorbell.send()  # for what was handed over before there was a bell
        self._again = loop.timer(0.0)
        scheduler.wake_ns = NEVER_NS
        scheduler.owner = get_ident()
        if self._watchdog_ms:
            self._watchdog = Watchdog(weakref.ref(scheduler), self._watchdog_ms)

    def wake(self) -> None:
        """Run a slice soon."""
        if not self._posted and self._doorbell is not None:
            self._posted = True
            self._hub.loop.run_callback(self._slice)

    def wake_from_afar(self) -> None:
        """Run a slice soon; safe anywhere."""
        doorbell = self._doorbell
        if doorbell is not None:
            doorbell.send()

    def _slice(self) -> None:
        scheduler = self._scheduler
        if self._doorbell is None:  # closed meanwhile
            return
        self._posted = True
        now_ns = scheduler.now_ns()
        waited_ns = now_ns - self._left_ns if self._left_ns else 0
        more = scheduler.run_slice(now_ns + min(max(waited_ns, SLICE_NS), SLICE_MAX_NS))
        if self._doorbell is None:
            return
        if not more:
            self._posted = False
            more = bool(scheduler.ready or scheduler.handover)  # a signal handler may have told something just now
        if more:
            self._posted = True
            self._breathe()
            self._left_ns = scheduler.now_ns()
            if not self._again.active:
                self._again.start(self._slice)
        else:
            self._left_ns = self._breath_ns = 0
            self._sleep()

    def _breathe(self) -> None:
        """In a flood, let the process's other threads have the interpreter lock now and then.

        The hub gives it up for a moment in every round, too short for a waiting thread to catch it; and as it does so
        more often than every 5 ms, the interpreter never takes it away.
        """
        now_ns = self._scheduler.now_ns()
        if not self._breath_ns:
            self._breath_ns = now_ns
        elif now_ns - self._breath_ns > BREATH_EVERY_NS:
            native_sleep(BREATH_S)
            self._breath_ns = self._scheduler.now_ns()

    def _sleep(self) -> None:
        """Nothing is ready: have the hub come back for the next timer."""
        scheduler = self._scheduler
        due_ns = scheduler.timers.next_ns() if scheduler.timers.armed else None
        if due_ns is None:
            due_ns = NEVER_NS
        elif self._timer is None or not self._timer.active or due_ns < self._timer_ns:
            if self._timer is not None:
                self._timer.close()
            self._timer_ns = due_ns
            self._timer = self._hub.loop.timer(max(0, due_ns - scheduler.now_ns()) / self._ns_per_s)
            self._timer.start(self._slice, update=True)
        scheduler.wake_ns = due_ns

    def pump(self, future: Future[Any], timeout: float | None) -> bool:
        """No: the hub runs while the caller waits."""
        return False

    def make_worker(self, mailbox: Mailbox) -> Worker:
        """A greenlet on this hub."""
        return Worker(mailbox, self._hub)

    def close(self) -> None:
        """Let go of the hub."""
        for watcher in (self._doorbell, self._again, self._timer):
            if watcher is not None:
                watcher.close()
        self._doorbell = self._again = self._timer = None
        self._posted = False
        if self._watchdog is not None:
            self._watchdog.close()


class ManualDriver:
    """Runs the scheduler only inside its own methods, in the thread that made the runtime."""

    turns_max = 10_000_000
    """Turns without rest at one moment that are taken for an endless loop."""

    def __init__(self) -> None:
        self._scheduler: Scheduler = None  # type: ignore[assignment]

    def attach(self, scheduler: Scheduler) -> None:
        """Take the present thread."""
        self._scheduler = scheduler
        scheduler.owner = get_ident()

    def wake(self) -> None:
        """Nothing: someone has to call ``run_until_idle``."""

    def wake_from_afar(self) -> None:
        """Nothing, as for ``wake``."""

    def close(self) -> None:
        """Nothing to release."""

    def make_worker(self, mailbox: Mailbox) -> Worker:
        """Refused: a greenlet's order could not be repeated."""
        raise WrongDriverError("the manual driver runs no GreenletActor")

    def run_until_idle(self) -> None:
        """Do everything that can be done at the present time."""
        scheduler = self._scheduler
        if get_ident() != scheduler.owner and scheduler.owner is not None:
            raise WrongDriverError("a manual runtime runs in the thread that made it")
        turns_max = scheduler.turns + self.turns_max
        while scheduler.run_slice(NEVER_NS, turns_max) or self._is_due():
            if scheduler.turns > turns_max:
                raise LivelockError(f"no rest after {self.turns_max} turns")

    def _is_due(self) -> bool:
        timers = self._scheduler.timers
        if not timers.armed:
            return False
        due_ns = timers.next_ns()
        return due_ns is not None and due_ns <= self._scheduler.now_ns()

    def run_until(self, clock: ManualClock, until_ns: int) -> None:
        """Go through time, from timer to timer, and do everything up to and including ``until_ns``."""
        timers = self._scheduler.timers
        self.run_until_idle()
        while timers.armed:
            due_ns = timers.next_ns()
            if due_ns is None or due_ns > until_ns:
                break
            clock.set_ns(max(due_ns, clock.now_ns()))
            self.run_until_idle()
        clock.set_ns(max(until_ns, clock.now_ns()))

    def pump(self, future: Future[Any], timeout: float | None) -> bool:
        """Run until there is an answer; time stands still."""
        self.run_until_idle()
        if not future.done:
            if timeout is not None:
                raise pykka.Timeout(f"{timeout} seconds")
            due_ns = self._scheduler.timers.next_ns()
            wait = "no timer is armed" if due_ns is None else "only timers are left: advance the clock"
            raise DeadlockError(f"nothing is left to run and there is no answer; {wait}")
        return True
