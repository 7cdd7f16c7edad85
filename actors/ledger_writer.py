"""The native thread that writes a ledger's file, and tries again and again while that fails.

It is handed one batch at a time and tells how that went. After a failure it opens the file anew, after 1 s, 2 s and so on up
to 60 s; once that works it says so, is handed everything there is, and goes on as before.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from gevent import monkey

from actors.ledger import Contents
from actors.ledger_file import LedgerFile
from actors.ledger_tables import Row, rows_of

__all__ = ["Everything", "LedgerWriter"]

log = logging.getLogger("livesign")

RETRY_S = 1.0
RETRY_MAX_S = 60.0

_start_thread: Any = monkey.get_original("_thread", "start_new_thread")
_allocate_lock: Any = monkey.get_original("_thread", "allocate_lock")
_SimpleQueue: Any = monkey.get_original("queue", "SimpleQueue")
_Empty: Any = monkey.get_original("queue", "Empty")


class Everything(NamedTuple):
    """All that there is now: the file is to hold this and nothing else. ``number``: see `rows_of`."""

    held: Contents
    number: int


Batch = dict[Row, Any] | Everything


class LedgerWriter:
    """``written`` hears how a batch went (None: well), ``opened`` that the file is to be had again, and what was in it where
    nobody had read it yet. Both are called by way of ``call_soon``."""

    def __init__(
        self,
        file: LedgerFile,
        call_soon: Callable[[Callable[[], None]], None],
        written: Callable[[BaseException | None], None],
        opened: Callable[[Contents | None], None],
    ) -> None:
        self._file = file
        self._call_soon = call_soon
        self._written = written
        self._opened = opened
        self._unread = False
        self._batches: Any = _SimpleQueue()
        self._ended = _allocate_lock()
        self._ended.acquire()

    def start(self, error: BaseException | None, *, unread: bool) -> None:
        """``error``: why the file could not be opened; ``unread``: what it holds is not known."""
        self._unread = unread
        _start_thread(self._run, (error is not None,))

    def put(self, batch: Batch) -> None:
        """To be written next; only after the one before was answered."""
        self._batches.put(batch)

    def end(self, timeout_s: float) -> bool:
        """Write what was put, then end. False: it takes longer than ``timeout_s``."""
        self._batches.put(None)
        return bool(self._ended.acquire(timeout=timeout_s))

    # --- the thread ----------------------------------------------------------------------------------------------

    def _run(self, failed: bool) -> None:
        pause_s = RETRY_S
        while True:
            try:
                batch = self._batches.get(timeout=pause_s if failed else None)
            except _Empty:
                failed = not self._reopen()
                pause_s = min(2 * pause_s, RETRY_MAX_S)
                continue
            if batch is None:
                break
            error = self._write(batch)
            failed = error is not None
            if not failed:
                pause_s = RETRY_S
            self._tell(lambda error=error: self._written(error))  # type: ignore[misc]
        self._file.shut()
        self._ended.release()

    def _write(self, batch: Batch) -> BaseException | None:
        try:
            if isinstance(batch, Everything):
                self._file.open()
                self._file.write(dict(rows_of(*batch)), anew=not self._unread)
            else:
                self._file.write(batch)
        except BaseException as error:  # whatever it is: who waits must hear of it
            return error
        return None

    def _reopen(self) -> bool:
        try:
            self._file.open()
            found = self._file.read() if self._unread else None
        except BaseException as error:
            log.debug("the ledger %s cannot be opened: %s", self._file.path, error)
            return False
        self._unread = False
        self._tell(lambda: self._opened(found))
        return True

    def _tell(self, call: Callable[[], None]) -> None:
        try:
            self._call_soon(call)
        except Exception:
            log.debug("nobody waits for the ledger any more")
