"""Bytes per live conversation at three sizes, and what is left when all of them are gone.

Why: a daemon holds as many conversations as its bots have; what one costs decides how many fit, and what one leaves
behind decides for how long. A live conversation here has one open run, its ack replaced by a phase, typing on, its timers
armed, three actors, and the lanes of its message and its typing.

Bytes are those `tracemalloc` counts, so exact and the same on every machine, and without the allocator's own loss. The
events' strings count, as they would from a socket; the platform keeps nothing. A full collection is timed at each size:
at many conversations it is the longest pause there is. *Left behind* is measured after all runs ended, all conversations
were put away and 25 hours passed, when nothing is remembered of ended runs any more; until then each is (24 hours, at
most 100,000), and what that costs is a figure of its own.
"""

from __future__ import annotations

import gc
import time
import tracemalloc

from bench.harness import Figure, at_most, progress
from bench.stage import OPENING, RUN, ObedientPort, Stage, config, play

PROTOTYPE_BYTES = 3_700
GOAL = at_most(PROTOTYPE_BYTES)
GOAL_LEFT = at_most(32)
"""Per conversation: tables keep the room they once needed."""
DAY_MS = 25 * 3_600_000
LIVE_MS = 2_000
"""From the opening to the measurement: ack, phase and typing show, and no keepalive is due."""
BATCH = 1_000


def _held() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def _collection_ms() -> float:
    began_ns = time.perf_counter_ns()
    gc.collect()
    return (time.perf_counter_ns() - began_ns) / 1e6


def measure(size: int) -> list[Figure]:
    """Open, look, end, look."""
    port = ObedientPort()
    tracemalloc.start()
    try:
        stage = Stage(config(), port)
        play(stage, range(10), "warm-up")
        stage.runtime.advance(DAY_MS)
        base = _held()
        play(stage, range(size), "1", OPENING, LIVE_MS)
        pause_ms = _collection_ms()
        live = (_held() - base) / size
        checksum = port.calls
        assert stage.conversations == size
        play(stage, range(size), "1", [(0, RUN[-1][1])], 120_000)
        assert stage.conversations == 0, f"{stage.conversations} conversations are still there"
        ended = (_held() - base) / size
        stage.runtime.advance(DAY_MS)
        play(stage, range(1), "2", until_ms=120_000)
        left = (_held() - base) / size
        stage.close()
    finally:
        tracemalloc.stop()
    return [
        Figure(f"a live conversation, {size:,} of them", live, "bytes", GOAL, f"thin prototype: {PROTOTYPE_BYTES:,}", checksum),
        Figure(f"an ended run, {size:,} of them", ended, "bytes", None, "kept for 24 hours, at most 100,000", checksum),
        Figure(f"left behind, {size:,} of them", left, "bytes", GOAL_LEFT, "a day after the end", checksum),
        Figure(f"full collection at {size:,}", pause_ms, "ms", None, "tracemalloc on", checksum),
    ]


def run(smoke: bool) -> list[Figure]:
    figures = []
    for size in (50, 200) if smoke else (1_000, 10_000, 100_000):
        progress(f"memory: {size:,} conversations")
        figures += measure(size)
    return figures
