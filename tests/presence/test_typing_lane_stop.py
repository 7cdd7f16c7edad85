"""One target's lane: when a stop is called, and until when it is tried again."""

from __future__ import annotations

import pytest

from actors.presence.terms import OK, Outcome, OutcomeKind
from tests.presence.typing_lanes import (
    LASTING,
    MATRIX,
    START,
    STOP,
    TELEGRAM,
    TRANSIENT,
    UNKNOWN,
    begin,
    lane,
    told,
    typing,
)

# --- stops -------------------------------------------------------------------------------------------------


def test_a_stop_is_called_once_and_reported_when_confirmed() -> None:
    target = typing()
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
    assert target.idle
    target = typing(MATRIX)
    assert not target.stop(29_999)
    assert begin(target, 29_999) is STOP


def test_a_start_replaces_a_stop_that_has_not_begun() -> None:
    target = typing()
    target.stop(100)
    assert not target.start(2, 101)
    assert target.saved == 1
    assert begin(target, 101) is START
    assert told(target.end(OK, 102)) == [(2, "ok", True)]
    assert begin(target, 103) is None


def test_a_start_replaces_the_repeat_of_a_stop() -> None:
    target = typing()
    target.stop(100)
    begin(target, 100)
    target.end(UNKNOWN, 101)
    target.start(2, 102)
    assert begin(target, 102) is START
    target.end(OK, 103)
    assert target.settled


def test_a_start_waits_behind_a_stop_in_flight() -> None:
    target = typing()
    target.stop(100)
    begin(target, 100)
    target.start(2, 101)
    assert target.saved == 0
    assert begin(target, 101) is None
    assert not target.end(TRANSIENT, 102)
    assert begin(target, 102) is START
    target.end(OK, 103)
    assert target.settled
    target.stop(104)
    assert begin(target, 104) is STOP


def test_a_stop_that_went_well_counts_although_a_start_waited_behind_it() -> None:
    target = typing()
    target.stop(100)
    begin(target, 100)
    target.start(2, 101)
    assert not target.end(OK, 102)
    begin(target, 102)
    target.end(TRANSIENT, 103)
    assert told(target.stop(104)) == [(None, "ok", False)]


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


def test_a_retry_that_would_come_with_the_indicators_own_end_is_not_made() -> None:
    target = typing(MATRIX)
    target.stop(29_500)
    begin(target, 29_500)
    assert told(target.end(TRANSIENT, 29_500)) == [(None, "transient", True)]


def test_each_stop_has_its_own_key_and_begins_with_the_first_delay() -> None:
    target = typing()
    keys = set()
    for token in (2, 3):
        target.stop(0)
        begin(target, 0)
        assert target.in_flight is not None
        keys.add(target.in_flight.idempotency_key)
        target.end(TRANSIENT, 0)
        assert target.not_before_ms == 500
        target.start(token, 1)
        begin(target, 1)
        target.end(OK, 1)
    assert len(keys) == 2
    assert "" not in keys


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
