"""The scheduler: ready queue, turns, hand-over from other threads, due timers.

One piece of code under two drivers. A driver gives it the clock and calls ``run_slice``; the order of all
work depends on nothing else, so that both drivers do the same with the same script.

Rules:

- A mailbox with something to do is in the ready queue once. Its turn handles at most ``QUANTUM`` messages, then
  it goes to the end: a flooded actor delays another by one turn, not by its backlog.
- The system lane goes first, also in the middle of a turn.
- A slice ends when the ready queue is empty or the clock says so; the clock is read every ``QUANTUM`` messages.
- Multiplexed actors have their turn here, one at a time; a greenlet actor is woken and has it in its greenlet.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, Any

from actors.runtime import delivery, halting, lifecycle
from actors.runtime.future import Future
from actors.runtime.handover import HandOver
from actors.runtime.mailbox import NEW, RUNNING, STOPPED, Mailbox
from actors.runtime.messages import SPECIAL, Deferred
from actors.runtime.timers import OWN, Timer, TimerQueue

if TYPE_CHECKING:
    from actors.runtime.drivers import Driver
    from actors.runtime.messages import Event
    from actors.runtime.observe import DepthAlarm, Observer
    from actors.runtime.runtime import Runtime

__all__ = ["QUANTUM", "Scheduler"]

logger = logging.getLogger("actors.runtime")

QUANTUM = 16
FIRE_MAX = 256  # timers fired per slice
FOREVER = 1 << 62


class Scheduler:
    """The working heart of one runtime."""

    __slots__ = (
        "__weakref__",
        "alarm",
        "backlog",
        "busy",
        "counters",
        "current",
        "driver",
        "ended",
        "halts",
        "handover",
        "now_ns",
        "observer",
        "owner",
        "ready",
        "runtime",
        "tap",
        "timers",
        "turns",
        "wake_ns",
    )

    def __init__(self, runtime: Runtime, driver: Driver, now_ns: Callable[[], int], alarm: DepthAlarm) -> None:
        self.runtime = runtime
        self.driver = driver
        self.now_ns = now_ns
        self.alarm = alarm
        self.observer: Observer | None = None
        self.owner: int | None = None
        """Ident of the thread that runs the actors; None before and after."""
        self.busy = False
        """In a slice: whoever waits now would wait for himself."""
        self.current: Mailbox | None = None
        """The multiplexed actor whose turn it is."""
        self.turns = 0
        self.backlog = 0
        """User messages waiting in lanes."""
        self.ready: deque[Mailbox] = deque()
        self.handover = HandOver(driver)
        self.timers = TimerQueue()
        self.wake_ns = -1
        """When the driver will look at the timers; -1: within this slice anyway."""
        self.counters: Counter[str] = Counter()
        self.halts: dict[Mailbox, halting.Halt] = {}
        self.ended: dict[Mailbox, list[Future[Any]]] = {}
        self.tap: Callable[[Any, Any], None] | None = None
        """Sees every plain message before its actor does, for tracing; what it raises counts as the actor's failure."""

    # --- work

    def enqueue(self, mailbox: Mailbox) -> None:
        """Give it a turn (its ``queued`` is set already)."""
        self.ready.append(mailbox)
        self.driver.wake()

    def run_slice(self, until_ns: int, turns_max: int = FOREVER) -> bool:
        """Work until nothing is ready, the clock has passed ``until_ns`` or ``turns`` ``turns_max``.

        True: there is more to do now.
        """
        ready = self.ready
        self.busy = True
        unread = QUANTUM
        self.wake_ns = -1
        try:
            self.handover.take()
            if self.timers.armed:
                self._fire_due()
            while ready:
                mailbox = ready.popleft()
                self.turns += 1
                if mailbox.worker is not None:
                    mailbox.worker.wake()
                    continue
                self.current = mailbox
                unread -= self.turn(mailbox)
                if unread <= 0:
                    unread = QUANTUM
                    if self.now_ns() > until_ns or self.turns > turns_max:
                        break
        except BaseException as error:
            self._interrupted(error)
        finally:
            self.current = None
            self.busy = False
        return bool(ready or self.handover)

    def turn(self, mailbox: Mailbox) -> int:
        """Let one actor handle its system lane and up to ``QUANTUM`` messages; the number handled, at least 1."""
        left = QUANTUM
        message: Any = None
        worker = mailbox.worker
        try:
            if mailbox.system is not None or mailbox.state != RUNNING:
                if mailbox.system is not None:
                    lifecycle.run_system(mailbox)
                if mailbox.state == NEW:
                    lifecycle.start(mailbox)
            lane = mailbox.lane
            if lane is not None and mailbox.state == RUNNING:
                receive = mailbox.actor.on_receive if self.tap is None else self._tapped(mailbox)
                while left and lane:
                    left -= 1
                    message = lane.popleft()
                    if worker is not None:  # it may be at this one for long, or for ever
                        self.backlog -= 1
                    if type(message) in SPECIAL:
                        delivery.receive(mailbox, message)
                        if mailbox.state != RUNNING:
                            break
                    else:
                        receive(message)
                    if mailbox.system is not None:
                        break
        except BaseException as error:
            if mailbox.worker is worker:
                lifecycle.crashed(mailbox, message, error)
        handled = QUANTUM - left
        if worker is None:
            self.backlog -= handled
        if self.observer is not None:
            self.observer.turn(mailbox, handled)  # type: ignore[arg-type]  # every mailbox is a ref
        if mailbox.worker is not worker:  # the end of a greenlet's instance
            return handled
        if mailbox.system is not None:
            self.ready.appendleft(mailbox)
        elif mailbox.state == RUNNING and mailbox.lane:
            self.ready.append(mailbox)
            if len(mailbox.lane) > self.alarm.depth:
                self.alarm.raise_for(mailbox)
        else:
            if not mailbox.lane:
                mailbox.lane = None
            mailbox.queued = False
        return handled or 1

    def _tapped(self, mailbox: Mailbox) -> Callable[[Any], None]:
        tap, receive = self.tap, mailbox.actor.on_receive

        def handle(message: Any) -> None:
            if tap is not None:
                tap(mailbox, message)
            receive(message)

        return handle

    def _interrupted(self, error: BaseException) -> None:
        """An exception out of the scheduler's own code: a stop request that hit between two messages, or a bug."""
        if not isinstance(error, (KeyboardInterrupt, SystemExit)):
            logger.critical("Runtime %s, at %s:", self.runtime.name, self.current, exc_info=error)
            return
        mailbox = self.current
        if mailbox is not None and mailbox.queued and mailbox not in self.ready:
            self.ready.appendleft(mailbox)
        self.runtime.request_stop(error)

    # --- timers

    def arm(self, mailbox: Mailbox, due_ns: int, message: Any, key: Hashable) -> Hashable:
        """Arm ``key`` of this mailbox, in place of an earlier timer of that key. None: a key of its own."""
        timers = mailbox.timers
        if timers is None:
            timers = mailbox.timers = {}
        if key is None:
            key = object()
        else:
            timer = timers.get(key)
            if timer is not None:
                if timer.shelf is not None and due_ns >= timer.floor_ns:
                    timer.due_ns = due_ns
                    timer.message = message
                    return key
                self.timers.cancel(timer)
        timer = timers[key] = Timer(mailbox, key, message, due_ns)
        self.timers.arm(timer)
        if due_ns < self.wake_ns:
            self.driver.wake()
        return key

    def call_at(self, due_ns: int, call: Callable[[], None]) -> Timer:
        """A timer of the runtime itself."""
        timer = Timer(OWN, None, call, due_ns)
        self.timers.arm(timer)
        if due_ns < self.wake_ns:
            self.driver.wake()
        return timer

    def _fire_due(self) -> None:
        for timer in self.timers.pop_due(self.now_ns(), FIRE_MAX):
            mailbox = timer.mailbox
            if mailbox is OWN:
                timer.message()
            elif type(timer.message) is Deferred:
                mailbox.post(partial(delivery.run_deferred, mailbox, timer))
            elif mailbox is not None:
                mailbox.append(timer)

    # --- small services

    def tell_observer(self, event: Event, mailbox: Mailbox, detail: object) -> None:
        """Something has happened to this actor."""
        if self.observer is not None:
            self.observer.event(event, mailbox, detail)  # type: ignore[arg-type]

    def bury(self, mailbox: Mailbox, message: Any) -> None:
        """A message that its actor will never handle."""
        halting.bury(mailbox, message)

    def when_ended(self, mailbox: Mailbox, future: Future[Any]) -> None:
        """Fulfil the future (with True) once the actor has ended (owner's thread)."""
        if mailbox.state == STOPPED:
            future.set(True)
        else:
            self.ended.setdefault(mailbox, []).append(future)
