"""What pykka promises of an actor, on both drivers."""

from __future__ import annotations

import uuid
from typing import Any

import pykka
import pytest

from actors.runtime import Actor, ActorRef, BlockingCallError, Future, GreenletActor, WrongDriverError
from tests.runtime.stand import Call, GreenletRecorder, Recorder, Stand, plain


def test_messages_are_handled_in_the_order_of_one_sender_after_on_start(stand: Stand) -> None:
    ref = stand.runtime.spawn(Recorder)
    for each in range(100):
        ref.tell(each)
    assert ref.ask("log") == ["start", *range(100)]


def test_ask_brings_the_answer_and_a_future_when_it_does_not_block(stand: Stand) -> None:
    ref = stand.runtime.spawn(Recorder)
    assert ref.ask("hello") == "hello"
    future = ref.ask("again", block=False)
    assert isinstance(future, Future)
    assert future.get() == "again"
    assert future.get(timeout=0) == "again"


def test_an_exception_in_an_ask_goes_to_the_asker_and_is_no_failure(stand: Stand) -> None:
    ref = stand.runtime.spawn(Recorder)
    with pytest.raises(ValueError, match="boom"):
        ref.ask("boom")
    assert ref.is_alive()
    assert ref.ask("log") == ["start"]
    assert "failures" not in stand.runtime.counters


def test_an_exception_in_a_told_message_ends_an_unsupervised_actor(stand: Stand) -> None:
    log: list[Any] = []
    ref = stand.runtime.spawn(Recorder, log)
    ref.tell("boom")
    stand.settle()
    assert log == ["start", "failure"]
    assert not ref.is_alive()
    assert stand.runtime.counters["failures"] == 1


def test_stop_keeps_its_place_in_the_queue(stand: Stand) -> None:
    log: list[Any] = []
    ref = stand.runtime.spawn(Recorder, log)
    ref.tell("before")
    stopped = ref.stop(block=False)
    stand.settle()
    assert stopped.get() is True
    assert log == ["start", "before", "stop"]
    assert ref.stop() is False


def test_what_waits_behind_a_stop_is_answered_and_never_handled(stand: Stand) -> None:
    log: list[Any] = []
    ref = stand.runtime.spawn(Recorder, log)
    first = ref.stop(block=False)
    ask = ref.ask("late", block=False)
    second = ref.stop(block=False)
    ref.tell("later")
    assert first.get() is True
    assert second.get() is True
    with pytest.raises(pykka.ActorDeadError):
        ask.get()
    assert "late" not in log
    assert stand.runtime.dead_letters.count == 1


def test_sending_to_the_dead_raises_and_asking_answers_with_the_error(stand: Stand) -> None:
    ref = stand.runtime.spawn(Recorder)
    ref.stop()
    with pytest.raises(pykka.ActorDeadError, match="not found"):
        ref.tell("x")
    with pytest.raises(pykka.ActorDeadError, match="not found"):
        ref.ask("x")


def test_an_actor_can_stop_itself_twice_and_handles_what_it_told_itself_before(stand: Stand) -> None:
    def twice(actor: Recorder) -> None:
        actor.actor_ref.tell("still")
        actor.stop()
        actor.stop()

    log: list[Any] = []
    ref = stand.runtime.spawn(Recorder, log)
    ref.ask(Call(twice))
    stand.settle()
    assert log == ["start", "still", "stop"]


def test_an_actor_stopped_in_on_start_never_handles_a_message(stand: Stand) -> None:
    class Early(Recorder):
        def on_start(self) -> None:
            super().on_start()
            self.stop()

    log: list[Any] = []
    ref = stand.runtime.spawn(Early, log)
    ref.tell("x")
    stand.settle()
    assert plain(log) in ([], ["x"])  # what was told before on_start ran is in front of the stop
    assert not ref.is_alive()


@pytest.mark.parametrize("hook", ["on_start", "on_stop", "on_failure"])
def test_a_failure_inside_a_hook_ends_the_actor_and_nothing_else(stand: Stand, hook: str) -> None:
    def broken(self: Any, *_args: Any) -> None:
        raise RuntimeError(hook)

    cls = type("Broken", (Recorder,), {hook: broken})
    ref: ActorRef[Any] = stand.runtime.spawn(cls)
    if hook == "on_failure":
        ref.tell("boom")
    elif hook == "on_stop":
        ref.stop()
    stand.settle()
    assert not ref.is_alive()
    other = stand.runtime.spawn(Recorder)
    assert other.ask("fine") == "fine"


