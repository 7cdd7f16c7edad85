"""One run's typing: the cadence of its calls, its TTL, and how it stops."""

from __future__ import annotations

import pytest

from actors.presence.terms import OK, LaneRules, Outcome, OutcomeKind, StopTyping
from actors.presence.typing import TypingMachine
from protocol import events
from tests.presence.typing_world import FAILED, TypingWorld, assert_at_rest, info, policy

LIMITED = Outcome(OutcomeKind.RATE_LIMITED, retry_after_ms=6000)


# --- cadence -----------------------------------------------------------------------------------------------


def test_typing_starts_at_once_and_is_refreshed_until_the_run_ends() -> None:
    world = TypingWorld().open().tell(7000, "m", events.Done)
    assert world.calls == [(0, "start"), (3000, "start"), (6000, "start"), (7000, "stop")]
    assert_at_rest(world)


def test_the_interval_and_the_ttl_count_from_the_end_of_the_first_start() -> None:
    world = TypingWorld(ttl_ms=10_000)
    world.answers[0] = (450, OK)
    world.open().advance(60_000)
    assert world.calls == [(0, "start"), (3450, "start"), (6450, "start"), (9450, "start"), (10_450, "stop")]


def test_ticks_stay_on_the_grid_and_are_skipped_while_a_call_is_in_flight() -> None:
    world = TypingWorld()
    world.answer = lambda nth, op: (4100, OK)
    world.open().tell(25_000, "m", events.Silent).advance(40_000)
    assert world.starts == [0, 7100, 13_100, 19_100]
    assert world.stops == [25_000]


def test_a_tick_due_with_the_ttl_does_not_happen() -> None:
    world = TypingWorld(ttl_ms=9000).open().advance(20_000)
    assert world.calls == [(0, "start"), (3000, "start"), (6000, "start"), (9000, "stop")]


def test_after_a_sleep_one_tick_fires_and_the_next_is_back_on_the_grid() -> None:
    world = TypingWorld(ttl_ms=0).open().sleep(10_700).advance(13_000)
    assert world.starts == [0, 10_700, 12_000]


def test_an_interval_of_0_makes_one_start_and_one_stop() -> None:
    world = TypingWorld(keepalive_ms=0, ttl_ms=0).open().advance(500_000)
    assert not world.machine.deadlines
    world.tell(500_001, "m", events.Done)
    assert world.calls == [(0, "start"), (500_001, "stop")]
    assert_at_rest(world)


def test_with_an_interval_of_0_a_failed_start_is_tried_again_by_the_probe() -> None:
    world = TypingWorld(keepalive_ms=0, probe_ms=5000)
    world.answers[0] = (0, FAILED)
    world.open().advance(20_000)
    assert world.starts == [0, 5000]


def test_without_a_stop_call_typing_is_only_left_to_end() -> None:
    world = TypingWorld(LaneRules(typing_stop=False)).open().tell(4000, "m", events.Cancelled)
    assert world.calls == [(0, "start"), (3000, "start")]
    assert_at_rest(world)


def test_an_explicit_start_calls_now_and_counts_ticks_and_ttl_anew() -> None:
    world = TypingWorld(ttl_ms=5000).open().tell(4000, "m", events.TypingStart).advance(20_000)
    assert world.calls == [(0, "start"), (3000, "start"), (4000, "start"), (7000, "start"), (9000, "stop")]


def test_an_explicit_start_in_a_tick_joins_its_call() -> None:
    world = TypingWorld()
    world.answers[1] = (900, OK)
    world.open().tell(3500, "m", events.TypingStart).advance(10_000)
    assert world.starts == [0, 3000, 6900, 9900]


def test_an_explicit_start_that_joined_a_failing_call_makes_its_own() -> None:
    world = TypingWorld(start_failures=1)
    world.answers[1] = (900, FAILED)
    world.open().tell(3500, "m", events.TypingStart).advance(10_000)
    assert world.starts == [0, 3000, 3900, 6900, 9900]


def test_an_explicit_start_that_joined_a_limited_call_waits_for_its_tick() -> None:
    world = TypingWorld()
    world.answers[1] = (900, LIMITED)
    world.open().tell(3500, "m", events.TypingStart).advance(7000)
    assert world.starts == [0, 3000, 6900]


# --- TTL ---------------------------------------------------------------------------------------------------


def test_every_event_of_the_run_moves_the_ttl() -> None:
    world = TypingWorld(keepalive_ms=0, ttl_ms=10_000).open()
    for at_ms in range(9000, 90_000, 9000):
        world.tell(at_ms, "m", events.Restore)
    world.advance(200_000)
    assert world.calls == [(0, "start"), (91_000, "stop")]


def test_after_the_ttl_only_progress_types_again() -> None:
    world = TypingWorld(keepalive_ms=0, ttl_ms=10_000).open()
    world.tell(20_000, "m", events.Alive).tell(21_000, "m", events.Restore)
    assert world.calls == [(0, "start"), (10_000, "stop")]
    world.tell(1_000_000, "m", events.ToolEnd, call="x").advance(2_000_000)
    assert world.calls[2:] == [(1_000_000, "start"), (1_010_000, "stop")]


def test_a_failed_first_start_arms_the_ttl_too() -> None:
    world = TypingWorld(ttl_ms=8000, start_failures=1, probe_ms=0)
    world.answers[0] = (100, FAILED)
    world.open()
    world.advance(200)
    assert world.machine.deadlines == {"wishes": 8100}
    world.advance(8100)
    assert not world.machine.wanted
    assert world.calls == [(0, "start")]


