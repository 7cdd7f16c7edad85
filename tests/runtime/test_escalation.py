"""When restarting is over: budgets, parents of many, failures of the supervisor itself."""

from __future__ import annotations

from typing import Any

import pykka
import pytest

from actors.runtime import (
    ChildSpec,
)
from tests.runtime.family import Family, Parent, family
from tests.runtime.stand import Recorder, Stand


def test_a_spent_supervisor_budget_fails_the_supervisor_and_ends_its_children(stand: Stand) -> None:
    cls = type("P", (Parent,), {"intensity": 2, "period_ms": 5_000})
    home = family(stand, "ab", cls)
    a, b = home["a"], home["b"]
    for _ in range(3):
        a.tell("boom")
        stand.advance(1_000)
    assert not home.parent.is_alive()
    assert not a.is_alive()
    assert not b.is_alive()
    assert home.of("b")[-1] == "stop"
    assert stand.runtime.actor_count == 0


def test_escalation_restarts_the_supervisor_and_its_on_start_brings_the_children_back(stand: Stand) -> None:
    log: list[Any] = []

    class Middle(Parent):
        intensity = 1

        def on_start(self) -> None:
            self.log.append(("middle", "start"))
            super().on_start()

    middle = ChildSpec("middle", Middle, (log, (ChildSpec("a", Recorder, (log, "a"), key="a"),)), key="middle")
    top = stand.runtime.spawn(Parent, log, (middle,))
    stand.settle()
    ref = stand.runtime.lookup("middle")
    for _ in range(2):
        child = stand.runtime.lookup("a")
        assert child is not None
        child.tell("boom")
        stand.advance(100)
    assert ("failed", "middle", None, "RestartBudgetError") in log
    stand.advance(100)
    assert log.count(("middle", "start")) == 2
    assert stand.runtime.lookup("middle") is ref
    child = stand.runtime.lookup("a")
    assert child is not None
    assert child.ask("back") == "back"
    assert top.is_alive()


def test_a_childs_own_budget_gives_up_on_that_child_only(stand: Stand) -> None:
    home = family(stand, "ab", intensity=2, period_ms=60_000)
    a = home["a"]
    asked = []
    for _ in range(3):
        a.tell("boom")
        asked.append(a.ask("behind", block=False))
        stand.advance(1_000)
    assert home.log[-1] == ("gave up", "a")
    assert not a.is_alive()
    assert stand.runtime.lookup("a") is None
    assert [future.get() for future in asked[:2]] == ["behind", "behind"]
    with pytest.raises(pykka.ActorDeadError):
        asked[2].get()
    assert home["b"].ask("fine") == "fine"
    assert home.parent.is_alive()
    assert not [entry for entry in home.log if entry[0] == "stopped"]


class Many(Parent):
    many = True
    period_ms = 5_000


def crowd(stand: Stand, count: int) -> Family:
    log: list[Any] = []
    specs = tuple(ChildSpec(each, Recorder, (log, each), key=each) for each in range(count))
    parent = stand.runtime.spawn(Many, log, specs)
    stand.settle()
    return Family(stand, parent, log)


def fail_some(home: Family, stand: Stand, count: int) -> None:
    for each in range(count):
        ref = stand.runtime.lookup(each)
        assert ref is not None
        ref.tell("boom")
    stand.settle()


def test_a_parent_of_many_bears_single_failures_without_end(stand: Stand) -> None:
    home = crowd(stand, 2_000)
    for _ in range(3):
        fail_some(home, stand, 49)
        stand.advance(6_000)
    assert home.parent.is_alive()
    fail_some(home, stand, 100)
    assert home.parent.is_alive()


def test_a_parent_of_many_fails_when_more_than_a_twentieth_failed_at_once(stand: Stand) -> None:
    home = crowd(stand, 400)
    fail_some(home, stand, 49)
    assert home.parent.is_alive()
    stand.advance(200)
    fail_some(home, stand, 50)
    assert not home.parent.is_alive()
    assert stand.runtime.actor_count == 0


def test_an_exception_in_a_hook_is_a_failure_of_the_supervisor(stand: Stand) -> None:
    class Clumsy(Parent):
        def on_child_failed(self, child: ChildSpec, message: Any, error: BaseException) -> None:
            raise KeyError("clumsy")

    log: list[Any] = []
    clumsy = ChildSpec("clumsy", Clumsy, (log, (ChildSpec("a", Recorder, (log, "a"), key="a"),)))
    stand.runtime.spawn(Parent, log, (clumsy,))
    stand.settle()
    first = stand.runtime.lookup("a")
    assert first is not None
    first.tell("boom")
    stand.settle()
    assert log[-1] == ("failed", "clumsy", None, "KeyError")
    assert not first.is_alive()
    stand.advance(100)
    second = stand.runtime.lookup("a")
    assert second is not None
    assert second is not first


def test_a_failing_message_of_the_supervisor_itself_ends_it_when_nobody_is_above(stand: Stand) -> None:
    home = family(stand, "ab")
    home.parent.tell("nonsense")
    stand.settle()
    assert stand.runtime.actor_count == 0
    assert home.of("a")[-1] == home.of("b")[-1] == "stop"
