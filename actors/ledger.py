"""What is on the platforms now, kept where a crash cannot take it: a port and its memory twin.

Rows: open runs, marks (written before the call that makes them, settled after it), what is to show in the end on messages
where that is not reached yet, typing that may be on, ended runs, and what limits have taught. Whoever starts on a ledger
with rows cleans up after the one before (`actors.recovery`). A row is dropped as soon as nothing of ours is left to do: a
final mark that stays leaves the ledger once it is confirmed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, Protocol

from actors.presence.breaker import Refused
from actors.presence.lesson import Learned
from actors.presence.marks import Mark
from actors.presence.pacing import ScopeKey
from actors.presence.policy import Chain
from actors.presence.terms import Command, Op, RunInfo, RunKey

ENDED_MAX = 100_000
USED_IDS_MAX = 4_096
USED_SESSIONS_MAX = 10_000
LEARNED_MAX = 10_000


class Place(NamedTuple):
    """A message that may carry marks of ours, or a typing target (then ``target`` is the thread)."""

    account: str
    conversation: str
    target: str | None


@dataclass(slots=True)
class RunRow:
    """An open run, with what is needed to take it over in another process."""

    info: RunInfo
    lease_ms: int
    events_only: bool
    direct: bool | None = None
    mentioned: bool | None = None
    kind: str | None = None
    """Direct, mentioned and kind choose the settings of the run that takes over."""
    opened_wall_ms: int = 0
    """When it was opened, by the wall clock: the age of a run outlives its process."""


class RestRow(NamedTuple):
    """What is to show in the end on a message, and the run that has ended so."""

    run: str
    chain: Chain


class LearnedRow(NamedTuple):
    """What a limit has taught about a scope, and when (ms, by the wall clock)."""

    learned: Learned
    wall_ms: int

    def age_ms(self, wall_ms: int) -> int:
        """How old it is; a clock that was set back makes nothing younger than new."""
        return max(0, wall_ms - self.wall_ms)

    def is_over(self, wall_ms: int) -> bool:
        """Whether it says nothing any more."""
        return self.age_ms(wall_ms) > self.learned.kept_ms


class RefusedRow(NamedTuple):
    """The refused calls of an account's last ten minutes, and when they were counted (ms, by the wall clock)."""

    refused: Refused
    wall_ms: int


Scope = tuple[str, str, str, str]
"""Account, and the three parts of a `ScopeKey`."""


@dataclass(slots=True)
class Contents:
    """Everything a ledger holds."""

    runs: dict[RunKey, RunRow] = field(default_factory=dict)
    marks: dict[Place, dict[str, Mark]] = field(default_factory=dict)
    """Marks that are, or may be, on a message."""
    rests: dict[Place, RestRow] = field(default_factory=dict)
    """By message: what does not yet show for certain."""
    typing: set[Place] = field(default_factory=set)
    ended: dict[RunKey, tuple[str, str | None, int]] = field(default_factory=dict)
    """Outcome, reason and wall clock (ms) of ended runs."""
    used: dict[str, dict[str, None]] = field(default_factory=dict)
    """By session: the ids of its events that were applied, oldest first."""
    learned: dict[Scope, LearnedRow] = field(default_factory=dict)
    refused: dict[str, RefusedRow] = field(default_factory=dict)
    """By account."""

    @property
    def rows(self) -> int:
        """Rows that stand for something still to be done."""
        return len(self.runs) + len(self.marks) + len(self.rests) + len(self.typing)

    def copy(self) -> Contents:
        """What is told later does not change it."""
        return Contents(
            dict(self.runs),
            {place: dict(marks) for place, marks in self.marks.items()},
            dict(self.rests),
            set(self.typing),
            dict(self.ended),
            {session: dict(ids) for session, ids in self.used.items()},
            dict(self.learned),
            dict(self.refused),
        )

    @property
    def left(self) -> str:
        """In words, what may still show on the platforms; empty: nothing."""
        marked, typing = len(self.marks), len(self.typing)
        parts = [f"marks on {marked} message{'s' * (marked != 1)}"] * (marked > 0)
        parts += [f"{typing} typing indicator{'s' * (typing != 1)}"] * (typing > 0)
        return " and ".join(parts)


class Ledger(Protocol):
    """The port. Calls return at once; `after_commit` runs its callback when all before it is safe."""

    degraded: bool
    """What is told here is not safe: `after_commit` waits for nothing."""
    on_found: Callable[[Contents], None] | None
    """Called in the runtime's thread with what an earlier process has left, where that could be read only now."""

    def load(self) -> Contents: ...

    def opened(self, row: RunRow) -> None: ...

    def ended(self, key: RunKey, outcome: str, reason: str | None, wall_ms: int) -> None: ...

    def marks(self, place: Place, marks: Mapping[str, Mark]) -> None:
        """These marks are, or may be, on the message; none: the row is dropped."""

    def rest(self, place: Place, row: RestRow | None) -> None:
        """This is to show in the end on the message, and stays; None: what shows is to go, or all is done."""

    def resting(self, place: Place) -> RestRow | None:
        """What was told last of the message."""
        ...

    def typing(self, place: Place, on: bool) -> None: ...

    def used(self, session: str, event_id: str) -> None:
        """This event was applied, and must not be again."""

    def has_used(self, session: str, event_id: str) -> bool:
        """Whether it was applied, in this process or an earlier one."""
        ...

    def learned(self, scope: Scope, row: LearnedRow) -> None:
        """A limit has taught this."""

    def refused(self, account: str, row: RefusedRow) -> None:
        """So many calls were refused lately."""

    def after_commit(self, then: Callable[[], None]) -> None: ...

    def close(self) -> None: ...


