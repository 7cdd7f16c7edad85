"""The life of one actor: start, messages that are not plain, failure, halt, end.

    NEW --on_start--> RUNNING --halt--> STOPPING --> STOPPED
                        |                   (children first, on_stop, teardown)
                        +--failure, sibling's restart--> SUSPENDED --new instance--> NEW

Timers, watches and pipes belong to the instance and die with it; lanes, key and watchers to the mailbox.
All of this runs in the runtime's thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gevent.exceptions import BlockingSwitchOutError
from pykka import ActorDeadError
from pykka.messages import _ActorStop

from actors.runtime.clock import NS_PER_MS
from actors.runtime.errors import BlockingCallError
from actors.runtime.future import BLOCKING_HELP
from actors.runtime.mailbox import NEW, RUNNING, STOPPED, STOPPING, SUSPENDED, Mailbox
from actors.runtime.messages import PROXY_TYPES, Ask, Cell, DeadLetter, Exit, Piped, Terminated
from actors.runtime.timers import Timer

if TYPE_CHECKING:
    from actors.runtime.future import Future

logger = logging.getLogger("actors.runtime")

HALT_MS = 5_000
"""How long an instance may take to end where nobody says otherwise."""
KILL_GRACE_MS = 1_000
"""How long a killed greenlet may take to die before it is left behind."""


class Halt:
    """A mailbox's instance is being ended: why, whether for good, by when, and who waits for it."""

    __slots__ = ("deadline_ns", "done", "final", "reason", "timer")

    def __init__(self, reason: Exit, final: bool, deadline_ns: int) -> None:
        self.reason = reason
        self.final = final
        self.deadline_ns = deadline_ns
        self.done: list[Callable[[], None]] = []
        self.timer: Timer | None = None


# --- instances ---------------------------------------------------------------------------------------------------


