"""The hub driver on the real clock: timers, and fairness to sockets. That is their subject."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

import gevent
import gevent.server
import pytest

from actors.runtime import Actor, HubDriver, Runtime
from tests.runtime.stand import Recorder, native_sleep

pytestmark = pytest.mark.real


class Late(Actor):
    """Keeps how late each tick was, in ns."""

    def __init__(self) -> None:
        self.late_ns: list[int] = []

    def on_receive(self, message: Any) -> Any:
        if message == "late":
            return self.late_ns
        if message == "arm":
            for each in range(2_000):
                at_ms = self.now_ms + 50 + each % 250
                self.schedule_at(at_ms, at_ms * 1_000_000)
            return None
        self.late_ns.append(time.monotonic_ns() - message)
        return None


def test_no_timer_is_early_and_most_are_on_time() -> None:
    with Runtime(HubDriver(watchdog_ms=0)) as runtime:
        ref = runtime.spawn(Late)
        ref.ask("arm")
        while runtime.armed_timers:
            gevent.sleep(0.01)
        late_ns = sorted(ref.ask("late"))
    assert len(late_ns) == 2_000
    assert late_ns[0] >= 0
    assert late_ns[1_000] < 50_000_000


def test_a_timer_armed_by_a_busy_greenlet_is_not_early() -> None:
    class Busy(Late):
        def on_receive(self, message: Any) -> Any:
            if message == "work":
                native_sleep(0.03)
                self.schedule_at(self.now_ms + 5, (self.now_ms + 5) * 1_000_000)
                return None
            return super().on_receive(message)

    with Runtime(HubDriver(watchdog_ms=0)) as runtime:
        ref = runtime.spawn(Busy)
        ref.ask("work")
        gevent.sleep(0.05)
        assert [late >= 0 for late in ref.ask("late")] == [True]


def test_sockets_are_served_while_an_actor_is_flooded() -> None:
    class Restless(Actor):
        def on_receive(self, message: Any) -> Any:
            self.actor_ref.tell(message)

    def echo(connection: Any, _address: Any) -> None:
        while data := connection.recv(64):
            connection.sendall(data)

    took_ms: list[float] = []
    with Runtime(HubDriver(watchdog_ms=0)) as runtime:
        server = gevent.server.StreamServer(("127.0.0.1", 0), echo)
        server.start()
        for _ in range(100):
            runtime.spawn(Restless).tell("x")

        def client() -> None:
            with socket.create_connection(("127.0.0.1", server.server_port)) as connection:
                for each in range(50):
                    time.sleep(each / 20_000)
                    began = time.monotonic()
                    connection.sendall(b"x")
                    connection.recv(64)
                    took_ms.append((time.monotonic() - began) * 1000)

        thread = threading.Thread(target=client)
        thread.start()
        while thread.is_alive():
            gevent.sleep(0.001)
        server.stop()
    assert sorted(took_ms)[25] < 50


def test_other_threads_get_their_share_of_the_interpreter_in_a_flood() -> None:
    class Restless(Actor):
        def on_receive(self, message: Any) -> Any:
            self.actor_ref.tell(message)

    with Runtime(HubDriver(watchdog_ms=0)).start_thread() as runtime:
        for _ in range(100):
            runtime.spawn(Restless).tell("x")
        turns = runtime.scheduler.turns
        began = time.monotonic()
        for _ in range(100):
            native_sleep(0.0001)
        assert time.monotonic() - began < 5
        assert runtime.scheduler.turns > turns


def test_actors_get_their_share_beside_a_greenlet_that_never_rests() -> None:
    with Runtime(HubDriver(watchdog_ms=0)) as runtime:
        ref = runtime.spawn(Recorder)
        ref.ask("x")
        resting = False

        def restless() -> None:
            while not resting:
                gevent.sleep(0)

        greenlet = gevent.spawn(restless)
        began = time.monotonic()
        for each in range(50):
            assert ref.ask(each) == each
        assert time.monotonic() - began < 5
        resting = True
        greenlet.join()


def test_a_signal_wakes_an_idle_hub() -> None:
    import signal

    with Runtime(HubDriver(watchdog_ms=0)) as runtime:
        ref = runtime.spawn(Recorder)
        ref.ask("x")
        before = signal.signal(signal.SIGALRM, lambda *_: ref.tell("rung"))
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            gevent.sleep(0.2)  # the hub has nothing else to do
            assert ref.ask("log")[-1] == "rung"
        finally:
            signal.signal(signal.SIGALRM, before)
