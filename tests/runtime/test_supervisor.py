"""Restarts: who, with whom, when; on both drivers."""

from __future__ import annotations

from typing import Any

import pytest

from actors.runtime import (
    Backoff,
    ChildSpec,
    Restart,
    Strategy,
)
from tests.runtime.family import Parent, family
from tests.runtime.stand import Call, Recorder, Stand


def test_a_failed_child_is_restarted_behind_the_same_ref_and_its_queue_lives_on(stand: Stand) -> None:
    home = family(stand)
    ref = home["a"]
    for message in (1, "boom", 2, 3):
        ref.tell(message)
    asked = ref.ask(4, block=False)
    stand.settle()
    assert home.log == [("a", "start"), ("a", 1), ("a", "failure"), ("failed", "a", "boom", "ValueError")]
    assert ref.is_alive()
    ref.tell(5)
    stand.advance(99)
    assert ("a", 2) not in home.log
    stand.advance(1)
    assert home.of("a")[3:] == ["start", 2, 3, 4, 5]
    assert asked.get() == 4
    assert home["a"] is ref
    assert stand.runtime.counters["restarts"] == 1


def test_the_message_that_failed_does_not_come_back(stand: Stand) -> None:
    home = family(stand)
    home["a"].tell("boom")
    stand.advance(60_000)
    assert home.log.count(("failed", "a", "boom", "ValueError")) == 1


def test_every_instance_gets_the_same_objects_so_state_owned_above_survives(stand: Stand) -> None:
    class Keeping(Recorder):
        def __init__(self, log: list[Any], name: str, book: dict[str, int]) -> None:
            super().__init__(log, name)
            self.book = book

        def on_receive(self, message: Any) -> Any:
            if message == "count":
                self.book["n"] = self.book.get("n", 0) + 1
                return self.book["n"]
            return super().on_receive(message)

    log: list[Any] = []
    spec = ChildSpec("a", Keeping, (log, "a", {}), key="a")
    stand.runtime.spawn(Parent, log, (spec,))
    stand.settle()
    ref = stand.runtime.lookup("a")
    assert ref is not None
    assert ref.ask("count") == 1
    ref.tell("boom")
    stand.advance(100)
    assert ref.ask("count") == 2


@pytest.mark.parametrize(
    ("restart", "how", "alive", "hook"),
    [
        (Restart.PERMANENT, "boom", True, None),
        (Restart.PERMANENT, "stop", True, None),
        (Restart.PERMANENT, "passivate", False, ("stopped", "a", "passivated")),
        (Restart.PERMANENT, "shutdown", False, ("stopped", "a", "shutdown")),
        (Restart.TRANSIENT, "boom", True, None),
        (Restart.TRANSIENT, "stop", False, ("stopped", "a", "normal")),
        (Restart.TRANSIENT, "passivate", False, ("stopped", "a", "passivated")),
        (Restart.TRANSIENT, "shutdown", False, ("stopped", "a", "shutdown")),
        (Restart.TEMPORARY, "boom", False, ("stopped", "a", "failed")),
        (Restart.TEMPORARY, "stop", False, ("stopped", "a", "normal")),
        (Restart.TEMPORARY, "shutdown", False, ("stopped", "a", "shutdown")),
    ],
)
def test_who_comes_back(stand: Stand, restart: Restart, how: str, alive: bool, hook: Any) -> None:
    home = family(stand, restart=restart)
    ref = home["a"]
    if how == "boom":
        ref.tell("boom")
    elif how == "stop":
        assert ref.stop() is True
    elif how == "passivate":
        assert ref.ask(Call(lambda actor: actor.passivate())) is True
    else:
        assert stand.runtime.stop(ref).get() is True
    stand.advance(1_000)
    assert ref.is_alive() is alive
    assert (stand.runtime.lookup("a") is ref) is alive
    assert home.do(lambda parent: "a" in parent.children) is alive
    assert [entry for entry in home.log if entry[0] == "stopped"] == ([] if hook is None else [hook])
    if alive:
        assert ref.ask("here") == "here"


@pytest.mark.parametrize(
    ("strategy", "again"),
    [(Strategy.ONE_FOR_ONE, "b"), (Strategy.ONE_FOR_ALL, "abc"), (Strategy.REST_FOR_ONE, "bc")],
)
def test_companions_stop_newest_first_and_start_oldest_first_with_their_queues(
    stand: Stand, strategy: Strategy, again: str
) -> None:
    cls = type("P", (Parent,), {"strategy": strategy})
    home = family(stand, "abc", cls)
    refs = {name: home[name] for name in "abc"}
    home.log.clear()
    refs["b"].tell("boom")
    for ref in refs.values():
        ref.tell("queued")
    stand.settle()
    stops = [entry for entry in home.log if entry[1] == "stop"]
    assert stops == [(name, "stop") for name in reversed(again) if name != "b"]
    stand.advance(100)
    assert [entry for entry in home.log if entry[1] == "start"] == [(name, "start") for name in again]
    for name, ref in refs.items():
        assert home[name] is ref
        assert home.of(name).count("queued") == 1


def test_a_sibling_that_fails_while_the_group_restarts_is_restarted_once(stand: Stand) -> None:
    cls = type("P", (Parent,), {"strategy": Strategy.ONE_FOR_ALL})
    home = family(stand, "ab", cls)
    a, b = home["a"], home["b"]

    def both(parent: Any) -> None:
        a.tell("boom")
        b.tell("boom")

    home.do(both)
    stand.advance(1_000)
    assert home.of("a").count("start") == 2
    assert home.of("b").count("start") == 2
    assert a.ask("x") == b.ask("x") == "x"


def test_back_off_doubles_and_begins_anew_after_quiet(stand: Stand) -> None:
    cls = type("P", (Parent,), {"backoff": Backoff(first_ms=100, max_ms=400, jitter=0.0, reset_ms=10_000)})
    home = family(stand, "a", cls)
    starts: list[int] = []
    for _ in range(5):
        began_ms = stand.clock.now_ms()
        home["a"].tell("boom")
        before = home.of("a").count("start")
        while home.of("a").count("start") == before:
            stand.advance(10)
        starts.append(stand.clock.now_ms() - began_ms)
    assert starts == [100, 200, 400, 400, 400]
    stand.advance(10_000)
    home["a"].tell("boom")
    stand.advance(100)
    assert home.of("a").count("start") == 7


def test_a_child_that_fails_in_on_start_is_restarted_with_back_off_like_any_other(stand: Stand) -> None:
    class Stillborn(Recorder):
        def on_start(self) -> None:
            super().on_start()
            raise OSError("no luck")

    cls = type("P", (Parent,), {"backoff": Backoff(first_ms=100, max_ms=30_000, jitter=0.0)})
    home = family(stand, "a", cls, child=Stillborn)
    stand.advance(60_000)
    assert home.of("a").count("start") == 10
    assert ("failed", "a", None, "OSError") in home.log


def test_a_child_whose_new_instance_cannot_be_made_is_tried_again(stand: Stand) -> None:
    made: list[int] = []

    class Moody(Recorder):
        def __init__(self, log: list[Any], name: str) -> None:
            super().__init__(log, name)
            made.append(1)
            if len(made) in (2, 3):
                raise OSError("not now")

    home = family(stand, child=Moody)
    ref = home["a"]
    ref.tell("boom")
    ref.tell("patient")
    stand.advance(10_000)
    assert len(made) == 4
    assert home.of("a")[-1] == "patient"
