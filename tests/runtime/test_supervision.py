"""The restart rules as data: every row, every bound."""

from __future__ import annotations

import itertools
import re

import pytest

from actors.runtime import Backoff, Exit, Restart, Strategy, supervision
from actors.runtime.supervision import COMES_BACK, Budget, Crowd, companions

ROW = re.compile(r"^ {4}([A-Z]+) +(yes|no) +(yes|no) +(yes|no) +(yes|no) +(yes|no)$", re.MULTILINE)
COLUMNS = (Exit.NORMAL, Exit.FAILED, Exit.PASSIVATED, Exit.SHUTDOWN, Exit.GAVE_UP)


def test_the_table_in_the_source_is_the_rule_and_is_complete() -> None:
    rows = {Restart[name]: answers for name, *answers in ROW.findall(supervision.__doc__ or "")}
    assert set(rows) == set(Restart)
    assert set(COLUMNS) == set(Exit)
    for restart, reason in itertools.product(Restart, Exit):
        assert ((restart, reason) in COMES_BACK) == (rows[restart][COLUMNS.index(reason)] == "yes"), (restart, reason)


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [(Strategy.ONE_FOR_ONE, "c"), (Strategy.ONE_FOR_ALL, "abcde"), (Strategy.REST_FOR_ONE, "cde")],
)
def test_who_comes_along(strategy: Strategy, expected: str) -> None:
    assert companions(strategy, list("abcde"), "c") == list(expected)


def test_a_budget_allows_so_many_within_its_period_and_one_more_after_it() -> None:
    budget = Budget(intensity=2, period_ms=1_000)
    assert [budget.spend(at_ms) for at_ms in (0, 500, 999)] == [True, True, False]
    assert budget.spend(2_100) is True


def test_a_budget_of_nothing_allows_nothing() -> None:
    assert Budget(0, 1_000).spend(0) is False


def test_a_budget_keeps_no_more_than_it_needs() -> None:
    budget = Budget(3, 1_000)
    for at_ms in range(0, 100_000, 10):
        budget.spend(at_ms)
    assert len(budget._at_ms) <= 101


@pytest.mark.parametrize(
    ("children", "failing", "escalates"),
    [
        (100, 49, False),
        (100, 50, True),
        (1_000, 50, False),
        (1_000, 51, True),
        (10_000, 500, False),
        (10_000, 501, True),
    ],
)
def test_a_crowd_is_in_trouble_when_fifty_and_more_than_a_twentieth_failed(
    children: int, failing: int, escalates: bool
) -> None:
    crowd = Crowd(5_000, 0.05, 50)
    answers = [crowd.too_many(child, children, child % 4_000) for child in range(failing)]
    assert answers[-1] is escalates
    assert not any(answers[:-1])


def test_one_child_failing_a_thousand_times_is_no_crowd() -> None:
    crowd = Crowd(5_000, 0.05, 50)
    assert not any(crowd.too_many("same", 60, at_ms) for at_ms in range(1_000))


def test_failures_a_period_ago_do_not_count() -> None:
    crowd = Crowd(1_000, 0.0, 2)
    assert crowd.too_many("a", 10, 0) is False
    assert crowd.too_many("b", 10, 1_000) is False
    assert crowd.too_many("c", 10, 1_999) is True


def test_back_off_doubles_up_to_its_maximum_give_or_take_the_jitter() -> None:
    backoff = Backoff(first_ms=100, max_ms=1_500, jitter=0.2)
    assert [backoff.delay_ms(n, 0.5) for n in (1, 2, 3, 4, 5, 6, 1_000)] == [100, 200, 400, 800, 1_500, 1_500, 1_500]
    assert backoff.delay_ms(1, 0.0) == 80
    assert backoff.delay_ms(1, 1.0) == 120
    assert Backoff(first_ms=0).delay_ms(9, 1.0) == 0
