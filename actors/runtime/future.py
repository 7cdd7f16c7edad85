"""Futures: the answer to an ask.

``get`` waits in the way that fits where it is called:

- inside a multiplexed actor's handler: not at all, ``BlockingCallError``;
- on the thread of a runtime with the manual driver: it runs that runtime, without moving time;
- in a greenlet of any hub: that greenlet waits;
- in a plain thread: the thread waits on a lock that no patching has touched.

``await`` on an asyncio loop leaves the loop free. No lock is ever taken by ``set``: a future may be set and waited
for from any thread, signal handler or finalizer.
"""

from __future__ import annotations

import functools
import queue
import sys
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pykka

from actors.runtime.errors import BlockingCallError
from actors.runtime.waiting import BLOCKING_HELP, get_ident, running_loop, wait_here, wait_on_loop

if TYPE_CHECKING:
    from pykka._types import OptExcInfo

    from actors.runtime.scheduler import Scheduler

__all__ = ["Future"]

T = TypeVar("T")
M = TypeVar("M")
J = TypeVar("J")
R = TypeVar("R")


class Future(pykka.Future[T]):
    """A pykka future that can be waited for, and awaited, from anywhere."""

    __slots__ = ("_error", "_scheduler", "_value", "_waiters", "done")

    _get_hook: Any = None

    def __init__(self, scheduler: Scheduler | None = None) -> None:
        self._scheduler = scheduler
        self.done = False
        """Whether there is an answer."""
        self._value: Any = None
        self._error: OptExcInfo | None = None
        self._waiters: list[Callable[[], object]] = []

    # --- the answer

    def set(self, value: T | None = None) -> None:
        """Fulfil it; ``queue.Full`` if it already is."""
        if self.done or self._get_hook is not None:
            raise queue.Full
        self._value = value
        self.done = True
        if self._waiters:
            self._wake()

    def set_exception(self, exc_info: OptExcInfo | None = None) -> None:
        """Fulfil it with an exception, by default the one being handled; ``queue.Full`` if it already is."""
        if self.done or self._get_hook is not None:
            raise queue.Full
        self._error = sys.exc_info() if exc_info is None else exc_info
        self.done = True
        if self._waiters:
            self._wake()

    def set_get_hook(self, func: Callable[[float | None], T]) -> None:
        """Compute the value in ``get`` with ``func(timeout)``; ``queue.Full`` if there is a value."""
        if self.done:
            raise queue.Full
        self._get_hook = func

    def _wake(self) -> None:
        waiters = self._waiters
        while waiters:
            try:
                wake = waiters.pop()
            except IndexError:
                return
            wake()

    def _outcome(self) -> T:
        if self._error is None:
            return cast("T", self._value)
        kind, value, traceback = self._error
        assert kind is not None
        if value is None:
            value = kind()
        if value.__traceback__ is not traceback:
            raise value.with_traceback(traceback)
        raise value

    # --- waiting

    def get(self, *, timeout: float | None = None) -> Any:
        """The value, or the exception raised; waits at most ``timeout`` seconds, then ``pykka.Timeout``."""
        if not self.done:
            if self._get_hook is not None:
                value = self._get_hook(timeout)
                if not self.done:
                    self._value = value
                    self.done = True
                return self._outcome()
            self._wait(timeout)
        return self._outcome()

    def _wait(self, timeout: float | None) -> None:
        scheduler = self._scheduler
        at_home = scheduler is not None and get_ident() == scheduler.owner
        if scheduler is not None and at_home:
            if scheduler.busy:
                raise BlockingCallError(BLOCKING_HELP)
            if scheduler.driver.pump(self, timeout):
                return
        wait_here(self, timeout, at_home=at_home)

    def add_waiter(self, wake: Callable[[], object]) -> bool:
        """Have ``wake()`` called when the answer comes. False: it is here already, and ``wake`` forgotten."""
        self._waiters.append(wake)
        if self.done:
            self.forget_waiter(wake)
            return False
        return True

    def forget_waiter(self, wake: Callable[[], object]) -> None:
        """It waits no longer."""
        try:
            self._waiters.remove(wake)
        except ValueError:
            pass

    def subscribe(self, wake: Callable[[], object]) -> None:
        """Call ``wake`` once, when there is an answer, on whichever thread brings it (or here, at once)."""
        if self._get_hook is not None:
            raise TypeError("a future with a get hook of its own cannot announce its answer")
        if not self.add_waiter(wake):
            wake()

    # --- await

    def __await__(self) -> Generator[Any, None, T]:
        if not self.done:
            loop = running_loop()
            if loop is None:
                yield
                return cast("T", self.get())
            if self._get_hook is not None:
                return cast("T", (yield from loop.run_in_executor(None, self.get).__await__()))
            else:
                yield from wait_on_loop(self, loop)
        return self._outcome()

    __iter__ = __await__

    # --- derived futures

    def map(self, func: Callable[[T], M]) -> Future[M]:
        """A future of ``func(value)``."""
        return Derived(self._scheduler, (self,), lambda values: func(values[0]))

    def filter(self: Future[Iterable[J]], func: Callable[[J], bool]) -> Future[Iterable[J]]:
        """A future of the list of those items of the value for which ``func(item)`` holds."""
        return Derived(self._scheduler, (self,), lambda values: list(filter(func, values[0])))

    def join(self, *futures: pykka.Future[Any]) -> Future[Iterable[Any]]:
        """A future of the list of the values of this and the other futures."""
        return Derived(self._scheduler, (self, *futures), list)

    def reduce(self: Future[Iterable[J]], func: Callable[[R, J], R], *args: R) -> Future[R]:
        """A future of ``functools.reduce(func, value, *args)``."""
        return Derived(self._scheduler, (self,), lambda values: functools.reduce(func, values[0], *args))


class Derived(Future[T]):
    """A value made of those of other futures, when it is asked for."""

    __slots__ = ("_combine", "_parents")

    def __init__(
        self,
        scheduler: Scheduler | None,
        parents: tuple[pykka.Future[Any], ...],
        combine: Callable[[list[Any]], Any],
    ) -> None:
        super().__init__(scheduler)
        self._parents = parents
        self._combine = combine
        self._get_hook = lambda timeout: combine([parent.get(timeout=timeout) for parent in parents])

    def subscribe(self, wake: Callable[[], object]) -> None:
        """Call ``wake`` once, when all parents have an answer."""
        waiting = list(self._parents)

        def one_down() -> None:
            waiting.pop()
            if not waiting:
                wake()

        for parent in self._parents:
            if not isinstance(parent, Future):
                raise TypeError("only futures of this runtime can announce their answer")
            parent.subscribe(one_down)

    def __await__(self) -> Generator[Any, None, T]:
        if not self.done and running_loop() is not None:
            values = []
            for parent in self._parents:
                values.append((yield from parent.__await__()))
            if not self.done:
                self._value = self._combine(values)
                self.done = True
        return (yield from super().__await__())

    __iter__ = __await__
