"""What failing calls do to typing: the guard, its probe, limits and refusals."""

from __future__ import annotations

import pytest

from actors.presence.terms import OK, Outcome, OutcomeKind
from protocol import events
from tests.presence.typing_world import FAILED, TypingWorld, assert_at_rest

FORBIDDEN = Outcome(OutcomeKind.FORBIDDEN)
LIMITED = Outcome(OutcomeKind.RATE_LIMITED, retry_after_ms=6000)


# --- guard -------------------------------------------------------------------------------------------------


def test_a_trip_sends_no_stop_and_stays_quiet_until_the_end() -> None:
    world = TypingWorld(probe_ms=0)
    world.answers.update({1: (0, FAILED), 2: (0, FAILED)})
    world.open().advance(30_000)
    assert world.calls == [(0, "start"), (3000, "start"), (6000, "start")]
    world.tell(31_000, "m", events.Done)
    assert world.stops == [31_000]
    assert_at_rest(world)


def test_a_trip_is_left_by_an_explicit_start() -> None:
    world = TypingWorld(probe_ms=0, start_failures=1)
    world.answers[0] = (0, FAILED)
    world.open().tell(7000, "m", events.TypingStart).advance(10_500)
    assert world.starts == [0, 7000, 10_000]


def test_a_probe_tries_again_and_again_after_a_trip() -> None:
    world = TypingWorld(probe_ms=20_000, start_failures=1, ttl_ms=0)
    world.answers.update({0: (0, FAILED), 1: (0, FAILED), 2: (0, LIMITED)})
    world.open().advance(66_500)
    assert world.starts == [0, 20_000, 40_000, 60_000, 63_000, 66_000]


def test_a_success_between_two_failures_keeps_the_guard_from_tripping() -> None:
    world = TypingWorld()
    world.answer = lambda nth, op: (0, FAILED if nth % 2 else OK)
    world.open().advance(30_000)
    assert len(world.starts) == 11


@pytest.mark.parametrize("failures_max", [0, 1])
def test_a_guard_of_0_trips_like_a_guard_of_1(failures_max: int) -> None:
    world = TypingWorld(start_failures=failures_max, probe_ms=0)
    world.answer = lambda nth, op: (0, FAILED)
    assert world.open().advance(30_000).starts == [0]


def test_rate_limited_is_no_failure_and_the_ticks_go_on() -> None:
    world = TypingWorld(start_failures=1)
    world.answer = lambda nth, op: (0, LIMITED)
    assert world.open().advance(10_000).starts == [0, 3000, 6000, 9000]


def test_auth_trips_at_once() -> None:
    world = TypingWorld(start_failures=5, probe_ms=0)
    world.answers[1] = (0, Outcome(OutcomeKind.AUTH))
    assert world.open().advance(30_000).starts == [0, 3000]


def test_typing_that_begins_anew_has_a_fresh_guard() -> None:
    world = TypingWorld(start_failures=2, probe_ms=0)
    world.answers.update({1: (0, FAILED), 3: (0, FAILED)})
    world.open().tell(4000, "m", events.Waiting, on="user").tell(5000, "m", events.Thinking)
    assert world.advance(12_000).starts == [0, 3000, 5000, 8000, 11_000]


@pytest.mark.parametrize("kind", ["gone", "forbidden", "bad_request", "invalid_reaction"])
def test_a_refused_start_ends_typing_for_the_open_runs(kind: str) -> None:
    world = TypingWorld(start_failures=9)
    world.answers[0] = (0, Outcome(OutcomeKind(kind)))
    world.open(0, "a").tell(10, "a", events.Thinking).tell(40_000, "a", events.Progress).advance(50_000)
    assert world.calls == [(0, "start")]
    world.open(50_000, "b")
    world.tell(51_000, "b", events.Done)
    assert world.calls[1:] == [(50_000, "start"), (51_000, "stop")]
    world.tell(52_000, "a", events.TypingStart)
    assert world.starts[-1] == 52_000


def test_a_refused_refresh_stops_what_is_on() -> None:
    world = TypingWorld()
    world.answers[1] = (0, FORBIDDEN)
    world.open().advance(20_000)
    assert world.calls == [(0, "start"), (3000, "start"), (3000, "stop")]
    assert not world.machine.deadlines
