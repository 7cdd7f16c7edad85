"""Nothing is forgotten over a restart, and nothing is kept longer than needed."""

from __future__ import annotations

from actors.presence.marks import Mark
from actors.presence.terms import OK, Op, Rank, RetryRules, TypingReport
from tests.presence.lane_world import ADD_REMOVE, World, down_until, make_lanes, refusal

DAY_MS = 86_400_000


# --- restarts and late answers -------------------------------------------------------------------------------


def test_after_a_restart_calls_under_way_are_made_once_more_with_the_same_key() -> None:
    world = World(make_lanes(), latency_ms=10_000)
    world.show("c", "m", "👍")
    world.pump()
    world.lanes.restart(100)
    world.under_way.clear()
    world.now_ms = 100
    world.latency_ms = 50
    world.run(20_000)
    first, second = (begin for _, begin in world.calls)
    assert second.call_id != first.call_id
    assert second.command == first.command
    assert world.lanes.counters["retries"] == 1
    assert world.lanes.shown_marks() == {("c", "m"): {"👍": None}}


def test_a_restart_is_no_evidence_of_an_outage() -> None:
    world = World(make_lanes(), latency_ms=10_000)
    for number in range(20):
        world.show(f"c{number}", "m", "👍")
    world.pump()
    world.lanes.restart(100)
    world.now_ms = 100
    assert len(world.pump()) == 20


def test_a_restart_during_an_outage_lets_another_probe_go() -> None:
    world = World(make_lanes(), down_until(10_000))
    for number in range(20):
        world.show(f"c{number}", "m", "👍")
    world.run(1_500)
    world.under_way.clear()
    world.lanes.restart(1_500)
    world.run(600_000)
    assert len(world.lanes.shown_marks()) == 20


def test_a_late_answer_changes_nothing() -> None:
    world = World(make_lanes())
    world.show("c", "m", "👍")
    begin = world.pump()[0]
    world.lanes.restart(10)
    assert world.lanes.end(begin.call_id, refusal("auth"), 20) == []
    assert world.lanes.end(9_999, OK, 20) == []
    assert world.lanes.stopped is None
    assert world.lanes.counters["late_answers"] == 2


# --- keeping and dropping ------------------------------------------------------------------------------------


def test_lanes_are_dropped_when_nothing_is_shown_or_wanted() -> None:
    world = World(make_lanes(rules=ADD_REMOVE))
    for number in range(100):
        world.show(f"c{number}", "m", "👀")
        world.lanes.type_start(f"c{number}", None, number, 0)
    world.run(1_000)
    assert len(world.lanes) == 200
    for number in range(100):
        world.show(f"c{number}", "m")
        world.lanes.type_stop(f"c{number}", None, 1_000)
    world.run(2_000)
    assert len(world.lanes) == 0
    assert world.lanes.snapshot(2_000)["conversations"] == 0


def test_a_mark_that_stays_is_let_go_once_it_is_confirmed() -> None:
    world = World(make_lanes())
    world.show("c", "m", "👍")
    world.lanes.release("c", "m", 0)
    assert len(world.lanes) == 1
    world.run(1_000)
    assert len(world.lanes) == 0
    assert world.lanes.release("c", "m", 1_000) == []


def test_a_mark_left_by_an_earlier_process_can_be_taken_away() -> None:
    world = World(make_lanes(rules=ADD_REMOVE))
    world.lanes.adopt("c", "m", "👀", Mark("$event"), 0)
    world.lanes.adopt("c", "m", "🤔", Mark("$other"), 0)
    world.show("c", "m")
    world.run(1_000)
    assert [(b.command.op, b.command.emoji, b.command.handle) for _, b in world.calls] == [
        (Op.REMOVE, "👀", "$event"), (Op.REMOVE, "🤔", "$other"),
    ]  # fmt: skip
    assert len(world.lanes) == 0


def test_typing_that_has_not_begun_can_be_withdrawn() -> None:
    world = World(make_lanes())
    world.lanes.type_start("c", None, 5, 0)
    assert world.lanes.type_withdraw("c", None, 10) == [TypingReport("c", None, 5, OK, called=False)]
    assert world.lanes.type_withdraw("c", None, 10) == []
    assert world.pump() == []
    assert len(world.lanes) == 0


def test_stopping_typing_that_never_started_is_answered_at_once() -> None:
    world = World(make_lanes())
    assert world.lanes.type_stop("c", None, 0) == [TypingReport("c", None, None, OK, called=False)]


def test_idle_means_nothing_under_way_nothing_waiting_and_nothing_backing_off() -> None:
    world = World(make_lanes(), down_until(400))
    idle = [world.lanes.idle]
    world.show("c", "m", "👍")
    idle.append(world.lanes.idle)
    world.pump()
    idle.append(world.lanes.idle)
    world.run(200)
    idle.append(world.lanes.idle)
    world.run(2_000)
    assert [*idle, world.lanes.idle] == [True, False, False, False, True]


def test_the_snapshot_tells_what_waits_and_what_is_blocked() -> None:
    world = World(make_lanes(), lambda begin, at_ms: refusal("rate_limited", retry_after_ms=9_000))
    world.show("c", "m", "👍")
    world.run(100)
    snapshot = world.lanes.snapshot(100)
    assert snapshot["blocked"] == {"conversation c": 9_050}
    assert snapshot["waiting"] == {"terminal": 1, "ack": 0, "phase": 0, "typing": 0, "parked": 1}
    assert (snapshot["account"], snapshot["lanes"], snapshot["in_flight"]) == ("bot", 1, 0)


def test_every_outcome_is_counted_by_kind() -> None:
    kinds = iter(["ok", "transient", "bad_request"])
    world = World(make_lanes(retry=RetryRules(phase_tries=1)), lambda begin, at_ms: refusal(next(kinds)))
    for number in range(3):
        world.show(f"c{number}", "m", "🤔", rank=Rank.PHASE)
    world.run(1_000)
    counters = world.lanes.counters
    assert [counters[f"outcome_{kind}"] for kind in ("ok", "transient", "bad_request")] == [1, 1, 1]
    assert counters["calls_made"] == 3
