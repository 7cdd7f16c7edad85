"""The ledgers of embedded processes: folders ``ledger-0``, ``ledger-1``, … below one folder, one for each living process.

A process takes the first slot that nobody holds and that has nothing of accounts it does not know (another bot's process,
which died, will come back for that). What other dead processes have left of *its* accounts, in their slots, it takes over
as its own, and drops it there as soon as it is safe here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from actors.ledger import Contents
from actors.ledger_sqlite import Later, LedgerLockedError, SqliteLedger

__all__ = ["Slots", "open_slots"]

SLOTS = 64
CallSoon = Callable[[Callable[[], None]], None]


@dataclass(slots=True)
class Slots:
    """The process's own ledger, and those of dead processes that something was taken over from."""

    own: SqliteLedger
    dead: list[SqliteLedger] = field(default_factory=list)
    _taken: list[tuple[SqliteLedger, Contents]] = field(default_factory=list)

    def take_over(self, ledger: SqliteLedger, accounts: Collection[str]) -> None:
        """Copy the rows of these accounts."""
        held = ledger.load()
        mine = Contents(
            {key: row for key, row in held.runs.items() if key.account in accounts},
            {place: marks for place, marks in held.marks.items() if place.account in accounts},
            {place: row for place, row in held.rests.items() if place.account in accounts},
            {place for place in held.typing if place.account in accounts},
        )
        own = self.own.load()
        for scope, lesson in held.learned.items():
            known = own.learned.get(scope)
            if scope[0] in accounts and (known is None or known.wall_ms < lesson.wall_ms):
                self.own.learned(scope, lesson)
        for account, refused in held.refused.items():
            before = own.refused.get(account)
            if account in accounts and (before is None or before.wall_ms < refused.wall_ms):
                self.own.refused(account, refused)
        for row in mine.runs.values():
            self.own.opened(row)
        for place, marks in mine.marks.items():
            self.own.marks(place, {**own.marks.get(place, {}), **marks})
        for place, rest in mine.rests.items():
            self.own.rest(place, rest)
        for place in mine.typing:
            self.own.typing(place, True)
        self._taken.append((ledger, mine))
        self.dead.append(ledger)

    def settle(self) -> None:
        """To be called when the process's tree stands: drop there what is written here, if it is."""
        self.own.after_commit(self._drop)

    def _drop(self) -> None:
        taken, self._taken = self._taken, []
        if self.own.degraded:  # it is not safe here
            self.close_dead()
            return
        for ledger, mine in taken:
            for key in mine.runs:
                ledger.forget_run(key)
            for place in mine.marks:
                ledger.marks(place, {})
            for place in mine.rests:
                ledger.rest(place, None)
            for place in mine.typing:
                ledger.typing(place, False)
            ledger.close()
            self.dead.remove(ledger)

    def close_dead(self) -> None:
        """Let go of what was not settled; it stays where it is."""
        for ledger in self.dead:
            ledger.close()
        self.dead.clear()


def open_slots(
    parent: str | os.PathLike[str], call_soon: CallSoon, accounts: Collection[str], call_later: Later | None = None
) -> Slots:
    """Find the process's slot below ``parent``, and what others have left for it.

    Raises `LedgerLockedError` if all slots are held.
    """
    slots: Slots | None = None
    left: list[SqliteLedger] = []
    strange: SqliteLedger | None = None
    for number in range(SLOTS):
        path = Path(parent) / f"ledger-{number}"
        if slots is not None and not path.exists():
            continue
        try:
            ledger = SqliteLedger(path, call_soon, call_later)
        except LedgerLockedError:
            continue
        theirs = _accounts_in(ledger)
        if slots is None and theirs <= set(accounts):
            slots = Slots(ledger)
            if ledger.degraded:  # the folder takes nothing, and the other slots are no better
                break
        elif theirs & set(accounts):
            left.append(ledger)
        elif slots is None and strange is None:
            strange = ledger
        else:
            ledger.close()
    if slots is None and strange is not None:  # all are full of others' things: better together than without a ledger
        slots, strange = Slots(strange), None
    if strange is not None:
        strange.close()
    if slots is None:
        for ledger in left:
            ledger.close()
        raise LedgerLockedError(f"all {SLOTS} slots in {parent} are in use")
    for ledger in left:
        slots.take_over(ledger, accounts)
    return slots


def _accounts_in(ledger: SqliteLedger) -> set[str]:
    """Whose things are still to be taken back."""
    held = ledger.load()
    return {key.account for key in held.runs} | {place.account for place in (*held.marks, *held.rests, *held.typing)}
