"""The mailbox: the identity of an actor.

Refs, timers, children records and the directory all point at the mailbox, never at the instance; a restart puts
a new instance behind it. ``ActorRef`` is this class with pykka's sending methods on top: the address and
the box are one object.

Two lanes: *system* (calls of the runtime: stop, failure notices) before *user* (messages). Rules:

- ``put`` never blocks. The user lane is bounded by the actor class's ``mailbox_capacity``; what happens when it is
  full is its ``overflow`` policy. Everything refused or dropped is counted.
- Ticks, piped answers and ``Terminated`` are owed to the actor and pass the bound (each is at most one).
- A lane is made by the first put and dropped when drained: an idle actor owns none.
- Only the runtime's thread touches the lanes. Other threads hand over, and what is on its way counts against the bound.
- A put may be interrupted by a signal handler or finalizer that puts, too. CPython interrupts only at calls, jumps back
  and function entry: between a test of a field here and the store that depends on it there is none of these.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Hashable
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

from pykka import ActorDeadError

from actors.runtime.errors import MailboxFullError, RuntimeClosedError
from actors.runtime.messages import SPECIAL, Cell
from actors.runtime.waiting import get_ident

if TYPE_CHECKING:
    from actors.runtime.actor import Actor
    from actors.runtime.messages import Exit
    from actors.runtime.scheduler import Scheduler
    from actors.runtime.timers import Timer

__all__ = ["NEW", "RUNNING", "STATES", "STOPPED", "STOPPING", "SUSPENDED", "Mailbox", "Overflow"]

NEW, RUNNING, SUSPENDED, STOPPING, STOPPED = range(5)
STATES = ("new", "running", "suspended", "stopping", "stopped")


class Overflow(StrEnum):
    """What a full user lane does with one more message."""

    REJECT = "reject"
    """``MailboxFullError`` for the sender."""
    DROP_OLDEST = "drop_oldest"
    """The oldest message that the actor calls ``droppable`` gives way; with none waiting, a droppable newcomer is
    dropped and any other is rejected."""
    COALESCE = "coalesce"
    """A newcomer takes the place of a waiting message with the same ``coalesce_key``, full or not; otherwise as
    REJECT."""


class Mailbox:
    """Lanes, state, timers and present instance of one actor."""

    __slots__ = (
        "_urn",
        "actor",
        "actor_class",
        "cells",
        "dropped",
        "exit",
        "key",
        "lane",
        "parent",
        "queued",
        "room",
        "scheduler",
        "state",
        "system",
        "timers",
        "watchers",
        "watching",
        "worker",
    )

    def __init__(self, actor_class: type[Actor], scheduler: Scheduler, key: Hashable = None) -> None:
        self.actor_class: Any = actor_class
        self.scheduler = scheduler
        self.key = key
        self.actor: Any = None
        """The present instance; None while suspended and when stopped."""
        self.state = NEW
        self.queued = False
        """In the ready queue, or having its turn."""
        self.lane: deque[Any] | None = None
        self.system: deque[Callable[[], None]] | None = None
        self.room = actor_class.mailbox_capacity if actor_class.overflow is not Overflow.COALESCE else -1
        """Length of the user lane from which on a put takes the careful way; -1: always."""
        self.timers: dict[Hashable, Timer] | None = None
        self.cells: dict[Hashable, Cell] | None = None
        self.parent: Any = None
        self.watchers: dict[Mailbox, None] | None = None
        self.watching: dict[Mailbox, None] | None = None
        self.worker: Any = None
        self.dropped = 0
        self.exit: Exit | None = None
        """Why it ended."""
        self._urn: str | None = None

    # --- identity

    @property
    def actor_urn(self) -> str:
        """The actor's URN, made when first asked for."""
        if self._urn is None:
            self._urn = uuid.uuid4().urn
        return self._urn

    @property
    def depth(self) -> int:
        """User messages waiting here, those on their way from other threads included."""
        lane = self.lane
        return (0 if lane is None else len(lane)) + self.scheduler.handover.waiting_for(self)

    def __str__(self) -> str:
        return f"{self.actor_class.__name__} ({self.actor_urn})"

    # --- putting

    def put(self, message: Any) -> None:
        """Add a user message, from any thread. ActorDeadError, MailboxFullError."""
        if get_ident() != self.scheduler.owner:
            self._put_from_afar(message)
        elif self.state >= STOPPING:
            raise self.refusal(message)
        elif self.room < 0:
            self._coalesce(message, False)
        elif self.lane is None or len(self.lane) < self.room or self._make_room(message, False):
            self.append(message)

    def owe(self, message: Any) -> None:
        """Add a message that passes the bound, from any thread. To a dead actor: a dead letter. Never raises."""
        if get_ident() != self.scheduler.owner:
            try:
                self.scheduler.handover.call(partial(self.owe, message))
            except RuntimeClosedError:
                self.scheduler.bury(self, message)
        elif self.state >= STOPPING:
            self.scheduler.bury(self, message)
        else:
            self.append(message)

    def refusal(self, message: Any) -> ActorDeadError:
        """The error for whoever sends to an actor that has ended; the message is a dead letter."""
        if type(message) not in SPECIAL:
            self.scheduler.bury(self, message)
        return ActorDeadError(f"{self} not found")

    def append(self, message: Any) -> None:
        """Add to the user lane, whatever the bound (owner's thread)."""
        lane = self.lane
        if lane is None:
            fresh: deque[Any] = deque()
            lane = self.lane
            if lane is None:
                self.lane = lane = fresh
        lane.append(message)
        scheduler = self.scheduler
        scheduler.backlog += 1
        if not self.queued and self.state != SUSPENDED:
            self.queued = True
            scheduler.enqueue(self)

    def post(self, call: Callable[[], None]) -> None:
        """Add a call of the runtime to the system lane (owner's thread); it runs in the actor's context."""
        if self.system is None:
            self.system = deque()
        self.system.append(call)
        if not self.queued:
            self.queued = True
            self.scheduler.enqueue(self)

    # --- the bound

    def _full(self) -> MailboxFullError:
        self.count_drop()
        return MailboxFullError(f"{self} has {self.depth} messages waiting")

    def count_drop(self) -> None:
        """One message refused or dropped here."""
        self.dropped += 1
        self.scheduler.counters["dropped"] += 1

    def _make_room(self, message: Any, accepted: bool) -> bool:
        """The user lane is full. True: add the newcomer all the same; False: it was dropped.

        ``accepted``: its sender has been told that it was taken, so it is not refused any more.
        """
        if self.actor_class.overflow is not Overflow.DROP_OLDEST:
            if accepted:
                return True
            raise self._full()
        droppable = self.actor_class.droppable
        lane = self.lane
        assert lane is not None
        for place, waiting in enumerate(lane):
            if type(waiting) not in SPECIAL and droppable(waiting):
                del lane[place]
                self.scheduler.backlog -= 1
                self.count_drop()
                return True
        if type(message) in SPECIAL or not droppable(message):
            if accepted:
                return True
            raise self._full()
        self.count_drop()
        return False

    def _coalesce(self, message: Any, accepted: bool) -> None:
        key = None if type(message) in SPECIAL else self.actor_class.coalesce_key(message)
        if key is not None:
            if self.cells is None:
                self.cells = {}
            cell = self.cells.get(key)
            if cell is not None:
                cell.message = message
                self.count_drop()
                return
        if not accepted and self.lane is not None and len(self.lane) >= self.actor_class.mailbox_capacity:
            raise self._full()
        if key is not None and self.cells is not None:
            message = self.cells[key] = Cell(key, message)
        self.append(message)

    # --- other threads

    def _put_from_afar(self, message: Any) -> None:
        """Hand over; refused when the lanes hold ``mailbox_capacity`` messages.

        Where the policy can make room on arrival, the user lane may hold twice that, the transit lane once.
        """
        handover = self.scheduler.handover
        if self.state >= STOPPING or handover.closed:
            raise self.refusal(message)
        lane = self.lane
        waiting = 0 if lane is None else len(lane)
        in_transit = handover.waiting_for(self)
        capacity = self.actor_class.mailbox_capacity
        if waiting + in_transit >= capacity and (
            self.actor_class.overflow is Overflow.REJECT or in_transit >= capacity or waiting >= 2 * capacity
        ):
            raise self._full()
        handover.send(self, message)

    def arrive(self, message: Any) -> None:
        """A message of another thread is here (owner's thread). It has been accepted. ActorDeadError."""
        if self.state >= STOPPING:
            raise self.refusal(message)
        if self.room < 0:
            self._coalesce(message, True)
        elif self.lane is None or len(self.lane) < self.room or self._make_room(message, True):
            self.append(message)

    # --- pykka's inbox protocol

    def empty(self) -> bool:
        """Whether no user message waits."""
        return self.depth == 0
