"""A runtime: one scheduler with its driver, clock, directory and counters. Two of them in a process never meet."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, Self, TypeVar

import gevent
import pykka

from actors.runtime import halting, lifecycle, observe
from actors.runtime.actor import Actor
from actors.runtime.clock import NS_PER_MS, Clock, ManualClock, MonotonicClock
from actors.runtime.directory import Directory
from actors.runtime.drivers import Driver, HubDriver, ManualDriver
from actors.runtime.errors import RuntimeClosedError, WrongDriverError
from actors.runtime.future import Future
from actors.runtime.halt_many import HaltInTurn
from actors.runtime.mailbox import STOPPED, Mailbox
from actors.runtime.messages import Exit
from actors.runtime.observe import DeadLetters, DepthAlarm, Observer, Observers
from actors.runtime.ref import ActorRef
from actors.runtime.scheduler import Scheduler
from actors.runtime.waiting import allocate_lock, get_ident
from actors.runtime.watchdog import start_native_thread

__all__ = ["Runtime"]

logger = logging.getLogger("actors.runtime")

A = TypeVar("A", bound=Actor)


class Runtime:
    """Runs actors.

    With the hub driver it belongs to the thread that first spawns an actor, or to its own after ``start_thread``;
    with the manual driver to the thread that made it. As a context manager it is closed at the end.
    """

    def __init__(
        self,
        driver: Driver | None = None,
        clock: Clock | None = None,
        name: str = "runtime",
        warn_depth: int = 10_000,
    ) -> None:
        """``warn_depth``: messages waiting in one mailbox that earn a warning in the log."""
        self.name = name
        self.clock: Clock = MonotonicClock() if clock is None else clock
        self.driver: Driver = HubDriver() if driver is None else driver
        self.directory = Directory()
        self.scheduler = Scheduler(self, self.driver, self.clock.now_ns, DepthAlarm(warn_depth))
        self.dead_letters = DeadLetters(self.scheduler)
        self.random = random.Random(0 if isinstance(self.driver, ManualDriver) else None)
        """For jitter; the same numbers every time under the manual driver."""
        self.stop_reason: BaseException | None = None
        """The KeyboardInterrupt or SystemExit that asked for the stop."""
        self.registers = False
        self._observers: tuple[Observer, ...] = ()
        self._stop_asked = False
        self._ended: Future[bool] = Future(self.scheduler)
        self._thread_ended: Any = None
        self._thread_ident = 0
        if isinstance(self.driver, ManualDriver):
            self.driver.attach(self.scheduler)

    @classmethod
    def manual(cls, start_ms: int = 0, wall_ms: int = 1_700_000_000_000, name: str = "manual") -> Self:
        """A runtime with the manual driver and a manual clock."""
        return cls(ManualDriver(), ManualClock(start_ms, wall_ms), name)

    # --- actors

    def spawn(self, cls: type[A], *args: Any, key: Hashable = None, **kwargs: Any) -> ActorRef[A]:
        """Start an actor, from any thread. ``__init__`` runs here and may raise; ``on_start`` runs in the runtime.

        DuplicateKeyError: the key is taken. RuntimeClosedError: the runtime is stopping.
        """
        return self._spawn(ActorRef(cls, self.scheduler, key), args, kwargs)

    def _spawn(self, ref: ActorRef[A], args: tuple[Any, ...], kwargs: dict[str, Any]) -> ActorRef[A]:
        if self._stop_asked:
            raise RuntimeClosedError(f"runtime {self.name} is stopping")
        scheduler = self.scheduler
        if scheduler.owner is None:
            self.driver.attach(scheduler)
        self.directory.enter(ref)
        try:
            lifecycle.create(ref, args, kwargs)
        except BaseException:
            lifecycle.discard(ref)
            raise
        if ref.state == STOPPED:
            raise RuntimeClosedError(f"runtime {self.name} has stopped meanwhile")
        if self.registers:
            pykka.ActorRegistry.register(ref)
        if get_ident() == scheduler.owner:
            self._begin(ref)
        else:
            try:
                scheduler.handover.call(partial(self._begin, ref))
            except RuntimeClosedError:
                self._begin(ref)
                raise
        return ref

    def _begin(self, ref: Mailbox) -> None:
        if self.scheduler.handover.closed:  # the runtime has stopped between the spawn and this
            ref.worker = None
            halting.halt(ref, Exit.SHUTDOWN, None)
        elif not ref.queued:
            ref.queued = True
            self.scheduler.enqueue(ref)

    def lookup(self, key: Hashable) -> ActorRef[Any] | None:
        """The live actor of this key, in O(1)."""
        ref: ActorRef[Any] | None = self.directory.get(key)
        return ref

    def unregister(self, mailbox: Mailbox) -> None:
        """Take it off pykka's registry."""
        pykka.ActorRegistry.unregister(mailbox)  # type: ignore[arg-type]

    # --- stopping

    def stop(self, ref: ActorRef[Any], deadline_ms: int = 5_000) -> Future[bool]:
        """Stop one actor, and all below it, for good and ahead of its backlog; from any thread.

        Greenlets that are still busy after ``deadline_ms`` are killed. The future says True when it has ended.
        """
        done: Future[bool] = Future(self.scheduler)

        def halt() -> None:
            deadline_ns = self.scheduler.now_ns() + deadline_ms * NS_PER_MS
            halting.halt(ref, Exit.SHUTDOWN, deadline_ns, partial(done.set, True))

        try:
            self.scheduler.handover.call(halt)
        except RuntimeClosedError:
            done.set(True)
        return done

    def shutdown(self, deadline_ms: int = 5_000) -> Future[bool]:
        """Stop everything, last started first, children before parents; from anywhere, also a signal handler.

        The future says True when all is over, at most ``deadline_ms`` and a second later.
        """
        if not self._stop_asked:
            self._stop_asked = True
            if self.scheduler.owner is None:
                self.scheduler.handover.closed = True
                self._ended.set(True)
            else:
                self.scheduler.handover.call(partial(self._stop_all, deadline_ms))
        return self._ended

    def request_stop(self, reason: BaseException) -> None:
        """A handler raised KeyboardInterrupt or SystemExit."""
        if self.stop_reason is None:
            self.stop_reason = reason
        logger.warning("Runtime %s stops: %r", self.name, reason)
        self.shutdown()

    def _stop_all(self, deadline_ms: int) -> None:
        deadline_ns = self.scheduler.now_ns() + deadline_ms * NS_PER_MS
        roots = [mailbox for mailbox in self.directory if mailbox.parent is None]
        HaltInTurn(self.scheduler, roots, deadline_ns, self._stopped)

    def _stopped(self) -> None:
        scheduler = self.scheduler
        if scheduler.handover.closed:
            return
        scheduler.handover.closed = True
        scheduler.handover.drain()
        for late in self.directory:
            self._begin(late)
        scheduler.ready.clear()
        scheduler.timers.clear()
        scheduler.owner = None
        self.driver.close()
        self._ended.set(True)

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the runtime has stopped; raises its ``stop_reason``, or pykka.Timeout after ``timeout`` s."""
        self._ended.get(timeout=timeout)
        self._join_thread()
        if self.stop_reason is not None:
            raise self.stop_reason

    def _join_thread(self) -> None:
        if self._thread_ended is not None and get_ident() != self._thread_ident:
            with self._thread_ended:
                pass

    def close(self) -> None:
        """Shut down and wait for it."""
        self.shutdown().get()
        self._join_thread()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    # --- seeing

    @property
    def backlog(self) -> int:
        """User messages waiting in the whole runtime."""
        return self.scheduler.backlog + len(self.scheduler.handover)

    @property
    def armed_timers(self) -> int:
        """Timers armed in the whole runtime."""
        return self.scheduler.timers.armed

    @property
    def actor_count(self) -> int:
        """Live actors."""
        return len(self.directory)

    @property
    def counters(self) -> dict[str, int]:
        """failures, restarts, dropped, dead_letters, killed, abandoned, held: absent while zero."""
        return self.scheduler.counters

    def snapshot(self) -> dict[str, Any]:
        """The runtime and its tree of actors as plain data."""
        return observe.snapshot(self)

    def snapshot_text(self) -> str:
        """The same for people."""
        return observe.snapshot_text(self)

    def observe(self, observer: Observer) -> Callable[[], None]:
        """Call this observer from now on; the returned function ends that."""
        self._set_observers((*self._observers, observer))
        return lambda: self._set_observers(tuple(each for each in self._observers if each is not observer))

    def _set_observers(self, observers: tuple[Observer, ...]) -> None:
        self._observers = observers
        if len(observers) > 1:
            self.scheduler.observer = Observers(observers)
        else:
            self.scheduler.observer = observers[0] if observers else None

    def call_soon(self, call: Callable[[], object]) -> None:
        """Run ``call()`` in the runtime's thread, from any thread, signal handler or finalizer."""
        self.scheduler.handover.call(call)

    # --- manual driver

    def _manual(self) -> tuple[ManualDriver, ManualClock]:
        if not isinstance(self.driver, ManualDriver) or not isinstance(self.clock, ManualClock):
            raise WrongDriverError("only for a runtime with manual driver and clock")
        return self.driver, self.clock

    def run_until_idle(self) -> None:
        """Manual driver: do everything that can be done at the present time."""
        self._manual()[0].run_until_idle()

    def run_until(self, at_ms: int) -> None:
        """Manual driver: go through time up to and including ``at_ms``."""
        driver, clock = self._manual()
        driver.run_until(clock, at_ms * NS_PER_MS)

    def advance(self, ms: int) -> None:
        """Manual driver: go through the next ``ms`` of time."""
        driver, clock = self._manual()
        driver.run_until(clock, clock.now_ns() + ms * NS_PER_MS)

    # --- hub driver

    def start_thread(self) -> Self:
        """Hub driver: run in a native thread of its own, with its own hub."""
        if not isinstance(self.driver, HubDriver) or self.scheduler.owner is not None:
            raise WrongDriverError("start_thread needs a hub driver that is not in use yet")
        ready, self._thread_ended = allocate_lock(), allocate_lock()
        ready.acquire()
        self._thread_ended.acquire()
        start_native_thread(self._thread, (ready,))
        with ready:
            return self

    def _thread(self, ready: Any) -> None:
        self._thread_ident = get_ident()
        hub = gevent.get_hub()
        try:
            self.driver.attach(self.scheduler)
            ready.release()
            self._ended.get()
        finally:
            hub.destroy(destroy_loop=True)
            self._thread_ended.release()
