"""A plain model of the recorded typing controller, to make more traces than were recorded.

It reproduces the controller with its quirks and tags them, so that a random script can be sorted: without a
tag livesign must do the same, with one it must do better.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from typing import Any

__all__ = ["random_trace", "record"]

TIMER_MAX_MS = 2**31 - 1

Trace = dict[str, Any]


class _Model:
    """The recorded controller and its virtual clock."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.interval_ms = config.get("keepaliveIntervalMs", 3000)
        self.ttl_ms = config.get("maxDurationMs", 60_000)
        self.failures_max = max(1, int(config.get("maxConsecutiveFailures", 2)))
        self.config = config
        self.now_ms = 0
        self.order = itertools.count()
        self.queue: list[tuple[int, int, int, Callable[[], None]]] = []
        self.calls: list[list[Any]] = []
        self.ends: list[list[Any] | None] = []
        self.made = {"start": 0, "stop": 0}
        self.quirks: set[str] = set()
        self.ttl_at: list[int] = []
        self.ties: set[int] = set()
        self.closed = self.tripped = self.stopped = self.succeeded = False
        self.failures = 0
        self.in_flight = 0
        self.loop: object | None = None
        self.ttl: object | None = None
        self.ticking: object | None = None

    # --- clock ---

    def later(self, delay_ms: int, happen: Callable[[], None], *, immediate: bool = False) -> None:
        row = (self.now_ms + delay_ms, 0 if immediate else 1, next(self.order), happen)
        heapq.heappush(self.queue, row)

    def advance(self, to_ms: int) -> None:
        last = None
        while self.queue and self.queue[0][0] <= to_ms:
            at_ms, rank, _, happen = heapq.heappop(self.queue)
            if rank and at_ms == last:
                self.ties.add(at_ms)
            last = at_ms if rank else last
            self.now_ms = at_ms
            happen()
        self.now_ms = max(self.now_ms, to_ms)

    # --- platform ---

    def call(self, op: str, done: Callable[[bool], None]) -> None:
        nth = self.made[op]
        self.made[op] += 1
        index = len(self.calls)
        self.calls.append([self.now_ms, op])
        self.ends.append(None)
        latencies = self.config.get(f"{op}LatencyMs") or [0]
        latency_ms = latencies[nth % len(latencies)]
        if latency_ms is None:
            if op == "start":
                self.quirks.add("hung_start")
            return
        failed = nth in self.config.get("failStart" if op == "start" else "failStop", ())

        def end() -> None:
            self.ends[index] = [self.now_ms, "err" if failed else "ok"]
            done(not failed)

        self.later(latency_ms, end, immediate=latency_ms == 0)

    # --- controller ---

    def guarded_start(self, done: Callable[[], None]) -> None:
        if self.closed or self.tripped:
            done()
            return
        self.in_flight += 1

        def ended(ok: bool) -> None:
            self.in_flight -= 1
            if ok:
                self.succeeded = True
                self.failures = 0
            else:
                self.failures += 1
                if self.failures >= self.failures_max:
                    self.tripped = True
                    self.stop_loop()
            done()

        self.call("start", ended)

    def reply_start(self) -> None:
        if self.closed:
            return
        if self.in_flight:
            self.quirks.add("overlapping_starts")
        self.failures = 0
        self.tripped = False
        self.stop_loop()
        self.ttl = None
        self.guarded_start(self.first_ended)

    def first_ended(self) -> None:
        if self.tripped:
            self.quirks.add("ttl_not_armed")
            return
        if self.closed:
            self.quirks.add("leaked_keepalive")
        if self.loop is None and self.interval_ms > 0:
            self.loop = object()
            self.arm_tick(self.loop)
        if self.ttl_ms > 0:
            if self.ttl_ms > TIMER_MAX_MS:
                self.quirks.add("timer_overflow")
            ttl = self.ttl = object()
            self.later(self.ttl_ms, lambda: self.expire(ttl))

    def arm_tick(self, loop: object) -> None:
        self.later(self.interval_ms, lambda: self.tick(loop))

    def tick(self, loop: object) -> None:
        if self.loop is not loop:
            return
        if self.ttl is not None and any(at == self.now_ms and rank for at, rank, *_ in self.queue):
            self.ties.add(self.now_ms)
        self.arm_tick(loop)
        if self.ticking is not None:
            return
        mark = self.ticking = object()

        def ended() -> None:
            if self.ticking is mark:
                self.ticking = None

        self.guarded_start(ended)

    def stop_loop(self) -> None:
        self.loop = None
        self.ticking = None

    def expire(self, ttl: object) -> None:
        if self.ttl is not ttl:
            return
        self.ttl = None
        if self.closed:
            return
        if self.tripped:
            self.quirks.add("ttl_after_trip")
        self.ttl_at.append(self.now_ms)
        self.close()

    def close(self) -> None:
        self.closed = True
        self.stop_loop()
        self.ttl = None
        if self.stopped:
            return
        self.stopped = True
        if self.in_flight:
            self.quirks.add("stop_before_start_settles")
        if not self.config["hasStop"]:
            return
        if not (self.in_flight or self.succeeded):
            self.quirks.add("stop_without_start")
        self.call("stop", lambda ok: None)