def test_an_actor_whose_init_fails_is_not_there(stand: Stand) -> None:
    class Unborn(Actor):
        def __init__(self) -> None:
            raise LookupError("no")

    with pytest.raises(LookupError):
        stand.runtime.spawn(Unborn, key="unborn")
    assert stand.runtime.lookup("unborn") is None
    assert stand.runtime.actor_count == 0
    assert stand.runtime.spawn(Recorder, key="unborn").is_alive()


class Counter(Actor):
    def __init__(self, start: int = 0) -> None:
        super().__init__(start)
        self.value = start
        self.held = pykka.traversable(Held())

    def add(self, by: int = 1) -> int:
        self.value += by
        return self.value


class Held:
    def twice(self, number: int) -> int:
        return 2 * number


def test_a_proxy_calls_reads_and_writes(stand: Stand) -> None:
    proxy: Any = stand.runtime.spawn(Counter, 5).proxy()
    assert proxy.add(by=2).get() == 7
    assert proxy.value.get() == 7
    proxy.value = 1
    assert proxy.add().get() == 2
    assert proxy.held.twice(4).get() == 8
    proxy.add.defer()
    assert proxy.value.get() == 3
    with pytest.raises(AttributeError):
        _ = proxy.nothing


def test_ref_and_actor_name_each_other(stand: Stand) -> None:
    ref: ActorRef[Any] = stand.runtime.spawn(Recorder)
    actor = ref.ask(Call(lambda actor: actor))
    assert actor.actor_ref is ref
    assert actor.actor_inbox is ref.actor_inbox
    assert actor.actor_urn == ref.actor_urn
    assert uuid.UUID(ref.actor_urn).version == 4
    assert "Recorder" in str(actor)
    assert ref.actor_urn in repr(ref)
    assert ref.actor_class is Recorder
    assert {ref: 1}[ref] == 1


def test_an_actor_made_by_hand_has_a_name_and_is_not_running() -> None:
    actor = Recorder()
    assert "Recorder" in str(actor)
    assert uuid.UUID(actor.actor_urn).version == 4
    Actor(1, 2, three=3)


def test_the_stopped_flag_waits_until_on_stop_has_run(stand: Stand) -> None:
    log: list[Any] = []
    ref = stand.runtime.spawn(Recorder, log)
    assert not ref.actor_stopped.is_set()
    if stand.driver == "hub":
        assert ref.actor_stopped.wait(0.001) is False
    ref.tell(Call(lambda actor: actor.stop()))
    assert ref.actor_stopped.wait() is True
    assert log[-1] == "stop"
    assert ref.actor_stopped.is_set()


def test_waiting_inside_a_multiplexed_handler_is_refused_with_advice(stand: Stand) -> None:
    other = stand.runtime.spawn(Recorder)
    ref = stand.runtime.spawn(Recorder)
    with pytest.raises(BlockingCallError, match=r"self\.pipe"):
        ref.ask(Call(lambda actor: other.ask("x")))
    with pytest.raises(BlockingCallError):
        ref.ask(Call(lambda actor: Future().get() if stand.driver == "hub" else other.ask("x", block=False).get()))
    assert ref.is_alive()


def test_blocking_gevent_calls_in_a_multiplexed_handler_get_the_same_error(hub: Stand) -> None:
    import gevent

    ref = hub.runtime.spawn(Recorder)
    with pytest.raises(BlockingCallError, match=r"self\.pipe"):
        ref.ask(Call(lambda actor: gevent.sleep(0.01)))


def test_the_manual_driver_refuses_greenlet_actors(manual: Stand) -> None:
    with pytest.raises(WrongDriverError):
        manual.runtime.spawn(GreenletRecorder)
    assert manual.runtime.actor_count == 0


def test_a_greenlet_actor_may_wait_in_its_handler(hub: Stand) -> None:
    import gevent

    other = hub.runtime.spawn(Recorder)
    ref = hub.runtime.spawn(GreenletRecorder)

    def work(actor: Recorder) -> Any:
        gevent.sleep(0)
        return other.ask("through")

    assert ref.ask(Call(work)) == "through"
    assert isinstance(ref.ask(Call(lambda actor: actor)), GreenletActor)


def test_a_greenlet_actor_handles_its_messages_one_at_a_time_and_in_order(hub: Stand) -> None:
    import gevent

    log: list[Any] = []
    ref = hub.runtime.spawn(GreenletRecorder, log)

    def slow(number: int) -> Call:
        def work(actor: Recorder) -> None:
            actor.note(f"in {number}")
            gevent.sleep(0)
            actor.note(f"out {number}")

        return Call(work)

    for number in range(40):
        ref.tell(slow(number))
    ref.ask("end")
    assert plain(log)[:-1] == [f"{what} {number}" for number in range(40) for what in ("in", "out")]
