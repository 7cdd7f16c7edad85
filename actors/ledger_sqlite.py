"""The ledger in SQLite: written by one native thread, in batches, behind the same port.

The runtime's thread changes the twin in memory and notes what changed; while the writer is idle it is handed all that
was noted, as one transaction, at the end of the present slice. So a call costs a few microseconds, several changes of
one row become one write, and an ack waits for one commit at most. WAL without a sync per commit: what was committed
survives a kill of the process at any moment; the last moments before a crash of the whole machine may be lost.

A file that cannot be written (a full or read-only disk, a lock of another program, a deleted folder, a bug) turns the ledger
into its memory twin, with one warning: signs of life go on, and nobody waits. The writer tries again and again; once it is
through, the file gets all there is now, and the log says so.

One process holds a folder, by a lock on ``lock`` in it: a second one is refused (`LedgerLockedError`). Embedded
processes take the first free slot, ``ledger-0``, ``ledger-1``, … (`actors.slots`).
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from actors.ledger import Contents, LearnedRow, MemoryLedger, Place, RefusedRow, RestRow, RunRow, Scope
from actors.ledger_file import LedgerFile
from actors.ledger_folder import LedgerLockedError
from actors.ledger_tables import Row
from actors.ledger_writer import Everything, LedgerWriter
from actors.presence.marks import Mark
from actors.presence.terms import RunKey
from actors.runtime.waiting import native_sleep

__all__ = ["LedgerLockedError", "SqliteLedger"]

log = logging.getLogger("livesign")

Call = Callable[[], None]
Later = Callable[[float, Call], object]

SLOW_S = 5.0
"""A write that takes longer is not waited for."""
YIELD_EVERY_S = 0.002
YIELD_S = 0.000_05
"""A hub that is never idle takes the interpreter's lock again before the writer is awake, for seconds on end. While a batch is
with the writer, it is left alone for so long."""
BATCH_EVERY_S = 0.002
"""Batches begin so far apart: each takes the interpreter's lock from the hub several times, whatever is in it."""
CLOSE_S = 10.0