def record(config: dict[str, Any], script: list[list[Any]], end_ms: int) -> Trace:
    """The trace that the recorded controller gives for a script."""
    model = _Model(config)
    sync = config.get("mode") == "sync"
    for t_ms, op in script:
        model.advance(t_ms - 1 if sync and t_ms == model.now_ms else t_ms)
        model.now_ms = t_ms
        model.reply_start() if op == "reply_start" else model.close()
        if not sync:
            model.advance(t_ms)
    model.advance(end_ms)
    timers = (model.loop is not None) + (model.ttl is not None)
    return {
        "config": config,
        "script": script,
        "end_ms": end_ms,
        "calls": model.calls,
        "ends": model.ends,
        "ttl_at": model.ttl_at,
        "timers_end": timers,
        "ties": {"timer": sorted(model.ties)},
        "quirks": sorted(model.quirks),
    }


def random_trace(seed: int) -> Trace:
    """A random script and what the recorded controller makes of it."""
    rng = random.Random(seed)
    config: dict[str, Any] = {"hasStop": rng.random() < 0.8}
    if rng.random() < 0.6:
        config["keepaliveIntervalMs"] = rng.choice([0, 1000, 3000, 4000, 7000, 9000])
    if rng.random() < 0.5:
        config["maxDurationMs"] = rng.choice([0, 1700, 5300, 15_500, 33_100, 60_000])
    if rng.random() < 0.4:
        config["maxConsecutiveFailures"] = rng.choice([0, 1, 2, 2.9, 3, 5])
    if rng.random() < 0.5:
        share = rng.choice([0.05, 0.3, 0.6])
        config["failStart"] = [n for n in range(60) if rng.random() < share]
    if rng.random() < 0.2:
        config["failStop"] = [0]
    if rng.random() < 0.5:
        slow = rng.choice([90, 450, 2500, 5100])
        config["startLatencyMs"] = [rng.randrange(1, slow) for _ in range(rng.randrange(1, 6))]
        config["stopLatencyMs"] = [rng.randrange(1, 900)]
        if rng.random() < 0.1:
            config["startLatencyMs"].append(None)
    if rng.random() < 0.1:
        config["mode"] = "sync"
    script: list[list[Any]] = []
    t_ms = 0
    for _ in range(rng.randrange(1, 7)):
        op = "reply_start" if not script or rng.random() < 0.7 else rng.choice(["idle", "cleanup"])
        script.append([t_ms, op])
        t_ms += rng.choice([0, 1, 2, 517, 2213, 5299, 11_510, 31_007, 61_003]) + rng.choice([0, rng.randrange(40)])
    return record(config, script, t_ms + 130_000)
