"""The supervisor: an actor whose children are restarted by rule.

A failed child is suspended: its mailbox goes on taking messages. The supervisor is told by its system lane,
calls ``on_child_failed``, asks the budgets, and after the back-off puts a new instance behind the same mailbox. The
message that failed is gone.

Its own failure (an exception in a handler or hook, or a spent budget) ends its children first, newest first, and then
goes to *its* supervisor; the next instance's ``on_start`` starts children anew.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar

from actors.runtime import halting, lifecycle
from actors.runtime.actor import Actor
from actors.runtime.errors import DuplicateKeyError, RestartBudgetError
from actors.runtime.future import Future
from actors.runtime.halt_many import HaltInTurn, halt_at_once
from actors.runtime.mailbox import STOPPING, SUSPENDED, Mailbox
from actors.runtime.messages import Deferred, Exit
from actors.runtime.ref import ActorRef
from actors.runtime.supervision import COMES_BACK, Backoff, Budget, ChildSpec, Crowd, Strategy, companions

__all__ = ["Supervisor"]

logger = logging.getLogger("actors.runtime")


class Child:
    """A supervisor's book about one child. Also the child's way to its supervisor: ``mailbox.parent``."""

    __slots__ = ("budget", "failed_ms", "failures", "mailbox", "restarting", "restarts", "spec", "supervisor")

    def __init__(self, spec: ChildSpec, mailbox: Mailbox, supervisor: Mailbox) -> None:
        self.spec = spec
        self.mailbox = mailbox
        self.supervisor = supervisor
        self.restarts = 0
        self.failures = 0
        self.failed_ms = 0
        self.restarting = False
        self.budget: Budget | None = None

    def comes_back(self, reason: Exit) -> bool:
        """Whether the supervisor will want to start it again after this."""
        return (self.spec.restart, reason) in COMES_BACK and self.supervisor.state < STOPPING

    def failed(self, message: Any, error: BaseException) -> None:
        """It is suspended after a failure."""
        self._tell("_child_failed", message, error)

    def exited(self) -> None:
        """It is suspended after a normal end."""
        self._tell("_child_exited")

    def ended(self, reason: Exit) -> None:
        """It is gone for good."""
        actor = self.supervisor.actor
        if actor is not None and actor._children.pop(self.spec.id, None) is not None:
            self._tell("_child_ended", reason)

    def _tell(self, method: str, *args: Any) -> None:
        actor = self.supervisor.actor
        if actor is not None:
            self.supervisor.post(partial(self._report, actor, method, args))

    def _report(self, actor: Any, method: str, args: tuple[Any, ...]) -> None:
        if self.supervisor.actor is actor and self.supervisor.state < SUSPENDED:
            getattr(actor, method)(self, *args)


class ChildrenView(Mapping[Hashable, ActorRef[Any]]):
    """A supervisor's children, looked up in O(1) whatever their number."""

    __slots__ = ("_children",)

    def __init__(self, children: dict[Hashable, Child]) -> None:
        self._children = children

    def __getitem__(self, child_id: Hashable) -> ActorRef[Any]:
        return self._children[child_id].mailbox  # type: ignore[return-value]  # every mailbox is a ref

    def __iter__(self) -> Iterator[Hashable]:
        return iter(list(self._children))

    def __len__(self) -> int:
        return len(self._children)


