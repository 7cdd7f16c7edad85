"""Restart rules as data: who comes back, who comes along, how often, how soon.

Who comes back (``COMES_BACK``), in OTP's words:

    restart \\ exit   normal   failed   passivated   shutdown   gave up
    PERMANENT        yes      yes      no           no         no
    TRANSIENT        no       yes      no           no         no
    TEMPORARY        no       no       no           no         no

Who comes along (``companions``): one_for_one, only the child itself; one_for_all, all children; rest_for_one, it and
those started after it.

How often: ``Budget`` allows ``intensity`` restarts within ``period_ms``; a supervisor has one and each child may have
its own. ``Crowd`` is the rule for a parent of many: it escalates only when at least 50 and more than 5 % of its
children failed within the period. How soon: ``Backoff``.

All pure: time is an argument.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import dropwhile
from typing import TYPE_CHECKING, Any, TypeVar

from actors.runtime.messages import Exit

if TYPE_CHECKING:
    from actors.runtime.actor import Actor

__all__ = ["COMES_BACK", "Backoff", "Budget", "ChildSpec", "Crowd", "Restart", "Strategy", "companions"]

T = TypeVar("T")


class Restart(StrEnum):
    """When a child is started again."""

    PERMANENT = "permanent"
    TRANSIENT = "transient"
    TEMPORARY = "temporary"


class Strategy(StrEnum):
    """Which children are restarted with one that has to be."""

    ONE_FOR_ONE = "one_for_one"
    ONE_FOR_ALL = "one_for_all"
    REST_FOR_ONE = "rest_for_one"


COMES_BACK: frozenset[tuple[Restart, Exit]] = frozenset(
    {
        (Restart.PERMANENT, Exit.NORMAL),
        (Restart.PERMANENT, Exit.FAILED),
        (Restart.TRANSIENT, Exit.FAILED),
    }
)


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """How to start a child.

    Every instance is made as ``cls(*args, **kwargs)`` with the same objects: what must outlive a crash is put in there.
    """

    id: Hashable
    """Its name among its siblings."""
    cls: type[Actor]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    key: Hashable = None
    """Its key in the directory; None: it has none."""
    restart: Restart = Restart.PERMANENT
    intensity: int | None = None
    """Restarts it may have within ``period_ms``; None: only the supervisor's budget counts."""
    period_ms: int = 5_000


@dataclass(frozen=True, slots=True)
class Backoff:
    """The wait before a restart: ``first_ms``, doubling up to ``max_ms``, give or take ``jitter`` of it.

    After ``reset_ms`` without a failure it begins anew. ``first_ms`` 0: no wait at all.
    """

    first_ms: int = 100
    max_ms: int = 30_000
    jitter: float = 0.2
    reset_ms: int = 60_000

    def delay_ms(self, failures: int, chance: float) -> int:
        """Before the restart after the ``failures``-th failure in a row; ``chance`` in 0..1 places the jitter."""
        base = min(self.max_ms, self.first_ms << min(failures - 1, 40))
        return round(base * (1 + self.jitter * (2 * chance - 1)))


class Budget:
    """At most ``intensity`` events within ``period_ms``."""

    __slots__ = ("_at_ms", "intensity", "period_ms")

    def __init__(self, intensity: int, period_ms: int) -> None:
        self.intensity = intensity
        self.period_ms = period_ms
        self._at_ms: tuple[int, ...] = ()
        """A tuple: most budgets are never touched, and an empty deque costs 760 bytes."""

    def spend(self, now_ms: int) -> bool:
        """Count one; False: that was one too many."""
        after_ms = now_ms - self.period_ms
        self._at_ms = (*(at_ms for at_ms in self._at_ms if at_ms > after_ms), now_ms)
        return len(self._at_ms) <= self.intensity


class Crowd:
    """Which of many children failed within the period, each counted once."""

    __slots__ = ("_failed_at_ms", "minimum", "period_ms", "share")

    def __init__(self, period_ms: int, share: float, minimum: int) -> None:
        self.period_ms = period_ms
        self.share = share
        self.minimum = minimum
        self._failed_at_ms: dict[Hashable, int] = {}

    def too_many(self, child: Hashable, children: int, now_ms: int) -> bool:
        """Count the failure of ``child``, one of ``children``; True: this is no accident of single ones any more."""
        failed = self._failed_at_ms
        failed.pop(child, None)
        failed[child] = now_ms
        while failed:
            oldest = next(iter(failed))
            if failed[oldest] > now_ms - self.period_ms:
                break
            del failed[oldest]
        return len(failed) >= self.minimum and len(failed) > self.share * children


def companions(strategy: Strategy, children: Iterable[T], failed: T) -> list[T]:
    """Those restarted for ``failed``, itself included, in the order of their start."""
    if strategy is Strategy.ONE_FOR_ONE:
        return [failed]
    if strategy is Strategy.ONE_FOR_ALL:
        return list(children)
    return list(dropwhile(lambda child: child != failed, children))
