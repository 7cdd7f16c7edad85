"""Snapshots, counters, observers, isolation."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from actors.runtime import ActorRef, ChildSpec, Event, Exit, Runtime, Supervisor
from tests.runtime.stand import Call, Recorder, Stand


class Parent(Supervisor):
    def __init__(self) -> None:
        self.specs = (ChildSpec("a", Recorder, key="a"), ChildSpec("b", Recorder, key="b"))

    def on_start(self) -> None:
        for spec in self.specs:
            self.start_child(spec)


def test_the_snapshot_is_the_tree_with_state_depth_restarts_and_timers(stand: Stand) -> None:
    stand.runtime.spawn(Parent, key="parent")
    stand.settle()
    a, b = stand.runtime.lookup("a"), stand.runtime.lookup("b")
    assert a is not None
    assert b is not None
    a.tell("boom")
    stand.advance(200)
    b.ask(Call(lambda actor: actor.schedule(1_000, "tick")))
    a.tell("waiting")
    snapshot = stand.runtime.snapshot()
    assert snapshot["name"] == stand.driver
    assert snapshot["actors"] == 3
    assert snapshot["armed_timers"] == 1
    assert snapshot["backlog"] == 1
    assert snapshot["counters"] == {"failures": 1, "restarts": 1}
    (parent,) = snapshot["tree"]
    assert parent["actor"] == "Parent"
    facts = [(child["key"], child["state"], child["depth"], child["restarts"]) for child in parent["children"]]
    assert facts == [("a", "running", 1, 1), ("b", "running", 0, 0)]
    assert [child["timers"] for child in parent["children"]] == [0, 1]
    text = stand.runtime.snapshot_text()
    assert "    Recorder 'a': running, depth 1, restarts 1" in text.splitlines()
    assert "3 actors, 1 messages waiting, 1 timers armed" in text


def test_a_snapshot_may_be_taken_from_another_thread(stand: Stand) -> None:
    stand.runtime.spawn(Recorder, key="x")
    texts: list[str] = []
    thread = threading.Thread(target=lambda: texts.append(stand.runtime.snapshot_text()))
    thread.start()
    thread.join()
    assert "Recorder 'x'" in texts[0]


class Watching:
    def __init__(self) -> None:
        self.handled = 0
        self.events: list[tuple[Any, ...]] = []

    def turn(self, ref: ActorRef[Any], handled: int) -> None:
        self.handled += handled

    def event(self, event: Event, ref: ActorRef[Any], detail: object) -> None:
        self.events.append((event, ref.key, detail if not isinstance(detail, Exception) else str(detail)))


def test_observers_see_turns_and_every_event_of_an_actors_life(stand: Stand) -> None:
    first, second = Watching(), Watching()
    leave = stand.runtime.observe(first)
    stand.runtime.observe(second)
    stand.runtime.spawn(Parent, key="parent")
    stand.settle()
    ref = stand.runtime.lookup("a")
    assert ref is not None
    for message in (1, 2, "boom"):
        ref.tell(message)
    stand.advance(200)
    stand.runtime.stop(ref)
    stand.settle()
    assert [event for event in first.events if event[1] == "a"] == [
        (Event.STARTED, "a", 0),
        (Event.FAILED, "a", "boom"),
        (Event.STARTED, "a", 1),
        (Event.STOPPED, "a", Exit.SHUTDOWN),
    ]
    assert first.handled == second.handled == 3
    leave()
    stand.runtime.spawn(Recorder).ask("unseen")
    assert first.handled == 3
    assert second.handled == 4


def test_a_tap_sees_every_plain_message_first_and_may_fail_its_actor(stand: Stand) -> None:
    log: list[Any] = []
    seen: list[Any] = []

    def tap(ref: ActorRef[Any], message: Any) -> None:
        seen.append((ref.key, message))
        if message == "bad":
            raise RuntimeError("tapped")

    stand.runtime.scheduler.tap = tap
    ref = stand.runtime.spawn(Recorder, log, key="tapped")
    for message in ("good", "bad", "after"):
        ref.tell(message)
    stand.settle()
    assert seen == [("tapped", "good"), ("tapped", "bad")]
    assert log == ["start", "good", "failure"]


def test_counters_are_absent_while_there_is_nothing_to_count(stand: Stand) -> None:
    stand.runtime.spawn(Recorder).ask("x")
    assert dict(stand.runtime.counters) == {}


def test_two_runtimes_share_nothing(stand: Stand) -> None:
    with Runtime.manual() as other:
        mine = stand.runtime.spawn(Recorder, key="same")
        theirs = other.spawn(Recorder, key="same")
        mine.tell("mine")
        with pytest.raises(ValueError, match="boom"):
            theirs.ask("boom")
        theirs.tell("boom")
        other.run_until_idle()
        assert not theirs.is_alive()
        assert mine.ask("log") == ["start", "mine"]
        assert other.counters["failures"] == 1
        assert "failures" not in stand.runtime.counters
        assert other.actor_count == 0


def test_what_has_stopped_is_freed_without_the_garbage_collector(stand: Stand) -> None:
    import gc
    import weakref

    ref = stand.runtime.spawn(Recorder)
    actor = weakref.ref(ref.ask(Call(lambda actor: actor)))
    mailbox = weakref.ref(ref)
    ref.tell(Call(lambda actor: (actor.schedule(10, "x"), actor.schedule(20, "y", "key"))))
    stand.settle()
    gc.disable()
    try:
        ref.stop()
        stand.settle()
        assert actor() is None
        del ref
        assert mailbox() is None
    finally:
        gc.enable()
