"""Minutes of traffic on every platform at its documented limits; ``python -m tests.soak`` plays half an hour."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from actors.presence.limits import Limit
from actors.presence.pacing import Pacing
from actors.presence.terms import Command, Op, Rank
from actors.sandbox.calls import Call
from tests.soak.documented import LIMITS, Limiter, Window
from tests.soak.soak import LimitedWorld, Soak, soak


@pytest.fixture(scope="module")
def full() -> Soak:
    return soak(minutes=2)


@pytest.fixture(scope="module")
def half() -> Soak:
    return soak(minutes=8, share=0.5)


@pytest.mark.parametrize("platform", LIMITS)
def test_no_documented_limit_is_exceeded_and_nothing_is_left(full: Soak, platform: str) -> None:
    assert full.platforms.refused[platform] == []
    assert full.problems == []


@pytest.mark.parametrize("platform", [name for name, windows in LIMITS.items() if windows])
def test_the_traffic_asks_for_more_than_the_limits_allow(full: Soak, platform: str) -> None:
    naive = full.naive[platform]
    assert naive.refused > 100
    assert full.calls[platform] < naive.calls


def test_where_half_is_granted_livesign_learns_and_never_calls_into_a_block(half: Soak) -> None:
    assert half.problems == []
    made = [call.t_ms for call in half.result.world.calls]
    refused = [at_ms for times in half.platforms.refused.values() for at_ms in times]
    assert 0 < len(refused) < 0.05 * len(made)
    learned_ms = 240_000
    assert sum(at_ms > learned_ms for at_ms in refused) < 0.02 * sum(at_ms > learned_ms for at_ms in made)


def test_the_counters_see_a_call_too_many() -> None:
    limiter = Limiter("discord")
    assert limiter.ask("set", "c", 0) == (0, None)
    assert limiter.ask("remove", "c", 249)[0] == 1
    assert limiter.ask("remove", "c", 250) == (0, None)
    matrix = Limiter("matrix")
    assert [matrix.ask("set", "c", 0)[0] for _ in range(11)] == [0] * 10 + [5_000]
    assert matrix.ask("set", "c", 5_000)[0] == 0


def test_the_platforms_see_calls_that_overlap_and_marks_that_change_too_fast() -> None:
    world = LimitedWorld(1.0, 0)
    for t_ms, emoji in ((0, "a"), (5, "b"), (900, "c"), (1_900, "d"), (2_400, "👍")):
        world.judge(Call(Op.SET, "telegram", "1", message="m", emoji=emoji), t_ms)
        world.judge(Call(Op.SET, "telegram", "2", message="m", emoji=emoji), t_ms)
        world.judge(Call(Op.TYPING_START, "telegram", "1", thread="7"), t_ms)
    assert [text.split(" ")[0] for text in world.overlaps] == ["telegram/1/m/:", "telegram/2/m/:", "telegram/1//7:"]
    assert [text.split(":")[0] for text in world.changes] == ["telegram/1/m", "telegram/2/m"]


def test_a_group_window_covers_ids_below_zero_only() -> None:
    window = Window(60_000, 20, by="group")
    assert [window.key(conversation) for conversation in ("-1001", "1")] == ["-1001", None]


LOW: Mapping[str, Limit] = {"group.marks": Limit(60_000, 20)}


@pytest.mark.parametrize(
    ("conversation", "op", "held"),
    [("-1001", Op.SET, True), ("1001", Op.SET, False), ("@name", Op.SET, False), ("-1001", Op.TYPING_START, False)],
)
def test_a_group_limit_paces_groups_and_no_private_chat(conversation: str, op: Op, held: bool) -> None:
    pacing = Pacing(LOW)
    message = "m" if op is Op.SET else None
    command = Command(op, conversation, message=message, emoji="x" if message else None)
    for _ in range(20):
        if pacing.check(command, Rank.TERMINAL, 0) == 0:
            pacing.spend(command, 0)
    assert (pacing.check(command, Rank.TERMINAL, 0) > 0) is held
