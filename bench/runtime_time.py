"""The part of the `runtime` scenario that is about time: timers, their lateness, and a socket beside a flooded actor."""

from __future__ import annotations

import random
import socket as plain_socket
import statistics
import threading
import time
from typing import Any

import gevent
import gevent.server
import gevent.socket

from actors.runtime import Actor, Runtime
from bench.harness import Counting, wall_rate


class Timed(Actor):
    """Arms, moves and cancels when told to; keeps how late its ticks were."""

    def __init__(self) -> None:
        self.late_ns: list[int] = []

    def on_receive(self, message: Any) -> Any:
        if isinstance(message, int):
            self.late_ns.append(self.runtime.scheduler.now_ns() - message)
            return None
        work, count = message
        return wall_rate(count, lambda: work(self, count))


def _arm(actor: Timed, count: int) -> None:
    for each in range(count):
        actor.schedule(60_000 + each % 60_000, None, each)


def _move(actor: Timed, count: int) -> None:
    at_ms = actor.now_ms + 600_000
    for each in range(count):
        actor.schedule_at(at_ms, None, each)


def _cancel(actor: Timed, count: int) -> None:
    for each in range(count):
        actor.cancel(each)


def timers(scale: int) -> dict[str, float]:
    """Arm, move later, cancel, one actor with very many keys; then lateness."""
    best = [0.0, 0.0, 0.0]
    with Runtime() as runtime:
        ref = runtime.spawn(Timed)
        for _ in range(3):
            rates = [ref.ask((work, 20 * scale)) for work in (_arm, _move, _cancel)]
            best = [max(pair) for pair in zip(best, rates, strict=True)]
    return {"arm a timer": best[0], "move a timer later": best[1], "cancel a timer": best[2]}


def lateness(scale: int) -> dict[str, float]:
    """Many timers armed at random over some seconds; how late they fire."""
    count = 10 * scale
    span_ms = max(200, scale // 2)
    chance = random.Random(2)

    def fill(actor: Timed, count: int) -> None:
        now_ms = actor.now_ms + 300
        for _ in range(count):
            at_ms = now_ms + chance.randrange(span_ms)
            actor.schedule_at(at_ms, at_ms * 1_000_000)

    with Runtime() as runtime:
        ref = runtime.spawn(Timed)
        ref.ask((fill, count))
        gevent.sleep((span_ms + 600) / 1000)
        actor = ref._actor_weakref()
        late_ns = sorted(actor.late_ns)
    assert len(late_ns) == count
    return {
        "timer lateness, p99": late_ns[int(count * 0.99)] / 1e6,
        "timers fired early": float(sum(late < 0 for late in late_ns)),
    }


class Flooded(Counting):
    """Tells itself something for every message: never idle."""

    def on_receive(self, message: Any) -> Any:
        self.seen += 1
        if message is not None:
            self._mailbox.tell(message)
        return self.seen


def echo_under_flood(scale: int) -> dict[str, float]:
    """A socket echo on the same hub while one actor is never idle."""
    took_ms = []

    def echo(connection: Any, _address: Any) -> None:
        while data := connection.recv(64):
            connection.sendall(data)

    with Runtime() as runtime:
        server = gevent.server.StreamServer(("127.0.0.1", 0), echo)
        server.start()
        ref = runtime.spawn(Flooded)
        for _ in range(1000):
            ref.tell(1)
        results: list[float] = []
        pause = random.Random(3)

        def client() -> None:
            with plain_socket.create_connection(("127.0.0.1", server.server_port)) as connection:
                connection.setsockopt(plain_socket.IPPROTO_TCP, plain_socket.TCP_NODELAY, 1)
                for _ in range(max(20, scale // 20)):
                    time.sleep(pause.random() / 250)  # so that it meets the hub at work, not still at the last echo
                    began = time.perf_counter()
                    connection.sendall(b"x")
                    connection.recv(64)
                    results.append((time.perf_counter() - began) * 1000)

        thread = threading.Thread(target=client, daemon=True)
        thread.start()
        while thread.is_alive():
            gevent.sleep(0.01)
        took_ms = sorted(results)
        runtime.stop(ref).get()
        server.stop()
    return {
        "echo under flood, p50": statistics.median(took_ms),
        "echo under flood, p99": took_ms[int(len(took_ms) * 0.99)],
    }
