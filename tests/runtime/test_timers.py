"""Timers as an actor sees them."""

from __future__ import annotations

from typing import Any

import pytest

from actors.runtime import Actor, Runtime
from tests.runtime.stand import Call, Recorder, Stand


class Clocked(Recorder):
    """Notes the time with each message."""

    def note(self, what: Any) -> None:
        self.log.append((self.now_ms, what))


def run(stand: Stand, work: Any) -> list[Any]:
    """A Clocked actor that has done ``work``; its log."""
    log: list[Any] = []
    ref = stand.runtime.spawn(Clocked, log)
    ref.tell(Call(work))
    stand.settle()
    log.clear()
    return log


def test_a_scheduled_message_comes_at_its_time_and_not_before(stand: Stand) -> None:
    log = run(stand, lambda actor: actor.schedule(100, "tick"))
    stand.advance(99)
    assert log == []
    stand.advance(1)
    assert log == [(100, "tick")]
    stand.advance(10_000)
    assert log == [(100, "tick")]


def test_a_key_has_one_timer_and_starting_it_again_replaces_it(stand: Stand) -> None:
    def work(actor: Clocked) -> None:
        actor.schedule(100, "first", "key")
        actor.schedule(50, "earlier", "key")
        actor.schedule(200, "later", "key")
        actor.schedule(150, "other", "other key")

    log = run(stand, work)
    assert stand.runtime.armed_timers == 2
    stand.advance(1_000)
    assert log == [(150, "other"), (200, "later")]


def test_without_a_key_each_timer_stands_alone_and_its_key_is_returned(stand: Stand) -> None:
    def work(actor: Clocked) -> None:
        actor.schedule(10, "a")
        key = actor.schedule(10, "b")
        actor.schedule(10, "c")
        assert actor.cancel(key)

    log = run(stand, work)
    stand.advance(10)
    assert log == [(10, "a"), (10, "c")]


def test_schedule_at_takes_a_moment_and_the_past_means_now(stand: Stand) -> None:
    stand.advance(500)

    def work(actor: Clocked) -> None:
        actor.schedule_at(600, "future")
        actor.schedule_at(100, "past")

    ref_log = run(stand, work)
    stand.advance(100)
    assert ref_log[-1:] == [(600, "future")]


def test_after_cancel_nothing_comes(stand: Stand) -> None:
    def work(actor: Clocked) -> None:
        actor.schedule(10, "a", "a")
        actor.schedule(20, "b", "b")
        assert actor.cancel("a") is True
        assert actor.cancel("a") is False
        actor.cancel_all()

    log = run(stand, work)
    assert stand.runtime.armed_timers == 0
    stand.advance(100)
    assert log == []


def hold(stand: Stand, then: Any) -> list[Any]:
    """Put a tick of key "t" into the mailbox behind a message that does ``then``; the log."""
    log: list[Any] = []
    ref = stand.runtime.spawn(Clocked, log)
    ref.ask(Call(lambda actor: actor.schedule(10, "tick", "t")))
    stand.clock.advance(10)
    scheduler = stand.runtime.scheduler

    def both() -> None:
        ref.tell(Call(then))
        for timer in scheduler.timers.pop_due(scheduler.now_ns(), 10):
            timer.mailbox.append(timer)

    stand.runtime.call_soon(both)
    stand.settle()
    return log


def test_a_tick_in_the_mailbox_is_dead_after_cancel(stand: Stand) -> None:
    log = hold(stand, lambda actor: actor.cancel("t"))
    assert "tick" not in [what for _, what in log]


def test_a_tick_in_the_mailbox_is_dead_after_its_key_was_started_again(stand: Stand) -> None:
    log = hold(stand, lambda actor: actor.schedule(5, "new", "t"))
    stand.advance(5)
    assert [what for _, what in log if what in ("tick", "new")] == ["new"]


def test_a_tick_in_the_mailbox_comes_when_nothing_speaks_against_it(stand: Stand) -> None:
    log = hold(stand, lambda actor: None)
    assert "tick" in [what for _, what in log]


def test_a_stopped_actor_has_no_timer_and_gets_no_tick(stand: Stand) -> None:
    log: list[Any] = []
    ref = stand.runtime.spawn(Clocked, log)
    ref.ask(Call(lambda actor: [actor.schedule(10 * each, each) for each in range(1, 9)]))
    assert stand.runtime.armed_timers == 8
    ref.stop()
    assert stand.runtime.armed_timers == 0
    stand.advance(1_000)
    assert not [what for _, what in log if isinstance(what, int)]


@pytest.mark.parametrize("jump_ms", [1_000, 8 * 3_600_000])
def test_after_a_long_gap_an_interval_fires_once(stand: Stand, jump_ms: int) -> None:
    class Ticking(Clocked):
        def on_start(self) -> None:
            self.schedule(100, "tick", "t")

        def on_receive(self, message: Any) -> Any:
            if message == "tick":
                self.schedule(100, "tick", "t")
            return super().on_receive(message)

    log: list[Any] = []
    stand.runtime.spawn(Ticking, log)
    stand.advance(250)
    assert [at for at, _ in log] == [100, 200]
    stand.clock.advance(jump_ms)
    stand.settle()
    assert [at for at, _ in log] == [100, 200, 250 + jump_ms]


def test_a_jump_of_the_wall_clock_moves_no_timer(stand: Stand) -> None:
    log = run(stand, lambda actor: actor.schedule(100, "tick"))
    wall_ms = stand.clock.wall_ms()
    stand.clock.jump_wall(86_400_000)
    stand.settle()
    assert stand.clock.wall_ms() == wall_ms + 86_400_000
    stand.advance(50)
    assert log == []
    stand.clock.jump_wall(-2 * 86_400_000)
    stand.advance(50)
    assert log == [(100, "tick")]


def test_ticks_pass_a_full_mailbox(stand: Stand) -> None:
    class Tight(Clocked):
        mailbox_capacity = 1

    log: list[Any] = []
    ref = stand.runtime.spawn(Tight, log)
    ref.ask(Call(lambda actor: [actor.schedule(10, each) for each in range(5)]))
    stand.advance(10)
    assert [what for _, what in log if isinstance(what, int)] == [0, 1, 2, 3, 4]


def test_timers_survive_whatever_the_actor_does_but_ending_them(stand: Stand) -> None:
    def work(actor: Clocked) -> None:
        actor.schedule(10, "kept", "k")
        actor.on_receive = lambda message: actor.note(("behaves differently", message))  # type: ignore[method-assign]

    log = run(stand, work)
    stand.advance(10)
    assert log == [(10, ("behaves differently", "kept"))]


def test_a_million_timers_can_be_armed_and_let_go() -> None:
    class Holder(Actor):
        def on_receive(self, message: Any) -> Any:
            for each in range(message):
                self.schedule(1_000 + each, None, each)
            return self.runtime.armed_timers

    with Runtime.manual() as runtime:
        ref = runtime.spawn(Holder)
        assert ref.ask(1_000_000) == 1_000_000
        ref.stop()
        assert runtime.armed_timers == 0
        queue = runtime.scheduler.timers
        assert len(queue._near) + sum(map(len, queue._shelves.values())) <= 64
