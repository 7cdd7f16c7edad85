"""Bytes per live conversation at three sizes, and what is left when all of them are gone.

Why: a daemon holds as many conversations as its bots have; what one costs decides how many fit, and what one leaves
behind decides for how long. A live conversation here has one open run, its ack replaced by a phase, typing on, its timers
armed, three actors, and the lanes of its message and its typing.

Bytes are those that `tracemalloc` counts: exact, the same on every machine, without the allocator's own loss. At the
largest size, where that would take too long, they are the growth of the resident set of a process of its own. The events'
strings count, as they would from a socket; the platform and the ledger of ended runs keep nothing. There a full collection
is timed, too: with many conversations it is the longest pause there is.

*Left behind* is looked at when all runs have ended, all conversations are put away and 25 hours have passed, so that no
ended run is remembered (until then each is, at most 100,000, and what that costs is a figure of its own). It is counted in
objects: empty tables keep the room they once needed, which is bytes but no leak.
"""

from __future__ import annotations

import gc
import multiprocessing
import resource
import sys
import time
import tracemalloc

from bench.harness import Figure, at_most, progress
from bench.stage import OPENING, RUN, ObedientPort, Stage, config, play

GOAL = at_most(3_700)
PROTOTYPE = "thin prototype: 3,700"
GOAL_LEFT = at_most(0.5)
"""Per conversation; a leak leaves whole objects for each."""
DAY_MS = 25 * 3_600_000
LIVE_MS = 2_000
"""From the opening to the measurement: ack, phase and typing show, and no keepalive is due."""
IDLE_MS = 120_000
"""Holds are over and idle conversations put away."""
BATCH = 500
"""Conversations that change at the same moment."""


def measure(size: int, warm_up: int, *, traced: bool) -> list[Figure]:
    """Open, look, end, look. ``warm_up`` runs fill the interpreter's pools of free objects before that."""
    if traced:
        tracemalloc.start()
    held = _traced if traced else _resident
    port = ObedientPort()
    stage = Stage(config(), port)
    _forget(stage, warm_up)
    base, objects = held(), sys.getallocatedblocks()
    _play(stage, size, opening=True)
    pause_ms = _collection_ms()
    live, checksum = held() - base, port.calls
    assert stage.conversations == size
    _play(stage, size, opening=False)
    assert stage.conversations == 0, f"{stage.conversations} conversations are still there"
    ended = held() - base
    _forget(stage, 1)
    left = sys.getallocatedblocks() - objects
    stage.close()
    tracemalloc.stop()
    how = "tracemalloc" if traced else "resident set"
    figures = [
        Figure(f"live conversation, of {size:,}", live / size, "bytes", GOAL, f"{how}; {PROTOTYPE}", checksum),
        Figure(
            f"left behind by each of {size:,}", max(left, 0) / size, "objects", GOAL_LEFT, "25 hours later", checksum
        ),
    ]
    if traced:
        note = "kept 24 hours, at most 100,000"
        figures.append(Figure(f"ended run, of {size:,}", ended / size, "bytes", None, note, checksum))
    else:
        figures.append(Figure(f"full collection at {size:,}", pause_ms, "ms", None, "the longest pause", checksum))
    return figures


def _play(stage: Stage, size: int, *, opening: bool) -> None:
    """Open a run in each of ``size`` conversations, or end them all."""
    for start in range(0, size, BATCH):
        chats = range(start, min(size, start + BATCH))
        play(stage, chats, "1", [(0, step) for _, step in OPENING] if opening else [(0, RUN[-1][1])], 0)
    stage.runtime.advance(LIVE_MS if opening else IDLE_MS)


def _forget(stage: Stage, runs: int) -> None:
    """A few runs, a day's silence, and one more run, which drops what is too old to be remembered."""
    play(stage, range(runs), "before", until_ms=IDLE_MS)
    stage.runtime.advance(DAY_MS)
    play(stage, range(1), str(stage.now_ms), until_ms=IDLE_MS)


def _traced() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def _resident() -> int:
    gc.collect()
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def _collection_ms() -> float:
    began_ns = time.perf_counter_ns()
    gc.collect()
    return (time.perf_counter_ns() - began_ns) / 1e6


def run(smoke: bool) -> list[Figure]:
    small, large = ((20, 60), 100) if smoke else ((1_000, 10_000), 100_000)
    figures = []
    for size in small:
        progress(f"memory: {size:,} conversations")
        figures += measure(size, small[0], traced=True)
    progress(f"memory: {large:,} conversations, in a process of its own")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        figures += pool.apply(measure, (large, small[0]), {"traced": False})
    return figures
