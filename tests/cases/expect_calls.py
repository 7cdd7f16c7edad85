"""Expectations about the calls that were made to the platform."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import UNSET, Struct, UnsetType

from actors.presence.terms import Op
from actors.scripted_platform import CallRecord
from tests.cases.expect import TOLERANCE_MS, Counted, Window, as_list
from tests.cases.stage import Evidence
from tests.cases.words import OPS, WordError

Names = str | list[str]


class Filter(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which calls. A field left out matches everything; ``thread`` null: outside of threads."""

    op: Names = "any"
    emoji: Names | None = None
    """An emoji or ``E.state``; an empty list: a clear."""
    chat: Names | None = None
    message: Names | None = None
    thread: Names | UnsetType | None = UNSET
    account: str | None = None
    outcome: Names | None = None

    def calls(self, evidence: Evidence) -> list[CallRecord]:
        """The calls that match, in the order of their start."""
        return [call for call in evidence.calls if self.matches(call, evidence)]

    def matches(self, call: CallRecord, evidence: Evidence) -> bool:
        command = call.command
        return (
            command.op in self._ops()
            and self.account in (None, call.account)
            and (self.chat is None or command.conversation in as_list(self.chat))
            and (self.message is None or command.message in as_list(self.message))
            and (self.thread is UNSET or command.thread in as_list(self.thread))
            and (self.outcome is None or call.outcome in as_list(self.outcome))
            and (not self.emoji or command.emoji in self._emojis(call, evidence))
        )

    def _ops(self) -> frozenset[Op]:
        if self.emoji == []:
            return frozenset({Op.CLEAR})
        unknown = [op for op in as_list(self.op) if op not in OPS]
        if unknown:
            raise WordError(f"there is no call {unknown[0]!r}; there are {', '.join(OPS)}")
        return frozenset().union(*(OPS[op] for op in as_list(self.op)))

    def _emojis(self, call: CallRecord, evidence: Evidence) -> list[str]:
        return [evidence.emoji(name, call.account, call.command.conversation) for name in as_list(self.emoji)]

    def __str__(self) -> str:
        said = {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) not in (None, UNSET)}
        return " ".join(f"{name}={value}" for name, value in said.items())


class Calls(Counted, frozen=True, kw_only=True):
    """Calls that must happen in the window: how many, when, how far apart."""

    calls: Filter
    at: list[int] | int | None = None
    """One near each of these times; unless a bound is given, no others."""
    within: int = TOLERANCE_MS
    first: int | None = None
    last: int | None = None
    gap_min: int | None = None
    gap_max: int | None = None
    """Where the window has ends, also from its begin to the first call and from the last to its end."""
    per_ms: int | None = None
    at_most: int | None = None
    """In any ``per_ms``."""
    in_flight: int | None = None
    """At most so many at once."""

    def check(self, evidence: Evidence) -> Iterator[str]:
        found = [call for call in self.calls.calls(evidence) if self.holds(call.t_ms)]
        times = [call.t_ms for call in found]
        name = f"calls {self.calls}"
        if self.at is not None:
            yield from self._near(name, times)
        if self.bounded or self.at is None:
            yield from self._how_many(name, times)
        for word, wanted, index in (("first", self.first, 0), ("last", self.last, -1)):
            if wanted is not None and times and abs(times[index] - wanted) > self.within:
                yield f"{name}: the {word} at {times[index]}, not near {wanted}"
        yield from self._gaps(name, times, evidence.until_ms)
        if self.per_ms is not None and self.at_most is not None:
            yield from _rate(name, times, self.per_ms, self.at_most)
        if self.in_flight is not None:
            most = _in_flight(found, evidence.until_ms)
            if most > self.in_flight:
                yield f"{name}: {most} at once, more than {self.in_flight}"

    def _how_many(self, name: str, times: Sequence[int]) -> Iterator[str]:
        """With nothing but a limit said, none at all are fine, too."""
        limits = (self.gap_min, self.per_ms, self.in_flight)
        if self.bounded or all(limit is None for limit in limits):
            for difference in self.counted(name, len(times)):
                yield f"{difference} (at {_listed(times)})"

    def _near(self, name: str, times: Sequence[int]) -> Iterator[str]:
        left = list(times)
        for wanted in as_list(self.at):
            near = min(left, key=lambda t_ms: abs(t_ms - wanted), default=None)
            if near is None or abs(near - wanted) > self.within:
                yield f"{name}: none near {wanted} (at {_listed(times)})"
            else:
                left.remove(near)
        if left and not self.bounded:
            yield f"{name}: not expected at {_listed(left)}"

    def _gaps(self, name: str, times: list[int], until_ms: int) -> Iterator[str]:
        for before, after in pairwise(times):
            if self.gap_min is not None and after - before < self.gap_min:
                yield f"{name}: {before} and {after} are less than {self.gap_min} apart"
        if self.gap_max is None:
            return
        begin = [self.first_ms] if self.from_ is not None or self.after is not None else []
        end = [self.last_ms(until_ms)] if self.to is not None or self.before is not None else []
        for before, after in pairwise([*begin, *times, *end]):
            if after - before > self.gap_max:
                yield f"{name}: nothing from {before} to {after}, more than {self.gap_max}"


class NoCalls(Window, frozen=True, kw_only=True):
    """Calls that must not happen in the window."""

    no_calls: Filter

    def check(self, evidence: Evidence) -> Iterator[str]:
        found = [call for call in self.no_calls.calls(evidence) if self.holds(call.t_ms)]
        if found:
            shown = ", ".join(_shown(call) for call in found[:5])
            yield f"no calls {self.no_calls}: there are {len(found)}: {shown}"


class Order(Window, frozen=True, kw_only=True):
    """Calls that happen one after the other; others may come between."""

    order: list[Filter]

    def check(self, evidence: Evidence) -> Iterator[str]:
        calls = iter([call for call in evidence.calls if self.holds(call.t_ms)])
        for position, wanted in enumerate(self.order):
            if not any(wanted.matches(call, evidence) for call in calls):
                yield f"order: no call {wanted} (number {position + 1}) after the one before"
                return


def _rate(name: str, times: Sequence[int], per_ms: int, most: int) -> Iterator[str]:
    for first, last in zip(times, times[most:], strict=False):
        if last - first < per_ms:
            yield f"{name}: more than {most} in {per_ms} ms, from {first} on"
            return


def _in_flight(calls: Sequence[CallRecord], until_ms: int) -> int:
    changes = [(call.t_ms, 1) for call in calls]
    changes += [(until_ms + 1 if call.ended_ms is None else call.ended_ms, -1) for call in calls]
    most = now = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most


def _listed(times: Sequence[int]) -> str:
    shown = ", ".join(map(str, times[:12]))
    return (shown or "no time") + (" …" if len(times) > 12 else "")


def _shown(call: CallRecord) -> str:
    command = call.command
    about = command.message or command.thread or ""
    return " ".join(
        filter(None, (str(call.t_ms), command.op, command.emoji, command.conversation, about, call.outcome))
    )
