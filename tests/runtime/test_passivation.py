"""Idle actors that go away and come back."""

from __future__ import annotations

from typing import Any

from actors.runtime import Supervisor
from actors.runtime.supervision import ChildSpec
from tests.runtime.stand import Call, Recorder, Stand, plain


def test_an_idle_actor_can_go_away_and_comes_back_by_its_key(stand: Stand) -> None:
    class Sleepy(Recorder):
        def on_start(self) -> None:
            super().on_start()
            self.schedule(1_000, "idle", "idle")

        def on_receive(self, message: Any) -> Any:
            if message == "idle":
                return self.passivate()
            self.schedule(1_000, "idle", "idle")
            return super().on_receive(message)

    def ask(message: Any) -> Any:
        ref = stand.runtime.lookup("sleepy") or stand.runtime.spawn(Sleepy, log, key="sleepy")
        return ref.ask(message)

    log: list[Any] = []
    assert ask(1) == 1
    stand.advance(999)
    assert stand.runtime.actor_count == 1
    assert ask(2) == 2
    stand.advance(1_000)
    assert stand.runtime.actor_count == 0
    assert stand.runtime.lookup("sleepy") is None
    assert ask(3) == 3
    assert log == ["start", 1, 2, "stop", "start", 3]


def test_an_actor_with_something_waiting_does_not_go_away(stand: Stand) -> None:
    log: list[Any] = []
    answers: list[bool] = []

    def stay(actor: Recorder) -> None:
        actor.actor_ref.tell("more")
        answers.append(actor.passivate())

    def change(actor: Recorder) -> None:
        answers.append(actor.passivate())
        actor.actor_ref.tell("after all")

    ref = stand.runtime.spawn(Recorder, log)
    ref.tell(Call(stay))
    stand.settle()
    ref.tell(Call(change))
    stand.settle()
    assert answers == [False, True]
    assert plain(log) == ["more", "after all"]
    assert ref.is_alive()


def test_a_supervisor_goes_away_only_when_its_children_are_idle_too(stand: Stand) -> None:
    class Parent(Supervisor):
        def on_start(self) -> None:
            self.start_child(ChildSpec("a", Recorder, key="a"))

        def on_receive(self, message: Any) -> Any:
            return message.work(self)

    ref = stand.runtime.spawn(Parent)
    stand.settle()
    child = stand.runtime.lookup("a")
    assert child is not None

    def busy(parent: Parent) -> bool:
        child.tell("x")
        return parent.passivate()

    assert ref.ask(Call(busy)) is False
    stand.settle()
    assert ref.ask(Call(lambda parent: parent.passivate())) is True
    stand.settle()
    assert stand.runtime.actor_count == 0