class Supervisor(Actor):
    """Starts children with ``start_child`` and keeps them by the class's rules. Multiplexed."""

    strategy: ClassVar[Strategy] = Strategy.ONE_FOR_ONE
    intensity: ClassVar[int] = 3
    """Restarts that all children together may have within ``period_ms``; one more and the supervisor fails."""
    period_ms: ClassVar[int] = 5_000
    backoff: ClassVar[Backoff] = Backoff()
    many: ClassVar[bool] = False
    """A parent of many: no common budget; fails when ``many_min`` and more than ``many_share`` of them failed within
    the period. Its children are stopped side by side."""
    many_share: ClassVar[float] = 0.05
    many_min: ClassVar[int] = 50

    _children: dict[Hashable, Child]

    def prepare(self) -> None:
        """Before ``__init__``, so that a subclass need not call it."""
        self._children = {}
        self._budget = Budget(self.intensity, self.period_ms)
        self._crowd = Crowd(self.period_ms, self.many_share, self.many_min)

    # --- children

    def start_child(self, spec: ChildSpec) -> ActorRef[Any]:
        """Start a child. DuplicateKeyError: its id or key is taken. What its ``__init__`` raises is raised."""
        if spec.id in self._children:
            raise DuplicateKeyError(f"{self} has a child {spec.id!r}")
        ref: ActorRef[Any] = ActorRef(spec.cls, self._mailbox.scheduler, spec.key)
        child = self._children[spec.id] = Child(spec, ref, self._mailbox)
        if spec.intensity is not None:
            child.budget = Budget(spec.intensity, spec.period_ms)
        try:
            self.runtime._spawn(ref, spec.args, spec.kwargs)
        except BaseException:
            del self._children[spec.id]
            raise
        ref.parent = child
        return ref

    def stop_child(self, id: Hashable, deadline_ms: int = halting.HALT_MS) -> Future[bool]:  # noqa: A002
        """Stop a child for good, ahead of its backlog. The future says True when it has ended; False: no such child."""
        done: Future[bool] = Future(self._mailbox.scheduler)
        child = self._children.get(id)
        if child is None:
            done.set(False)
        else:
            deadline_ns = halting.deadline_in(self._mailbox, deadline_ms)
            halting.halt(child.mailbox, Exit.SHUTDOWN, deadline_ns, partial(done.set, True))
        return done

    @property
    def children(self) -> Mapping[Hashable, ActorRef[Any]]:
        """The refs of its children by id, in the order of their start: a live view."""
        return ChildrenView(self._children)

    def is_idle(self) -> bool:
        """Whether nothing waits in its mailbox and in those of its children."""
        actors = [child.mailbox.actor for child in self._children.values()]
        return super().is_idle() and all(actor is not None and actor.is_idle() for actor in actors)

    def halt_children(self, deadline_ns: int, then: Callable[[], None]) -> None:
        """End all children for good, then call ``then`` (for the runtime)."""
        todo = [child.mailbox for child in self._children.values()]
        if self.many:
            halt_at_once(todo, deadline_ns, then)
        else:
            HaltInTurn(self._mailbox.scheduler, todo, deadline_ns, then)

    # --- hooks

    def on_child_failed(self, child: ChildSpec, message: Any, error: BaseException) -> None:
        """``message`` (None: start, or no message at all) has failed with ``error``; the decision comes after this."""

    def on_child_gave_up(self, child: ChildSpec) -> None:
        """The child's own restart budget is spent; it has ended for good."""

    def on_child_stopped(self, child: ChildSpec, reason: Exit) -> None:
        """The child has ended for good, for another reason than a spent budget."""

    # --- what children report

    def _child_failed(self, child: Child, message: Any, error: BaseException) -> None:
        self.on_child_failed(child.spec, message, error)
        if child.restarting or child.spec.id not in self._children:
            return
        if not child.comes_back(Exit.FAILED):
            self._end(child, Exit.FAILED)
        else:
            self._restart(child, error)

    def _child_exited(self, child: Child) -> None:
        if not child.restarting and child.spec.id in self._children:
            self._restart(child, None)

    def _child_ended(self, child: Child, reason: Exit) -> None:
        if reason is Exit.GAVE_UP:
            self.on_child_gave_up(child.spec)
        else:
            self.on_child_stopped(child.spec, reason)

    def _end(self, child: Child, reason: Exit) -> None:
        halting.halt(child.mailbox, reason, self._mailbox.scheduler.now_ns())

    # --- restart

    def _restart(self, child: Child, error: BaseException | None) -> None:
        now_ms = self.now_ms
        if child.budget is not None and not child.budget.spend(now_ms):
            self._end(child, Exit.GAVE_UP)
            return
        if self.many:
            if self._crowd.too_many(child.spec.id, len(self._children), now_ms):
                raise RestartBudgetError(f"too many children of {self} failed at once") from error
        elif not self._budget.spend(now_ms):
            raise RestartBudgetError(f"{self} restarted more than {self.intensity} times") from error
        quiet = now_ms - child.failed_ms >= self.backoff.reset_ms
        child.failures = 1 if quiet else child.failures + 1
        child.failed_ms = now_ms
        delay_ms = self.backoff.delay_ms(child.failures, self.runtime.random.random())
        group = companions(self.strategy, self._children.values(), child)
        for each in group:
            each.restarting = True
        then = partial(self._revive_later, group, delay_ms)
        deadline_ns = halting.deadline_in(self._mailbox, halting.HALT_MS)
        mailboxes = [each.mailbox for each in group]
        HaltInTurn(self._mailbox.scheduler, mailboxes, deadline_ns, then, final=False)

    def _revive_later(self, group: list[Child], delay_ms: int) -> None:
        """All of them are suspended."""
        if self._mailbox.actor is self:
            self.schedule(delay_ms, Deferred(partial(self._revive, group)))

    def _revive(self, group: list[Child]) -> None:
        for child in group:
            child.restarting = False
            mailbox = child.mailbox
            if child.spec.id not in self._children or mailbox.state != SUSPENDED:
                continue
            child.restarts += 1
            self._mailbox.scheduler.counters["restarts"] += 1
            try:
                lifecycle.create(mailbox, child.spec.args, child.spec.kwargs)
            except Exception as error:
                logger.error("Unhandled exception in %s:", mailbox, exc_info=error)
                self._child_failed(child, None, error)
                if child.restarting:  # and with it the rest of the group
                    return
            else:
                self.runtime._begin(mailbox)