def test_the_ttl_is_each_runs_own() -> None:
    world = TypingWorld().open(0, "a", ttl_ms=10_000).open(4000, "b", ttl_ms=10_000)
    world.advance(30_000)
    assert world.starts == [0, 3000, 6000, 9000, 12_000]
    assert world.stops == [14_000]
    world.tell(30_000, "a", events.Progress)
    assert world.starts[-1] == 30_000


def test_a_ttl_that_is_noticed_late_stops_before_the_next_event_starts_again() -> None:
    world = TypingWorld(keepalive_ms=0, ttl_ms=10_000).open()
    world.now_ms = 50_000
    effects = world.machine.handle(info("m", world.policy), events.Progress(conversation="c", run="m"), 50_000)
    assert [type(effect).__name__ for effect in effects if not hasattr(effect, "key")] == [
        "StopTyping",
        "StartTyping",
    ]


# --- stop --------------------------------------------------------------------------------------------------


def test_a_stop_never_overtakes_a_start_in_flight() -> None:
    world = TypingWorld()
    world.answers[0] = (2000, OK)
    world.open().tell(500, "m", events.Done)
    assert world.calls == [(0, "start")]
    assert world.machine.active
    world.advance(60_000)
    assert world.calls == [(0, "start"), (2000, "stop")]
    assert_at_rest(world)


def test_nothing_is_stopped_where_no_start_has_succeeded() -> None:
    world = TypingWorld()
    world.answers[0] = (2000, FAILED)
    world.open().tell(500, "m", events.Done).advance(60_000)
    assert world.calls == [(0, "start")]
    assert_at_rest(world)


def test_a_start_that_never_began_is_withdrawn_by_the_stop() -> None:
    world = TypingWorld()
    world.blocked = True
    world.open().tell(8000, "m", events.Done).unblock(9000).advance(60_000)
    assert world.calls == []
    assert_at_rest(world)


def test_ending_twice_stops_once_and_late_events_change_nothing() -> None:
    world = TypingWorld().open().tell(1000, "m", events.Done)
    for kind in (
        events.Done,
        events.Thinking,
        events.Progress,
        events.Received,
        events.TypingStart,
        events.Clear,
    ):
        world.tell(2000, "m", kind)
    world.tell(3000, "m", events.Sent).advance(90_000)
    assert world.calls == [(0, "start"), (1000, "stop")]
    assert_at_rest(world)


def test_a_late_answer_from_before_the_stop_changes_nothing() -> None:
    world = TypingWorld(start_failures=1, probe_ms=0)
    world.answers[0] = (5000, FAILED)
    world.open().tell(1000, "m", events.TypingStop).tell(1500, "m", events.TypingStart).advance(9000)
    assert world.starts == [0, 5000, 8000]


@pytest.mark.parametrize("kind", [events.Done, events.Cancelled, events.Silent, events.Error, events.Clear])
def test_every_terminal_ends_typing(kind: type[events.Event]) -> None:
    world = TypingWorld().open().tell(1000, "m", kind)
    assert world.stops == [1000]
    assert_at_rest(world)


def test_an_error_of_a_lane_is_only_progress() -> None:
    world = TypingWorld().open().tell(1000, "m", events.Error, scope="lane").advance(3000)
    assert world.calls == [(0, "start"), (3000, "start")]


def test_an_explicit_stop_holds_until_the_next_explicit_start() -> None:
    world = TypingWorld().open().tell(1000, "m", events.TypingStop)
    world.tell(2000, "m", events.Thinking).tell(3000, "m", events.Text).tell(40_000, "m", events.TypingStart)
    world.tell(41_000, "m", events.Done)
    assert world.calls == [(0, "start"), (1000, "stop"), (40_000, "start"), (41_000, "stop")]


def test_the_end_of_an_older_stop_does_not_hide_what_was_started_since() -> None:
    world = TypingWorld().open()
    known = world.infos["m"]
    machine = world.machine
    stop = events.TypingStop(conversation="c", run="m")
    machine.handle(known, stop, 1000)
    machine.handle(known, events.TypingStart(conversation="c", run="m"), 1001)
    machine.on_stopped(OK, 1002)
    assert machine.active
    assert any(isinstance(effect, StopTyping) for effect in machine.handle(known, stop, 1003))


def test_a_stop_that_fails_is_not_told_twice() -> None:
    world = TypingWorld()
    world.answers[1] = (0, FAILED)
    world.open().tell(1000, "m", events.Done).advance(60_000)
    assert world.calls == [(0, "start"), (1000, "stop"), (1500, "stop")]
    assert sum(isinstance(effect, StopTyping) for effect in world.effects) == 1
    assert_at_rest(world)


def test_only_the_last_hundred_ended_runs_are_remembered_here() -> None:
    world = TypingWorld()
    for number in range(101):
        world.open(number, f"r{number}").tell(number, f"r{number}", events.Done)
    assert not world.tell(200, "r1", events.Thinking).machine.wanted
    assert world.tell(200, "r0", events.Thinking).machine.wanted


def test_a_machine_that_was_never_told_anything_is_idle() -> None:
    machine = TypingMachine()
    assert machine.idle
    thinking = events.ToolEnd(conversation="c", run="m", call="x")
    assert not machine.handle(info("m", policy()), thinking, 0)
    assert not machine.on_timeout("tick", 5)
    assert not machine.on_started(1, OK, 5)
    assert not machine.on_stopped(OK, 5)
    assert machine.idle