class MemoryLedger:
    """The twin for tests, simulation and ``ledger.path = ":memory:"``: survives actors, not processes."""

    def __init__(self) -> None:
        self.degraded = False
        """There should be a disk behind it, and what is told here does not get there: it dies with the process."""
        self.on_found: Callable[[Contents], None] | None = None
        self._contents = Contents()

    @property
    def rows(self) -> int:
        return self._contents.rows

    def load(self) -> Contents:
        held = self._contents
        return Contents(
            dict(held.runs),
            {place: dict(marks) for place, marks in held.marks.items()},
            dict(held.rests),
            set(held.typing),
            held.ended,
            held.used,
            dict(held.learned),
            dict(held.refused),
        )

    def opened(self, row: RunRow) -> None:
        self._contents.runs[row.info.key] = row

    def ended(self, key: RunKey, outcome: str, reason: str | None, wall_ms: int) -> None:
        self._contents.runs.pop(key, None)
        self._contents.ended[key] = (outcome, reason, wall_ms)
        if len(self._contents.ended) > ENDED_MAX:
            self._forget_ended(next(iter(self._contents.ended)))

    def marks(self, place: Place, marks: Mapping[str, Mark]) -> None:
        if marks:
            self._contents.marks[place] = dict(marks)
        else:
            self._contents.marks.pop(place, None)

    def rest(self, place: Place, row: RestRow | None) -> None:
        if row is not None:
            self._contents.rests[place] = row
        else:
            self._contents.rests.pop(place, None)

    def resting(self, place: Place) -> RestRow | None:
        return self._contents.rests.get(place)

    def typing(self, place: Place, on: bool) -> None:
        if on:
            self._contents.typing.add(place)
        else:
            self._contents.typing.discard(place)

    def used(self, session: str, event_id: str) -> None:
        ids = self._contents.used.pop(session, None) or {}
        self._contents.used[session] = ids
        ids[event_id] = None
        if len(ids) > USED_IDS_MAX:
            self._forget_used(session, next(iter(ids)))
        if len(self._contents.used) > USED_SESSIONS_MAX:
            oldest = next(iter(self._contents.used))
            for old in list(self._contents.used[oldest]):
                self._forget_used(oldest, old)
            del self._contents.used[oldest]

    def has_used(self, session: str, event_id: str) -> bool:
        return event_id in self._contents.used.get(session, ())

    def learned(self, scope: Scope, row: LearnedRow) -> None:
        rows = self._contents.learned
        rows.pop(scope, None)
        rows[scope] = row
        for old in list(islice(rows, 2)):  # two that were looked at longest ago
            if rows[old].is_over(row.wall_ms) or len(rows) > LEARNED_MAX:
                self._forget_learned(old)
            else:
                rows[old] = rows.pop(old)

    def refused(self, account: str, row: RefusedRow) -> None:
        self._contents.refused[account] = row

    def _forget_learned(self, scope: Scope) -> None:
        del self._contents.learned[scope]

    def _forget_ended(self, key: RunKey) -> None:
        del self._contents.ended[key]

    def _forget_used(self, session: str, event_id: str) -> None:
        del self._contents.used[session][event_id]

    def after_commit(self, then: Callable[[], None]) -> None:
        then()

    def close(self) -> None:
        """Nothing is held."""


@dataclass(slots=True)
class AccountLedger:
    """One account's view of the ledger, in the words of calls."""

    ledger: Ledger
    account: str

    def calling(self, command: Command, possible: Mapping[str, Mark] | None) -> None:
        """A call is about to be made: from now on its mark, or typing, may be there, or not any more."""
        if command.message is not None:
            self.marks(command.conversation, command.message, possible)
        elif command.op is Op.TYPING_START:
            self.ledger.typing(Place(self.account, command.conversation, command.thread), True)

    def after_commit(self, then: Callable[[], None]) -> None:
        """Call ``then`` when all that was told before is safe."""
        self.ledger.after_commit(then)

    def marks(self, conversation: str, message: str, possible: Mapping[str, Mark] | None) -> None:
        """These marks of ours are, or may be, there, or nothing that we still have to do with."""
        self.ledger.marks(Place(self.account, conversation, message), possible or {})

    def rests(self, conversation: str, message: str, run: str) -> None:
        """What this run was to leave there shows, or cannot be had."""
        place = Place(self.account, conversation, message)
        row = self.ledger.resting(place)
        if row is not None and row.run == run:
            self.ledger.rest(place, None)

    def learned(self, learned: Mapping[ScopeKey, Learned], wall_ms: int) -> None:
        """Limits have taught this just now."""
        for scope, lesson in learned.items():
            self.ledger.learned((self.account, *scope), LearnedRow(lesson, wall_ms))

    def refused(self, refused: Refused, wall_ms: int) -> None:
        """So many calls of the account's server were refused lately."""
        self.ledger.refused(self.account, RefusedRow(refused, wall_ms))

    def typing_over(self, conversation: str, thread: str | None) -> None:
        """Typing is off there, or ends by itself."""
        self.ledger.typing(Place(self.account, conversation, thread), False)
