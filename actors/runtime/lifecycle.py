"""The life of an instance from its making to its failure; ``halting`` is the other end.

    NEW --on_start--> RUNNING --halt--> STOPPING --> STOPPED
                         |
                         +--failure, or a sibling's--> SUSPENDED --next instance--> NEW

Timers, watches and pipes belong to the instance and die with it; lanes, key and watchers belong to the mailbox.
"""

from __future__ import annotations

import logging
from typing import Any

from actors.runtime.halting import (
    HALT_MS,
    Halt,
    children_first,
    close,
    deadline_in,
    explain,
    finish_halt,
    guard,
)
from actors.runtime.mailbox import NEW, RUNNING, STOPPED, STOPPING, SUSPENDED, Mailbox
from actors.runtime.messages import Cell, Event, Exit, Piped
from actors.runtime.timers import Timer

__all__ = ["crashed", "create", "discard", "run_system", "start"]

logger = logging.getLogger("actors.runtime")


def create(mailbox: Mailbox, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Put a new instance behind the mailbox; what its ``__init__`` raises is raised."""
    cls = mailbox.actor_class
    actor = object.__new__(cls)
    actor._mailbox = mailbox
    mailbox.actor = actor
    try:
        if cls.own_greenlet:
            mailbox.worker = mailbox.scheduler.driver.make_worker(mailbox)
        elif cls.halt_children is not None:
            actor.prepare()
        actor.__init__(*args, **kwargs)
    except BaseException:
        mailbox.actor = mailbox.worker = None
        raise
    if mailbox.state == SUSPENDED:
        mailbox.state = NEW


def discard(mailbox: Mailbox) -> None:
    """Its first instance could not be made: there never was an actor."""
    mailbox.state = STOPPED
    mailbox.scheduler.runtime.directory.remove(mailbox)


def start(mailbox: Mailbox) -> None:
    """The first step of a new instance, in its own turn."""
    mailbox.state = RUNNING
    if mailbox.scheduler.observer is not None:
        mailbox.scheduler.tell_observer(
            Event.STARTED, mailbox, 0 if mailbox.parent is None else mailbox.parent.restarts
        )
    mailbox.actor.on_start()


def run_system(mailbox: Mailbox) -> None:
    """Run the system lane."""
    while mailbox.system is not None:
        call = mailbox.system.popleft()
        if not mailbox.system:
            mailbox.system = None
        call()


def crashed(mailbox: Mailbox, message: Any, error: BaseException) -> None:
    """An exception came out of this actor's turn, while it handled ``message`` (None: no message)."""
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        mailbox.scheduler.runtime.request_stop(error)
        return
    if type(message) in (Timer, Cell, Piped):
        message = message.message
    fail(mailbox, message, explain(error))


def fail(mailbox: Mailbox, message: Any, error: BaseException) -> None:
    """The instance is broken: end it, and ask its supervisor what to do; without one the actor ends."""
    scheduler = mailbox.scheduler
    actor = mailbox.actor
    logger.error("Unhandled exception in %s:", mailbox, exc_info=error)
    if mailbox.state >= SUSPENDED or actor is None:
        return
    scheduler.counters["failures"] += 1
    scheduler.tell_observer(Event.FAILED, mailbox, error)
    child = mailbox.parent
    alone = child is None or child.supervisor.state >= STOPPING
    present = scheduler.halts.get(mailbox)
    if present is None:
        present = scheduler.halts[mailbox] = Halt(Exit.FAILED, alone, deadline_in(mailbox, HALT_MS))
    if not present.final:
        present.done.append(lambda: child.failed(message, error))
    close(mailbox, present.final)
    guard(mailbox, actor.on_failure, type(error), error, error.__traceback__)
    children_first(mailbox, present.deadline_ns, lambda: finish_halt(mailbox))
