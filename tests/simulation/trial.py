"""One world, run and watched."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field

from actors.scenario import read
from actors.simulate import Simulation
from tests.simulation import coda, worlds
from tests.simulation.watch import Watcher
from tests.simulation.worlds import Tree, World

TURNS_MAX = 60_000


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


def run(world: World, tree: Tree | None = None) -> Report:
    """Run the world, or another tree with its times."""
    watcher = _Coda(world)
    simulation = Simulation(read(worlds.with_looks(world, tree or world.tree)), watcher)
    simulation.turns_max = TURNS_MAX
    watcher.attach(simulation)
    logging.disable(logging.CRITICAL)
    try:
        simulation.run()
        watcher.at_rest("after the coda")
    except Exception as error:
        watcher.problem(f"the simulation itself failed: {type(error).__name__}: {error}")
    finally:
        logging.disable(logging.NOTSET)
    made = len(simulation.world.calls)
    return Report(world.seed, watcher.problems, watcher.events, made, watcher.runs, world.storm_ms, watcher.faults)


class _Coda(Watcher):
    """Also looks at the calm and at the coda."""

    @property
    def runs(self) -> int:
        return len(self._ends)

    def stepped(self, step: object) -> None:
        super().stepped(step)  # type: ignore[arg-type]
        since_ms = self._now_ms - self.world.coda_ms
        if since_ms in coda.MOMENTS:
            self._look_at_coda(since_ms)

    def before(self, step: object) -> None:
        if self._now_ms >= self.world.storm_ms:
            self._simulation.saboteur.forget()
        if self._now_ms == self.world.coda_ms and not self._rested:
            self._rested = True
            self.at_rest("after the storm")
            self._truth.begin_anew()
        super().before(step)  # type: ignore[arg-type]

    _rested = False

    def _look_at_coda(self, since_ms: int) -> None:
        for name, conversation in self.world.places:
            account = self._truth.accounts[name]
            policy = self._simulation.config.policy(name, conversation, False, True, None)
            message = "coda1" if since_ms < 80_000 else "coda2"
            marks = self._truth.marks.get((name, conversation, message), {})
            if account.limits:  # what is to be taken off may have to wait
                marks = dict(sorted(marks.items(), key=lambda mark: mark[1])[-1:])
            typing = self._truth.typing.get((name, conversation, "typing None"), 0) > self._now_ms
            for look in coda.looks(account, policy):
                if look.t_ms != since_ms:
                    continue
                if look.marks is not None and tuple(marks) != look.marks:
                    self.problem(
                        f"{name} {conversation}, {since_ms} ms into the coda: {look.what} shows {list(marks)}, not {look.marks}"
                    )
                if look.typing is not None and typing is not look.typing:
                    self.problem(f"{name} {conversation}, {since_ms} ms into the coda: {look.what} is missed")
                if look.was is not None:
                    set_ms = self._truth.was_set.get(((name, conversation, message), look.was[0]), -1)
                    if set_ms < self.world.coda_ms + look.was[1]:
                        self.problem(f"{name} {conversation}: {look.what} never showed {look.was[0]} in the coda")
