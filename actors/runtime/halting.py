"""How an instance ends: orderly or after a failure, for good or to make room for the next one.

    halt -> children (last started first) -> on_stop or on_failure -> timers, watches, pipes dead -> instance gone
         -> final: askers answered, key free, watchers and supervisor told, STOPPED
         -> not final: SUSPENDED, the mailbox goes on taking messages

Where only multiplexed actors are concerned all this happens in one go. A greenlet actor ends in its own greenlet, after
the message it is at; at the deadline it is killed, and left behind if that does not help. All of this runs in the
runtime's thread, between the turns of the actors concerned or in their own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from gevent.exceptions import BlockingSwitchOutError
from pykka import ActorDeadError
from pykka.messages import _ActorStop

from actors.runtime.clock import NS_PER_MS
from actors.runtime.errors import BlockingCallError
from actors.runtime.mailbox import RUNNING, STOPPED, STOPPING, SUSPENDED, Mailbox
from actors.runtime.messages import Ask, Cell, DeadLetter, Event, Exit, Terminated
from actors.runtime.timers import Timer
from actors.runtime.waiting import BLOCKING_HELP

if TYPE_CHECKING:
    from actors.runtime.future import Future

__all__ = ["Halt", "answer_error", "bury", "exit_normally", "halt"]

logger = logging.getLogger("actors.runtime")

HALT_MS = 5_000
"""How long an instance may take to end where nobody says otherwise."""


class Halt:
    """The end of an instance that is under way."""

    __slots__ = ("deadline_ns", "done", "final", "reason", "timer")

    def __init__(self, reason: Exit, final: bool, deadline_ns: int) -> None:
        self.reason = reason
        self.final = final
        self.deadline_ns = deadline_ns
        self.done: list[Callable[[], object]] = []
        self.timer: Timer | None = None


def exit_normally(mailbox: Mailbox, reason: Exit, asker: Future[Any] | None = None) -> None:
    """The actor ends, in its own turn. A permanent child is suspended, and its supervisor starts it again."""
    child = mailbox.parent
    comes_back = child is not None and child.comes_back(reason)
    done: list[Callable[[], object]] = []
    if asker is not None:
        done.append(partial(asker.set, True))
    if comes_back:
        done.append(child.exited)
    halt(mailbox, reason, None, *done, final=not comes_back)


def deadline_in(mailbox: Mailbox, ms: int) -> int:
    """A moment of the runtime's clock, in ns."""
    return mailbox.scheduler.now_ns() + ms * NS_PER_MS


def halt(
    mailbox: Mailbox, reason: Exit, deadline_ns: int | None, *done: Callable[[], object], final: bool = True
) -> None:
    """End the present instance, then make the calls in ``done``: before this returns, if no greenlet is concerned.

    ``deadline_ns`` None: ``HALT_MS`` from now.
    """
    scheduler = mailbox.scheduler
    present = scheduler.halts.get(mailbox)
    if mailbox.state == STOPPED:
        call_all(done)
    elif present is not None:  # under way already
        if final and not present.final:
            present.final, present.reason = True, reason
        present.done.extend(done)
    elif mailbox.worker is None and (mailbox.actor is None or mailbox.actor.halt_children is None):
        ran = mailbox.state == RUNNING
        close(mailbox, final)
        if ran:
            guard(mailbox, mailbox.actor.on_stop)
        _let_go(mailbox, final, reason)
        call_all(done)
    else:
        if deadline_ns is None:
            deadline_ns = deadline_in(mailbox, HALT_MS)
        present = scheduler.halts[mailbox] = Halt(reason, final, deadline_ns)
        present.done.extend(done)
        worker = mailbox.worker
        if worker is None or worker.is_here():
            stop_instance(mailbox)
        else:
            present.timer = scheduler.call_at(deadline_ns, worker.kill)
            mailbox.post(lambda: stop_instance(mailbox))


def stop_instance(mailbox: Mailbox) -> None:
    """The orderly end of an instance with children or a greenlet, in its own context."""
    present = mailbox.scheduler.halts.get(mailbox)
    if present is None or mailbox.state >= STOPPING:
        return
    ran = mailbox.state == RUNNING
    close(mailbox, present.final)

    def finish() -> None:
        if ran and mailbox.actor is not None:
            guard(mailbox, mailbox.actor.on_stop)
        finish_halt(mailbox)

    children_first(mailbox, present.deadline_ns, finish)


def close(mailbox: Mailbox, final: bool) -> None:
    """No more turns for this instance; if that is final, no more messages either."""
    if final:
        mailbox.state = STOPPING
        mailbox.room = -1
        if mailbox.scheduler.runtime.registers:
            mailbox.scheduler.runtime.unregister(mailbox)
    else:
        mailbox.state = SUSPENDED


