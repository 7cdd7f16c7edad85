"""The runtime's figures, as ratios to what a reader knows, each with its goal.

Why: everything else stands on it, so what a message, a timer or an actor costs there is paid everywhere. Rates are by the
wall clock here, because some of the peers wait.
"""

from __future__ import annotations

import gc
import random
import threading
import tracemalloc
from collections.abc import Hashable
from typing import Any

import gevent
import gevent.queue
import gevent.server
import gevent.socket
import pykka

from actors.runtime import ActorRef, HubDriver, Runtime
from bench.harness import Counting, Figure, Goal, at_least, at_most, duel, progress, wall_rate
from bench.runtime_time import echo_under_flood, lateness, timers

GOALS: dict[str, tuple[Goal, str]] = {
    "tell / ThreadingActor": (at_least(15), "ratio"),
    "tell / gevent SimpleQueue": (at_least(0.35), "ratio"),
    "ask / ThreadingActor": (at_least(6), "ratio"),
    "foreign tell / call_soon_threadsafe": (at_least(8), "ratio"),
    "spawn and stop / ThreadingActor": (at_least(60), "ratio"),
    "idle actor": (at_most(700), "bytes"),
    "tell at 200k actors, creation order / at 1k": (at_least(0.9), "ratio"),
    "tell at 200k actors, random order / at 1k": (at_least(0.5), "ratio"),
    "arm a timer": (at_least(300_000), "1/s"),
    "move a timer later": (at_least(2_000_000), "1/s"),
    "cancel a timer": (at_least(3_000_000), "1/s"),
    "timer lateness, p99": (at_most(2), "ms"),
    "timers fired early": (at_most(0), "timers"),
    "tell with observer / without": (at_least(0.9), "ratio"),
    "echo under flood, p50": (at_most(2.5), "ms"),
    "echo under flood, p99": (at_most(10), "ms"),
}

ROUNDS = 5
_checksum = 0


class Threaded(pykka.ThreadingActor):
    """The same on pykka's own runtime."""

    use_daemon_thread = True  # a bench that fails has to end

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def on_receive(self, message: Any) -> Any:
        self.seen += 1
        return self.seen


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
        ref, threaded = runtime.spawn(Counting), Threaded.start()

        def ours() -> float:
            return wall_rate(40 * scale, lambda: _tell_all(ref, 40 * scale))

        told = duel(ours, lambda: wall_rate(4 * scale, lambda: _tell_all(threaded, 4 * scale)), ROUNDS)
        queued = duel(ours, lambda: _queue_rate(40 * scale), ROUNDS)
        asked = duel(
            lambda: wall_rate(4 * scale, lambda: _ask_all(ref, 4 * scale)),
            lambda: wall_rate(scale, lambda: _ask_all(threaded, scale)),
            ROUNDS,
        )
        threaded.stop()
    return {
        "tell / ThreadingActor": told.ratio,
        "tell / gevent SimpleQueue": queued.ratio,
        "ask / ThreadingActor": asked.ratio,
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

    return wall_rate(count, both)


def foreign_tell(scale: int) -> dict[str, float]:
    """Tell from another thread, against asyncio's way to hand a call to a loop."""
    import asyncio

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def call_all(count: int) -> None:
        done = threading.Event()
        for each in range(count):
            loop.call_soon_threadsafe(abs, each)
        loop.call_soon_threadsafe(done.set)
        done.wait()

    with Runtime().start_thread() as runtime:
        ref = runtime.spawn(Counting)
        told = duel(
            lambda: wall_rate(20 * scale, lambda: _tell_all(ref, 20 * scale)),
            lambda: wall_rate(2 * scale, lambda: call_all(2 * scale)),
            ROUNDS,
        )
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
    return {"foreign tell / call_soon_threadsafe": told.ratio}


def spawn_and_stop(scale: int) -> dict[str, float]:
    """One actor after the other: start, stop, wait for the stop."""

    def ours(runtime: Runtime, count: int) -> None:
        for _ in range(count):
            runtime.spawn(Counting).stop()

    def theirs(count: int) -> None:
        for _ in range(count):
            Threaded.start().stop()

    with Runtime() as runtime:
        spawned = duel(
            lambda: wall_rate(2 * scale, lambda: ours(runtime, 2 * scale)),
            lambda: wall_rate(scale // 8, lambda: theirs(scale // 8)),
            ROUNDS,
        )
    return {"spawn and stop / ThreadingActor": spawned.ratio}


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
    return {"idle actor": size}


def crowd(scale: int) -> dict[str, float]:
    """Telling each of very many actors in turn, against each of a thousand."""
    many = 20 * scale

    def told(refs: list[ActorRef[Any]], rounds: int) -> float:
        def work() -> None:
            for _ in range(rounds):
                for start in range(0, len(refs), 1000):
                    for ref in refs[start : start + 1000]:
                        ref.tell(None)
                    refs[start].ask(None)

        return wall_rate(rounds * len(refs), work)

    with Runtime() as small, Runtime(HubDriver(watchdog_ms=0)) as large:
        few = [small.spawn(Counting) for _ in range(1000)]
        refs = [large.spawn(Counting, key=each) for each in range(many)]

        def against_few() -> float:
            return duel(lambda: told(refs, 1), lambda: told(few, max(1, many // 1000)), ROUNDS).ratio

        in_order = against_few()
        random.Random(1).shuffle(refs)
        shuffled = against_few()
    return {
        "tell at 200k actors, creation order / at 1k": in_order,
        "tell at 200k actors, random order / at 1k": shuffled,
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

        def plain() -> float:
            return wall_rate(40 * scale, lambda: _tell_all(ref, 40 * scale))

        def seen() -> float:
            leave = runtime.observe(Seen())
            try:
                return plain()
            finally:
                leave()

        return {"tell with observer / without": duel(seen, plain, ROUNDS).ratio}


def run(smoke: bool) -> list[Figure]:
    """Measure everything; ``smoke``: a hundredth of it, to see that it works."""
    scale = 100 if smoke else 10_000
    figures = []
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
        progress(f"runtime: {measure.__name__.replace('_', ' ')}")
        for name, value in measure(scale).items():
            goal, unit = GOALS[name]
            _, _, peer = name.partition(" / ")
            figures.append(Figure(name, value, unit, goal, peer, _checksum))
    return figures
