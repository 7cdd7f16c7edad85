"""The ways to wait for a future: a thread on a lock, a greenlet on its hub, an asyncio task on its loop."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import pykka
from gevent import monkey
from gevent._hub_local import get_hub_if_exists
from gevent._waiter import Waiter
from greenlet import getcurrent

from actors.runtime.errors import BlockingCallError

if TYPE_CHECKING:
    from actors.runtime.future import Future

__all__ = ["BLOCKING_HELP", "allocate_lock", "get_ident", "native_sleep", "running_loop", "wait_here", "wait_on_loop"]

get_ident: Callable[[], int] = monkey.get_original("_thread", "get_ident")
"""The native thread's ident, whatever has been patched."""
allocate_lock: Callable[[], Any] = monkey.get_original("_thread", "allocate_lock")
native_sleep: Callable[[float], None] = monkey.get_original("time", "sleep")

BLOCKING_HELP = (
    "a multiplexed actor must not wait: use self.pipe(future, wrap) and take the answer as a message, "
    "or make it a GreenletActor"
)
_TIMED_OUT = object()


def wait_here(future: Future[Any], timeout: float | None, *, at_home: bool) -> None:
    """Wait in the way of the present thread or greenlet; ``at_home``: it is that of the future's runtime."""
    hub = get_hub_if_exists()
    if hub is None:
        _wait_in_thread(future, timeout)
    elif getcurrent() is hub:
        raise BlockingCallError(BLOCKING_HELP)
    else:
        _wait_in_greenlet(future, hub, timeout, at_home)


def _wait_in_thread(future: Future[Any], timeout: float | None) -> None:
    lock = allocate_lock()
    lock.acquire()
    wake = lock.release
    if not future.add_waiter(wake):
        return
    if not lock.acquire(timeout=-1 if timeout is None else max(0.0, timeout)):
        future.forget_waiter(wake)
        if not future.done:
            raise pykka.Timeout(f"{timeout} seconds")


def _wait_in_greenlet(future: Future[Any], hub: Any, timeout: float | None, at_home: bool) -> None:
    if timeout is not None and timeout <= 0:
        raise pykka.Timeout(f"{timeout} seconds")
    waiter: Any = Waiter(hub)
    watchers = []
    if at_home:
        wake = _waker_at_home(hub.loop, waiter)
    else:
        # A watcher of its own keeps this hub from believing that nothing can happen any more.
        doorbell = hub.loop.async_()
        doorbell.start(waiter.switch, None)
        watchers.append(doorbell)
        wake = _waker_from_afar(doorbell)
    try:
        if not future.add_waiter(wake):
            return
        if timeout is not None:
            timer = hub.loop.timer(timeout)
            watchers.append(timer)
            timer.start(waiter.switch, _TIMED_OUT, update=True)
        if waiter.get() is _TIMED_OUT and not future.done:
            raise pykka.Timeout(f"{timeout} seconds")
    finally:
        future.forget_waiter(wake)
        for watcher in watchers:
            watcher.close()


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


def wait_on_loop(future: Future[Any], loop: Any) -> Generator[Any, None, None]:
    """Wait as a task of this asyncio loop."""
    waiter = loop.create_future()

    def release() -> None:
        if not waiter.done():
            waiter.set_result(None)

    def wake() -> None:
        try:
            loop.call_soon_threadsafe(release)
        except RuntimeError:  # the loop was closed meanwhile: nobody waits any more
            pass

    if not future.add_waiter(wake):
        return
    try:
        yield from waiter.__await__()
    finally:
        future.forget_waiter(wake)


def running_loop() -> Any:
    """The asyncio loop running in this thread, or None. Does not import asyncio."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return None
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
