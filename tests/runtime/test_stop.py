"""Stopping: bounded, children first, everybody answered, nothing left."""

from __future__ import annotations

from typing import Any

import gevent
import pykka
import pytest

from actors.runtime import ChildSpec, Runtime, RuntimeClosedError, Supervisor
from tests.runtime.stand import Call, GreenletRecorder, Recorder, Stand


class Parent(Supervisor):
    def __init__(self, log: list[Any], name: str, *specs: ChildSpec) -> None:
        self.log = log
        self.name = name
        self.specs = specs

    def on_start(self) -> None:
        for spec in self.specs:
            self.start_child(spec)

    def on_stop(self) -> None:
        self.log.append((self.name, "stop"))


def tree(stand: Stand, log: list[Any], kind: type[Recorder] = Recorder) -> Any:
    def leaf(name: str) -> ChildSpec:
        return ChildSpec(name, kind, (log, name), key=name)

    middle = ChildSpec("m", Parent, (log, "m", leaf("a"), leaf("b")), key="m")
    root = stand.runtime.spawn(Parent, log, "root", leaf("x"), middle, leaf("y"))
    stand.settle()
    return root


def stops(log: list[Any]) -> list[str]:
    return [name for name, what in log if what == "stop"]


def test_children_stop_before_their_parents_and_the_newest_first(stand: Stand) -> None:
    log: list[Any] = []
    root = tree(stand, log)
    assert stand.runtime.stop(root).get() is True
    assert stops(log) == ["y", "b", "a", "m", "x", "root"]
    assert stand.runtime.actor_count == 0


def test_greenlet_actors_stop_in_the_same_order(hub: Stand) -> None:
    log: list[Any] = []
    root = tree(hub, log, GreenletRecorder)
    assert hub.runtime.stop(root).get() is True
    assert stops(log) == ["y", "b", "a", "m", "x", "root"]


def test_shutdown_stops_the_last_started_first(stand: Stand) -> None:
    log: list[Any] = []
    for name in "abc":
        stand.runtime.spawn(Recorder, log, name)
    stand.settle()
    assert stand.runtime.shutdown().get() is True
    assert stops(log) == ["c", "b", "a"]


def test_a_stop_through_the_queue_takes_the_children_along(stand: Stand) -> None:
    log: list[Any] = []
    root = tree(stand, log)
    assert root.stop() is True
    assert stand.runtime.actor_count == 0


def test_every_asker_is_answered_when_the_runtime_stops(stand: Stand) -> None:
    ref = stand.runtime.spawn(Recorder)
    stand.settle()
    futures = [ref.ask(each, block=False) for each in range(100)]
    stops = [ref.stop(block=False) for _ in range(10)]
    stand.runtime.shutdown()
    answers = []
    for future in futures:
        try:
            answers.append(future.get())
        except pykka.ActorDeadError:
            answers.append("dead")
    assert len(answers) == 100
    assert all(stop.get() in (True, False) for stop in stops)


def test_stopping_twice_is_stopping_once(stand: Stand) -> None:
    log: list[Any] = []
    ref = stand.runtime.spawn(Recorder, log)
    stand.settle()
    first, second = stand.runtime.stop(ref), stand.runtime.stop(ref)
    assert first.get() is second.get() is True
    assert stand.runtime.shutdown() is stand.runtime.shutdown()
    stand.runtime.close()
    stand.runtime.close()
    assert log == ["start", "stop"]


def test_an_actor_stopped_before_it_started_never_starts(stand: Stand) -> None:
    log: list[Any] = []
    ref = stand.runtime.spawn(Recorder, log)
    waiting = ref.ask("x", block=False)
    stand.runtime.stop(ref).get()
    with pytest.raises(pykka.ActorDeadError):
        waiting.get()
    assert log == []


def test_a_stopped_runtime_takes_no_actors_and_answers_everybody(stand: Stand) -> None:
    ref = stand.runtime.spawn(Recorder)
    stand.runtime.close()
    with pytest.raises(RuntimeClosedError):
        stand.runtime.spawn(Recorder)
    with pytest.raises(RuntimeClosedError):
        stand.runtime.call_soon(lambda: None)
    with pytest.raises(pykka.ActorDeadError):
        ref.tell("x")
    with pytest.raises(pykka.ActorDeadError):
        ref.ask("x")
    assert ref.stop() is False
    assert stand.runtime.stop(ref).get() is True
    stand.runtime.wait()


def test_an_actor_caught_by_the_stop_while_it_is_being_made_is_refused(stand: Stand) -> None:
    class Caught(Recorder):
        def __init__(self) -> None:
            super().__init__()
            stand.runtime.close()

    stand.runtime.spawn(Recorder)
    with pytest.raises(RuntimeClosedError, match="meanwhile"):
        stand.runtime.spawn(Caught)


@pytest.mark.parametrize("kind", [Recorder, GreenletRecorder])
def test_an_actor_started_in_the_very_moment_of_the_stop_ends_with_it(
    hub: Stand, kind: type[Recorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.runtime.spawn(Recorder)
    enter = hub.runtime.directory.enter

    def late(mailbox: Any) -> None:
        hub.runtime.close()
        enter(mailbox)

    monkeypatch.setattr(type(hub.runtime.directory), "enter", lambda self, mailbox: late(mailbox))
    with pytest.raises(RuntimeClosedError):
        hub.runtime.spawn(kind)
    assert hub.runtime.actor_count == 0


def test_a_runtime_that_was_never_used_closes_at_once() -> None:
    with Runtime():
        pass
    with Runtime.manual() as runtime:
        assert runtime.actor_count == 0


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_in_a_handler_asks_the_runtime_to_stop(stand: Stand, error: type[BaseException]) -> None:
    log: list[Any] = []
    bystander = stand.runtime.spawn(Recorder, log)
    ref = stand.runtime.spawn(Recorder)

    def interrupt(actor: Recorder) -> None:
        raise error("please")

    ref.tell(Call(interrupt))
    stand.settle()
    assert not bystander.is_alive()
    assert log == ["start", "stop"]
    assert isinstance(stand.runtime.stop_reason, error)
    assert "failures" not in stand.runtime.counters
    with pytest.raises(error, match="please"):
        stand.runtime.wait()


def test_the_asker_of_an_interrupted_message_is_answered(stand: Stand) -> None:
    def interrupt(actor: Recorder) -> None:
        raise KeyboardInterrupt

    ref = stand.runtime.spawn(Recorder)
    with pytest.raises(pykka.ActorDeadError, match="KeyboardInterrupt"):
        ref.ask(Call(interrupt))


@pytest.mark.parametrize("error", [gevent.Timeout, gevent.GreenletExit])
@pytest.mark.parametrize("kind", [Recorder, GreenletRecorder])
def test_a_stray_timeout_or_kill_fails_one_actor_and_no_other(
    hub: Stand, error: type[BaseException], kind: type[Recorder]
) -> None:
    log: list[Any] = []
    bystander = hub.runtime.spawn(Recorder)

    def stray(actor: Recorder) -> None:
        raise error

    ref = hub.runtime.spawn(kind, log)
    ref.tell(Call(stray))
    hub.settle()
    assert log == ["start", "failure"]
    assert not ref.is_alive()
    assert bystander.is_alive()
    with pytest.raises(error):
        bystander.ask(Call(stray))
