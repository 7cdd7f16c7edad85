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
from gevent import monkey
from gevent._hub_local import get_hub_if_exists
from gevent._waiter import Waiter
from greenlet import getcurrent

from actors.runtime.errors import BlockingCallError

if TYPE_CHECKING:
    from pykka._types import OptExcInfo

    from actors.runtime.scheduler import Scheduler

__all__ = ["Future"]

T = TypeVar("T")
M = TypeVar("M")
J = TypeVar("J")
R = TypeVar("R")

get_ident: Callable[[], int] = monkey.get_original("_thread", "get_ident")
allocate_lock: Callable[[], Any] = monkey.get_original("_thread", "allocate_lock")

BLOCKING_HELP = (
    "a multiplexed actor must not wait: use self.pipe(future, wrap) and take the answer as a message, "
    "or make it a GreenletActor"
)
_TIMED_OUT = object()


class Future(pykka.Future[T]):
    """A pykka future that can be waited for, and awaited, from anywhere."""

    __slots__ = ("_combine", "_done", "_error", "_parents", "_scheduler", "_value", "_waiters")

    _get_hook: Any = None

    def __init__(self, scheduler: Scheduler | None = None) -> None:
        self._scheduler = scheduler
        self._done = False
        self._value: Any = None
        self._error: OptExcInfo | None = None
        self._waiters: list[Callable[[], object]] = []
        self._parents: tuple[pykka.Future[Any], ...] = ()
        self._combine: Callable[[list[Any]], Any] | None = None

    # --- the answer --------------------------------------------------------------------------------------------

    def set(self, value: T | None = None) -> None:
        """Fulfil it; ``queue.Full`` if it already is."""
        if self._done or self._get_hook is not None:
            raise queue.Full
        self._value = value
        self._done = True
        if self._waiters:
            self._wake()

    def set_exception(self, exc_info: OptExcInfo | None = None) -> None:
        """Fulfil it with an exception, by default the one being handled; ``queue.Full`` if it already is."""
        if self._done or self._get_hook is not None:
            raise queue.Full
        self._error = sys.exc_info() if exc_info is None else exc_info
        self._done = True
        if self._waiters:
            self._wake()

    def set_get_hook(self, func: Callable[[float | None], T]) -> None:
        """Compute the value in ``get`` with ``func(timeout)``; ``queue.Full`` if there is a value."""
        if self._done:
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

    # --- waiting -----------------------------------------------------------------------------------------------

    def get(self, *, timeout: float | None = None) -> Any:
        """The value, or the exception raised; waits at most ``timeout`` seconds, then ``pykka.Timeout``."""
        if not self._done:
            if self._get_hook is not None:
                value = self._get_hook(timeout)
                if not self._done:
                    self._value = value
                    self._done = True
                return self._outcome()
            self._wait(timeout)
        return self._outcome()

    def _wait(self, timeout: float | None) -> None:
        scheduler = self._scheduler
        if scheduler is not None and get_ident() == scheduler.owner:
            if scheduler.current is not None:
                raise BlockingCallError(BLOCKING_HELP)
            if scheduler.driver.pump(self, timeout):
                return
        hub = get_hub_if_exists()
        if hub is None:
            self._wait_thread(timeout)
        elif getcurrent() is hub:
            raise BlockingCallError(BLOCKING_HELP)
        else:
            self._wait_greenlet(hub, timeout)

    def _wait_thread(self, timeout: float | None) -> None:
        lock = allocate_lock()
        lock.acquire()
        wake = lock.release
        self._waiters.append(wake)
        if self._done:
            self._forget(wake)
        elif not lock.acquire(timeout=-1 if timeout is None else max(0.0, timeout)):
            self._forget(wake)
            if not self._done:
                raise pykka.Timeout(f"{timeout} seconds")

    def _wait_greenlet(self, hub: Any, timeout: float | None) -> None:
        if timeout is not None and timeout <= 0:
            raise pykka.Timeout(f"{timeout} seconds")
        waiter = Waiter(hub)
        watchers = []
        scheduler = self._scheduler
        if scheduler is not None and get_ident() == scheduler.owner:
            wake = _waker_at_home(hub.loop, waiter)
        else:
            # A watcher of its own keeps this hub from believing that nothing can happen any more.
            doorbell = hub.loop.async_()
            doorbell.start(waiter.switch, None)
            watchers.append(doorbell)
            wake = _waker_from_afar(doorbell)
        self._waiters.append(wake)
        try:
            if self._done:
                return
            if timeout is not None:
                timer = hub.loop.timer(timeout)
                watchers.append(timer)
                timer.start(waiter.switch, _TIMED_OUT, update=True)
            if waiter.get() is _TIMED_OUT and not self._done:
                raise pykka.Timeout(f"{timeout} seconds")
        finally:
            self._forget(wake)
            for watcher in watchers:
                watcher.close()

    def _forget(self, wake: Callable[[], object]) -> None:
        try:
            self._waiters.remove(wake)
        except ValueError:
            pass

    def subscribe(self, wake: Callable[[], object]) -> None:
        """Call ``wake`` once, when there is an answer, on whichever thread brings it (or here, at once)."""
        if self._parents:
            self._subscribe_parents(wake)
            return
        if self._get_hook is not None:
            raise TypeError("a future with a get hook of its own cannot announce its answer")
        self._waiters.append(wake)
        if self._done and wake in self._waiters:
            self._wake()

    def _subscribe_parents(self, wake: Callable[[], object]) -> None:
        waiting = list(self._parents)

        def one_down() -> None:
            waiting.pop()
            if not waiting:
                wake()

        for parent in self._parents:
            if not isinstance(parent, Future):
                raise TypeError("only futures of this runtime can announce their answer")
            parent.subscribe(one_down)

    # --- await -------------------------------------------------------------------------------------------------

    def __await__(self) -> Generator[Any, None, T]:
        if not self._done:
            loop = _running_loop()
            if loop is None:
                yield
                return cast("T", self.get())
            if self._combine is not None:
                values = []
                for parent in self._parents:
                    values.append((yield from parent.__await__()))
                if not self._done:
                    self._value = self._combine(values)
                    self._done = True
            elif self._get_hook is not None:
                return cast("T", (yield from loop.run_in_executor(None, self.get).__await__()))
            else:
                yield from self._wait_loop(loop)
        return self._outcome()

    __iter__ = __await__

    def _wait_loop(self, loop: Any) -> Generator[Any, None, None]:
        waiter = loop.create_future()

        def release() -> None:
            if not waiter.done():
                waiter.set_result(None)

        def wake() -> None:
            try:
                loop.call_soon_threadsafe(release)
            except RuntimeError:  # the loop was closed meanwhile: nobody waits any more
                pass

        self._waiters.append(wake)
        if self._done:
            self._forget(wake)
            return
        try:
            yield from waiter.__await__()
        finally:
            self._forget(wake)

    # --- derived futures ---------------------------------------------------------------------------------------

    def _derive(
        self, parents: tuple[pykka.Future[Any], ...], combine: Callable[[list[Any]], Any]
    ) -> Future[Any]:
        derived: Future[Any] = self.__class__(self._scheduler)
        derived._parents = parents
        derived._combine = combine
        derived._get_hook = lambda timeout: combine([parent.get(timeout=timeout) for parent in parents])
        return derived

    def map(self, func: Callable[[T], M]) -> Future[M]:
        """A future of ``func(value)``."""
        return self._derive((self,), lambda values: func(values[0]))

    def filter(self: Future[Iterable[J]], func: Callable[[J], bool]) -> Future[Iterable[J]]:  # type: ignore[override]
        """A future of the list of those items of the value for which ``func(item)`` holds."""
        return self._derive((self,), lambda values: list(filter(func, values[0])))

    def join(self, *futures: pykka.Future[Any]) -> Future[Iterable[Any]]:
        """A future of the list of the values of this and the other futures."""
        return self._derive((self, *futures), list)

    def reduce(self: Future[Iterable[J]], func: Callable[[R, J], R], *args: R) -> Future[R]:  # type: ignore[override]
        """A future of ``functools.reduce(func, value, *args)``."""
        return self._derive((self,), lambda values: functools.reduce(func, values[0], *args))


def _waker_at_home(loop: Any, waiter: Any) -> Callable[[], object]:
    """Wakes a greenlet of the runtime's own hub; nearly always from that thread."""
    home = get_ident()

    def wake() -> None:
        run = loop.run_callback if get_ident() == home else loop.run_callback_threadsafe
        run(waiter.switch, None)

    return wake


def _waker_from_afar(doorbell: Any) -> Callable[[], object]:
    """Wakes a greenlet of another hub."""

    def wake() -> None:
        try:
            doorbell.send()
        except ValueError:  # that hub is gone, and with it whoever waited there
            pass

    return wake


def _running_loop() -> Any:
    """The asyncio loop running in this thread, or None. Does not import asyncio."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return None
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
