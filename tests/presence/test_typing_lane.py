"""One target's lane: what replaces what, what is reported, and when a stop is called."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from actors.presence.terms import OK, LaneRules, Op, Outcome, OutcomeKind, Rank, RetryRules, TypingReport
from actors.presence.typing_lane import TypingLane

LASTING = LaneRules(typing_stop=True, typing_lifetime_ms=0)
MATRIX = LaneRules(typing_stop=True, typing_lifetime_ms=30_000)
TELEGRAM = LaneRules(typing_stop=False, typing_lifetime_ms=5000)
START, STOP = Op.TYPING_START, Op.TYPING_STOP
UNKNOWN = Outcome(OutcomeKind.UNKNOWN)
TRANSIENT = Outcome(OutcomeKind.TRANSIENT)


def lane(rules: LaneRules = LASTING, *, forum: bool = False) -> TypingLane:
    return TypingLane("c", "7", rules, RetryRules(), forum=forum)


def begin(target: TypingLane, now_ms: int = 0) -> Op | None:
    """Make the next call; which one it was."""
    proposal = target.next_command(now_ms)
    if proposal is None:
        return None
    assert proposal[1] is Rank.TYPING
    target.begin(proposal[0], now_ms)
    return proposal[0].op


def typing(rules: LaneRules = LASTING) -> TypingLane:
    """A lane whose indicator is on since 0."""
    target = lane(rules)
    target.start(1, 0)
    assert begin(target) is START
    target.end(OK, 0)
    return target


def told(reports: Sequence[TypingReport]) -> list[tuple[int | None, str, bool]]:
    return [(report.token, str(report.outcome.kind), report.called) for report in reports]


# --- starts ---------------------------------------------------------------------------------------------------


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


def test_a_start_replaces_one_that_has_not_begun() -> None:
    target = lane()
    target.start(1, 0)
    assert told(target.start(2, 10)) == [(1, "ok", False)]
    assert target.saved == 1
    assert begin(target) is START
    assert told(target.end(OK, 20)) == [(2, "ok", True)]


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


def test_an_unknown_start_is_not_repeated_when_something_newer_is_wanted() -> None:
    for newer in (lambda: target.start(2, 10), lambda: target.stop(10), lambda: target.withdraw(10)):
        target = lane()
        target.start(1, 0)
        begin(target)
        newer()
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


def test_where_there_is_no_typing_a_start_is_refused_without_a_call() -> None:
    target = lane(LaneRules(typing=False))
    assert told(target.start(1, 0)) == [(1, "forbidden", False)]
    assert target.idle


# --- withdrawing ----------------------------------------------------------------------------------------------


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


# --- stops ----------------------------------------------------------------------------------------------------


def test_a_stop_is_called_once_and_reported_when_confirmed() -> None:
    target = typing()
    assert not target.idle
    assert not target.stop(100)
    assert not target.stop(101)
    assert begin(target, 102) is STOP
    assert not target.stop(103)
    assert told(target.end(OK, 110)) == [(None, "ok", True)]
    assert target.idle
    assert told(target.stop(120)) == [(None, "ok", False)]


def test_a_stop_follows_the_start_in_flight() -> None:
    target = lane()
    target.start(1, 0)
    begin(target)
    assert not target.stop(10)
    assert begin(target, 10) is None
    assert told(target.end(OK, 20)) == [(1, "ok", True)]
    assert begin(target, 20) is STOP


def test_a_stop_after_a_start_that_failed_needs_no_call() -> None:
    target = lane()
    target.start(1, 0)
    begin(target)
    target.stop(10)
    assert told(target.end(TRANSIENT, 20)) == [(1, "transient", True), (None, "ok", False)]
    assert begin(target, 20) is None
    assert target.idle


def test_a_refresh_that_failed_leaves_the_indicator_on() -> None:
    target = typing()
    target.start(2, 3000)
    begin(target, 3000)
    target.stop(3001)
    target.end(TRANSIENT, 3010)
    assert begin(target, 3010) is STOP


def test_a_chat_that_is_gone_needs_no_stop() -> None:
    target = typing()
    target.start(2, 3000)
    begin(target, 3000)
    target.end(Outcome(OutcomeKind.GONE), 3010)
    assert told(target.stop(3020)) == [(None, "ok", False)]


def test_a_stop_withdraws_a_start_that_has_not_begun() -> None:
    target = lane()
    target.start(1, 0)
    assert told(target.stop(10)) == [(1, "ok", False), (None, "ok", False)]
    assert target.idle


def test_without_a_stop_call_a_stop_is_done_at_once() -> None:
    target = typing(TELEGRAM)
    assert target.idle
    target.start(2, 3000)
    begin(target, 3000)
    assert told(target.stop(3001)) == [(None, "ok", False)]
    assert told(target.end(OK, 3010)) == [(2, "ok", True)]
    assert begin(target, 3010) is None
    assert target.idle


def test_nothing_is_on_any_more_after_the_indicators_own_lifetime() -> None:
    target = typing(MATRIX)
    assert told(target.stop(30_000)) == [(None, "ok", False)]
    target = typing(MATRIX)
    assert not target.stop(29_999)
    assert begin(target, 29_999) is STOP


def test_a_start_replaces_a_stop_that_has_not_begun() -> None:
    target = typing()
    target.stop(100)
    assert not target.start(2, 101)
    assert begin(target, 101) is START
    assert told(target.end(OK, 102)) == [(2, "ok", True)]
    assert begin(target, 103) is None


def test_a_start_waits_behind_a_stop_in_flight() -> None:
    target = typing()
    target.stop(100)
    begin(target, 100)
    target.start(2, 101)
    assert begin(target, 101) is None
    assert not target.end(TRANSIENT, 102)
    assert begin(target, 102) is START
    target.end(OK, 103)
    assert target.settled
    target.stop(104)
    assert begin(target, 104) is STOP


def test_a_stop_again_while_the_first_is_in_flight_waits_for_it() -> None:
    target = typing()
    target.stop(100)
    begin(target, 100)
    target.start(2, 101)
    assert told(target.stop(102)) == [(2, "ok", False)]
    assert told(target.end(OK, 103)) == [(None, "ok", True)]
    assert target.idle


def test_a_failing_stop_of_a_lasting_indicator_is_tried_without_end() -> None:
    target = typing()
    target.stop(0)
    now_ms, waits, keys = 0, [], set()
    for _ in range(10):
        assert begin(target, now_ms) is STOP
        assert target.in_flight is not None
        keys.add(target.in_flight.idempotency_key)
        assert not target.end(TRANSIENT, now_ms)
        assert target.next_command(target.not_before_ms - 1) is None
        waits.append(target.not_before_ms - now_ms)
        now_ms = target.not_before_ms
    assert waits == [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000]
    assert len(keys) == 1


def test_a_failing_stop_is_given_up_when_the_indicator_ends_by_itself() -> None:
    target = typing(MATRIX)
    target.stop(29_000)
    begin(target, 29_000)
    assert not target.end(TRANSIENT, 29_000)
    assert begin(target, 29_500) is STOP
    assert told(target.end(TRANSIENT, 29_500)) == [(None, "transient", True)]
    assert target.idle


def test_a_limited_stop_waits_as_long_as_it_is_told() -> None:
    target = typing()
    target.stop(0)
    begin(target, 0)
    assert not target.end(Outcome(OutcomeKind.RATE_LIMITED, retry_after_ms=7000), 100)
    assert target.not_before_ms == 7100


def test_an_unknown_stop_is_made_again_at_once_and_then_later() -> None:
    target = typing()
    target.stop(0)
    begin(target, 0)
    first = target.in_flight
    assert not target.end(UNKNOWN, 3000)
    assert begin(target, 3000) is STOP
    assert target.in_flight == first
    assert not target.end(UNKNOWN, 6000)
    assert target.not_before_ms == 6500


@pytest.mark.parametrize("kind", ["forbidden", "gone", "bad_request", "invalid_reaction", "already_done"])
def test_a_stop_that_is_refused_is_over(kind: str) -> None:
    target = typing()
    target.stop(0)
    begin(target, 0)
    assert told(target.end(Outcome(OutcomeKind(kind)), 10)) == [(None, kind, True)]
    assert target.idle


def test_a_stop_without_credentials_waits_only_for_a_lasting_indicator() -> None:
    for rules, waits in ((LASTING, True), (MATRIX, False)):
        target = typing(rules)
        target.stop(10)
        begin(target, 10)
        assert bool(target.end(Outcome(OutcomeKind.AUTH), 20)) is not waits
        assert target.settled is not waits


def test_an_answer_that_nobody_waits_for_changes_nothing() -> None:
    target = lane()
    assert not target.end(OK, 0)
    assert target.idle
