"""The short form: a thousand live conversations for some seconds; and what the judge sees."""

from __future__ import annotations

import pytest

from actors.presence.terms import Op
from actors.sandbox.calls import Call
from actors.sandbox.faults import Verdict
from tests.load.judge import DONE, Judge, ideal_waits_ms
from tests.load.measure import Load
from tests.load.plan import Plan

SMALL = Plan(conversations=1_000, minutes=0.12, life_s=20, phase_s=3, ramp_s=4)
SLACK_MS = 1_500
"""What a busy machine may add."""


@pytest.mark.real
def test_a_thousand_live_conversations_are_served_within_the_limits_and_leave_nothing_unknown() -> None:
    report = Load(SMALL).run()
    assert report["violations"] == []
    assert report["open_runs"][0] > 500
    assert report["ends_shown"] > 150
    assert report["ends_not_shown"] == 0
    assert report["marks_without_a_row"] == 0
    assert report["calls"]["rate_limited"] > 0  # by the account that is granted less than it believes
    assert report["calls"]["hang"] > 0
    assert report["terminal_p99_ms"] <= report["ideal_p99_ms"] + SLACK_MS


def call(op: Op = Op.SET, emoji: str | None = "🤔", message: str | None = "m") -> Call:
    return Call(op, "a", "c", None, message, emoji)


def test_the_judge_sees_two_calls_of_a_lane_at_once() -> None:
    judge = Judge()
    judge.ends(call(), 0, 30, "ok")
    judge.ends(call(emoji=DONE), 30, 60, "ok")
    assert judge.violations == []
    judge.ends(call(), 59, 90, "ok")
    assert len(judge.violations) == 1


def test_the_judge_sees_a_call_of_an_account_that_was_told_to_wait() -> None:
    judge = Judge()
    judge.limited("a", 1_000, Verdict("rate_limited", retry_after_ms=5_000))
    for at_ms in (1_200, 6_000):
        judge.begins(call(), at_ms)
    assert judge.violations == []
    judge.begins(call(), 5_999)
    assert len(judge.violations) == 1


@pytest.mark.parametrize("late", [call(), call(Op.TYPING_START, None, None)])
def test_the_judge_sees_what_begins_after_the_end(late: Call) -> None:
    judge = Judge(ended_ms={("a", "c", "m"): 1_000}, idle={("a", "c"): 1_000})
    judge.begins(call(emoji=DONE), 9_000)
    judge.begins(late, 1_100)
    assert judge.violations == []
    judge.begins(late, 9_000)
    assert len(judge.violations) == 1


def test_the_judge_knows_how_long_an_end_took_to_show() -> None:
    judge = Judge(told_ms={("a", "c", "m"): 1_000})
    judge.ends(call(), 1_010, 1_040, "ok")
    judge.ends(call(emoji=DONE), 1_050, 1_080, "transient")
    judge.ends(call(emoji=DONE), 1_600, 1_630, "ok")
    assert judge.shown_after_ms == {"a": [(1_000, 630)]}


def test_ends_wait_for_those_before_them_and_for_removals_that_are_due() -> None:
    assert ideal_waits_ms([0, 0, 0, 0], 10_000, count=2, per_ms=1_000) == [0, 0, 1_000, 1_000]
    assert ideal_waits_ms([0, 1_499], 1_500, count=1, per_ms=1_000) == [0, 0]
    assert ideal_waits_ms([0, 1_501], 1_500, count=1, per_ms=1_000) == [0, 999]
