"""Watching, dead letters, the directory."""

from __future__ import annotations

import logging
from typing import Any

import pykka
import pytest

from actors.runtime import DeadLetter, DuplicateKeyError, Exit, Runtime, Terminated
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
