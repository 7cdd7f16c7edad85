"""Stopping greenlet actors that do not want to, and greenlets killed from outside."""

from __future__ import annotations

import itertools
from typing import Any

import gevent
import pykka
import pytest

from actors.runtime import Actor, ChildSpec, GreenletActor, HubDriver, Runtime, Supervisor
from tests.runtime.stand import GreenletRecorder, Stand


class Stubborn(GreenletActor):
    """Waits in its handler, and shrugs off so many kills."""

    def __init__(self, kills: int) -> None:
        self.kills = kills

    def on_receive(self, message: Any) -> Any:
        for _ in itertools.count():
            try:
                gevent.sleep(3600)
            except gevent.GreenletExit:
                self.kills -= 1
                if self.kills < 0:
                    raise


def blocked(hub: Stand, kills: int) -> tuple[Any, Any]:
    ref = hub.runtime.spawn(Stubborn, kills)
    asked = ref.ask("wait", block=False)
    hub.settle()
    return ref, asked


def test_a_blocked_greenlet_actor_is_killed_at_the_deadline(hub: Stand) -> None:
    ref, asked = blocked(hub, 0)
    behind = ref.ask("behind", block=False)
    done = hub.runtime.stop(ref, deadline_ms=1_000)
    hub.advance(999)
    assert not done.done
    hub.advance(1)
    hub.settle()
    assert done.get(timeout=0.001) is True
    with pytest.raises(gevent.GreenletExit):
        asked.get()
    with pytest.raises(pykka.ActorDeadError):
        behind.get()
    assert hub.runtime.counters["killed"] == 1


def test_one_that_survives_its_kill_is_left_behind_and_its_asker_answered(hub: Stand) -> None:
    ref, asked = blocked(hub, 5)
    greenlet = ref.worker._greenlet
    done = hub.runtime.shutdown(deadline_ms=1_000)
    hub.advance(2_000)
    hub.settle()
    assert done.get(timeout=0.001) is True
    with pytest.raises(pykka.ActorDeadError, match="left behind"):
        asked.get()
    assert hub.runtime.counters["abandoned"] == 1
    greenlet.kill(block=False)
    for _ in range(9):
        greenlet.kill(block=False)
        gevent.sleep(0)
    assert greenlet.dead


def test_the_graces_of_many_stubborn_actors_do_not_add_up(hub: Stand) -> None:
    asked = [blocked(hub, 1_000)[1] for _ in range(20)]
    done = hub.runtime.shutdown(deadline_ms=1_000)
    hub.advance(2_500)
    hub.settle()
    assert done.get(timeout=0.001) is True
    for future in asked:
        with pytest.raises(pykka.ActorDeadError):
            future.get()


def test_many_blocked_greenlets_below_one_parent_share_the_deadline(hub: Stand) -> None:
    class Crowd(Supervisor):
        many = True

        def on_start(self) -> None:
            for each in range(50):
                self.start_child(ChildSpec(each, Stubborn, (0,), key=each))

    root = hub.runtime.spawn(Crowd)
    hub.settle()
    for each in range(50):
        ref = hub.runtime.lookup(each)
        assert ref is not None
        ref.tell("wait")
    hub.settle()
    done = hub.runtime.stop(root, deadline_ms=500)
    hub.advance(500)
    hub.settle()
    assert done.get(timeout=0.001) is True
    assert hub.runtime.actor_count == 0


def test_an_idle_greenlet_that_is_killed_from_outside_is_a_failed_actor(hub: Stand) -> None:
    log: list[Any] = []
    ref = hub.runtime.spawn(GreenletRecorder, log)
    ref.ask("x")
    ref.worker._greenlet.kill(block=False)
    hub.settle()
    assert log == ["start", "x", "failure"]
    assert not ref.is_alive()


def test_a_greenlet_killed_before_its_first_step_is_noticed(hub: Stand) -> None:
    ref = hub.runtime.spawn(GreenletRecorder)
    waiting = ref.ask("x", block=False)
    ref.worker.wake()
    ref.worker._greenlet.kill(block=False)
    hub.settle()
    assert not ref.is_alive()
    with pytest.raises(pykka.ActorDeadError):
        waiting.get()


@pytest.mark.real
def test_stopping_under_load_is_bounded() -> None:
    class Restless(Actor):
        def on_receive(self, message: Any) -> Any:
            self.actor_ref.tell(message)

    runtime = Runtime(HubDriver(watchdog_ms=0)).start_thread()
    refs = [runtime.spawn(Restless) for _ in range(100)]
    for ref in refs:
        ref.tell("round and round")
    assert runtime.shutdown(deadline_ms=1_000).get(timeout=10) is True
    runtime.wait()
    assert runtime.actor_count == 0