def create(mailbox: Mailbox, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Put a new instance behind the mailbox; what its ``__init__`` raises is raised."""
    cls = mailbox.actor_class
    actor = object.__new__(cls)
    actor._mailbox = mailbox
    mailbox.actor = actor
    if cls.halt_children is not None:
        actor._prepare()
    try:
        actor.__init__(*args, **kwargs)
    except BaseException:
        mailbox.actor = None
        raise
    if mailbox.state == SUSPENDED:
        mailbox.state = NEW
    elif mailbox.state == STOPPED:  # the runtime has stopped meanwhile
        mailbox.actor = None
        return
    mailbox.worker = mailbox.scheduler.driver.make_worker(mailbox) if cls.own_greenlet else None


def discard(mailbox: Mailbox) -> None:
    """The first instance could not be made: there never was an actor."""
    mailbox.state = STOPPED
    mailbox.scheduler.runtime.directory.remove(mailbox)


def run_system(mailbox: Mailbox) -> None:
    """Run the system lane."""
    while mailbox.system is not None:
        call = mailbox.system.popleft()
        if not mailbox.system:
            mailbox.system = None
        call()


def start(mailbox: Mailbox) -> None:
    """The first step of a new instance."""
    mailbox.state = RUNNING
    mailbox.actor.on_start()


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
    mailbox.worker = None


# --- messages that are not plain ---------------------------------------------------------------------------------


def receive_special(mailbox: Mailbox, message: Any) -> None:
    """Handle one message of a type in ``SPECIAL``; what the handler raises is raised, but for an ask."""
    kind = type(message)
    if kind is Ask:
        _receive_ask(mailbox, message)
    elif kind is Timer:
        if message.mailbox is not None:
            spend(mailbox, message)
            mailbox.actor.on_receive(message.message)
    elif kind is Cell:
        assert mailbox.cells is not None
        del mailbox.cells[message.key]
        mailbox.actor.on_receive(message.message)
    elif kind is _ActorStop:
        exit_normally(mailbox, Exit.NORMAL)
    elif kind is Piped:
        if message.actor is mailbox.actor:
            try:
                answer = message.future.get()
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:
                answer = error
            mailbox.actor.on_receive(message.wrap(answer))
    elif kind is Terminated:
        if mailbox.watching is not None and message.ref in mailbox.watching:
            del mailbox.watching[message.ref]
            mailbox.actor.on_receive(message)
    else:
        mailbox.actor._handle_receive(message)


def spend(mailbox: Mailbox, timer: Timer) -> None:
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
        spend(mailbox, timer)
        timer.message.call()


def _receive_ask(mailbox: Mailbox, ask: Ask) -> None:
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
        if not future._done:
            future.set(answer)


def answer_error(future: Future[Any], error: BaseException) -> None:
    """Fulfil an asker's future with an error, unless it has an answer."""
    if not future._done:
        future.set_exception((type(error), error, error.__traceback__))


def bury(mailbox: Mailbox, message: Any) -> None:
    """A message that this actor will never handle: answer the asker, or count a dead letter."""
    if type(message) is Cell:
        message = message.message
    if type(message) is Ask:
        if type(message.message) is not _ActorStop:
            answer_error(message.future, dead(mailbox))
        elif mailbox.state == STOPPED:
            message.future.set(False)
        else:
            mailbox.scheduler.when_ended(mailbox, message.future)
    elif type(message) not in (Timer, Terminated, _ActorStop):
        mailbox.scheduler.runtime.dead_letters.add(DeadLetter(mailbox, message))  # type: ignore[arg-type]


# --- failure -----------------------------------------------------------------------------------------------------


def explain(error: BaseException) -> BaseException:
    """gevent's word for "you cannot wait here", in ours."""
    if isinstance(error, BlockingSwitchOutError):
        clear = BlockingCallError(BLOCKING_HELP)
        clear.__cause__ = error
        return clear.with_traceback(error.__traceback__)
    return error


def crashed(mailbox: Mailbox, message: Any, error: BaseException) -> None:
    """An exception came out of this actor's turn."""
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        mailbox.scheduler.runtime.request_stop(error)
        return
    if type(message) is Timer or type(message) is Cell:
        message = message.message
    fail(mailbox, message, explain(error))


def fail(mailbox: Mailbox, message: Any, error: BaseException) -> None:
    """The instance is broken: tell it, end it, and ask its supervisor what to do."""
    scheduler = mailbox.scheduler
    logger.error("Unhandled exception in %s:", mailbox, exc_info=error)
    actor = mailbox.actor
    if mailbox.state >= STOPPING or actor is None:
        return
    scheduler.counters["failures"] += 1
    halt_asked = scheduler.halts.get(mailbox)
    child = mailbox.parent
    final = child is None or (halt_asked is not None and halt_asked.final)
    mailbox.state = STOPPING if final else SUSPENDED
    if final:
        mailbox.room = -1
        scheduler.runtime.unregister(mailbox)
    _guard(mailbox, actor.on_failure, type(error), error, error.__traceback__)
    halt = scheduler.halts.setdefault(
        mailbox, Halt(Exit.FAILED, final, scheduler.now_ns() + HALT_MS * NS_PER_MS)
    )
    if child is not None and not final:
        halt.done.append(lambda: child.failed(message, error))
    _children_first(mailbox, halt, lambda: _finish(mailbox))


def _guard(mailbox: Mailbox, hook: Callable[..., None], *args: Any) -> None:
    """Run a last hook; its failure is logged and changes nothing."""
    try:
        hook(*args)
    except (KeyboardInterrupt, SystemExit) as error:
        mailbox.scheduler.runtime.request_stop(error)
    except BaseException as error:
        logger.error("Unhandled exception in %s:", mailbox, exc_info=explain(error))


# --- halt and end ------------------------------------------------------------------------------------------------


def exit_normally(mailbox: Mailbox, reason: Exit, asker: Future[Any] | None = None) -> None:
    """The actor ends, in its own turn. A permanent child is suspended, and its supervisor starts it again."""
    scheduler, child = mailbox.scheduler, mailbox.parent
    comes_back = child is not None and child.comes_back(reason)

    def done() -> None:
        if asker is not None:
            asker.set(True)
        if comes_back:
            child.exited(reason)

    halt(mailbox, reason, scheduler.now_ns() + HALT_MS * NS_PER_MS, done, final=not comes_back)


def halt(
    mailbox: Mailbox, reason: Exit, deadline_ns: int, done: Callable[[], None] | None, *, final: bool = True
) -> None:
    """End the instance (not ``final``: leave the mailbox open for the next one), then call ``done``.

    At once for a multiplexed actor without greenlet actors below it; otherwise when those have ended, at the latest
    when they have been killed at the deadline. Called in between turns, or by the actor's own turn.
    """
    scheduler = mailbox.scheduler
    if mailbox.state == STOPPED:
        if done is not None:
            done()
        return
    present = scheduler.halts.get(mailbox)
    if present is not None:
        if done is not None:
            present.done.append(done)
        present.final = present.final or final
        if present.final and mailbox.state == SUSPENDED:
            present.reason = reason
        return
    present = scheduler.halts[mailbox] = Halt(reason, final, deadline_ns)
    if done is not None:
        present.done.append(done)
    worker = mailbox.worker
    if worker is not None and not worker.is_here():
        present.timer = scheduler.call_at(deadline_ns, worker.kill)
        mailbox.post(lambda: _stop_instance(mailbox))
        return
    _stop_instance(mailbox)


def _stop_instance(mailbox: Mailbox) -> None:
    scheduler = mailbox.scheduler
    present = scheduler.halts.get(mailbox)
    if present is None or mailbox.state >= STOPPING:
        return
    ran = mailbox.state == RUNNING
    if present.final:
        mailbox.state = STOPPING
        mailbox.room = -1
        scheduler.runtime.unregister(mailbox)
    else:
        mailbox.state = SUSPENDED

    def finish() -> None:
        if ran and mailbox.actor is not None:
            _guard(mailbox, mailbox.actor.on_stop)
        _finish(mailbox)

    _children_first(mailbox, present, finish)


def _children_first(mailbox: Mailbox, present: Halt, then: Callable[[], None]) -> None:
    actor = mailbox.actor
    if actor is not None and actor.halt_children is not None:
        actor.halt_children(present.deadline_ns, then)
    else:
        then()


def _finish(mailbox: Mailbox) -> None:
    """The instance has said its last word."""
    scheduler = mailbox.scheduler
    present = scheduler.halts.pop(mailbox, None)
    if present is None:
        return
    if present.timer is not None:
        scheduler.timers.cancel(present.timer)
    drop_instance(mailbox)
    if present.final:
        _end(mailbox, present.reason)
    else:
        mailbox.state = SUSPENDED
    for done in present.done:
        done()


def _end(mailbox: Mailbox, reason: Exit) -> None:
    """Answer everybody, free the key, tell watchers and supervisor."""
    scheduler = mailbox.scheduler
    mailbox.state = STOPPED
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
        notice = Terminated(mailbox, reason)  # type: ignore[arg-type]
        for watcher in watchers:
            watcher.owe(notice)
    for future in scheduler.ended.pop(mailbox, ()):
        future.set(True)
    child, mailbox.parent = mailbox.parent, None
    if child is not None:
        child.ended(reason)


def dead(mailbox: Mailbox) -> ActorDeadError:
    """What the asker of a message that was never finished gets."""
    return ActorDeadError(f"{mailbox} stopped before handling the message")


def abandon(mailbox: Mailbox) -> None:
    """Its greenlet cannot be brought to an end: go on without it."""
    mailbox.scheduler.counters["abandoned"] += 1
    logger.error("%s did not stop in time and is left behind", mailbox)
    _finish(mailbox)


class HaltInTurn:
    """Halts mailboxes one after the other, the last first, then calls ``then``."""

    __slots__ = ("_deadline_ns", "_final", "_looping", "_then", "_todo", "_waiting")

    def __init__(
        self, todo: list[Mailbox], deadline_ns: int, then: Callable[[], None], *, final: bool = True
    ) -> None:
        self._todo = todo
        self._deadline_ns = deadline_ns
        self._then = then
        self._final = final
        self._waiting = self._looping = False
        self._step()

    def _step(self) -> None:
        self._waiting = False
        if self._looping:  # it ended at once: the loop below goes on
            return
        self._looping = True
        while self._todo and not self._waiting:
            self._waiting = True
            halt(self._todo.pop(), Exit.SHUTDOWN, self._deadline_ns, self._step, final=self._final)
        self._looping = False
        if not self._waiting:
            self._then()


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
