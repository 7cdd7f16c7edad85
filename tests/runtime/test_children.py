"""A supervisor's children: start, stop, and what is theirs."""

from __future__ import annotations

from typing import Any

import pykka
import pytest

from actors.runtime import (
    ChildSpec,
    DuplicateKeyError,
    Strategy,
)
from tests.runtime.family import Parent, family
from tests.runtime.stand import Call, GreenletRecorder, Recorder, Stand


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
    with pytest.raises(DuplicateKeyError):
        home.do(lambda parent: parent.start_child(ChildSpec("a", Recorder)))
    with pytest.raises(DuplicateKeyError):
        home.do(lambda parent: parent.start_child(ChildSpec("b", Recorder, key="a")))
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
