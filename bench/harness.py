"""What all scenarios share: figures with their goals, fair measuring, and how results are shown.

A scenario is a module of this package with a function ``run(smoke: bool) -> list[Figure]``; its docstring says what it
measures and why. Rules:

- Machines are noisy and differ, so a figure that matters is a ratio to a *peer* or to a limit measured in the same run.
  The two sides take turns (`duel`), and the median counts.
- Every figure carries a checksum of the work it measured: work that nobody looks at is work that was not done.
- ``smoke`` only shows that the code works: a hundredth of the size, and numbers that mean nothing.
"""

from __future__ import annotations

import gc
import importlib
import pkgutil
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, ClassVar, Literal, NamedTuple

import msgspec

import bench
from actors.runtime import Actor

TOLERANCE = 0.15
"""``--check`` forgives so much: the share of its goal by which a figure may miss it on a busy machine."""


class Goal(NamedTuple):
    """A limit that a figure should keep."""

    direction: Literal[">=", "<="]
    value: float

    def __str__(self) -> str:
        return f"{self.direction} {self.value:,.10g}"


class Figure(NamedTuple):
    """One measured value. ``peer`` says what it is a ratio to, or how else to read it."""

    name: str
    value: float
    unit: str
    goal: Goal | None = None
    peer: str = ""
    checksum: int = 0

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None: there is none."""
        return self._within(0.0)

    @property
    def tolerable(self) -> bool:
        """Whether the goal is met, or missed by no more than `TOLERANCE`."""
        return self._within(TOLERANCE) is not False

    def _within(self, tolerance: float) -> bool | None:
        if self.goal is None:
            return None
        if self.goal.direction == ">=":
            return self.value >= self.goal.value * (1 - tolerance)
        return self.value <= self.goal.value * (1 + tolerance)


def at_least(value: float) -> Goal:
    return Goal(">=", value)


def at_most(value: float) -> Goal:
    return Goal("<=", value)


class Result(NamedTuple):
    """What one scenario has found."""

    scenario: str
    figures: list[Figure]
    took_s: float


# --- measuring -------------------------------------------------------------------------------------------------------


def rate(count: int, work: Callable[[], object]) -> float:
    """Units per second of this process's CPU time; ``work`` does ``count`` of them.

    What never waits has the same rate by the wall clock of a quiet machine, and keeps it on a busy one.
    """
    gc.collect()
    began_ns = time.process_time_ns()
    work()
    return count * 1e9 / (time.process_time_ns() - began_ns)


def wall_rate(count: int, work: Callable[[], object]) -> float:
    """The same by the wall clock, for work that waits."""
    gc.collect()
    began_ns = time.perf_counter_ns()
    work()
    return count * 1e9 / (time.perf_counter_ns() - began_ns)


class Counting(Actor):
    """An actor that counts its messages; the answer to an ask is how many there were."""

    mailbox_capacity: ClassVar[int] = 1 << 40
    __slots__ = ("seen",)

    def __init__(self) -> None:
        self.seen = 0

    def on_receive(self, message: Any) -> Any:
        self.seen += 1
        return self.seen


class Duel(NamedTuple):
    """Medians of two sides that took turns, and of their ratio, turn by turn."""

    ours: float
    peer: float
    ratio: float


def duel(ours: Callable[[], float], peer: Callable[[], float], rounds: int) -> Duel:
    """Measure both sides ``rounds`` times, in turn, so that what slows the machine down slows both."""
    pairs = [(ours(), peer()) for _ in range(rounds)]
    return Duel(
        statistics.median(ours for ours, _ in pairs),
        statistics.median(peer for _, peer in pairs),
        statistics.median(ours / peer for ours, peer in pairs),
    )


def progress(text: str) -> None:
    """Tell a waiting reader how far it is, on stderr."""
    print(f"  … {text}", file=sys.stderr, flush=True)


# --- scenarios -------------------------------------------------------------------------------------------------------


def scenarios() -> dict[str, ModuleType]:
    """All scenarios by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(bench.__path__) if module.name != "__main__")
    modules = {name: importlib.import_module(f"bench.{name}") for name in names}
    return {name: module for name, module in modules.items() if hasattr(module, "run")}


def run_all(modules: dict[str, ModuleType], smoke: bool) -> Iterable[Result]:
    """Run scenarios one after the other."""
    for name, module in modules.items():
        progress(f"{name}: {about(module)}")
        began_s = time.monotonic()
        yield Result(name, module.run(smoke), time.monotonic() - began_s)


def about(module: ModuleType) -> str:
    """The first line of a scenario's docstring."""
    return (module.__doc__ or "").strip().partition("\n")[0]


def as_json(results: list[Result], smoke: bool) -> str:
    """The results as a document that can be kept and compared."""
    tree = {
        "python": sys.version.split()[0],
        "platform": sys.platform,
        "smoke": smoke,
        "tolerance": TOLERANCE,
        "scenarios": {
            result.scenario: {
                "took_s": round(result.took_s, 2),
                "figures": {figure.name: _plain(figure) for figure in result.figures},
            }
            for result in results
        },
    }
    return msgspec.json.format(msgspec.json.encode(tree), indent=2).decode()


def _plain(figure: Figure) -> dict[str, object]:
    goal = figure.goal
    return {
        "value": round(figure.value, 4),
        "unit": figure.unit,
        "goal": None if goal is None else {"direction": goal.direction, "value": goal.value},
        "met": figure.met,
        "peer": figure.peer,
        "checksum": figure.checksum,
    }
