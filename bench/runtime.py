"""The runtime's figures, as ratios to what a reader knows, each with its goal.

``run(smoke)`` returns ``{"figures": {name: {"value", "goal", "ok"}}, "checksum": int}``. Ratios are taken in one
process, one after the other, best of three, so that the machine cancels out as far as it can. ``ok`` is about the goal;
a smoke run is too short to mean anything but that the code works.
"""

from __future__ import annotations

import gc
import random
import socket as plain_socket
import statistics
import threading
import time
import tracemalloc
from collections.abc import Callable, Hashable
from typing import Any, ClassVar

import gevent
import gevent.queue
import gevent.server
import gevent.socket
import pykka

from actors.runtime import Actor, ActorRef, Runtime

GOALS: dict[str, tuple[float, str]] = {
    "tell / ThreadingActor": (15, ">="),
    "tell / gevent SimpleQueue": (0.35, ">="),
    "ask / ThreadingActor": (6, ">="),
    "foreign tell / call_soon_threadsafe": (8, ">="),
    "spawn and stop / ThreadingActor": (60, ">="),
    "idle actor, bytes": (700, "<="),
    "tell at 200k actors, creation order": (0.9, ">="),
    "tell at 200k actors, random order": (0.5, ">="),
    "arm, per second": (300_000, ">="),
    "move later, per second": (2_000_000, ">="),
    "cancel, per second": (3_000_000, ">="),
    "timer lateness p99, ms": (2, "<="),
    "timers fired early": (0, "<="),
    "tell with observer / without": (0.9, ">="),
    "echo under flood p50, ms": (2.5, "<="),
    "echo under flood p99, ms": (10, "<="),
}

_checksum = 0


class Counting(Actor):
    """Counts its messages."""

    mailbox_capacity: ClassVar[int] = 1 << 40
    __slots__ = ("seen",)

    def __init__(self) -> None:
        self.seen = 0

    def on_receive(self, message: Any) -> Any:
        self.seen += 1
        return self.seen


class Threaded(pykka.ThreadingActor):
    """The same on pykka's own runtime."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def on_receive(self, message: Any) -> Any:
        self.seen += 1
        return self.seen


def _best(measure: Callable[[], float], rounds: int = 3) -> float:
    return max(measure() for _ in range(rounds))


def _rate(count: int, work: Callable[[], object]) -> float:
    gc.collect()
    began = time.perf_counter()
    work()
    return count / (time.perf_counter() - began)


def _tell_all(ref: Any, count: int) -> None:
    global _checksum
    tell = ref.tell
    for each in range(count):
        tell(each)
    _checksum += ref.ask(None)


def _ask_all(ref: Any, count: int) -> None:
    global _checksum
    for each in range(count):
        _checksum += ref.ask(each) & 1


def tell_and_ask(scale: int) -> dict[str, float]:
    """One sender, one receiver: tell, ask, and the bare queue."""
    with Runtime() as runtime:
        ref = runtime.spawn(Counting)
        ours = _best(lambda: _rate(40 * scale, lambda: _tell_all(ref, 40 * scale)))
        ours_ask = _best(lambda: _rate(4 * scale, lambda: _ask_all(ref, 4 * scale)))
    threaded = Threaded.start()
    theirs = _best(lambda: _rate(4 * scale, lambda: _tell_all(threaded, 4 * scale)))
    theirs_ask = _best(lambda: _rate(scale, lambda: _ask_all(threaded, scale)))
    threaded.stop()
    return {
        "tell / ThreadingActor": ours / theirs,
        "tell / gevent SimpleQueue": ours / _best(lambda: _queue_rate(40 * scale)),
        "ask / ThreadingActor": ours_ask / theirs_ask,
    }


def _queue_rate(count: int) -> float:
    queue: Any = gevent.queue.SimpleQueue()

    def consume() -> None:
        get = queue.get
        for _ in range(count):
            get()

    def both() -> None:
        consumer = gevent.spawn(consume)
        put = queue.put
        for each in range(count):
            put(each)
        consumer.join()

    return _rate(count, both)


def foreign_tell(scale: int) -> dict[str, float]:
    """Tell from another thread, against asyncio's way to hand a call to a loop."""
    import asyncio

    with Runtime().start_thread() as runtime:
        ref = runtime.spawn(Counting)
        ours = _best(lambda: _rate(20 * scale, lambda: _tell_all(ref, 20 * scale)))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def call_all(count: int) -> None:
        done = threading.Event()
        for each in range(count):
            loop.call_soon_threadsafe(abs, each)
        loop.call_soon_threadsafe(done.set)
        done.wait()

    theirs = _best(lambda: _rate(2 * scale, lambda: call_all(2 * scale)))
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
    return {"foreign tell / call_soon_threadsafe": ours / theirs}


