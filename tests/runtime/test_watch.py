"""Watching, dead letters, the directory, passivation, pipes."""

from __future__ import annotations

import logging
from typing import Any

import pykka
import pytest

from actors.runtime import DeadLetter, DuplicateKeyError, Exit, Future, Runtime, Supervisor, Terminated
from actors.runtime.supervision import ChildSpec
from tests.runtime.stand import Call, Recorder, Stand, plain


def watching(stand: Stand, ref: Any) -> tuple[Any, list[Any]]:
    log: list[Any] = []
    watcher = stand.runtime.spawn(Recorder, log)
    watcher.ask(Call(lambda actor: actor.watch(ref)))
    return watcher, log


def test_a_watcher_is_told_once_and_after_everything_the_actor_told_it(stand: Stand) -> None:
    ref = stand.runtime.spawn(Recorder)
    watcher, log = watching(stand, ref)
    watcher.ask(Call(lambda actor: actor.watch(ref)))

    def last_words(actor: Recorder) -> None:
        for each in range(30):
            watcher.tell(each)
        actor.stop()

    ref.tell(Call(last_words))
    stand.settle()
    assert plain(log) == [*range(30), Terminated(ref, Exit.NORMAL)]


@pytest.mark.parametrize(("how", "reason"), [("boom", Exit.FAILED), ("stop", Exit.NORMAL), ("shut", Exit.SHUTDOWN)])
def test_the_notice_says_why(stand: Stand, how: str, reason: Exit) -> None:
    ref = stand.runtime.spawn(Recorder)
    _, log = watching(stand, ref)
    if how == "shut":
        stand.runtime.stop(ref).get()
    elif how == "stop":
        ref.stop()
    else:
        ref.tell("boom")
    stand.settle()
    assert plain(log) == [Terminated(ref, reason)]


def test_watching_the_dead_tells_at_once_why_it_died(stand: Stand) -> None:
    ref = stand.runtime.spawn(Recorder)
    ref.tell("boom")
    stand.settle()
    _, log = watching(stand, ref)
    stand.settle()
    assert plain(log) == [Terminated(ref, Exit.FAILED)]


def test_after_unwatch_nothing_comes_even_if_it_was_in_the_mailbox(stand: Stand) -> None:
    ref = stand.runtime.spawn(Recorder)
    watcher, log = watching(stand, ref)

    def work(actor: Recorder) -> None:
        ref.stop(block=False)
        actor.actor_ref.tell(Call(lambda actor: actor.actor_ref.tell(Call(lambda actor: actor.unwatch(ref)))))

    watcher.tell(Call(work))
    stand.settle()
    watcher.tell(Call(lambda actor: actor.unwatch(ref)))
    stand.settle()
    ref2 = stand.runtime.spawn(Recorder)
    watcher.ask(Call(lambda actor: (actor.watch(ref2), actor.unwatch(ref2))))
    ref2.stop()
    stand.settle()
    assert Terminated(ref2, Exit.NORMAL) not in log


def test_nothing_is_kept_of_a_watcher_that_has_ended(stand: Stand) -> None:
    ref = stand.runtime.spawn(Recorder)
    watcher, _ = watching(stand, ref)
    watcher.stop()
    assert not ref.watchers


def test_watch_works_within_one_runtime(stand: Stand) -> None:
    with Runtime.manual() as other:
        stranger = other.spawn(Recorder)
        ref = stand.runtime.spawn(Recorder)
        with pytest.raises(ValueError, match="one runtime"):
            ref.ask(Call(lambda actor: actor.watch(stranger)))


# --- dead letters


def test_dead_letters_are_counted_and_told_to_subscribers(stand: Stand) -> None:
    letters: list[DeadLetter] = []
    leave = stand.runtime.dead_letters.subscribe(letters.append)
    ref = stand.runtime.spawn(Recorder)
    stopped = ref.stop(block=False)
    ref.tell("behind the stop")
    assert stopped.get()
    with pytest.raises(pykka.ActorDeadError):
        ref.tell("to the dead")
    assert letters == [DeadLetter(ref, "behind the stop"), DeadLetter(ref, "to the dead")]
    leave()
    with pytest.raises(pykka.ActorDeadError):
        ref.tell("unseen")
    assert len(letters) == 2
    assert stand.runtime.dead_letters.count == 3


