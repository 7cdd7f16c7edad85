"""Whole runs per second through the whole tree, without I/O: received, thinking, a tool span, text, done, hold, settle.

Why: this is what livesign costs beside its sockets: router, run table, two actors and two machines per conversation,
lanes, pacing and timers. Six events, ten calls and about twenty timers make a run; typing is on.

It runs under the manual driver on virtual time, against a platform that obeys at once. The peer is a bare `tell` to an
actor that counts, on the same driver: how many tells a run is worth says what the code costs whatever the machine is.
The price of many: the same with most conversations alive and idle, where it must not depend on their number.
"""

from __future__ import annotations

from typing import Any

from actors.runtime import Actor, Runtime
from bench.harness import Figure, at_least, at_most, duel, progress, rate
from bench.stage import OPENING, Stage, WatchedPort, config, play

PROTOTYPE_RUNS = 15_000
"""Runs per second of a thin prototype on an idle machine; its bare tell was 2.4 million per second there."""


class _Counting(Actor):
    """The peer: counts its messages."""

    mailbox_capacity = 1 << 40

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def on_receive(self, message: Any) -> Any:
        self.seen += 1
        return self.seen


def tells(count: int) -> int:
    """Tell a counting actor ``count`` times; how often it was told."""
    runtime = Runtime.manual()
    ref = runtime.spawn(_Counting)
    tell = ref.tell
    for _ in range(count):
        tell(None)
    runtime.run_until_idle()
    return int(ref.ask(None)) - 1
