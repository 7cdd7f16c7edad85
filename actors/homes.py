"""Where an embedded livesign lives: in a thread of its own, or on the hub of a gevent process.

Both run *jobs*: functions that may wait, each in a greenlet of the runtime's hub.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

import gevent
from gevent import monkey

from actors.runtime import Future, Runtime

__all__ = ["CallersHub", "Home", "OwnThread", "home_for"]

T = TypeVar("T")


class Home(ABC):
    """A runtime and the way into its thread."""

    runtime: Runtime

    def begin(self, job: Callable[[], T]) -> Future[T]:
        """Start a job, from any thread. The future can be waited for, and awaited, anywhere."""
        future: Future[T] = Future(self.runtime.scheduler)

        def work() -> None:
            try:
                value = job()
            except BaseException:
                future.set_exception(sys.exc_info())
            else:
                future.set(value)

        self._spawn(work)
        return future

    @abstractmethod
    def _spawn(self, work: Callable[[], None]) -> None: ...

    @property
    @abstractmethod
    def shares_hub(self) -> bool:
        """Whether the bot's own greenlets run on the same hub."""


class OwnThread(Home):
    """A native thread with a hub of its own: a bot that blocks disturbs nothing."""

    shares_hub = False

    def __init__(self) -> None:
        self.runtime = Runtime(name="livesign").start_thread()

    def _spawn(self, work: Callable[[], None]) -> None:
        self.runtime.call_soon(lambda: _spawn_greenlet(work))


class CallersHub(Home):
    """The hub of the thread that starts it."""

    shares_hub = True

    def __init__(self) -> None:
        self.runtime = Runtime(name="livesign")
        self._loop: Any = gevent.get_hub().loop
        self.runtime.driver.attach(self.runtime.scheduler)

    def _spawn(self, work: Callable[[], None]) -> None:
        self._loop.run_callback_threadsafe(_spawn_greenlet, work)


def _spawn_greenlet(work: Callable[[], None]) -> None:
    gevent.spawn(work)


def home_for(hub: str) -> Home:
    """``thread``, ``caller``, or ``auto``: the caller's where gevent has patched the process. Raises ValueError."""
    if hub not in ("auto", "thread", "caller"):
        raise ValueError(f"hub must be auto, thread or caller, not {hub!r}")
    patched = monkey.is_module_patched("threading") or monkey.is_module_patched("socket")
    return CallersHub() if hub == "caller" or (hub == "auto" and patched) else OwnThread()