def test_a_flood_of_dead_letters_is_a_trickle_in_the_log(stand: Stand, caplog: pytest.LogCaptureFixture) -> None:
    ref = stand.runtime.spawn(Recorder)
    ref.stop()
    for _ in range(100):
        with pytest.raises(pykka.ActorDeadError):
            ref.tell("x")
    stand.advance(1_000)
    with pytest.raises(pykka.ActorDeadError):
        ref.tell("x")
    lines = [record.getMessage() for record in caplog.records if "Dead letter" in record.getMessage()]
    assert len(lines) == 2
    assert "99 more" in lines[1]


def test_a_subscriber_that_fails_is_logged_and_harms_nobody(stand: Stand, caplog: pytest.LogCaptureFixture) -> None:
    def broken(letter: DeadLetter) -> None:
        raise RuntimeError("broken subscriber")

    stand.runtime.dead_letters.subscribe(broken)
    ref = stand.runtime.spawn(Recorder)
    ref.stop()
    with caplog.at_level(logging.ERROR), pytest.raises(pykka.ActorDeadError):
        ref.tell("x")
    assert "broken subscriber" in caplog.text


# --- directory


def test_a_key_names_one_live_actor_and_is_free_when_it_has_ended(stand: Stand) -> None:
    ref = stand.runtime.spawn(Recorder, key=("account", 7))
    assert stand.runtime.lookup(("account", 7)) is ref
    with pytest.raises(DuplicateKeyError):
        stand.runtime.spawn(Recorder, key=("account", 7))
    ref.stop()
    assert stand.runtime.lookup(("account", 7)) is None
    assert stand.runtime.spawn(Recorder, key=("account", 7)) is not ref


def test_actors_are_not_in_pykkas_registry(stand: Stand) -> None:
    ref = stand.runtime.spawn(Recorder)
    assert ref not in pykka.ActorRegistry.get_all()


# --- passivation


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


# --- pipe


def test_a_piped_answer_comes_as_a_message(stand: Stand) -> None:
    log: list[Any] = []
    other = stand.runtime.spawn(Recorder)
    ref = stand.runtime.spawn(Recorder, log)

    def work(actor: Recorder) -> None:
        actor.pipe(other.ask("question", block=False), lambda answer: ("answer", answer))
        actor.pipe(other.ask("boom", block=False), lambda answer: ("error", type(answer)))
        actor.pipe(other.ask(20, block=False).map(lambda value: value + 1), lambda answer: ("mapped", answer))

    ref.tell(Call(work))
    stand.settle()
    assert plain(log) == [("answer", "question"), ("error", ValueError), ("mapped", 21)]


def test_a_piped_answer_of_several_futures_comes_when_the_last_is_there(stand: Stand) -> None:
    log: list[Any] = []
    futures: list[Future[int]] = [Future() for _ in range(3)]
    ref = stand.runtime.spawn(Recorder, log)
    ref.ask(Call(lambda actor: actor.pipe(futures[0].join(*futures[1:]), lambda answer: answer)))
    futures[2].set(2)
    futures[0].set(0)
    stand.settle()
    assert plain(log) == []
    futures[1].set(1)
    stand.settle()
    assert plain(log) == [[0, 1, 2]]


def test_a_piped_answer_that_does_not_come_in_time_is_a_timeout_and_later_ignored(stand: Stand) -> None:
    log: list[Any] = []
    slow: Future[str] = Future()
    quick: Future[str] = Future()
    ref = stand.runtime.spawn(Recorder, log)

    def work(actor: Recorder) -> None:
        actor.pipe(slow, lambda answer: ("slow", type(answer)), timeout_ms=100)
        actor.pipe(quick, lambda answer: ("quick", answer), timeout_ms=100)

    ref.ask(Call(work))
    quick.set("here")
    stand.settle()
    assert stand.runtime.armed_timers == 1
    stand.advance(100)
    slow.set("too late")
    stand.advance(1_000)
    assert plain(log) == [("quick", "here"), ("slow", pykka.Timeout)]
    assert stand.runtime.armed_timers == 0


def test_a_failing_wrap_is_a_failure_of_the_actor(stand: Stand) -> None:
    ref = stand.runtime.spawn(Recorder)
    future: Future[int] = Future()
    ref.ask(Call(lambda actor: actor.pipe(future, lambda answer: 1 // answer)))
    future.set(0)
    stand.settle()
    assert not ref.is_alive()


def test_a_future_with_a_hook_of_its_own_cannot_be_piped(stand: Stand) -> None:
    ref = stand.runtime.spawn(Recorder)
    future: Future[int] = Future()
    future.set_get_hook(lambda timeout: 1)
    with pytest.raises(TypeError, match="hook"):
        ref.ask(Call(lambda actor: actor.pipe(future, lambda answer: answer)))
