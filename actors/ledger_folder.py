"""The folder of one ledger, held by one process: a lock on the file ``lock`` in it, for as long as the process lives."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

__all__ = ["Folder", "LedgerLockedError", "is_same_file"]


class LedgerLockedError(OSError):
    """Another process works on this ledger. The text says which folder, and what to do."""


class Folder:
    """A folder that is to be this process's; `take` makes it so."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._lock: int | None = None

    def take(self) -> None:
        """Make the folder if it is missing, with mode 0700, and lock it. Raises `LedgerLockedError` or OSError.

        A lock that somebody has deleted keeps nobody away: then the one that is there now is taken.
        """
        if self.is_held:
            return
        self.release()
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise LedgerLockedError(
                f"{self.path} is in use by another livesign: stop that one, or set ledger.path to another folder"
            ) from None
        except BaseException:
            os.close(handle)
            raise
        self._lock = handle

    @property
    def is_held(self) -> bool:
        """Whether the lock is ours, and still where others look for it."""
        return self._lock is not None and is_same_file(os.fstat(self._lock), self.path / "lock")

    def release(self) -> None:
        """Give it free. In the child of a fork this lets go of the child's share only: the parent keeps the lock."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def is_same_file(known: os.stat_result, path: Path) -> bool:
    """Whether what is at ``path`` now is what was known."""
    try:
        return os.path.samestat(known, os.stat(path))
    except OSError:
        return False