def children_first(mailbox: Mailbox, deadline_ns: int, then: Callable[[], None]) -> None:
    """Call ``then`` when the actor has no children any more."""
    actor = mailbox.actor
    if actor is None or actor.halt_children is None:
        then()
        return
    here = True

    def go_on() -> None:
        if here:
            then()
        else:  # a child's greenlet: back to the actor's own turn
            mailbox.post(then)

    actor.halt_children(deadline_ns, go_on)
    here = False


def finish_halt(mailbox: Mailbox) -> None:
    """The instance has said its last word."""
    scheduler = mailbox.scheduler
    present = scheduler.halts.pop(mailbox, None)
    if present is None:
        return
    if present.timer is not None:
        scheduler.timers.cancel(present.timer)
    _let_go(mailbox, present.final, present.reason)
    call_all(present.done)


def call_all(calls: Iterable[Callable[[], object]]) -> None:
    """Make these calls."""
    for call in calls:
        call()


def _let_go(mailbox: Mailbox, final: bool, reason: Exit) -> None:
    """Without its instance, the mailbox ends or waits for the next."""
    drop_instance(mailbox)
    if final:
        _end(mailbox, reason)
    else:
        mailbox.state = SUSPENDED


def drop_instance(mailbox: Mailbox) -> None:
    """Forget the instance and all that dies with it."""
    timers = mailbox.timers
    if timers is not None:
        mailbox.timers = None
        for timer in timers.values():
            mailbox.scheduler.timers.cancel(timer)
    watching = mailbox.watching
    if watching is not None:
        mailbox.watching = None
        for watched in watching:
            if watched.watchers is not None:
                watched.watchers.pop(mailbox, None)
    mailbox.actor = None
    if mailbox.worker is not None:
        mailbox.worker = None
        mailbox.queued = False  # its turn, if it is in one, is an orphan's from now on


def _end(mailbox: Mailbox, reason: Exit) -> None:
    """Answer everybody, free the key, tell watchers and supervisor."""
    scheduler = mailbox.scheduler
    mailbox.state = STOPPED
    mailbox.exit = reason
    mailbox.room = -1
    lane, mailbox.lane, mailbox.cells, mailbox.system = mailbox.lane, None, None, None
    scheduler.runtime.directory.remove(mailbox)
    if lane is not None:
        scheduler.backlog -= len(lane)
        for message in lane:
            if type(message) is Ask and type(message.message) is _ActorStop:
                message.future.set(True)
            else:
                bury(mailbox, message)
        lane.clear()
    watchers, mailbox.watchers = mailbox.watchers, None
    if watchers is not None:
        notice = Terminated(mailbox, reason)  # type: ignore[arg-type]  # every mailbox is a ref
        for watcher in watchers:
            watcher.owe(notice)
    if scheduler.observer is not None:
        scheduler.tell_observer(Event.STOPPED, mailbox, reason)
    if scheduler.ended:
        for future in scheduler.ended.pop(mailbox, ()):
            future.set(True)
    child, mailbox.parent = mailbox.parent, None
    if child is not None:
        child.ended(reason)


def abandon(mailbox: Mailbox) -> None:
    """Its greenlet cannot be brought to an end: go on without it."""
    mailbox.scheduler.counters["abandoned"] += 1
    logger.error("%s did not stop in time and is left behind", mailbox)
    lane = mailbox.lane
    if lane is not None:  # the orphan's turn still holds the old lane
        mailbox.lane = lane.copy()
        lane.clear()
    finish_halt(mailbox)


# --- last words and last answers


def guard(mailbox: Mailbox, hook: Callable[..., None], *args: Any) -> None:
    """Run a last hook; its failure is logged and changes nothing."""
    try:
        hook(*args)
    except (KeyboardInterrupt, SystemExit) as error:
        mailbox.scheduler.runtime.request_stop(error)
    except BaseException as error:
        logger.error("Unhandled exception in %s:", mailbox, exc_info=explain(error))


def explain(error: BaseException) -> BaseException:
    """gevent's word for "you cannot wait here", in ours."""
    if isinstance(error, BlockingSwitchOutError):
        clear = BlockingCallError(BLOCKING_HELP)
        clear.__cause__ = error
        return clear.with_traceback(error.__traceback__)
    return error


def answer_error(future: Future[Any], error: BaseException) -> None:
    """Fulfil an asker's future with an error, unless it has an answer."""
    if not future.done:
        future.set_exception((type(error), error, error.__traceback__))


def bury(mailbox: Mailbox, message: Any) -> None:
    """A message that this actor will never handle: answer the asker, or count a dead letter."""
    if type(message) is Cell:
        message = message.message
    if type(message) is Ask:
        if type(message.message) is not _ActorStop:
            answer_error(message.future, ActorDeadError(f"{mailbox} stopped before handling the message"))
        elif mailbox.state == STOPPED:
            message.future.set(False)
        else:
            mailbox.scheduler.when_ended(mailbox, message.future)
    elif type(message) not in (Timer, Terminated, _ActorStop):
        mailbox.scheduler.runtime.dead_letters.add(DeadLetter(mailbox, message))  # type: ignore[arg-type]
