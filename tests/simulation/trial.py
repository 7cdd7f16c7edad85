"""One world, run and watched."""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from actors.scenario import read
from actors.scripted_ledger import ScriptedLedger
from actors.simulate import Simulation
from tests.simulation import coda, worlds
from tests.simulation.watch import Watcher
from tests.simulation.worlds import World

Enough = Callable[[list[str]], bool]
"""Whether such problems are all that somebody wants to know."""

FEW_CALLS = 4
TURNS_MAX = 60_000
SLOW_DISKS = 0.3
"""So many of the worlds have a ledger whose commits take time."""
SLOW_DISK_MS = (1, 2, 5, 5, 60)


@dataclass(slots=True)
class Report:
    """What a world has shown. ``problems`` empty: everything held."""

    seed: int
    problems: list[str] = field(default_factory=list)
    events: int = 0
    calls: int = 0
    runs: int = 0
    storm_ms: int = 0
    faults: Counter[str] = field(default_factory=Counter)


def run(world: World, until_ms: int | None = None, enough: Enough | None = None) -> Report:
    """Run the world, or its beginning: up to ``until_ms``, or until so much was found as is ``enough``."""
    delays = _delays(world.seed)
    watcher = _Coda(world, max(delays), enough)
    commits = random.Random(world.seed)
    ledger = ScriptedLedger((lambda: commits.choice(delays)) if any(delays) else None)
    scenario = read(worlds.with_looks(world, until_ms))
    simulation = Simulation(scenario, watcher, ledger)
    simulation.turns_max = TURNS_MAX
    watcher.attach(simulation)
    logging.disable(logging.CRITICAL)
    try:
        simulation.run()
        if scenario.until_ms == world.tree["until_ms"]:
            watcher.rest.at_rest("after the coda")
    except _EnoughError:
        pass
    except Exception as error:
        watcher.scene.problem(f"the simulation itself failed: {type(error).__name__}: {error}")
    finally:
        logging.disable(logging.NOTSET)
    scene, made = watcher.scene, len(simulation.world.calls)
    ended = len(watcher.runs.ends)
    return Report(world.seed, scene.problems, watcher.events, made, ended, world.storm_ms, scene.faults)


def is_slow(seed: int) -> bool:
    """Whether the ledger's commits take time in the world of this seed."""
    return any(_delays(seed))


def _delays(seed: int) -> tuple[int, ...]:
    """How long the ledger's commits take in the world of this seed; in most worlds no time."""
    return SLOW_DISK_MS if random.Random(f"ledger {seed}").random() < SLOW_DISKS else (0,)


class _EnoughError(Exception):
    """The rest of the world is of no interest."""


class _Coda(Watcher):
    """Also looks at the calm and at the coda."""

    def __init__(self, world: World, lag_ms: int, enough: Enough | None) -> None:
        super().__init__(world, lag_ms)
        self._enough = enough

    def stepped(self, step: object) -> None:
        super().stepped(step)  # type: ignore[arg-type]
        since_ms = self.scene.now_ms - self.world.coda_ms
        if since_ms in coda.MOMENTS:
            self._look_at_coda(since_ms)

    def before(self, step: object) -> None:
        if self._enough is not None and self._enough(self.scene.problems):
            raise _EnoughError
        if self.scene.now_ms >= self.world.storm_ms:
            self._simulation.saboteur.forget()
        if self.scene.now_ms == self.world.coda_ms and not self._rested:
            self._rested = True
            self.rest.at_rest("after the storm")
            self.scene.truth.begin_anew()
        super().before(step)  # type: ignore[arg-type]

    _rested = False

    def _look_at_coda(self, since_ms: int) -> None:
        truth, problem = self.scene.truth, self.scene.problem
        for name, conversation in self.world.places:
            account = truth.accounts[name]
            policy = self._simulation.config.policy(name, conversation, False, True, "text")
            message = "coda1" if since_ms < 80_000 else "coda2"
            marks = truth.marks.get((name, conversation, message), {})
            if account.limits or account.calls.concurrency < FEW_CALLS:  # what is to be taken off may have to wait
                marks = dict(sorted(marks.items(), key=lambda mark: mark[1])[-1:])
            typing = truth.typing.get((name, conversation, "typing None"), 0) > self.scene.now_ms
            for look in coda.looks(account, policy, self._simulation.clock.wall_ms()):
                if look.t_ms != since_ms:
                    continue
                if look.marks is not None and tuple(marks) != look.marks:
                    problem(
                        f"{name} {conversation}, {since_ms} ms into the coda: {look.what} shows {list(marks)}, not {look.marks}"
                    )
                if look.typing is not None and typing is not look.typing:
                    problem(f"{name} {conversation}, {since_ms} ms into the coda: {look.what} is missed")
                if look.was is not None:
                    set_ms = truth.was_set.get(((name, conversation, message), look.was[0]), -1)
                    if set_ms < self.world.coda_ms + look.was[1]:
                        problem(f"{name} {conversation}: {look.what} never showed {look.was[0]} in the coda")
