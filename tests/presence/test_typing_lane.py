"""One target's lane: what replaces what, and what is reported."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from actors.presence.terms import OK, LaneRules, Outcome, OutcomeKind, Rank, RetryRules
from actors.presence.typing_lane import TypingLane
from tests.presence.typing_lanes import LASTING, START, STOP, UNKNOWN, begin, lane, told, typing

# --- starts ------------------------------------------------------------------------------------------------


def test_a_start_is_one_call_with_the_target_in_it() -> None:
    target = lane(forum=True)
    assert not target.start(1, 0)
    proposal = target.next_command(0)
    assert proposal is not None
    command, rank = proposal
    assert (command.op, command.conversation, command.thread, command.forum) == (START, "c", "7", True)
    assert (command.message, command.emoji, rank) == (None, None, Rank.TYPING)
    assert target.next_command(5) == (command, rank)
    target.begin(command, 0)
    assert target.in_flight is command
    assert target.next_command(0) is None
    assert told(target.end(OK, 100)) == [(1, "ok", True)]
    assert target.settled


def test_a_lane_is_settled_when_nothing_is_left_to_call() -> None:
    target = lane()
    seen = []
    steps: list[Callable[[], object]] = [
        lambda: target.start(1, 0),
        lambda: begin(target),
        lambda: target.end(UNKNOWN, 10),
        lambda: begin(target, 10),
        lambda: target.end(OK, 20),
        lambda: target.stop(30),
        lambda: begin(target, 30),
        lambda: target.end(OK, 40),
    ]
    for step in steps:
        step()
        seen.append(target.settled)
    assert seen == [False, False, False, False, True, False, False, True]


def test_a_start_replaces_one_that_has_not_begun() -> None:
    target = lane()
    target.start(1, 0)
    assert told(target.start(2, 10)) == [(1, "ok", False)]
    assert target.saved == 1
    assert begin(target) is START
    assert told(target.end(OK, 20)) == [(2, "ok", True)]


def test_a_start_carries_the_newest_inbound_message_and_a_stop_none() -> None:
    target = lane()
    target.start(1, 0, "old")
    target.start(2, 10, "new")
    proposal = target.next_command(10)
    assert proposal is not None
    assert proposal[0].inbound == "new"
    target.begin(proposal[0], 10)
    target.end(OK, 20)
    target.stop(30)
    stop = target.next_command(30)
    assert stop is not None
    assert (stop[0].op, stop[0].inbound) == (STOP, None)


def test_a_start_waits_behind_one_in_flight() -> None:
    target = lane()
    target.start(1, 0)
    begin(target)
    assert not target.start(2, 10)
    assert begin(target, 10) is None
    assert told(target.end(OK, 20)) == [(1, "ok", True)]
    assert begin(target, 20) is START
    assert told(target.end(OK, 30)) == [(2, "ok", True)]


@pytest.mark.parametrize("kind", ["transient", "rate_limited", "auth", "forbidden", "gone", "bad_request"])
def test_a_failed_start_is_reported_and_not_retried(kind: str) -> None:
    target = lane()
    target.start(1, 0)
    begin(target)
    assert told(target.end(Outcome(OutcomeKind(kind)), 20)) == [(1, kind, True)]
    assert target.settled
    assert target.idle


def test_an_unknown_start_is_made_once_more_with_the_same_key() -> None:
    target = lane()
    target.start(1, 0)
    begin(target)
    first = target.in_flight
    assert not target.end(UNKNOWN, 3000)
    assert begin(target, 3000) is START
    assert target.in_flight == first
    assert told(target.end(UNKNOWN, 6000)) == [(1, "unknown", True)]
    assert target.settled
    assert not target.idle


@pytest.mark.parametrize(
    "newer",
    [
        lambda target: target.start(2, 10),
        lambda target: target.stop(10),
        lambda target: target.withdraw(10),
    ],
)
def test_an_unknown_start_is_not_repeated_when_it_is_not_wanted_any_more(
    newer: Callable[[TypingLane], object],
) -> None:
    target = lane()
    target.start(1, 0)
    begin(target)
    newer(target)
    assert told(target.end(UNKNOWN, 3000))[0] == (1, "unknown", True)


def test_a_repeat_that_has_not_begun_is_dropped_for_a_stop() -> None:
    target = lane()
    target.start(1, 0)
    begin(target)
    target.end(UNKNOWN, 3000)
    assert told(target.stop(3000)) == [(1, "unknown", True)]
    assert begin(target, 3000) is STOP


def test_keys_differ_from_call_to_call() -> None:
    keys = set()
    target = lane()
    for token in range(3):
        target.start(token, 0)
        begin(target)
        assert target.in_flight is not None
        keys.add(target.in_flight.idempotency_key)
        target.end(OK, 0)
    assert len(keys) == 3


def test_keys_come_from_the_account_where_it_gives_them() -> None:
    target = TypingLane("c", None, LASTING, RetryRules(), new_key=lambda: "k1")
    target.start(1, 0)
    begin(target)
    assert target.in_flight is not None
    assert target.in_flight.idempotency_key == "k1"
    assert not target.in_flight.forum


def test_where_there_is_no_typing_a_start_is_refused_without_a_call() -> None:
    target = lane(LaneRules(typing=False))
    assert told(target.start(1, 0)) == [(1, "forbidden", False)]
    assert target.idle


# --- withdrawing -------------------------------------------------------------------------------------------


def test_withdrawing_drops_a_start_that_has_not_begun_and_leaves_what_is_on() -> None:
    target = typing()
    target.start(2, 10)
    assert told(target.withdraw(20)) == [(2, "ok", False)]
    assert begin(target, 20) is None
    assert not target.idle
    assert not target.stop(30)
    assert begin(target, 30) is STOP


def test_withdrawing_leaves_a_start_in_flight_alone() -> None:
    target = lane()
    target.start(1, 0)
    begin(target)
    assert not target.withdraw(10)
    assert told(target.end(OK, 20)) == [(1, "ok", True)]
