"""Answers that come as messages."""

from __future__ import annotations

from typing import Any

import pykka
import pytest

from actors.runtime import Future, Runtime
from tests.runtime.stand import Call, Recorder, Stand, plain


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


def test_an_answer_for_a_runtime_that_has_stopped_harms_nobody() -> None:
    future: Future[int] = Future()
    with Runtime.manual() as runtime:
        ref = runtime.spawn(Recorder)
        ref.ask(Call(lambda actor: actor.pipe(future, lambda answer: answer)))
    future.set(1)
    assert runtime.dead_letters.count == 1


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