class SqliteLedger(MemoryLedger):
    """A ledger in the folder ``directory``; made if missing, with mode 0700."""

    def __init__(
        self, directory: str | os.PathLike[str], call_soon: Callable[[Call], None], call_later: Later | None = None
    ) -> None:
        """``call_soon`` runs a call in the runtime's thread, from any thread; ``call_later`` after so many seconds, from its
        own: without it, batches follow one another at once. Raises `LedgerLockedError`; all else can be mended later."""
        super().__init__()
        self.commits = 0
        self._call_soon = call_soon
        self._call_later = call_later
        self._changed: dict[Row, Any] = {}
        """What the writer has to hear: the new row, or None for none."""
        self._waiting: list[Callable[[], None]] = []
        self._handed: list[Callable[[], None]] = []
        """Who waits for the batch that is being written."""
        self._writing = False
        self._handed_s = 0.0
        """Since when."""
        self._yield_s = 0.0
        self._asked = False
        self._deaf = False
        """What changes is not noted: once there is a file again, it gets everything."""
        self._closed = False
        self._used_number = time.time_ns()  # goes on after the numbers of the process before
        self._file = LedgerFile(directory)
        self._writer = LedgerWriter(self._file, call_soon, self._written, self._opened)
        error, unread = None, True
        try:
            self._file.open()
            self._contents = self._file.read()
            unread = False
        except LedgerLockedError:
            raise
        except Exception as problem:
            error = problem
            self._degrade(problem)
        self._writer.start(error, unread=unread)

    @property
    def path(self) -> Path:
        """The database file."""
        return self._file.path

    # --- the port ------------------------------------------------------------------------------------------------

    def opened(self, row: RunRow) -> None:
        super().opened(row)
        self._note("runs", row.info.key, row)

    def ended(self, key: RunKey, outcome: str, reason: str | None, wall_ms: int) -> None:
        super().ended(key, outcome, reason, wall_ms)
        self._note("runs", key, None)
        self._note("ended", key, (outcome, reason, wall_ms))

    def forget_run(self, key: RunKey) -> None:
        """Another process has taken this run over."""
        self._contents.runs.pop(key, None)
        self._note("runs", key, None)

    def marks(self, place: Place, marks: Mapping[str, Mark]) -> None:
        if not marks and place not in self._contents.marks:
            return
        super().marks(place, marks)
        self._note("marks", place, dict(marks) or None)

    def rest(self, place: Place, row: RestRow | None) -> None:
        if row is None and place not in self._contents.rests:
            return
        super().rest(place, row)
        self._note("rests", place, row)

    def typing(self, place: Place, on: bool) -> None:
        if on == (place in self._contents.typing):
            return
        super().typing(place, on)
        self._note("typing", (place.account, place.conversation, place.target or ""), True if on else None)

    def used(self, session: str, event_id: str) -> None:
        super().used(session, event_id)
        self._used_number += 1
        self._note("used", (session, event_id), self._used_number)

    def learned(self, scope: Scope, row: LearnedRow) -> None:
        super().learned(scope, row)
        self._note("learned", scope, row)

    def refused(self, account: str, row: RefusedRow) -> None:
        super().refused(account, row)
        self._note("refused", (account,), row)

    def _forget_learned(self, scope: Scope) -> None:
        super()._forget_learned(scope)
        self._note("learned", scope, None)

    def _forget_ended(self, key: RunKey) -> None:
        super()._forget_ended(key)
        self._note("ended", key, None)

    def _forget_used(self, session: str, event_id: str) -> None:
        super()._forget_used(session, event_id)
        self._note("used", (session, event_id), None)

    def after_commit(self, then: Callable[[], None]) -> None:
        self._look_at_the_clock()
        if self.degraded or not (self._changed or self._writing):
            then()
        elif self._changed:
            self._waiting.append(then)
        else:
            self._handed.append(then)

    def close(self) -> None:
        """Write what is left, and give the folder free."""
        if self._closed:
            return
        self._closed = True
        if self.degraded:
            self._writer.put(self._everything())
        elif self._changed:
            self._writer.put(self._changed)
        self._changed = {}
        if self._writer.end(CLOSE_S):
            self._file.close()
        else:
            log.warning("the ledger in %s is still being written: not waiting for it", self.path.parent)
        self._release(self._handed + self._waiting)
        self._handed, self._waiting = [], []

    def abandon(self) -> None:
        """This is the child of a fork: the ledger is the parent's."""
        self._closed = True
        self._file.abandon()

    # --- the runtime's thread ------------------------------------------------------------------------------------

    def _note(self, table: str, key: tuple[Any, ...], row: Any) -> None:
        if self._deaf:
            return
        self._changed[table, tuple(key)] = row
        if not self._writing:
            self._ask()

    def _ask(self) -> None:
        """Have what has changed handed over soon, but not too soon after the batch before."""
        if self._asked:
            return
        self._asked = True
        wait_s = self._handed_s + BATCH_EVERY_S - time.monotonic()
        if self._call_later is not None and wait_s > 0:
            self._call_later(wait_s, self._hand_over)
        else:
            self._call_soon(self._hand_over)

    def _hand_over(self) -> None:
        self._asked = False
        if self._changed and not (self._writing or self._closed):
            batch, self._changed = self._changed, {}
            self._handed, self._waiting = self._waiting, []
            self._put(batch)

    def _put(self, batch: dict[Row, Any] | Everything) -> None:
        self._writing = True
        self._handed_s = time.monotonic()
        self._yield_s = self._handed_s + YIELD_EVERY_S
        self._writer.put(batch)

    def _written(self, error: BaseException | None) -> None:
        """The writer is done with its batch."""
        self._writing = False
        if error is not None:
            self._degrade(error)
        elif self._deaf:  # it has taken so long that nobody waited for it
            self._put_everything()
        else:
            self.commits += 1
            if self.degraded:
                self.degraded = False
                log.warning("the ledger in %s is written again, and holds everything", self.path.parent)
            handed, self._handed = self._handed, []
            self._release(handed)
            if self._changed:
                self._ask()

    def _look_at_the_clock(self) -> None:
        if not self._writing or self.degraded:
            return
        now_s = time.monotonic()
        if now_s - self._handed_s > SLOW_S:
            self._degrade(TimeoutError(f"no answer for {SLOW_S:g} s"))
        elif now_s > self._yield_s:
            native_sleep(YIELD_S)
            self._yield_s = now_s + YIELD_EVERY_S

    def _degrade(self, error: BaseException) -> None:
        """The disk does not take it: nobody waits any more, and what changes is not noted."""
        if not self.degraded:
            log.warning(
                "the ledger in %s cannot be written (%s): going on without it, and trying again; "
                "until then a crash of this process leaves what shows", self.path.parent, str(error) or type(error).__name__
            )  # fmt: skip
        self.degraded = self._deaf = True
        waiting = self._handed + self._waiting
        self._changed, self._handed, self._waiting = {}, [], []
        self._release(waiting)

    def _opened(self, found: Contents | None) -> None:
        """There is a file again. ``found``: what an earlier process has left in it, read only now."""
        if self._closed:
            return
        news = None if found is None else add_missing(self._contents, found)
        self._put_everything()
        if news is not None and self.on_found is not None:
            self.on_found(news)

    def _put_everything(self) -> None:
        self._deaf = False
        self._put(self._everything())

    def _everything(self) -> Everything:
        copy = self._contents.copy()
        number, self._used_number = self._used_number, self._used_number + sum(map(len, copy.used.values()))
        return Everything(copy, number + 1)

    @staticmethod
    def _release(waiting: list[Callable[[], None]]) -> None:
        for then in waiting:
            try:
                then()
            except Exception:  # the others wait all the same
                log.exception("What waited for the ledger has failed:")


def add_missing(held: Contents, found: Contents) -> Contents:
    """Add to ``held`` what was ``found`` and is not known there. Returns what that is."""
    news = Contents(
        {key: row for key, row in found.runs.items() if key not in held.runs and key not in held.ended},
        _without(found.marks, held.marks),
        {place: row for place, row in found.rests.items() if place not in held.rests},
        found.typing - held.typing,
        {key: row for key, row in found.ended.items() if key not in held.ended and key not in held.runs},
        found.used,
        {scope: row for scope, row in found.learned.items() if scope not in held.learned},
        {account: row for account, row in found.refused.items() if account not in held.refused},
    )
    held.runs |= news.runs
    for place, marks in news.marks.items():
        held.marks[place] = marks | held.marks.get(place, {})
    held.rests |= news.rests
    held.typing |= news.typing
    held.ended = news.ended | held.ended
    for session, ids in news.used.items():
        held.used[session] = ids | held.used.get(session, {})
    held.learned |= news.learned
    held.refused |= news.refused
    return news


def _without(
    found: Mapping[Place, Mapping[str, Mark]], held: Mapping[Place, Mapping[str, Mark]]
) -> dict[Place, dict[str, Mark]]:
    """The marks that are not known."""
    news = {}
    for place, marks in found.items():
        new = {emoji: mark for emoji, mark in marks.items() if emoji not in held.get(place, ())}
        if new:
            news[place] = new
    return news
