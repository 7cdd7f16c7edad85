"""The database file of a ledger: opened, read and written, by one thread at a time.

Errors are those of SQLite and the system. A file that is damaged is put aside as ``ledger.damaged``, and the next `open` makes
a new one. A file that another program holds is waited for, `BUSY_S` long, and left as it is.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from actors.ledger import Contents
from actors.ledger_folder import Folder, is_same_file
from actors.ledger_tables import Row, commit, connect, contents, forget

__all__ = ["LedgerFile"]

log = logging.getLogger("livesign")

BUSY_S = 1.0
"""So long a lock of another program is waited for."""
LOOK_S = 1.0
"""So long may be lost what is written to a file that somebody has deleted."""
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_of_parents: list[sqlite3.Connection] = []
"""Connections that a fork has inherited: to close them would touch the parent's files."""


class LedgerFile:
    """``ledger.db`` in a folder."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.folder = Folder(directory)
        self._connection: sqlite3.Connection | None = None
        self._known: os.stat_result | None = None
        """The file that is open; what is written to a deleted one is lost."""
        self._looked_s = 0.0

    @property
    def path(self) -> Path:
        return self.folder.path / "ledger.db"

    def open(self) -> None:
        """Take the folder and open the file, both made if missing. Raises `LedgerLockedError`, OSError, sqlite3.Error."""
        self.folder.take()
        if self._connection is None:
            try:
                self._connect()
            except Exception as error:
                self._put_aside(error)
                self._connect()

    def _connect(self) -> None:
        for suffix in ("-wal", "-shm"):  # made while the file was read-only, they would keep it so
            beside = Path(f"{self.path}{suffix}")
            if beside.exists() and self.path.exists() and beside.stat().st_mode != self.path.stat().st_mode:
                beside.chmod(self.path.stat().st_mode)
        self._connection = connect(self.path, BUSY_S)
        self._known = os.stat(self.path)
        self._looked_s = time.monotonic()

    def read(self) -> Contents:
        """What is in the open file; nothing if that makes no sense."""
        assert self._connection is not None
        try:
            held = contents(self._connection)
            with suppress(sqlite3.OperationalError):  # it can be read though it cannot be written
                forget(self._connection, held)
        except Exception as error:
            self._put_aside(error)
            self._connect()
            return Contents()
        return held

    def write(self, batch: Mapping[Row, Any], *, anew: bool = False) -> None:
        """Write ``batch`` in one transaction; ``anew``: and nothing else stays. After an error the file is shut."""
        try:
            self._look()
            assert self._connection is not None
            commit(self._connection, batch, anew=anew)
        except BaseException as error:
            self.shut()
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED:
                self._put_aside(error)
            raise

    def _look(self) -> None:
        """Whether the file and the lock are where others look for them, every `LOOK_S`."""
        now_s = time.monotonic()
        if self._known is None or now_s - self._looked_s >= LOOK_S:
            if self._known is None or not (is_same_file(self._known, self.path) and self.folder.is_held):
                raise FileNotFoundError("it has been deleted")
            self._looked_s = now_s

    def _put_aside(self, error: BaseException) -> None:
        """Rename a damaged file, with a warning; raises the error again if it is about something else."""
        if isinstance(error, OSError | sqlite3.OperationalError | MemoryError):
            raise error
        self.shut()
        aside = self.path.with_suffix(".damaged")
        log.warning("the ledger %s cannot be read (%s): put aside as %s", self.path, error, aside.name)
        for suffix in ("", "-wal", "-shm"):
            old = Path(f"{self.path}{suffix}")
            if old.exists():
                old.replace(f"{aside}{suffix}")

    def shut(self) -> None:
        """Close the file; the folder stays ours."""
        connection, self._connection, self._known = self._connection, None, None
        if connection is not None:
            connection.close()

    def close(self) -> None:
        self.shut()
        self.folder.release()

    def abandon(self) -> None:
        """This is the child of a fork: the file is the parent's."""
        if self._connection is not None:
            _of_parents.append(self._connection)
        self._connection = self._known = None
        self.folder.release()
