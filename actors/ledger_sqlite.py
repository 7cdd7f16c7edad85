"""The ledger in SQLite: written by one native thread, in batches, behind the same port.

The runtime's thread changes the twin in memory and notes what changed; while the writer is idle it is handed all that
was noted, as one transaction, at the end of the present slice. So a call costs a few microseconds, several changes of
one row become one write, and an ack waits for one commit at most. WAL without a sync per commit: what was committed
survives a kill of the process at any moment; the last moments before a crash of the whole machine may be lost.

A disk that is full or read-only turns the ledger into its memory twin, with one warning: signs of life go on.

One process holds a folder, by a lock on ``lock`` in it: a second one is refused (`LedgerLockedError`). Embedded
processes take the first free slot, ``ledger-0``, ``ledger-1``, … (`actors.slots`).
"""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import msgspec
from gevent import monkey

from actors.ledger import Contents, LearnedRow, MemoryLedger, Place, RunRow, Scope
from actors.ledger_tables import Row, commit, connect, contents
from actors.presence.terms import RunKey

log = logging.getLogger("livesign")

_start_thread: Any = monkey.get_original("_thread", "start_new_thread")
_allocate_lock: Any = monkey.get_original("_thread", "allocate_lock")


class LedgerLockedError(OSError):
    """Another process works on this ledger. The text says which folder, and what to do."""


class SqliteLedger(MemoryLedger):
    """A ledger in the folder ``directory``; made if missing, with mode 0700."""

    def __init__(self, directory: str | os.PathLike[str], call_soon: Callable[[Callable[[], None]], None]) -> None:
        """``call_soon`` runs a call in the runtime's thread. Raises `LedgerLockedError`, or OSError for the folder."""
        super().__init__()
        self.degraded = False
        """The disk does not take it: what is told here does not survive the process."""
        self.commits = 0
        self._call_soon = call_soon
        self._directory = Path(directory)
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = _take_lock(self._directory)
        self._changed: dict[Row, Any] = {}
        """What the writer has to hear: the new row, or None for none."""
        self._waiting: list[Callable[[], None]] = []
        self._handed: list[Callable[[], None]] = []
        """Who waits for the batch that is being written."""
        self._writing = False
        self._asked = False
        self._batches: SimpleQueue[dict[Row, Any] | None] = SimpleQueue()
        self._ended_writing = _allocate_lock()
        self._ended_writing.acquire()
        self._contents = self._read()
        self._used_number = time.time_ns()  # goes on after the numbers of the process before
        _start_thread(self._write, ())

    @property
    def path(self) -> Path:
        """The database file."""
        return self._directory / "ledger.db"

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

    def marks(self, place: Place, marks: Mapping[str, str | None]) -> None:
        if not marks and place not in self._contents.marks:
            return
        super().marks(place, marks)
        self._note("marks", place, dict(marks) or None)

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
        if self.degraded or not (self._changed or self._writing):
            then()
        else:
            self._waiting.append(then)

    def close(self) -> None:
        """Write what is left, and give the folder free."""
        if self._lock is None:
            return
        if self._changed:
            self._batches.put(self._changed)
            self._changed = {}
        self._batches.put(None)
        with self._ended_writing:
            pass
        self._release(self._waiting)
        os.close(self._lock)
        self._lock = None

    def abandon(self) -> None:
        """This is the child of a fork: the ledger is the parent's."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    # --- the runtime's thread ------------------------------------------------------------------------------------

    def _note(self, table: str, key: tuple[Any, ...], row: Any) -> None:
        if self.degraded:
            return
        self._changed[table, tuple(key)] = row
        if not (self._writing or self._asked):
            self._asked = True
            self._call_soon(self._hand_over)

    def _hand_over(self) -> None:
        self._asked = False
        if self._changed and not self._writing and self._lock is not None:
            self._writing = True
            batch, self._changed = self._changed, {}
            self._handed, self._waiting = self._waiting, []
            self._batches.put(batch)

    def _written(self, error: Exception | None) -> None:
        """The writer is done with its batch."""
        self._writing = False
        handed, self._handed = self._handed, []
        if error is not None and not self.degraded:
            self.degraded = True
            log.warning("the ledger in %s cannot be written (%s): going on without it", self._directory, error)
            handed += self._waiting
            self._changed, self._waiting = {}, []
        self._release(handed)
        if self._changed:
            self._hand_over()

    @staticmethod
    def _release(waiting: list[Callable[[], None]]) -> None:
        for then in waiting:
            then()

    # --- the writer's thread -------------------------------------------------------------------------------------

    def _write(self) -> None:
        failed: Exception | None = None
        connection: sqlite3.Connection | None = None
        while (batch := self._batches.get()) is not None:
            if failed is None:
                try:
                    connection = connection or connect(self.path)
                    commit(connection, batch)
                    self.commits += 1
                except Exception as error:
                    failed = error
            self._tell(failed)
        if connection is not None:
            connection.close()
        self._ended_writing.release()

    def _tell(self, error: Exception | None) -> None:
        try:
            self._call_soon(lambda: self._written(error))
        except Exception:
            log.debug("nobody waits for the ledger any more")

    def _read(self) -> Contents:
        """What an earlier process has left. A damaged file is put aside, with a warning."""
        try:
            with closing(connect(self.path)) as connection:
                return contents(connection)
        except (sqlite3.DatabaseError, msgspec.MsgspecError) as error:
            if isinstance(error, sqlite3.OperationalError) and not self.path.exists():
                log.warning("the ledger in %s cannot be written (%s): going on without it", self._directory, error)
                self.degraded = True
                return Contents()
            aside = self.path.with_suffix(".damaged")
            log.warning("the ledger %s cannot be read (%s): put aside as %s", self.path, error, aside.name)
            for suffix in ("", "-wal", "-shm"):
                old = Path(f"{self.path}{suffix}")
                if old.exists():
                    old.replace(f"{aside}{suffix}")
            return Contents()


def _take_lock(directory: Path) -> int | None:
    handle = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise LedgerLockedError(
            f"{directory} is in use by another livesign: stop that one, or set ledger.path to another folder"
        ) from None
    return handle
