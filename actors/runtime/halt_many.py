"""Halting several actors: one after the other, or side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from actors.runtime.halting import halt
from actors.runtime.mailbox import Mailbox
from actors.runtime.messages import Exit

if TYPE_CHECKING:
    from actors.runtime.scheduler import Scheduler

__all__ = ["HaltInTurn", "halt_at_once"]


class HaltInTurn:
    """Halts mailboxes one after the other, the last first, then calls ``then``."""

    __slots__ = ("_deadline_ns", "_final", "_looping", "_scheduler", "_then", "_todo", "_waiting")

    def __init__(
        self,
        scheduler: Scheduler,
        todo: list[Mailbox],
        deadline_ns: int,
        then: Callable[[], None],
        *,
        final: bool = True,
    ) -> None:
        self._scheduler = scheduler
        self._todo = todo
        self._deadline_ns = deadline_ns
        self._then = then
        self._final = final
        self._waiting = self._looping = False
        self._step()

    def _step(self) -> None:
        self._looping = True
        while self._todo and not self._waiting:
            self._waiting = True
            halt(self._todo.pop(), Exit.SHUTDOWN, self._deadline_ns, self._one_down, final=self._final)
        self._looping = False
        if not self._waiting:
            self._then()

    def _one_down(self) -> None:
        self._waiting = False
        if not self._looping:  # it took a while: out of its greenlet, on in the scheduler
            self._scheduler.handover.call(self._step)


def halt_at_once(todo: list[Mailbox], deadline_ns: int, then: Callable[[], None]) -> None:
    """Halt all of them side by side, beginning with the last, then call ``then``."""
    left = len(todo) + 1

    def one_down() -> None:
        nonlocal left
        left -= 1
        if not left:
            then()

    while todo:
        halt(todo.pop(), Exit.SHUTDOWN, deadline_ns, one_down)
    one_down()