def spawn_and_stop(scale: int) -> dict[str, float]:
    """One actor after the other: start, stop, wait for the stop."""

    def ours(runtime: Runtime, count: int) -> None:
        for _ in range(count):
            runtime.spawn(Counting).stop()

    def theirs(count: int) -> None:
        for _ in range(count):
            Threaded.start().stop()

    with Runtime() as runtime:
        fast = _best(lambda: _rate(2 * scale, lambda: ours(runtime, 2 * scale)))
    return {"spawn and stop / ThreadingActor": fast / _best(lambda: _rate(scale // 8, lambda: theirs(scale // 8)))}


def idle_size(scale: int) -> dict[str, float]:
    """Bytes of an idle actor with ref, mailbox, key and directory entry; the key's own string counts."""
    count = 10 * scale
    with Runtime() as runtime:
        for each in range(100):
            runtime.spawn(Counting, key=each)
        gevent.sleep(0)
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for each in range(count):
            runtime.spawn(Counting, key=f"conversation-{each:08}")
        while any(mailbox.queued for mailbox in runtime.directory):
            gevent.sleep(0.001)
        gc.collect()
        size = (tracemalloc.get_traced_memory()[0] - before) / count
        tracemalloc.stop()
    return {"idle actor, bytes": size}


def crowd(scale: int) -> dict[str, float]:
    """Telling each of very many actors in turn, against each of a thousand."""
    many = 20 * scale

    def told(runtime: Runtime, refs: list[ActorRef[Any]], rounds: int) -> float:
        def work() -> None:
            for _ in range(rounds):
                for start in range(0, len(refs), 1000):
                    for ref in refs[start : start + 1000]:
                        ref.tell(None)
                    refs[start].ask(None)

        return _rate(rounds * len(refs), work)

    with Runtime() as runtime:
        few = [runtime.spawn(Counting) for _ in range(1000)]
        alone = _best(lambda: told(runtime, few, max(1, many // 1000)))
        refs = [runtime.spawn(Counting, key=each) for each in range(many)]
        in_order = _best(lambda: told(runtime, refs, 1))
        random.Random(1).shuffle(refs)
        shuffled = _best(lambda: told(runtime, refs, 1))
    return {
        "tell at 200k actors, creation order": in_order / alone,
        "tell at 200k actors, random order": shuffled / alone,
    }


class Timed(Actor):
    """Arms, moves and cancels when told to; keeps how late its ticks were."""

    def __init__(self) -> None:
        self.late_ns: list[int] = []

    def on_receive(self, message: Any) -> Any:
        if isinstance(message, int):
            self.late_ns.append(self.runtime.scheduler.now_ns() - message)
            return None
        work, count = message
        return _rate(count, lambda: work(self, count))


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
    return {"arm, per second": best[0], "move later, per second": best[1], "cancel, per second": best[2]}


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
        "timer lateness p99, ms": late_ns[int(count * 0.99)] / 1e6,
        "timers fired early": float(sum(late < 0 for late in late_ns)),
    }


class Seen:
    """An observer that adds up."""

    def __init__(self) -> None:
        self.handled = 0

    def turn(self, ref: ActorRef[Any], handled: int) -> None:
        """One turn is over."""
        self.handled += handled

    def event(self, kind: str, ref: ActorRef[Any], detail: Hashable) -> None:
        """Something happened to an actor."""


def observed(scale: int) -> dict[str, float]:
    """Tell with an observer, against without."""
    with Runtime() as runtime:
        ref = runtime.spawn(Counting)
        plain = _best(lambda: _rate(40 * scale, lambda: _tell_all(ref, 40 * scale)), 5)
        leave = runtime.observe(Seen())
        seen = _best(lambda: _rate(40 * scale, lambda: _tell_all(ref, 40 * scale)), 5)
        leave()
    return {"tell with observer / without": seen / plain}


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

        def client() -> None:
            with plain_socket.create_connection(("127.0.0.1", server.server_port)) as connection:
                connection.setsockopt(plain_socket.IPPROTO_TCP, plain_socket.TCP_NODELAY, 1)
                for _ in range(max(20, scale // 20)):
                    began = time.perf_counter()
                    connection.sendall(b"x")
                    connection.recv(64)
                    results.append((time.perf_counter() - began) * 1000)

        thread = threading.Thread(target=client)
        thread.start()
        while thread.is_alive():
            gevent.sleep(0.01)
        took_ms = sorted(results)
        runtime.stop(ref).get()
        server.stop()
    return {
        "echo under flood p50, ms": statistics.median(took_ms),
        "echo under flood p99, ms": took_ms[int(len(took_ms) * 0.99)],
    }


def run(smoke: bool) -> dict[str, Any]:
    """Measure everything; ``smoke``: a hundredth of it, to see that it works."""
    scale = 100 if smoke else 10_000
    figures: dict[str, Any] = {}
    for measure in (
        tell_and_ask,
        foreign_tell,
        spawn_and_stop,
        idle_size,
        crowd,
        timers,
        lateness,
        observed,
        echo_under_flood,
    ):
        for name, value in measure(scale).items():
            goal, sign = GOALS[name]
            ok = value >= goal if sign == ">=" else value <= goal
            figures[name] = {"value": round(value, 3), "goal": f"{sign} {goal:g}", "ok": ok}
    return {"figures": figures, "checksum": _checksum}


if __name__ == "__main__":
    for name, figure in run(smoke=False)["figures"].items():
        print(f"{'ok  ' if figure['ok'] else 'MISS'} {name:40} {figure['value']:>14,} {figure['goal']:>12}")
