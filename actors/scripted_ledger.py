"""The ledger of a simulation: what it was told outlives the process, as far as the disk has it.

Commits take the time that ``delay_ms`` says; a process that ends before loses them, as with the one on disk. `fail` is
a disk that takes no more: the ledger goes on in memory, and the next process finds what the disk had.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from actors.ledger import Contents, LearnedRow, MemoryLedger, Place, RefusedRow, RestRow, RunRow, Scope
from actors.presence.marks import Mark
from actors.presence.terms import RunKey
from actors.runtime import Actor, ActorRef, Runtime

Write = Callable[[MemoryLedger], None]


class _Writer(Actor):
    """Ends a commit when its time is over."""

    def __init__(self, written: Callable[[], None]) -> None:
        super().__init__()
        self._written = written

    def on_receive(self, message: Any) -> None:
        if message is None:
            self._written()
        else:
            self.schedule(message, None)


class ScriptedLedger(MemoryLedger):
    """In the hands of one simulation; `boot` begins each of its processes."""

    def __init__(self, delay_ms: Callable[[], int] | None = None) -> None:
        """``delay_ms``: how long the next commit takes; None: what is told is on the disk at once."""
        super().__init__()
        self.failed = False
        self._delay_ms = delay_ms
        self._disk: MemoryLedger | None = None if delay_ms is None else MemoryLedger()
        """What a new process will find; None: all that was told."""
        self._writer: ActorRef[Any] | None = None
        self._told: list[Write] = []
        self._waiting: list[Callable[[], None]] = []
        self._writing = False

    @property
    def busy(self) -> bool:
        """Whether anything is not on the disk yet."""
        return self._writing

    def boot(self, runtime: Runtime) -> None:
        """A new process begins with what the disk has."""
        if self._disk is not None:
            self._contents = self._disk.load().copy()
        if self._delay_ms is None:
            self._disk = None
        else:
            self._writer = runtime.spawn(_Writer, self._written)
        self.failed = False
        self._told, self._waiting, self._writing = [], [], False

    def kept(self) -> Contents:
        """What a process that begins now would find."""
        return self._contents if self._disk is None else self._disk._contents

    def fail(self) -> None:
        """The disk takes no more, until the process ends."""
        if self.failed:
            return
        self.failed = True
        if self._disk is None:
            self._disk = MemoryLedger()
            self._disk._contents = self._contents.copy()
        self._told.clear()
        self._release()

    # --- the port ------------------------------------------------------------------------------------------------

    def opened(self, row: RunRow) -> None:
        super().opened(row)
        self._note(lambda disk: disk.opened(row))

    def ended(self, key: RunKey, outcome: str, reason: str | None, wall_ms: int) -> None:
        super().ended(key, outcome, reason, wall_ms)
        self._note(lambda disk: disk.ended(key, outcome, reason, wall_ms))

    def marks(self, place: Place, marks: Mapping[str, Mark]) -> None:
        super().marks(place, marks)
        self._note(lambda disk: disk.marks(place, marks))

    def rest(self, place: Place, row: RestRow | None) -> None:
        super().rest(place, row)
        self._note(lambda disk: disk.rest(place, row))

    def typing(self, place: Place, on: bool) -> None:
        super().typing(place, on)
        self._note(lambda disk: disk.typing(place, on))

    def used(self, session: str, event_id: str) -> None:
        super().used(session, event_id)
        self._note(lambda disk: disk.used(session, event_id))

    def learned(self, scope: Scope, row: LearnedRow) -> None:
        super().learned(scope, row)
        self._note(lambda disk: disk.learned(scope, row))

    def refused(self, account: str, row: RefusedRow) -> None:
        super().refused(account, row)
        self._note(lambda disk: disk.refused(account, row))

    def after_commit(self, then: Callable[[], None]) -> None:
        if self.busy:
            self._waiting.append(then)
        else:
            then()

    # --- commits -------------------------------------------------------------------------------------------------

    def _note(self, write: Write) -> None:
        if self._delay_ms is None or self.failed:
            return
        self._told.append(write)
        if not self._writing:
            assert self._writer is not None
            self._writing = True
            self._writer.tell(self._delay_ms())

    def _written(self) -> None:
        """All that was told until now is on the disk."""
        told, self._told = self._told, []
        for write in told:
            assert self._disk is not None
            write(self._disk)
        self._release()

    def _release(self) -> None:
        """Who waited goes on."""
        self._writing = False
        waiting, self._waiting = self._waiting, []
        for then in waiting:
            then()
