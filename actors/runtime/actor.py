"""The two kinds of actor. Both are pykka actors: refs, proxies and futures work as pykka documents.

``Actor`` is multiplexed: it owns no greenlet or thread, the scheduler calls it when its mailbox has something, and it
must not wait. ``GreenletActor`` has a greenlet of its own and may.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pykka

from actors.runtime.clock import NS_PER_MS, Clock
from actors.runtime.future import Future
from actors.runtime.halting import exit_normally
from actors.runtime.mailbox import STOPPED, Overflow
from actors.runtime.messages import STOP, Exit, Piped, Terminated
from actors.runtime.ref import ActorRef

if TYPE_CHECKING:
    from actors.runtime.runtime import Runtime

__all__ = ["Actor", "GreenletActor"]

PASSIVATE_DEADLINE_MS = 5_000


class Actor(pykka.Actor):
    """A multiplexed actor: override ``on_receive``, ``on_start``, ``on_stop``, ``on_failure`` as in pykka.

    It must not block: waiting raises ``BlockingCallError``. Its methods are for its own handlers only; others
    use its ref.
    """

    __slots__ = ("_mailbox",)

    mailbox_capacity: ClassVar[int] = 65_536
    """Messages that may wait in the user lane."""
    overflow: ClassVar[Overflow] = Overflow.REJECT
    """What happens to one more."""
    own_greenlet: ClassVar[bool] = False
    halt_children: ClassVar[Any] = None

    _mailbox: ActorRef[Any]

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Self:
        """An actor made by hand, not started: it has a name and nothing else works."""
        from actors.runtime.default import unstarted_scheduler

        actor = object.__new__(cls)
        actor._mailbox = ActorRef(cls, unstarted_scheduler())
        return actor

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        """Takes anything, as pykka's does. The ref is there already."""

    @classmethod
    def start(cls, *args: Any, **kwargs: Any) -> ActorRef[Self]:
        """Start one on the default runtime, registered with ``pykka.ActorRegistry``."""
        from actors.runtime.default import default_runtime

        return default_runtime().spawn(cls, *args, **kwargs)

    @classmethod
    def droppable(cls, message: Any) -> bool:
        """Whether DROP_OLDEST may drop this message. Default: its ``droppable`` attribute."""
        return bool(getattr(message, "droppable", False))

    @classmethod
    def coalesce_key(cls, message: Any) -> Hashable:
        """For COALESCE: what makes a later message replace this one; None: nothing. Default: its attribute."""
        key: Hashable = getattr(message, "coalesce_key", None)
        return key

    # --- who and when

    @property
    def actor_ref(self) -> ActorRef[Self]:
        """This actor's ref."""
        return self._mailbox

    @property
    def runtime(self) -> Runtime:
        """The runtime it lives on."""
        return self._mailbox.scheduler.runtime

    @property
    def clock(self) -> Clock:
        """The runtime's clock."""
        return self._mailbox.scheduler.runtime.clock

    @property
    def now_ms(self) -> int:
        """The runtime's monotonic time in ms."""
        return self._mailbox.scheduler.now_ns() // NS_PER_MS

    # --- timers

    def schedule(self, delay_ms: int, message: Any, key: Hashable = None) -> Hashable:
        """Receive ``message`` in ``delay_ms``, in place of what ``key`` was to bring; returns the key.

        Without a key the timer gets one of its own. It dies with this instance.
        """
        mailbox = self._mailbox
        scheduler = mailbox.scheduler
        return scheduler.arm(mailbox, scheduler.now_ns() + delay_ms * NS_PER_MS, message, key)

    def schedule_at(self, at_ms: int, message: Any, key: Hashable = None) -> Hashable:
        """As ``schedule``, at a moment of the runtime's clock; in the past: as soon as possible."""
        mailbox = self._mailbox
        return mailbox.scheduler.arm(mailbox, at_ms * NS_PER_MS, message, key)

    def cancel(self, key: Hashable) -> bool:
        """Disarm ``key``; a tick of it already in the mailbox is dead, too. Whether there was one."""
        mailbox = self._mailbox
        timers = mailbox.timers
        if timers is None:
            return False
        timer = timers.pop(key, None)
        if timer is None:
            return False
        if not timers:
            mailbox.timers = None
        mailbox.scheduler.timers.cancel(timer)
        return True

    def cancel_all(self) -> None:
        """Disarm all timers of this actor."""
        mailbox = self._mailbox
        timers, mailbox.timers = mailbox.timers, None
        for timer in (timers or {}).values():
            mailbox.scheduler.timers.cancel(timer)

    # --- others

    def pipe(self, future: Future[Any], wrap: Callable[[Any], Any], timeout_ms: int | None = None) -> None:
        """Receive ``wrap(answer)`` when the future has one; an exception is handed to ``wrap`` as a value.

        After ``timeout_ms`` it is ``wrap(pykka.Timeout())``, and the answer is ignored. The message passes the
        mailbox's bound. It dies with this instance.
        """
        mailbox = self._mailbox
        piped = Piped(self, future, wrap)
        if timeout_ms is not None:
            self.schedule(timeout_ms, piped, piped)
        future.subscribe(partial(mailbox.owe, piped))

    def watch(self, ref: ActorRef[Any]) -> None:
        """Receive ``Terminated(ref, reason)`` once, when that actor has ended (at once, if it has)."""
        mailbox = self._mailbox
        if ref.scheduler is not mailbox.scheduler:
            raise ValueError("watch works within one runtime")
        if mailbox.watching is None:
            mailbox.watching = {}
        if ref in mailbox.watching:
            return
        mailbox.watching[ref] = None
        if ref.state == STOPPED:
            mailbox.owe(Terminated(ref, ref.exit or Exit.NORMAL))
            return
        if ref.watchers is None:
            ref.watchers = {}
        ref.watchers[mailbox] = None

    def unwatch(self, ref: ActorRef[Any]) -> None:
        """No ``Terminated`` of that actor any more, even if one is in the mailbox."""
        mailbox = self._mailbox
        if mailbox.watching is not None:
            mailbox.watching.pop(ref, None)
        if ref.watchers is not None:
            ref.watchers.pop(mailbox, None)

    def passivate(self) -> bool:
        """End after this message, if nothing waits in the mailbox; the key is free then. False: something waits.

        Whoever looks the key up next finds nobody and starts the actor anew.
        """
        if not self.is_idle():
            return False
        self._mailbox.post(self._leave)
        return True

    def is_idle(self) -> bool:
        """Whether nothing waits in its mailbox (and in those of its children)."""
        return not self._mailbox.depth

    def _leave(self) -> None:
        if self._mailbox.actor is self and self.is_idle():
            exit_normally(self._mailbox, Exit.PASSIVATED)

    def stop(self) -> None:
        """End once what is in the queue now has been handled."""
        self._mailbox.owe(STOP)

    # --- pykka's seams

    def __str__(self) -> str:
        return str(self._mailbox)

    @property
    def actor_urn(self) -> str:  # type: ignore[override]
        """A unique name."""
        return self._mailbox.actor_urn

    @property
    def actor_inbox(self) -> Any:  # type: ignore[override]
        """The mailbox."""
        return self._mailbox

    @property
    def actor_stopped(self) -> Any:  # type: ignore[override]
        """This actor's end, as an event."""
        return self._mailbox.actor_stopped

    @property
    def _actor_ref(self) -> Any:  # type: ignore[override]
        return self._mailbox

    @staticmethod
    def _create_actor_inbox() -> Any:
        raise TypeError("the runtime makes the mailbox")

    @staticmethod
    def _create_future() -> Future[Any]:
        return Future()

    def _start_actor_loop(self) -> None:
        raise TypeError("the runtime runs the actor")


class GreenletActor(Actor):
    """An actor with a greenlet of its own, which may block in gevent's ways (not under the manual driver)."""

    own_greenlet: ClassVar[bool] = True
