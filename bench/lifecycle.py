"""Whole runs per second through the whole tree, without I/O: received, thinking, a tool span, text, done, hold, settle.

Why: this is what livesign costs beside its sockets: router, run table, two actors and two machines per conversation,
lanes, pacing and timers. Six events, ten calls and about twenty timers make a run; typing is on.

It runs under the manual driver on virtual time, against a platform that obeys at once. The peer is a bare `tell` to an
actor that counts, on the same driver: how many tells a run is worth says what the code costs whatever the machine is.
The price of many: the same with most conversations alive and idle, where it must not depend on their number.
"""

from __future__ import annotations

from actors.runtime import Runtime
from bench.harness import Counting, Figure, at_least, at_most, duel, progress, rate
from bench.stage import Stage, WatchedPort, config, play

PROTOTYPE_RUNS = 15_000
"""Runs per second of a thin prototype on an idle machine; its bare tell was 2.4 million per second there."""

GOAL_WORTH = at_most(160)
"""What the prototype's figures come to."""
GOAL_CROWD = at_least(0.67)
"""At most 1.5 times the cost, however many there are."""


def tells(count: int) -> int:
    """Tell a counting actor ``count`` times; how often it was told."""
    runtime = Runtime.manual()
    ref = runtime.spawn(Counting)
    tell = ref.tell
    for _ in range(count):
        tell(None)
    runtime.run_until_idle()
    return int(ref.ask(None)) - 1


def _runs(stage: Stage, chats: range, turn: list[int]) -> float:
    """Runs per second of CPU time: one in each chat."""
    turn[0] += 1
    message = str(turn[0])
    return rate(len(chats), lambda: play(stage, chats, message))


def run(smoke: bool) -> list[Figure]:
    chats, told, turns = (20, 1_000, 1) if smoke else (500, 200_000, 7)
    port = WatchedPort()
    stage = Stage(config(), port)
    turn = [0]
    play(stage, range(chats), "warm-up")
    progress(f"lifecycle: {turns} rounds of {chats} runs side by side")
    calls = port.calls
    runs = duel(lambda: _runs(stage, range(chats), turn), lambda: rate(told, lambda: tells(told)), turns)
    calls = port.calls - calls
    assert not port.showing, f"{len(port.showing)} marks or indicators are left"
    worth = runs.peer / runs.ours
    stage.close()
    return [
        Figure(
            "whole runs",
            runs.ours,
            "1/s",
            peer=f"thin prototype: {PROTOTYPE_RUNS:,} on an idle machine",
            checksum=calls,
        ),
        Figure("a run's worth in tells", worth, "tells", GOAL_WORTH, f"bare tell, {runs.peer:,.0f}/s", calls),
        *_crowd(smoke, turns),
    ]


def _crowd(smoke: bool, turns: int) -> list[Figure]:
    """The same work with few and with many other conversations alive; both rest on the same virtual time."""
    active, few, many = (10, 20, 100) if smoke else (250, 500, 20_000)
    stages = []
    for size in (few, many):
        progress(f"lifecycle: opening {size:,} conversations")
        stage = Stage(config(conversation={"idle_ms": 86_400_000}), WatchedPort())
        play(stage, range(size), "0")
        stages.append((stage, [0]))
    (small, small_turn), (large, large_turn) = stages
    cost = duel(lambda: _runs(large, range(active), large_turn), lambda: _runs(small, range(active), small_turn), turns)
    checksum = large.conversations * 1_000 + small_turn[0]
    for stage, _ in stages:
        stage.close()
    note = f"the same runs with {few:,} conversations alive"
    return [Figure(f"runs among {many:,} conversations", cost.ratio, "ratio", GOAL_CROWD, note, checksum)]
