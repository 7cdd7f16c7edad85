"""Supervisors at work, on both drivers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pykka
import pytest

from actors.runtime import (
    ActorRef,
    Backoff,
    ChildSpec,
    DuplicateKeyError,
    Exit,
    Restart,
    Strategy,
    Supervisor,
)
from tests.runtime.stand import Call, GreenletRecorder, Recorder, Stand


class Parent(Supervisor):
    """Writes its hooks down; starts what it was given."""

    backoff: ClassVar[Backoff] = Backoff(first_ms=100, jitter=0.0)
    intensity: ClassVar[int] = 100

    def __init__(self, log: list[Any], specs: tuple[ChildSpec, ...] = ()) -> None:
        self.log = log
        self.specs = specs

    def on_start(self) -> None:
        for spec in self.specs:
            self.start_child(spec)

    def on_receive(self, message: Any) -> Any:
        if isinstance(message, Call):
            return message.work(self)
        raise ValueError(message)

    def on_child_failed(self, child: ChildSpec, message: Any, error: BaseException) -> None:
        self.log.append(("failed", child.id, message, type(error).__name__))

    def on_child_gave_up(self, child: ChildSpec) -> None:
        self.log.append(("gave up", child.id))

    def on_child_stopped(self, child: ChildSpec, reason: Exit) -> None:
        self.log.append(("stopped", child.id, reason.value))


@dataclass
class Family:
    """A parent with children named by letters, and what they logged."""

    stand: Stand
    parent: ActorRef[Any]
    log: list[Any] = field(default_factory=list)

    def __getitem__(self, name: str) -> ActorRef[Any]:
        ref = self.stand.runtime.lookup(name)
        assert ref is not None, name
        return ref

    def do(self, work: Callable[[Any], Any]) -> Any:
        return self.parent.ask(Call(work))

    def of(self, name: str) -> list[Any]:
        return [what for who, what in (entry[:2] for entry in self.log) if who == name]


def family(
    stand: Stand,
    names: str = "a",
    cls: type[Parent] = Parent,
    *,
    child: type[Recorder] = Recorder,
    **options: Any,
) -> Family:
    log: list[Any] = []
    specs = tuple(ChildSpec(name, child, (log, name), key=name, **options) for name in names)
    parent = stand.runtime.spawn(cls, log, specs, key="parent")
    stand.settle()
    return Family(stand, parent, log)


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


def test_timers_watches_and_pipes_die_with_their_instance(stand: Stand) -> None:
    home = family(stand)
    other = stand.runtime.spawn(Recorder)
    future = other._actor_weakref()._create_future()

    def arm(actor: Recorder) -> None:
        actor.schedule(1_000, "tick")
        actor.watch(other)
        actor.pipe(future, lambda answer: ("piped", answer))

    home["a"].tell(Call(arm))
    home["a"].tell("boom")
    stand.settle()
    assert stand.runtime.armed_timers == 1  # the supervisor's back-off
    stand.advance(100)
    future.set("late")
    other.stop()
    stand.advance(10_000)
    assert home.of("a")[-1] == "start"


def test_start_child_refuses_a_taken_id_or_key_and_leaves_no_trace(stand: Stand) -> None:
    home = family(stand)
    for spec in (ChildSpec("a", Recorder), ChildSpec("b", Recorder, key="a")):
        with pytest.raises(DuplicateKeyError):
            home.do(lambda parent, spec=spec: parent.start_child(spec))
    with pytest.raises(TypeError):
        home.do(lambda parent: parent.start_child(ChildSpec("c", Recorder, (1, 2, 3, 4))))
    assert home.do(lambda parent: list(parent.children)) == ["a"]
    assert stand.runtime.actor_count == 2


def test_stop_child_is_for_good_and_says_so(stand: Stand) -> None:
    home = family(stand)
    ref = home["a"]
    done = home.do(lambda parent: parent.stop_child("a"))
    assert done.get() is True
    assert home.do(lambda parent: parent.stop_child("a")).get() is False
    assert not ref.is_alive()
    stand.advance(1_000)
    assert stand.runtime.lookup("a") is None
    assert home.log[-1] == ("stopped", "a", "shutdown")


def test_a_child_stopped_during_its_back_off_does_not_come_back(stand: Stand) -> None:
    home = family(stand)
    ref = home["a"]
    ref.tell("boom")
    waiting = ref.ask("waiting", block=False)
    stand.settle()
    assert home.do(lambda parent: parent.stop_child("a")).get() is True
    with pytest.raises(pykka.ActorDeadError):
        waiting.get()
    stand.advance(60_000)
    assert home.of("a").count("start") == 1


def test_children_is_a_live_view_in_the_order_of_their_start(stand: Stand) -> None:
    home = family(stand, "abc")
    children = home.do(lambda parent: parent.children)
    assert list(children) == ["a", "b", "c"]
    assert children["b"] is home["b"]
    home.do(lambda parent: parent.stop_child("b"))
    assert len(children) == 2


def test_greenlet_children_are_restarted_like_others(hub: Stand) -> None:
    import gevent

    cls = type("P", (Parent,), {"strategy": Strategy.ONE_FOR_ALL})
    home = family(hub, "ab", cls, child=GreenletRecorder)
    a, b = home["a"], home["b"]
    b.tell(Call(lambda actor: gevent.sleep(0)))
    a.tell("boom")
    a.tell("after")
    b.tell("after")
    hub.settle()
    hub.advance(100)
    hub.settle()
    assert home.of("a")[-2:] == ["start", "after"]
    assert home.of("b").count("start") == 2
    assert home.of("b").count("after") == 1


def test_a_proxy_made_before_a_restart_still_reaches_the_actor(stand: Stand) -> None:
    home = family(stand)
    proxy: Any = home["a"].proxy()
    home["a"].tell("boom")
    stand.advance(100)
    assert proxy.on_receive("through").get() == "through"
