"""A runtime under test: manual or hub driver, both on a manual clock, so one suite runs on both and never sleeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import gevent
from gevent import monkey

from actors.runtime import Actor, GreenletActor, HubDriver, ManualClock, ManualDriver, Runtime

DRIVERS = ("manual", "hub")

native_sleep: Callable[[float], None] = monkey.get_original("time", "sleep")


def in_native_threads(*works: Callable[[], object]) -> None:
    """Run each in a native thread of its own, in a patched process, too; wait for all, holding the hub meanwhile."""
    begin, lock = (monkey.get_original("_thread", name) for name in ("start_new_thread", "allocate_lock"))
    running = []

    def run(work: Callable[[], object], ended: Any) -> None:
        try:
            work()
        finally:
            ended.release()

    for work in works:
        ended = lock()
        ended.acquire()
        running.append(ended)
        begin(run, (work, ended))
    for ended in running:
        ended.acquire()


class Stand:
    """A runtime, and how to let it work and to let its time pass."""

    def __init__(self, driver: str) -> None:
        self.driver = driver
        self.clock = ManualClock()
        chosen = ManualDriver() if driver == "manual" else HubDriver(watchdog_ms=0)
        self.runtime = Runtime(chosen, self.clock, name=driver)

    def settle(self) -> None:
        """Until nothing is left to do at the present time."""
        if self.driver == "manual":
            self.runtime.run_until_idle()
            return
        scheduler = self.runtime.scheduler
        if scheduler.owner is None:
            return
        self.runtime.call_soon(lambda: None)  # the clock may have moved: have the timers looked at
        quiet = 0
        while quiet < 3 and scheduler.owner is not None:
            gevent.sleep(0)
            busy = scheduler.ready or scheduler.handover or getattr(self.runtime.driver, "_posted", False)
            quiet = 0 if busy else quiet + 1

    def advance(self, ms: int) -> None:
        """Through the next ``ms``, timer by timer."""
        if self.driver == "manual":
            self.runtime.advance(ms)
            return
        until_ns = self.clock.now_ns() + ms * 1_000_000
        self.settle()
        timers = self.runtime.scheduler.timers
        while timers.armed and (due_ns := timers.next_ns()) is not None and due_ns <= until_ns:
            self.clock.set_ns(max(due_ns, self.clock.now_ns()))
            self.settle()
        self.clock.set_ns(until_ns)
        self.settle()

    def close(self) -> None:
        """Stop everything and look for what is left behind."""
        runtime = self.runtime
        runtime.close()
        assert runtime.actor_count == 0
        assert runtime.armed_timers == 0
        assert runtime.backlog == 0
        assert not runtime.scheduler.halts
        assert not runtime.scheduler.ended


class Recorder(Actor):
    """Writes down what it lives through; handles a few words specially."""

    def __init__(self, log: list[Any] | None = None, name: str = "") -> None:
        self.log: list[Any] = [] if log is None else log
        self.name = name

    def note(self, what: Any) -> None:
        self.log.append((self.name, what) if self.name else what)

    def on_start(self) -> None:
        self.note("start")

    def on_stop(self) -> None:
        self.note("stop")

    def on_failure(self, *exc_info: Any) -> None:
        self.note("failure")

    def on_receive(self, message: Any) -> Any:
        if isinstance(message, Call):
            return message.work(self)
        if message == "boom":
            raise ValueError("boom")
        if message == "log":
            return list(self.log)
        self.note(message)
        return message


class GreenletRecorder(Recorder, GreenletActor):
    """The same with a greenlet of its own."""


class Call:
    """A message that runs in the actor."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        self.work = work


class Narrow(Recorder):
    """Room for three messages."""

    mailbox_capacity: ClassVar[int] = 3


def plain(log: list[Any]) -> list[Any]:
    """The log without starts and stops."""
    return [each for each in log if each not in ("start", "stop", "failure")]
