"""Choosing the next call costs the same however many lanes wait: counted in lines of code, not in time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import pytest

from actors.presence.lanes import Begin, Lanes
from actors.presence.pacing import Limit
from actors.presence.terms import OK, Outcome, Rank
from tests.presence.lane_world import World, make_lanes, refusal

FEW, MANY = 100, 2_000
HOUR_MS = 3_600_000


def lines_of(work: Callable[[], object]) -> int:
    """How many lines of Python ``work`` runs."""
    lines = 0

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return lines


def many_conversations(count: int) -> Lanes:
    lanes = make_lanes()
    for number in range(count):
        lanes.show(f"c{number}", "m", ("👍",), Rank.TERMINAL, 0)
    return lanes


def many_messages(count: int) -> Lanes:
    lanes = make_lanes()
    for number in range(count):
        lanes.show("c", f"m{number}", ("👍",), Rank.TERMINAL, 0)
    return lanes


def many_behind_a_limit(count: int) -> Lanes:
    """All conversations but one have spent their budget, and all lanes of a higher class wait for the account's."""
    lanes = make_lanes({"conversation": Limit(HOUR_MS, 1), "account.remove": Limit(HOUR_MS, 1)})
    for number in range(count):
        for message in "mn":
            lanes.show(f"c{number}", message, ("👍",), Rank.TERMINAL, 0)
    world = World(lanes)
    world.run(100)
    lanes.show("free", "m", ("👍",), Rank.TYPING, 100)
    lanes.show("free", "n", ("👍",), Rank.TYPING, 100)
    return lanes


def many_in_a_blocked_account(count: int) -> Lanes:
    def answer(begin: Begin, at_ms: int) -> Outcome:
        return refusal("rate_limited", retry_after_ms=HOUR_MS, scope="account") if at_ms <= 50 else OK

    lanes = make_lanes()
    world = World(lanes, answer)
    world.show("first", "m", "👍")
    world.run(60)
    for number in range(count):
        lanes.show(f"c{number}", "m", ("👍",), Rank.TERMINAL, 60)
        lanes.type_start(f"c{number}", None, number, 60)
    return lanes


WORLDS = [many_conversations, many_messages, many_behind_a_limit, many_in_a_blocked_account]


@pytest.mark.parametrize("world", WORLDS)
def test_the_next_call_is_found_in_the_same_number_of_steps_whatever_waits(world: Callable[[int], Lanes]) -> None:
    def choose(lanes: Lanes) -> None:
        for _ in range(3):
            lanes.next(200)
        lanes.wake_at_ms()

    few, many = (lines_of(partial(choose, world(count))) for count in (FEW, MANY))
    assert few > 20
    assert many <= few


@pytest.mark.parametrize("world", WORLDS)
def test_a_wish_and_an_answer_cost_the_same_whatever_waits(world: Callable[[int], Lanes]) -> None:
    def change(lanes: Lanes) -> None:
        lanes.show("other", "m", ("👍",), Rank.ACK, 200)
        lanes.show("other", "m", (), Rank.TERMINAL, 200)
        lanes.end(1, OK, 200)

    few, many = (lines_of(partial(change, world(count))) for count in (FEW, MANY))
    assert few > 20
    assert many <= few


def test_lanes_that_wake_one_by_one_cost_the_logarithm_of_those_that_sleep() -> None:
    def steps(count: int) -> float:
        lanes = make_lanes({"message": Limit(HOUR_MS, 1)})
        world = World(lanes)
        for number in range(count):
            world.now_ms = number
            world.show(f"c{number}", "m", "👀", rank=Rank.ACK)
            world.show(f"c{number}", "m", "👍")
        world.run(HOUR_MS - 1)
        return sum(lines_of(partial(lanes.next, HOUR_MS + number)) for number in range(50)) / 50

    assert steps(MANY) <= 1.5 * steps(FEW)
