"""5,000 concurrent runs in an asyncio bot: everything is shown, and the bot's loop stays the bot's."""

from __future__ import annotations

import asyncio

import pytest

from bench.embedding import Crowd, crowd_of

pytestmark = pytest.mark.real

RUNS = 5_000
TRIES = 3
"""Other processes may be in the way: what holds, holds in one of these."""


def kept(crowd: Crowd) -> bool:
    """Far looser than the goals of ``bench embedding``, which are 1 ms and 5 ms: here nobody knows who shares the machine."""
    return crowd.longest_ms <= 50.0 and (crowd.hub_share > 0.30 or crowd.p99_ms < 100.0)


def test_five_thousand_runs_do_not_hold_the_loop() -> None:
    crowds: list[Crowd] = []
    while len(crowds) < TRIES and not any(map(kept, crowds)):
        crowds.append(asyncio.run(crowd_of(RUNS, spread_s=14.0, live_s=18.0)))
        crowd = crowds[-1]
        assert crowd.done == crowd.most_open == RUNS
        assert crowd.calls >= 4 * RUNS
    assert any(map(kept, crowds)), crowds
