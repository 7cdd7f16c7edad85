"""Calls for the tests of pacing, and what counts their starts."""

from __future__ import annotations

from actors.presence.pacing import Pacing
from actors.presence.terms import Command, Op, Rank


def call(op: Op = Op.SET, conversation: str = "c", message: str | None = "m", thread: str | None = None) -> Command:
    return Command(op, conversation, thread, message)


def spend_greedily(
    pacing: Pacing, until_ms: int, rank: Rank = Rank.TERMINAL, command: Command | None = None, from_ms: int = 0
) -> list[int]:
    """Start a call whenever one is allowed, believing what ``check`` says about waiting."""
    command = command or call()
    starts, now_ms = [], from_ms
    while now_ms < until_ms:
        wait_ms = pacing.check(command, rank, now_ms)
        if wait_ms:
            assert wait_ms > now_ms
            now_ms = wait_ms
        else:
            pacing.spend(command, now_ms)
            starts.append(now_ms)
    return starts


def fullest_window(starts: list[int], window_ms: int) -> int:
    """Most starts in any half-open window of this length."""
    fullest = first = 0
    for last, at_ms in enumerate(starts):
        while starts[first] <= at_ms - window_ms:
            first += 1
        fullest = max(fullest, last - first + 1)
    return fullest
