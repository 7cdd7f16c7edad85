"""What the ledger costs: a call on the hub's side, and how long an ack waits for the commit of what its event did.

Why: an ack, and every call that shows something, waits until the ledger on disk holds what a crash would leave behind. So
that wait is a part of every sign of life, and every event makes several calls of the ledger.

- *A call* counts the CPU time of the hub's thread: the port's calls of whole runs with all that the hub does for them,
  handing over to the writer and releasing who waits. The peer is the twin in memory, in turn.
- *An ack's delay* is real time on a hub that is busy with other things for a third of each millisecond. The peer, in turn, is a
  thread that only answers, without a disk: what nobody can avoid who writes in a thread. *A hub that never rests* keeps the
  interpreter's lock from the writer as long as it can.
- *Anew* is what the hub does for writing everything again, after a disk has failed and is well again.
"""

from __future__ import annotations

import gc
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from queue import SimpleQueue

import gevent

from actors.ledger import Ledger, MemoryLedger, Place, RunRow
from actors.ledger_sqlite import SqliteLedger
from actors.presence.marks import Mark
from actors.presence.policy import Policy
from actors.presence.terms import RunInfo, RunKey
from actors.runtime import Runtime
from bench.harness import Counting, Figure, at_most, duel, progress

CALL_GOAL = at_most(20)
DELAY_GOAL = at_most(5)
RATIO_GOAL = at_most(4)
ANEW_GOAL = at_most(20)
SLICE = 20
"""Runs between two turns of the hub."""
CALLS = 12
"""Of the ledger in `one_run`."""
TICK_S = 0.001


def one_run(ledger: Ledger, number: int, acked: list[int]) -> None:
    """What a run tells the ledger: three events with ids, three marks, typing, its end."""
    key = RunKey("bot", f"chat-{number % 500}", f"m{number}")
    place, target = Place(*key), Place("bot", key.conversation, None)

    def ack() -> None:
        acked.append(number)

    ledger.used("session", f"{number}-1")
    ledger.opened(RunRow(RunInfo(key, key.run, None, Policy(), True, True), 30_000, False))
    ledger.after_commit(ack)
    ledger.marks(place, {"👀": Mark()})
    ledger.typing(target, True)
    ledger.used("session", f"{number}-2")
    ledger.after_commit(ack)
    ledger.marks(place, {"👀": Mark("handle"), "🤔": Mark()})
    ledger.ended(key, "done", None, number)
    ledger.after_commit(ack)
    ledger.marks(place, {})
    ledger.typing(target, False)


def call_us(ledger: Ledger, numbers: range) -> float:
    """CPU time of this thread for one call, with everything that follows from it here."""
    acked: list[int] = []
    gc.collect()
    began_ns = time.thread_time_ns()
    for number in numbers:
        one_run(ledger, number, acked)
        if number % SLICE == 0:
            gevent.sleep(0)
    while len(acked) < 3 * len(numbers):
        gevent.sleep(TICK_S)
    return (time.thread_time_ns() - began_ns) / 1_000 / (CALLS * len(numbers))


