"""Expectations about bare actors and their runtime."""

from __future__ import annotations

from collections.abc import Iterator

from tests.cases.bare import BareEvidence, Book
from tests.cases.expect import Counted, Window, as_list, check_names
from tests.cases.words import WordError

COUNTERS = ("failures", "restarts", "dropped", "dead_letters", "killed", "abandoned", "held")


def _book(evidence: BareEvidence, name: str) -> Book:
    if name not in evidence.books:
        raise WordError(f"there is no actor {name!r}")
    return evidence.books[name]


class Answered(Counted, frozen=True, kw_only=True):
    """Callers of these steps (``all``: of any) that had their answer within the window."""

    answered: str | list[str]

    def check(self, evidence: BareEvidence) -> Iterator[str]:
        words = as_list(self.answered)
        found = [
            call
            for call in evidence.callers
            if (words == ["all"] or call.word in words)
            and call.answered_ms is not None
            and self.holds(call.answered_ms)
        ]
        yield from self.counted(f"answered {self.answered}", len(found))


class Pending(Window, frozen=True, kw_only=True):
    """So many callers still wait at the end."""

    pending: int

    def check(self, evidence: BareEvidence) -> Iterator[str]:
        waiting = [call for call in evidence.callers if call.answered_ms is None]
        if len(waiting) != self.pending:
            yield f"{len(waiting)} callers still wait, not {self.pending}"


class Handled(Counted, frozen=True, kw_only=True):
    """Messages that an actor has handled."""

    handled: str

    def check(self, evidence: BareEvidence) -> Iterator[str]:
        times = [t_ms for t_ms in _book(evidence, self.handled).handled if self.holds(t_ms)]
        yield from self.counted(f"handled by {self.handled}", len(times))


class Starts(Counted, frozen=True, kw_only=True):
    """Starts of an actor, restarts included."""

    starts: str

    def check(self, evidence: BareEvidence) -> Iterator[str]:
        times = [t_ms for t_ms in _book(evidence, self.starts).starts if self.holds(t_ms)]
        yield from self.counted(f"starts of {self.starts}", len(times))


class Ticks(Counted, frozen=True, kw_only=True):
    """Ticks of an actor's timer (and those of its children) that were handled."""

    ticks: str

    def check(self, evidence: BareEvidence) -> Iterator[str]:
        times = [t_ms for t_ms in _book(evidence, self.ticks).ticks if self.holds(t_ms)]
        yield from self.counted(f"ticks of {self.ticks}", len(times))


class Returned(Window, frozen=True, kw_only=True):
    """A way to wait for a stop (``each``: all of them) returned in the window, with everything over by then."""

    returned: str

    def check(self, evidence: BareEvidence) -> Iterator[str]:
        ways = evidence.returned
        wanted = list(ways) if self.returned == "each" else [self.returned]
        if not wanted:
            yield "nobody waited for a stop"
        for way in wanted:
            if way not in ways:
                yield f"nobody waited by {way}"
                continue
            t_ms, hook_over, key_free = ways[way]
            if not self.holds(t_ms):
                yield f"{way} returned at {t_ms}"
            if not hook_over:
                yield f"{way} returned before the stop hook was over"
            if not key_free:
                yield f"{way} returned while the actor was still registered"


class Registered(Window, frozen=True, kw_only=True):
    """Whether an actor can be found at the end."""

    registered: str
    is_: bool = True

    def check(self, evidence: BareEvidence) -> Iterator[str]:
        if (evidence.runtime.lookup(self.registered) is not None) is not self.is_:
            yield f"{self.registered} is {'not ' if self.is_ else ''}registered"


class OfRuntime(Counted, frozen=True, kw_only=True):
    """``armed_timers``, ``actor_count``, ``backlog`` or a counter of the runtime, at the end."""

    runtime: str
    is_: int | None = None

    def check(self, evidence: BareEvidence) -> Iterator[str]:
        runtime = evidence.runtime
        own = {"armed_timers": runtime.armed_timers, "actor_count": runtime.actor_count, "backlog": runtime.backlog}
        numbers = {**dict.fromkeys(COUNTERS, 0), **runtime.counters, **own}
        check_names("number of a runtime", (self.runtime,), numbers)
        value = numbers[self.runtime]
        if self.is_ is not None:
            if value != self.is_:
                yield f"{self.runtime}: {value}, not {self.is_}"
        else:
            yield from self.counted(self.runtime, value)


class Depth(Counted, frozen=True, kw_only=True):
    """The deepest that an actor's mailbox was when somebody looked (``stats``)."""

    depth: str

    def check(self, evidence: BareEvidence) -> Iterator[str]:
        depths = [
            node["depth"]
            for t_ms, snapshot in evidence.snapshots
            if self.holds(t_ms)
            for node in snapshot["tree"]
            if node["key"] == self.depth
        ]
        yield from self.counted(f"depth of {self.depth}", max(depths, default=0))


class Logged(Counted, frozen=True, kw_only=True):
    """Warnings of the runtime that hold this text."""

    logged: str

    def check(self, evidence: BareEvidence) -> Iterator[str]:
        found = [text for text in evidence.logged if self.logged in text]
        yield from self.counted(f"logged {self.logged!r}", len(found))
