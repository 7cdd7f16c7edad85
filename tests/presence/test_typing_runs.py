"""Several runs on one target, bare scopes, other threads, restarts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from actors.presence.terms import (
    OK,
    LaneRules,
    Outcome,
    OutcomeKind,
    RunKey,
    StartTyping,
    StopTyping,
    WithdrawTyping,
)
from actors.presence.typing import TypingMachine
from protocol import events
from tests.presence.typing_world import FAILED, LASTING, TypingWorld, assert_at_rest, info, policy

A, B = RunKey("a", "c", "a"), RunKey("a", "c", "b")


# --- runs --------------------------------------------------------------------------------------------------


def test_a_run_that_joins_makes_no_call_and_typing_is_on_while_any_run_wants_it() -> None:
    world = TypingWorld().open(0, "a").open(500, "b").tell(5010, "a", events.Done).tell(5020, "a", events.Done)
    world.tell(10_000, "b", events.Done)
    assert world.calls == [(0, "start"), (3000, "start"), (6000, "start"), (9000, "start"), (10_000, "stop")]
    assert_at_rest(world)


def test_a_target_knows_the_message_of_its_newest_run_that_has_one() -> None:
    world = TypingWorld().open(0, "a").open(10, "b")
    machine = world.machine
    assert machine.inbound == "b"
    machine.handle(replace(info("c", world.policy), message=None), events.Queued(account="a", conversation="c"), 20)
    assert machine.inbound == "b"
    world.tell(30, "b", events.Done)
    assert machine.inbound == "a"
    world.tell(40, "a", events.Done)
    assert machine.inbound is None


def test_a_run_that_joins_a_tripped_target_stays_quiet() -> None:
    world = TypingWorld(start_failures=1, probe_ms=0)
    world.answers[0] = (0, FAILED)
    world.open(0, "a").open(500, "b").advance(20_000)
    assert world.calls == [(0, "start")]


def test_a_run_that_joins_an_explicit_start_waits_for_its_end_with_its_ttl() -> None:
    world = TypingWorld(keepalive_ms=0, ttl_ms=10_000)
    world.answers[0] = (2000, OK)
    world.open(0, "a").open(500, "b").advance(1000)
    assert not world.machine.deadlines
    world.tell(5000, "a", events.Done).advance(60_000)
    assert world.stops == [12_000]


def test_the_settings_are_those_of_the_oldest_run_that_wants_typing() -> None:
    world = TypingWorld().open(0, "a", keepalive_ms=2000).open(100, "b", keepalive_ms=5000)
    world.tell(4500, "a", events.Done).advance(17_000)
    assert world.starts == [0, 2000, 4000, 6000, 11_000, 16_000]


def test_an_explicit_start_of_one_run_calls_although_another_has_typing_on() -> None:
    world = TypingWorld().open(0, "a").open(500, "b").tell(1000, "b", events.TypingStart).advance(4500)
    assert world.starts == [0, 1000, 4000]


def test_an_explicit_stop_of_one_run_leaves_the_other_typing() -> None:
    world = TypingWorld().open(0, "a").open(500, "b").tell(1000, "a", events.TypingStop).advance(4000)
    assert world.calls == [(0, "start"), (3000, "start")]


def test_a_chat_with_topics_is_known_from_its_runs() -> None:
    machine = TypingMachine()
    assert not machine.forum
    known = info("m", policy())
    received = events.Received(conversation="c", message="m", direct=False)
    machine.handle(type(known)(known.key, "m", "7", known.policy, True, True, forum=True), received, 0)
    assert machine.forum


# --- bare scopes -------------------------------------------------------------------------------------------


def test_a_bare_scope_types_until_it_is_stopped() -> None:
    world = TypingWorld().scope(0, "s").scope(4000, "s", events.TypingStop).scope(4001, "s", events.TypingStop)
    assert world.calls == [(0, "start"), (3000, "start"), (4000, "stop")]
    assert_at_rest(world)


def test_a_start_of_a_scope_that_is_on_renews_its_ttl_and_makes_no_call() -> None:
    world = TypingWorld(keepalive_ms=0, ttl_ms=10_000).scope(0, "s").scope(8000, "s").advance(60_000)
    assert world.calls == [(0, "start"), (18_000, "stop")]
    assert_at_rest(world)


def test_scopes_are_counted_by_name() -> None:
    world = TypingWorld(keepalive_ms=0, ttl_ms=0).scope(0, "s").scope(1, "t").scope(2, "s", events.TypingStop)
    assert world.stops == []
    assert world.scope(3, "t", events.TypingStop).stops == [3]


def test_a_scope_and_a_run_share_the_indicator() -> None:
    world = TypingWorld(keepalive_ms=0).open(0, "a").scope(100, "s").tell(200, "a", events.Done)
    assert world.scope(300, "s", events.TypingStop).calls == [(0, "start"), (300, "stop")]


def test_a_scope_start_after_a_trip_calls_again() -> None:
    world = TypingWorld(start_failures=1, probe_ms=0)
    world.answers[0] = (0, FAILED)
    assert world.scope(0, "s").scope(5000, "s").advance(8500).starts == [0, 5000, 8000]


def test_a_refused_scope_is_gone() -> None:
    world = TypingWorld()
    world.answers[0] = (0, Outcome(OutcomeKind.GONE))
    assert world.scope(0, "s").calls == [(0, "start")]
    assert_at_rest(world)


def test_a_scope_does_not_wait_longer_than_its_ttl_for_its_first_start() -> None:
    world = TypingWorld(ttl_ms=10_000)
    world.blocked = True
    assert world.scope(0, "s").unblock(14_000).advance(60_000).calls == []
    assert_at_rest(world)


# --- another thread ----------------------------------------------------------------------------------------


def move(key: RunKey, before: TypingWorld, after: TypingWorld, at_ms: int) -> None:
    before.advance(at_ms)
    after.advance(at_ms)
    wish, effects = before.machine.leave(key, at_ms)
    before.perform(effects)
    assert wish is not None
    after.perform(after.machine.join(wish, at_ms))
    before.settle()
    after.tell(at_ms, key.run, events.Moved, thread="7")


def test_a_run_that_moves_stops_here_and_starts_there_with_its_own_state() -> None:
    here, there = TypingWorld(), TypingWorld()
    here.open(0, "a", ttl_ms=10_000)
    move(A, here, there, 2000)
    there.advance(60_000)
    assert here.calls == [(0, "start"), (2000, "stop")]
    assert there.calls == [
        (2000, "start"),
        (5000, "start"),
        (8000, "start"),
        (11_000, "start"),
        (12_000, "stop"),
    ]
    assert_at_rest(here)


def test_a_run_that_moves_joins_what_is_on_there_and_leaves_what_others_want_here() -> None:
    here, there = TypingWorld(), TypingWorld()
    here.open(0, "a").open(0, "b")
    there.open(0, "x")
    move(B, here, there, 1000)
    there.tell(1500, "x", events.Done)
    assert here.advance(3000).calls == [(0, "start"), (3000, "start")]
    assert there.advance(3000).calls == [(0, "start"), (3000, "start")]


def test_a_stopped_run_stays_stopped_where_it_moves() -> None:
    here, there = TypingWorld(), TypingWorld()
    here.open(0, "a").tell(500, "a", events.TypingStop)
    move(A, here, there, 1000)
    assert there.advance(9000).calls == []
    assert here.machine.leave(A, 9000) == (None, ())


# --- restart -----------------------------------------------------------------------------------------------


def restart(world: TypingWorld, at_ms: int) -> list[type]:
    """The actor has crashed and is back at ``at_ms``; what the machine tells again, timers left out."""
    world.armed.clear()
    world.sleep(at_ms)
    effects = world.machine.restart(at_ms)
    world.perform(effects)
    world.settle()
    return [type(effect) for effect in effects if not hasattr(effect, "key")]


def test_after_a_restart_the_cadence_and_the_ttl_go_on() -> None:
    world = TypingWorld(ttl_ms=10_000).open().advance(4000)
    assert restart(world, 5000) == []
    assert world.advance(60_000).calls == [
        (0, "start"), (3000, "start"), (6000, "start"), (9000, "start"), (10_000, "stop"),
    ]  # fmt: skip


def test_after_a_restart_a_start_without_an_answer_is_made_again() -> None:
    world = TypingWorld()
    world.answers[0] = (None, OK)
    world.open()
    assert restart(world, 500) == [StartTyping]
    world.end_call(600, OK)
    assert world.advance(4000).starts == [0, 600, 3600]


def test_after_a_restart_a_refresh_without_an_answer_is_made_again_on_the_same_cadence() -> None:
    world = TypingWorld()
    world.answers[1] = (None, OK)
    world.open().advance(3100)
    assert restart(world, 3500) == [StartTyping]
    world.end_call(3600, OK)
    assert world.advance(9000).starts == [0, 3000, 3600, 6000, 9000]


def test_after_a_restart_a_stop_that_was_not_confirmed_is_told_again() -> None:
    world = TypingWorld()
    world.answers[1] = (None, OK)
    world.open().tell(500, "m", events.Done)
    assert restart(world, 1000) == [StopTyping]
    assert world.stops == [500]
    world.end_call(1100, OK)
    assert world.machine.idle


def test_after_a_restart_a_stop_that_was_confirmed_is_not_told_again() -> None:
    world = TypingWorld().open().tell(500, "m", events.TypingStop)
    assert restart(world, 1000) == []
    world.tell(1500, "m", events.TypingStart)
    assert restart(world, 2000) == []


def test_after_a_restart_while_posting_the_waiting_start_is_withdrawn_again() -> None:
    world = TypingWorld()
    world.answers[0] = (None, OK)
    world.open().tell(500, "m", events.Sending)
    assert restart(world, 1000) == [WithdrawTyping]
    world.end_call(1100, OK)
    assert world.tell(1200, "m", events.Sent).starts == [0, 1200]
    world.tell(1300, "m", events.Sending).tell(1500, "m", events.Done)
    assert restart(world, 2000) == [WithdrawTyping]


def test_after_a_restart_an_answer_that_was_lost_is_not_waited_for() -> None:
    world = TypingWorld()
    world.answers[0] = (None, OK)
    world.open().tell(100, "m", events.Sent).tell(500, "m", events.Sending)
    restart(world, 1000)
    sent = events.Sent(conversation="c", run="m")
    (start,) = (e for e in world.machine.handle(world.infos["m"], sent, 1100) if isinstance(e, StartTyping))
    effects = world.machine.on_started(start.token, OK, 1200)
    assert not any(isinstance(effect, StartTyping) for effect in effects)


@pytest.mark.parametrize("rules", [LASTING, LaneRules(typing_stop=False), LaneRules(typing=False)])
def test_whatever_the_platform_can_do_nothing_is_left_over(rules: LaneRules) -> None:
    world = TypingWorld(rules).open(0, "a").scope(10, "s").tell(20, "a", events.Done)
    world.scope(30, "s", events.TypingStop).advance(60_000)
    assert_at_rest(world)
