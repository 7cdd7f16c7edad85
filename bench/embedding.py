"""livesign inside an asyncio bot: what telling costs the bot, and what 5,000 concurrent runs do to its loop.

Why: a bot's loop is the bot. livesign runs beside it in a thread of its own and shares the interpreter's lock with it; so
what counts is how long our code holds the loop, and how late the loop is while livesign works.

- *Telling* is measured in the bot's thread, against `loop.call_soon_threadsafe`, the usual way to hand something over.
- *The crowd*: runs that begin spread over the first seconds, live at the same time, tell phases and tools, and end. Calls
  come back into the bot's loop as coroutine functions (platform ``callback``). A callback counts by the CPU time of the
  loop's thread, without the garbage collector, so that other processes do not count. The loop's delay is real time: how much
  later than asked a timer came; the same is measured before without livesign. The hub's share is CPU time of its thread.
"""

from __future__ import annotations

import asyncio
import gc
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from actors import Call, Callbacks, PresenceSupervisor
from bench.harness import Figure, at_most, progress
from protocol.events import Progress

TICK_S = 0.002
CONFIG: dict[str, Any] = {
    "ledger": {"path": ":memory:"},
    "ack": {"scope": "all"},
    "typing": {"keepalive_ms": 10_000},
    "calls": {"concurrency": 64},
    "accounts": {"bot": {"platform": "callback", "typing_lifetime_ms": 20_000}},
}


@dataclass
class Crowd:
    """What was measured."""

    runs: int
    most_open: int = 0
    done: int = 0
    calls: int = 0
    took_s: float = 0.0
    longest_ms: float = 0.0
    """Of all callbacks of the loop, in CPU time."""
    quiet_p99_ms: float = 0.0
    """The loop's delay without livesign."""
    p99_ms: float = 0.0
    worst_ms: float = 0.0
    hub_share: float = 0.0


@dataclass
class Collector:
    """How much of this thread's CPU time the garbage collector took."""

    spent_ns: int = 0
    _began_ns: int = 0

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._began_ns = time.thread_time_ns()
        else:
            self.spent_ns += time.thread_time_ns() - self._began_ns


@contextmanager
def timed_callbacks(longest: list[int]) -> Iterator[None]:
    """Puts the longest CPU time (ns) of any callback of an asyncio loop, but its own, into ``longest[0]``."""
    plain: Any = asyncio.Handle._run
    collector = Collector()

    def run(self: Any) -> None:
        began_ns, spent_ns = time.thread_time_ns(), collector.spent_ns
        plain(self)
        took_ns = time.thread_time_ns() - began_ns - (collector.spent_ns - spent_ns)
        if getattr(self._callback, "__self__", None) is not self._loop:  # that is the loop's own reading of its pipe
            longest[0] = max(longest[0], took_ns)

    gc.callbacks.append(collector)
    asyncio.Handle._run = run  # type: ignore[method-assign]
    try:
        yield
    finally:
        asyncio.Handle._run = plain  # type: ignore[method-assign]
        gc.callbacks.remove(collector)


@dataclass
class Pulse:
    """Notes how much later than asked a timer of the loop comes."""

    delays_ms: list[float] = field(default_factory=list)

    async def beat(self, seconds: float | None = None) -> None:
        until = None if seconds is None else time.monotonic() + seconds
        while until is None or time.monotonic() < until:
            due = time.monotonic() + TICK_S
            await asyncio.sleep(TICK_S)
            self.delays_ms.append((time.monotonic() - due) * 1_000)

    def p99_ms(self) -> float:
        ordered = sorted(self.delays_ms)
        return ordered[int(len(ordered) * 0.99)] if ordered else 0.0


async def one_run(presence: PresenceSupervisor, number: int, crowd: Crowd, spread_s: float, live_s: float) -> None:
    """A bot's handler: four steps, evenly spread over its life."""
    await asyncio.sleep(random.Random(number).uniform(0, spread_s))
    async with presence.run(conversation=f"chat-{number}", message=1, direct=True) as run:
        crowd.most_open = max(crowd.most_open, len(presence.keeper))
        run.thinking()
        await asyncio.sleep(live_s / 3)
        with run.tool("web_search"):
            await asyncio.sleep(live_s / 3)
        run.text()
        await asyncio.sleep(live_s / 3)
    crowd.done += 1


