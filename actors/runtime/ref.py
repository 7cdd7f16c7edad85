"""The ref: an actor's address, usable from any thread, and its mailbox at the same time."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeVar

import pykka
from pykka import ActorDeadError

from actors.runtime.future import Future
from actors.runtime.mailbox import STOPPED, STOPPING, Mailbox
from actors.runtime.messages import STOP, Ask
from actors.runtime.waiting import get_ident

if TYPE_CHECKING:
    from actors.runtime.actor import Actor

__all__ = ["ActorRef"]

A = TypeVar("A", bound="Actor")


class StoppedFlag:
    """pykka's ``actor_stopped``: the actor's end, seen as an event."""

    __slots__ = ("_mailbox",)

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox

    def is_set(self) -> bool:
        """Whether it takes no more messages."""
        return self._mailbox.state >= STOPPING

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it has ended, ``on_stop`` included; False after ``timeout`` seconds."""
        mailbox = self._mailbox
        ended: Future[None] = Future(mailbox.scheduler)
        mailbox.scheduler.handover.call(lambda: mailbox.scheduler.when_ended(mailbox, ended))
        try:
            ended.get(timeout=timeout)
        except pykka.Timeout:
            return mailbox.state == STOPPED
        return True


class ActorRef(Mailbox, pykka.ActorRef[A]):  # type: ignore[override]  # pykka's attributes, made when asked for
    """A reference to an actor. It stays the same over restarts of the actor.

    Sending to an actor that has ended raises ``pykka.ActorDeadError``; sending to one whose user lane is full
    raises ``MailboxFullError`` (or what its ``overflow`` policy says). Neither ``tell`` nor a non-blocking
    ``ask`` ever waits.
    """

    __slots__ = ()

    def tell(self, message: Any) -> None:
        """Send a message, from any thread, and go on."""
        scheduler = self.scheduler
        if get_ident() == scheduler.owner:
            lane = self.lane
            if lane is not None and len(lane) < self.room:
                lane.append(message)
                scheduler.backlog += 1
                return
        self.put(message)

    def ask(self, message: Any, *, block: bool = True, timeout: float | None = None) -> Any:
        """Send a message and wait for the answer, at most ``timeout`` seconds; not ``block``: a future of it."""
        future: Future[Any] = Future(self.scheduler)
        try:
            self.put(Ask(message, future))
        except ActorDeadError:
            future.set_exception(sys.exc_info())
        return future.get(timeout=timeout) if block else future

    def stop(self, *, block: bool = True, timeout: float | None = None) -> Any:
        """Ask it to stop once it has handled what is in the queue now.

        The answer is True when it has ended: ``on_stop`` has run, its timers are dead and its key is free. False:
        it was dead already.
        """
        future: Future[bool] = Future(self.scheduler)
        if self.state == STOPPED:
            future.set(False)
        else:
            self.owe(Ask(STOP, future))
        return future.get(timeout=timeout) if block else future

    def is_alive(self) -> bool:
        """Whether it takes messages."""
        return self.state < STOPPING

    @property
    def actor_inbox(self) -> Any:  # type: ignore[override]
        """pykka's name for the mailbox."""
        return self

    @property
    def actor_stopped(self) -> Any:  # type: ignore[override]
        """The actor's end as an event with ``is_set`` and ``wait``."""
        return StoppedFlag(self)

    def _actor_weakref(self) -> Any:  # type: ignore[override]
        return self.actor

    def __repr__(self) -> str:
        return f"<ActorRef for {self}>"
