"""Fairness, order, and that the two drivers do the same."""

from __future__ import annotations

import random
from typing import Any, ClassVar

import pytest

from actors.runtime import (
    Actor,
    ActorRef,
    Backoff,
    ChildSpec,
    DeadlockError,
    LivelockError,
    Supervisor,
    WrongDriverError,
)
from actors.runtime.scheduler import QUANTUM
from tests.runtime.stand import DRIVERS, Call, Recorder, Stand, in_native_threads


def test_a_flooded_actor_delays_another_by_one_turn(stand: Stand) -> None:
    log: list[Any] = []
    flooded = stand.runtime.spawn(Recorder, log, "flooded")
    other = stand.runtime.spawn(Recorder, log, "other")
    for each in range(1_000):
        flooded.tell(each)
    other.tell("me too")
    stand.settle()
    place = log.index(("other", "me too"))
    assert place <= QUANTUM + 3


def test_an_actor_that_tells_itself_for_ever_does_not_keep_others_waiting(stand: Stand) -> None:
    class Restless(Actor):
        stop_it: ClassVar[bool] = False

        def on_receive(self, message: Any) -> Any:
            if not Restless.stop_it:
                self.actor_ref.tell(message)

    Restless.stop_it = False
    ref = stand.runtime.spawn(Restless)
    ref.tell("x")
    other = stand.runtime.spawn(Recorder)

    def end(actor: Recorder) -> str:
        Restless.stop_it = True
        return "served"

    if stand.driver == "hub":
        assert other.ask(Call(end)) == "served"
    else:
        other.tell(Call(end))
        stand.settle()
        assert Restless.stop_it


def test_a_call_handed_over_that_fails_harms_nothing(stand: Stand, caplog: pytest.LogCaptureFixture) -> None:
    ref = stand.runtime.spawn(Recorder)
    stand.runtime.call_soon(lambda: 1 // 0)
    stand.settle()
    assert "ZeroDivisionError" in caplog.text
    assert ref.ask("x") == "x"


def test_the_manual_driver_reports_a_deadlock_and_moves_no_time(manual: Stand) -> None:
    class Slow(Actor):
        def on_receive(self, message: Any) -> Any:
            future = self._create_future()
            self.pipe(future, lambda answer: answer)
            return future

    ref = manual.runtime.spawn(Slow)
    inner = ref.ask("x")
    inner._scheduler = manual.runtime.scheduler
    with pytest.raises(DeadlockError, match="no timer is armed"):
        inner.get()
    manual.runtime.spawn(Recorder).ask(Call(lambda actor: actor.schedule(10, "x")))
    with pytest.raises(DeadlockError, match="advance the clock"):
        inner.get()
    with pytest.raises(Exception, match="3 seconds"):
        inner.get(timeout=3)
    assert manual.clock.now_ms() == 0


def test_the_manual_driver_reports_actors_that_never_rest(manual: Stand) -> None:
    class Restless(Actor):
        def on_receive(self, message: Any) -> Any:
            self.actor_ref.tell(message)

    ref = manual.runtime.spawn(Restless)
    ref.tell("x")
    manual.runtime.driver.turns_max = 1_000  # type: ignore[attr-defined]
    with pytest.raises(LivelockError):
        manual.runtime.run_until_idle()
    manual.runtime.stop(ref)
    manual.runtime.run_until_idle()


def test_manual_steps_are_for_manual_runtimes_and_their_thread(hub: Stand, manual: Stand) -> None:
    for step in (hub.runtime.run_until_idle, lambda: hub.runtime.advance(1), lambda: hub.runtime.run_until(1)):
        with pytest.raises(WrongDriverError):
            step()
    caught: list[Any] = []

    def elsewhere() -> None:
        try:
            manual.runtime.run_until_idle()
        except WrongDriverError as error:
            caught.append(error)

    in_native_threads(elsewhere)
    assert len(caught) == 1


class Walker(Recorder):
    """Follows a seeded script: tells, arms, cancels, fails, stops, spawns."""

    def __init__(self, log: list[Any], name: str, chance: random.Random, crowd: list[ActorRef[Any]]) -> None:
        super().__init__(log, name)
        self.chance = chance
        self.crowd = crowd

    def note(self, what: Any) -> None:
        self.log.append((self.now_ms, self.name, what))

    def on_receive(self, message: Any) -> Any:
        self.note(message)
        chance = self.chance
        for _ in range(chance.randrange(3)):
            step = chance.random()
            if step < 0.35:
                ref = chance.choice(self.crowd)
                if ref.is_alive():
                    ref.tell(chance.randrange(100))
            elif step < 0.75:
                self.schedule(chance.randrange(300), chance.randrange(100), chance.randrange(5))
            elif step < 0.9:
                self.cancel(chance.randrange(5))
            elif step < 0.95:
                raise ValueError(message)
            elif step < 0.97:
                self.stop()
        return None


class WalkersParent(Supervisor):
    many = True
    backoff = Backoff(first_ms=20, jitter=0.5)


def walk(driver: str, seed: int) -> list[Any]:
    stand = Stand(driver)
    stand.runtime.random.seed(seed)
    chance = random.Random(seed)
    log: list[Any] = []
    crowd: list[ActorRef[Any]] = []

    def populate(parent: WalkersParent) -> None:
        for each in range(10):
            crowd.append(parent.start_child(ChildSpec(each, Walker, (log, f"w{each}", chance, crowd))))

    class Parent(WalkersParent):
        def on_receive(self, message: Any) -> Any:
            message(self)

    stand.runtime.spawn(Parent).ask(populate)
    for _ in range(40):
        ref = chance.choice(crowd)
        if ref.is_alive():
            ref.tell("go")
        stand.advance(chance.randrange(50))
    log.append(("counters", dict(stand.runtime.counters)))
    stand.close()
    return log


@pytest.mark.parametrize("seed", range(8))
def test_both_drivers_do_the_same_with_the_same_script(seed: int) -> None:
    manual, hub = (walk(driver, seed) for driver in DRIVERS)
    assert len(manual) > 50
    assert manual == hub
