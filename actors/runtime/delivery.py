"""How the messages of the types in ``SPECIAL`` reach the actor; what its handler raises is raised."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pykka
from pykka import ActorDeadError
from pykka.messages import _ActorStop

from actors.runtime.halting import answer_error, exit_normally, explain
from actors.runtime.mailbox import Mailbox
from actors.runtime.messages import PROXY_TYPES, Ask, Cell, Exit, Piped, Terminated
from actors.runtime.timers import Timer

__all__ = ["receive", "run_deferred"]

logger = logging.getLogger("actors.runtime")


def receive(mailbox: Mailbox, message: Any) -> None:
    """Handle one special message."""
    _RECEIVERS[type(message)](mailbox, message)


def _ask(mailbox: Mailbox, ask: Ask) -> None:
    message, future, actor = ask.message, ask.future, mailbox.actor
    if type(message) is _ActorStop:
        exit_normally(mailbox, Exit.NORMAL, future)
        return
    if mailbox.worker is not None:
        mailbox.worker.asked = future
    try:
        answer = actor._handle_receive(message) if type(message) in PROXY_TYPES else actor.on_receive(message)
    except (KeyboardInterrupt, SystemExit) as error:
        answer_error(future, ActorDeadError(f"{mailbox} was interrupted by {error!r}"))
        raise
    except BaseException as error:
        error = explain(error)
        logger.info("Exception returned from %s to caller:", mailbox, exc_info=error)
        answer_error(future, error)
    else:
        if not future.done:
            future.set(answer)


def _tick(mailbox: Mailbox, timer: Timer) -> None:
    if timer.mailbox is None:
        return
    _spend(mailbox, timer)
    message = timer.message
    if type(message) is Piped:  # the answer has not come in time
        timer.message = _unwrap(message, pykka.Timeout("no answer in time"))
        mailbox.actor.on_receive(timer.message)
    else:
        mailbox.actor.on_receive(message)


def _spend(mailbox: Mailbox, timer: Timer) -> None:
    """A live tick is being handled: its key is free again."""
    timer.mailbox = None
    timers = mailbox.timers
    assert timers is not None
    del timers[timer.key]
    if not timers:
        mailbox.timers = None


def run_deferred(mailbox: Mailbox, timer: Timer) -> None:
    """A timer of the runtime's own use has reached the system lane."""
    if timer.mailbox is not None:
        _spend(mailbox, timer)
        timer.message.call()


def _cell(mailbox: Mailbox, cell: Cell) -> None:
    assert mailbox.cells is not None
    del mailbox.cells[cell.key]
    mailbox.actor.on_receive(cell.message)


def _piped(mailbox: Mailbox, piped: Piped) -> None:
    if piped.actor is not mailbox.actor:
        return
    late = mailbox.timers.pop(piped, None) if mailbox.timers is not None else None
    if late is not None:
        mailbox.scheduler.timers.cancel(late)
        mailbox.timers = mailbox.timers or None
    try:
        answer = piped.future.get()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        answer = error
    mailbox.actor.on_receive(_unwrap(piped, answer))


def _unwrap(piped: Piped, answer: Any) -> Any:
    """What the actor receives; only once."""
    piped.actor = None
    piped.message = piped.wrap(answer)
    return piped.message


def _terminated(mailbox: Mailbox, notice: Terminated) -> None:
    if mailbox.watching is not None and notice.ref in mailbox.watching:
        del mailbox.watching[notice.ref]
        mailbox.actor.on_receive(notice)


def _stop(mailbox: Mailbox, _stop: _ActorStop) -> None:
    exit_normally(mailbox, Exit.NORMAL)


def _proxy(mailbox: Mailbox, message: Any) -> None:
    mailbox.actor._handle_receive(message)


_RECEIVERS: dict[type, Callable[[Mailbox, Any], None]] = {
    Ask: _ask,
    Timer: _tick,
    Cell: _cell,
    Piped: _piped,
    Terminated: _terminated,
    _ActorStop: _stop,
    **dict.fromkeys(PROXY_TYPES, _proxy),
}
