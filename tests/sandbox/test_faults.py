"""Fault rules: what becomes of a call."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from actors.presence.terms import Op
from actors.sandbox.calls import Call
from actors.sandbox.faults import FaultPlan, Faults, Rule, Verdict, Window

SET = Call(Op.SET, "bot", "c", None, "m", "👀")
TYPE = Call(Op.TYPING_START, "bot", "c", "7")


def faults(*rules: dict[str, Any], latency_ms: int = 0, start_ms: int = 0) -> Faults:
    return Faults(msgspec.convert({"latency_ms": latency_ms, "rules": rules}, FaultPlan), start_ms)


def outcomes(subject: Faults, calls: list[Call], now_ms: int = 0) -> list[str]:
    return [subject.judge(call, now_ms).outcome for call in calls]


def test_without_rules_every_call_passes_at_once() -> None:
    assert faults().judge(SET, 0) == Verdict(outcome="ok", latency_ms=0)


@pytest.mark.parametrize("name", ["op", "account", "conversation", "message", "emoji"])
def test_a_rule_answers_only_calls_that_fit_each_of_its_fields(name: str) -> None:
    fitting = {field: getattr(SET, field) for field in Call._fields if field != "thread"} | {"op": "set"}
    other = {"op": "clear"}.get(name, "another")
    assert outcomes(faults({**fitting, "outcome": "gone"}), [SET]) == ["gone"]
    assert outcomes(faults({**fitting, name: other, "outcome": "gone"}), [SET]) == ["ok"]


def test_a_rule_for_a_thread_leaves_the_other_threads_alone() -> None:
    subject = faults({"thread": "7", "outcome": "transient"})
    assert outcomes(subject, [TYPE, TYPE._replace(thread=None), TYPE._replace(thread="8")]) == [
        "transient",
        "ok",
        "ok",
    ]


def test_a_star_and_no_operation_fit_all_of_them() -> None:
    calls = [SET._replace(op=op) for op in Op]
    assert set(outcomes(faults({"op": "*", "outcome": "gone"}), calls)) == {"gone"}
    assert set(outcomes(faults({"outcome": "gone"}), calls)) == {"gone"}


def test_the_first_rule_that_fits_answers() -> None:
    subject = faults({"op": "clear", "outcome": "gone"}, {"outcome": "forbidden"}, {"outcome": "auth"})
    assert outcomes(subject, [SET]) == ["forbidden"]


def test_numbers_count_from_nought_among_the_calls_that_fit() -> None:
    subject = faults({"op": "set", "nth": [0, 2], "outcome": "transient"})
    assert outcomes(subject, [TYPE, SET, SET, SET, SET]) == ["ok", "transient", "ok", "transient", "ok"]


def test_a_call_answered_by_an_earlier_rule_still_counts_for_a_later_one() -> None:
    subject = faults({"nth": [0], "outcome": "gone"}, {"nth": [1], "outcome": "forbidden"})
    assert outcomes(subject, [SET, SET, SET]) == ["gone", "forbidden", "ok"]


def test_a_rule_holds_from_its_first_moment_to_before_its_last_counted_from_the_plans_start() -> None:
    subject = faults({"from_ms": 100, "until_ms": 200, "outcome": "gone"}, start_ms=1_000)
    assert [subject.judge(SET, t).outcome for t in (1_099, 1_100, 1_199, 1_200)] == [
        "ok",
        "gone",
        "gone",
        "ok",
    ]


def test_the_plans_delay_is_that_of_rules_which_name_none() -> None:
    subject = faults({"op": "set", "outcome": "gone"}, {"op": "clear", "latency_ms": 0}, latency_ms=50)
    calls = [SET, SET._replace(op=Op.CLEAR), TYPE]
    assert [subject.judge(call, 0).latency_ms for call in calls] == [50, 0, 50]


def test_what_a_rule_says_goes_into_the_verdict() -> None:
    rule = {
        "outcome": "rate_limited",
        "retry_after_ms": 1_500,
        "scope": "route",
        "applied": True,
        "latency_ms": 9,
    }
    assert faults(rule).judge(SET, 0) == Verdict("rate_limited", 9, 1_500, "route", True)


# --- limits ---


def test_a_limit_lets_its_count_pass_and_says_when_the_next_one_may_come() -> None:
    subject = faults({"limit": {"per_ms": 1_000, "count": 2}})
    assert [subject.judge(SET, t).outcome for t in (0, 300)] == ["ok", "ok"]
    assert subject.judge(SET, 400) == Verdict("rate_limited", retry_after_ms=600, scope="account")
    assert subject.judge(SET, 999).retry_after_ms == 1
    assert subject.judge(SET, 1_000).outcome == "ok"
    assert subject.judge(SET, 1_000).retry_after_ms == 300


def test_a_refused_call_does_not_make_the_wait_longer() -> None:
    subject = faults({"limit": {"per_ms": 1_000, "count": 1}})
    subject.judge(SET, 0)
    for t in range(1, 1_000):
        assert subject.judge(SET, t).outcome == "rate_limited"
    assert subject.judge(SET, 1_000).outcome == "ok"


@pytest.mark.parametrize(
    ("by", "other", "scope"),
    [
        ("account", SET._replace(account="other"), "account"),
        ("conversation", SET._replace(conversation="d"), "conversation"),
        ("message", SET._replace(message="n"), None),
    ],
)
def test_a_limit_counts_apart_what_it_is_by(by: str, other: Call, scope: str | None) -> None:
    subject = faults({"limit": {"per_ms": 1_000, "count": 1, "by": by}})
    assert outcomes(subject, [SET, other]) == ["ok", "ok"]
    refused = subject.judge(SET, 0)
    assert (refused.outcome, refused.scope) == ("rate_limited", scope)


def test_a_limit_by_message_is_not_for_typing() -> None:
    subject = faults({"limit": {"per_ms": 1_000, "count": 0, "by": "message"}})
    assert outcomes(subject, [TYPE, SET]) == ["ok", "rate_limited"]


def test_a_call_below_the_limit_goes_on_to_the_next_rule() -> None:
    subject = faults({"limit": {"per_ms": 1_000, "count": 1}}, {"outcome": "transient"})
    assert outcomes(subject, [SET, SET]) == ["transient", "rate_limited"]


def test_a_limit_may_name_its_own_wait_and_scope() -> None:
    limit = {"limit": {"per_ms": 1_000, "count": 0}, "retry_after_ms": 77, "scope": "route"}
    assert faults(limit).judge(SET, 0) == Verdict("rate_limited", retry_after_ms=77, scope="route")


def test_a_limit_forgets_those_it_has_not_seen_for_long() -> None:
    subject = faults({"limit": {"per_ms": 10, "count": 1, "by": "conversation"}})
    for number in range(5_000):
        assert subject.judge(SET._replace(conversation=str(number)), number).outcome == "ok"
    assert len(subject._general[0]._passed) < 1_100


# --- plans that do not fit ---


@pytest.mark.parametrize(
    ("plan", "place"),
    [
        ({"rules": [{"outcome": "broken"}]}, r"\$\.rules\[0\]\.outcome"),
        ({"rules": [{}, {"when": 3}]}, r"when.*\$\.rules\[1\]"),
        ({"rules": [{"limit": {"per_ms": 0, "count": 1}}]}, r"\$\.rules\[0\]\.limit\.per_ms"),
        ({"rules": [{"latency_ms": -1}]}, r"latency_ms"),
        (
            {"rules": [{"limit": {"per_ms": 1, "count": 1}, "outcome": "gone"}]},
            r"another outcome.*rules\[0\]",
        ),
        ({"rules": [{"response": {"status": 500}, "outcome": "gone"}]}, r"exclude.*rules\[0\]"),
        ({"rules": [{"response": {"status": 500, "headers": {"a": "b\r\nc"}}}]}, r"headers"),
    ],
)
def test_a_plan_that_does_not_fit_names_the_place(plan: dict[str, Any], place: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=place):
        msgspec.json.decode(msgspec.json.encode(plan), type=FaultPlan)


def test_rules_can_be_written_in_python_too() -> None:
    plan = FaultPlan(rules=(Rule(op="set", limit=Window(per_ms=10, count=0)),))
    assert outcomes(Faults(plan, 0), [SET]) == ["rate_limited"]