async def crowd_of(runs: int, spread_s: float, live_s: float) -> Crowd:
    """Everything at once."""
    crowd = Crowd(runs)

    async def call(_: Call) -> None:
        crowd.calls += 1

    quiet = Pulse()
    await quiet.beat(1.0)
    crowd.quiet_p99_ms = quiet.p99_ms()
    presence = PresenceSupervisor.start(CONFIG, callbacks={"bot": Callbacks(call, call, call, call)})
    async with presence:
        pulse, longest = Pulse(), [0]
        cpu_s = await presence._home.begin(time.thread_time)
        began_s = time.monotonic()
        with timed_callbacks(longest):
            beating = asyncio.create_task(pulse.beat())
            await asyncio.gather(*(one_run(presence, number, crowd, spread_s, live_s) for number in range(runs)))
            beating.cancel()
        crowd.took_s = time.monotonic() - began_s
        crowd.hub_share = (await presence._home.begin(time.thread_time) - cpu_s) / crowd.took_s
    crowd.longest_ms = longest[0] / 1e6
    crowd.p99_ms, crowd.worst_ms = pulse.p99_ms(), max(pulse.delays_ms)
    return crowd


def cost_us(act: Callable[[], object], count: int) -> float:
    """Microseconds of this thread's CPU time for one ``act()``."""
    began_ns = time.thread_time_ns()
    for _ in range(count):
        act()
    return (time.thread_time_ns() - began_ns) / count / 1_000


def in_a_thread(work: Callable[[], float]) -> float:
    result: list[float] = []
    thread = threading.Thread(target=lambda: result.append(work()))
    thread.start()
    thread.join()
    return result[0]


async def telling(count: int) -> dict[str, float]:
    """What each way to tell costs, in the loop and in a plain thread."""
    loop = asyncio.get_running_loop()
    event = Progress(conversation="c", message="m")
    async with PresenceSupervisor.start(
        {**CONFIG, "accounts": {"bot": {"platform": "sandbox", "typing_lifetime_ms": 20_000}}}
    ) as presence:
        run = presence.run(conversation="c", message="m", direct=True).begin()

        async def measured(act: Callable[[], object]) -> float:
            costs = []
            for _ in range(5):
                costs.append(cost_us(act, count))
                await asyncio.sleep(0.05)  # livesign catches up
            return sorted(costs)[2]

        costs = {
            "run": await measured(run.progress),
            "tell": await measured(lambda: presence.tell(event)),
            "peer": await measured(lambda: loop.call_soon_threadsafe(int)),
        }
        costs["thread_run"] = await asyncio.to_thread(in_a_thread, lambda: cost_us(run.progress, count))
        costs["thread_tell"] = await asyncio.to_thread(
            in_a_thread, lambda: cost_us(lambda: presence.tell(event), count)
        )
        run.done()
    return costs


def run(smoke: bool) -> list[Figure]:
    """The figures."""
    costs = asyncio.run(telling(50 if smoke else 5_000))
    progress("embedding: 5,000 runs at the same time")
    runs, spread_s, live_s = (50, 0.2, 0.5) if smoke else (5_000, 14.0, 18.0)
    crowd = asyncio.run(crowd_of(runs, spread_s, live_s))
    done = crowd.done
    opened = f"{crowd.most_open:,} runs open at once, {crowd.calls:,} calls"
    quiet = f"{crowd.quiet_p99_ms:.2f} ms without livesign; worst {crowd.worst_ms:.1f} ms"
    return [
        Figure(
            "a run handle's event, from asyncio", costs["run"], "µs", at_most(20), "CPU time of the bot's thread", done
        ),
        Figure(
            "tell, from asyncio",
            costs["tell"],
            "µs",
            at_most(40),
            f"call_soon_threadsafe: {costs['peer']:.1f} µs",
            done,
        ),
        Figure("a run handle's event, from a thread", costs["thread_run"], "µs", at_most(20), "", done),
        Figure("tell, from a thread", costs["thread_tell"], "µs", at_most(40), "", done),
        Figure("longest callback in the loop", crowd.longest_ms, "ms", at_most(1.0), opened, done),
        Figure("the loop's delay, p99", crowd.p99_ms, "ms", at_most(5.0), quiet, done),
        Figure("the hub is busy", crowd.hub_share * 100, "%", at_most(30.0), "of one core", done),
    ]