def spin(seconds: float) -> None:
    """Other work of the hub."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


class Echo(MemoryLedger):
    """The peer: a thread that says "committed" at once."""

    def __init__(self, call_soon: Callable[[Callable[[], None]], None]) -> None:
        super().__init__()
        self._call_soon = call_soon
        self._waiting: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="echo")
        self._thread.start()

    def after_commit(self, then: Callable[[], None]) -> None:
        self._waiting.put(then)

    def _run(self) -> None:
        while (then := self._waiting.get()) is not None:
            self._call_soon(then)

    def close(self) -> None:
        self._waiting.put(None)
        self._thread.join()


def delays_ms(ledger: Ledger, per_s: int, seconds: float, busy: float) -> list[float]:
    """How long each ack waited, with ``per_s`` events a second on a hub that is ``busy`` (share) with other work."""
    waited: list[float] = []
    began = time.perf_counter()
    told = 0
    while (now := time.perf_counter()) - began < seconds:
        while told < (now - began) * per_s:
            ledger.used("session", f"{began}-{told}")
            ledger.marks(Place("bot", f"chat-{told % 500}", f"m{began}-{told}"), {"👀": Mark()})

            def ack(told_s: float = time.perf_counter()) -> None:
                waited.append((time.perf_counter() - told_s) * 1_000)

            ledger.after_commit(ack)
            told += 1
        spin(TICK_S * busy)
        gevent.sleep(max(TICK_S * (1 - busy), 1e-6))
    while len(waited) < told:
        gevent.sleep(TICK_S)
    return waited


def p99(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)]


@dataclass
class Desk:
    """Makes ledgers on a hub in this thread."""

    directory: Path
    runtime: Runtime = field(default_factory=lambda: Runtime(name="bench"))
    made: list[Ledger] = field(default_factory=list)

    def sqlite(self) -> SqliteLedger:
        ledger = SqliteLedger(self.directory / str(len(self.made)), self.runtime.call_soon, gevent.spawn_later)
        self.made.append(ledger)
        return ledger

    def echo(self) -> Echo:
        ledger = Echo(self.runtime.call_soon)
        self.made.append(ledger)
        return ledger


@contextmanager
def desk() -> Iterator[Desk]:
    with tempfile.TemporaryDirectory() as directory:
        held = Desk(Path(directory))
        held.runtime.spawn(Counting)  # from now on it belongs to this thread
        try:
            yield held
        finally:
            for ledger in held.made:
                ledger.close()
            held.runtime.close()


def calls(smoke: bool) -> list[Figure]:
    """What a call costs the hub."""
    runs, turns = (40, 1) if smoke else (5_000, 7)
    progress(f"ledger: calls of {runs:,} runs, {turns} times")
    numbers = (range(at, at + runs) for at in count(0, runs))
    with desk() as held:
        ours, twin = held.sqlite(), MemoryLedger()
        sides = duel(lambda: call_us(ours, next(numbers)), lambda: call_us(twin, next(numbers)), turns)
        note = f"CPU time of the hub's thread; the twin in memory: {sides.peer:.2f}"
        return [Figure("a call, on the hub's side", sides.ours, "µs", CALL_GOAL, note, ours.commits)]


def delays(smoke: bool) -> list[Figure]:
    """How long acks wait."""
    seconds, turns = (0.1, 1) if smoke else (2.0, 7)
    progress(f"ledger: acks of 500 events a second, {turns} times {seconds:g} s")
    medians: list[float] = []
    with desk() as held:
        ours, echo = held.sqlite(), held.echo()

        def side(ledger: Ledger) -> float:
            waited = delays_ms(ledger, 500, seconds, 0.33)
            if ledger is ours:
                medians.append(statistics.median(waited))
            return p99(waited)

        sides = duel(lambda: side(ours), lambda: side(echo), turns)
        peer = f"a thread that only answers: {sides.peer:.2g} ms"
        figures = [
            Figure("an ack's delay, p50", statistics.median(medians), "ms", checksum=ours.commits),
            Figure("an ack's delay, p99", sides.ours, "ms", DELAY_GOAL, peer, ours.commits),
            Figure("an ack's delay, p99 / peer's", sides.ratio, "ratio", RATIO_GOAL, peer, ours.commits),
        ]
        rounds = [delays_ms(ours, 5_000, seconds, 1.0) for _ in range(turns)]
        typical = statistics.median(statistics.median(waited) for waited in rounds)
        note = f"5,000 events a second; p99 {statistics.median(p99(waited) for waited in rounds):.3g} ms"
        name = "an ack's delay on a hub that never rests, p50"
        return [*figures, Figure(name, typical, "ms", None, note, ours.commits)]


def anew(smoke: bool) -> Figure:
    """What the hub does when everything has to be written again."""
    ended = 1_000 if smoke else 100_000
    progress(f"ledger: {ended:,} ended runs anew")
    with desk() as held:
        ledger = held.sqlite()
        for number in range(ended):
            ledger.ended(RunKey("bot", f"chat-{number % 500}", f"m{number}"), "done", None, number)
        gc.collect()
        began_ns = time.thread_time_ns()
        copy = ledger._everything()
        took_ms = (time.thread_time_ns() - began_ns) / 1e6
        return Figure(
            "everything anew, the hub's part", took_ms, "ms", ANEW_GOAL, f"{ended:,} ended runs", len(copy.held.ended)
        )


def run(smoke: bool) -> list[Figure]:
    return [*calls(smoke), *delays(smoke), anew(smoke)]
