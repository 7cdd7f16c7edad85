"""PlatformIOActor: one per account, the only one that makes outbound calls for it.

It is a driver around the pure `Lanes`: desires come in from the conversations, calls go out through the platform port
as far as the lanes and their pacing allow, outcomes come back as messages and turn into reports to the actor that
asked. `Lanes` lives above the actor, and the port's answers come to its mailbox whatever happens to it, so a restart loses
nothing: what it failed on is told again. Only if it fails on an answer time and again, calls in flight count as unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pykka import ActorDeadError

from actors.complaints import Complaints
from actors.keys import ROUTER, reaction_key, typing_key
from actors.ledger import AccountLedger
from actors.messages import Message
from actors.platform_messages import (
    WAKE,
    AnswersLost,
    CallEnded,
    Changed,
    Desire,
    Posted,
    Reachable,
    Release,
    Retold,
    Revive,
    ShowMark,
    TypeStart,
    TypeStop,
    TypeWithdraw,
    lane_of,
)
from actors.platforms.port import PlatformPort
from actors.presence.lanes import Begin, Lanes
from actors.presence.policy import Chain
from actors.presence.terms import TYPING_OPS, Command, MarkReport, Op, Outcome, OutcomeKind, Rank, Report
from actors.runtime import Actor, ActorRef

RETELL_MAX = 8
"""So often the actor is told again of what it has failed on."""


@dataclass(slots=True)
class AccountIO:
    """What outlives the actor: one account's lanes, its port and its call deadlines."""

    name: str
    lanes: Lanes
    port: PlatformPort
    ledger: AccountLedger
    egress: tuple[str, str | None] = field(repr=False)
    """`Account.egress`, as its calls go out now. A proxy's address may hold a password."""
    deadline_ms: int = 10_000
    typing_deadline_ms: int = 3_000
    watched: Callable[[], bool] = lambda: False
    """Whether the router wants to hear of changes."""
    failed: dict[tuple[str, str | None, bool], Message] = field(default_factory=dict)
    """By lane: the desire on which the actor has failed, to be told again."""
    released: dict[tuple[str, str], str] = field(default_factory=dict)
    """Conversation and message of lanes that bring a message to rest, and the run that has ended there."""

    def show(
        self, conversation: str, message: str, chain: Chain, rank: Rank, now_ms: int, *, forum: bool = False
    ) -> Sequence[Report]:
        """This mark should show, or none (empty chain)."""
        self.released.pop((conversation, message), None)
        return self.lanes.show(conversation, message, chain, rank, now_ms, forum=forum)

    def release(self, conversation: str, message: str, run: str, now_ms: int) -> Sequence[Report]:
        """The run is over and its last wish is told."""
        self.released[conversation, message] = run
        return self.lanes.release(conversation, message, now_ms)

    def settle_marks(self, conversation: str, message: str, *, called: bool) -> None:
        """Write down what is on the message now, after a call, or if nothing is wanted or owed there any more."""
        possible = self.lanes.possible(conversation, message) if called else None
        if possible is None and self.lanes.keeps_marks(conversation, message):
            return
        self.ledger.marks(conversation, message, possible)
        if possible is None:
            run = self.released.pop((conversation, message), None)
            if run is not None:
                self.ledger.rests(conversation, message, run)

    def retold(self, message: Any) -> Message | None:
        """What to tell the actor after it has failed on ``message``; None: nothing that could help."""
        fails = 1
        if isinstance(message, Retold):
            message, fails = message.message, message.fails + 1
        if isinstance(message, CallEnded):
            return Retold(message, fails) if fails <= RETELL_MAX else AnswersLost()
        if isinstance(message, Desire):
            if fails == 1:
                self.failed[lane_of(message)] = message
            if fails <= RETELL_MAX:
                return Retold(message, fails)
            self.failed.pop(lane_of(message), None)
            return None
        return message if isinstance(message, AnswersLost | Reachable | Revive) else None

    def deadline_of(self, op: Op) -> int:
        typing = op in TYPING_OPS
        return self.typing_deadline_ms if typing else self.deadline_ms


TAKEN_MAX = 16
"""So many messages are taken in before calls are begun, however many still wait."""


class PlatformIOActor(Actor):
    """Serialises the outbound calls of one account.

    It takes in what waits in its mailbox before it begins a call: that may be what has to go first. `WAKE`, told by
    itself behind what waits, is when it begins calls; a long queue is not waited for.
    """

    mailbox_capacity = 1_000_000
    """A desire replaces the one before it in its lane, so what waits here is bounded by the open conversations."""

    def __init__(self, account: AccountIO) -> None:
        super().__init__()
        self._account = account
        self._lanes = account.lanes
        self._complaints = Complaints(account.name)
        self._taken = 0
        """Messages taken in since calls were begun last."""

    def on_start(self) -> None:
        self.actor_ref.tell(WAKE)  # behind what waits and what is told again: it may be newer than what the lanes know

    def on_receive(self, message: Any) -> None:
        retold = isinstance(message, Retold)
        if retold:
            message = message.message
        if (retold or self._account.failed) and isinstance(message, Desire):
            failed = self._account.failed.get(lane_of(message))
            if retold and failed is not message:
                return
            if failed is not None and not retold and isinstance(message, Release):
                self.actor_ref.tell(message)  # behind the wish that is about to be told again
                return
            self._account.failed.pop(lane_of(message), None)
        self._report(self._take(message, self.now_ms))
        self._settle(message)
        self._taken += 1
        if message is WAKE or self._taken == TAKEN_MAX:
            self._pump()
        elif self._taken == 1:
            self.actor_ref.tell(WAKE)

    def _take(self, message: Any, now_ms: int) -> Sequence[Report]:
        lanes = self._lanes
        match message:
            case ShowMark(conversation, target, chain, rank, forum):
                return self._account.show(conversation, target, chain, rank, now_ms, forum=forum)
            case CallEnded(call_id, outcome):
                stopped = lanes.stopped
                reports = lanes.end(call_id, outcome, now_ms)
                self._complaints.hear(message.command, outcome, now_ms)
                learned = lanes.take_learned(now_ms)
                if learned:
                    self._account.ledger.learned(learned, self.clock.wall_ms())
                if refused := lanes.take_refused(now_ms):
                    self._account.ledger.refused(refused, self.clock.wall_ms())
                if lanes.stopped is not None and stopped is None:
                    self._complaints.stopped(outcome)
                return reports
            case TypeStart(conversation, thread, token, forum, inbound):
                return lanes.type_start(conversation, thread, token, now_ms, forum=forum, inbound=inbound)
            case TypeStop(conversation, thread):
                return lanes.type_stop(conversation, thread, now_ms)
            case TypeWithdraw(conversation, thread):
                return lanes.type_withdraw(conversation, thread, now_ms)
            case Release(conversation, target, run):
                return self._account.release(conversation, target, run, now_ms)
            case AnswersLost():
                return lanes.restart(now_ms)
            case Reachable():
                return lanes.reachable(now_ms)
            case Posted(conversation):
                lanes.posted(conversation, now_ms)
            case Revive():
                lanes.revive(now_ms)
        return ()

    def _pump(self) -> None:
        """Begin every call that may begin now, and come back when the next one may."""
        self._taken = 0
        now_ms = self.now_ms
        while (begin := self._lanes.next(now_ms)) is not None:
            self._call(begin)
        self._report(self._lanes.take_reports())
        wake_at_ms = self._lanes.wake_at_ms()
        if wake_at_ms is None:
            self.cancel("wake")
        else:
            self.schedule_at(wake_at_ms, WAKE, key="wake")

    def _call(self, begin: Begin) -> None:
        account, command = self._account, begin.command
        possible = self._lanes.possible(command.conversation, command.message) if command.message else None
        answer = partial(_answer, self.actor_ref, begin.call_id, command)
        try:
            account.ledger.calling(command, possible)
            make = partial(account.port.call, command, account.deadline_of(command.op), answer)
            if command.op is Op.TYPING_STOP:
                make()
            else:
                account.ledger.after_commit(make)  # who comes after a kill must know what may be there, and what not
        except BaseException:
            answer(Outcome(OutcomeKind.UNKNOWN, detail="not made"))  # nobody else will
            raise

    def _settle(self, message: Any) -> None:
        """Write down what is there now, where this message may have changed that."""
        about = message.command if isinstance(message, CallEnded) else message
        if isinstance(message, CallEnded) and self._account.watched():
            router = self.runtime.lookup(ROUTER)
            if router is not None:
                router.tell(Changed(self._account.name, about.conversation, about.message or ""))
        target = getattr(about, "message", None)
        if target is not None:
            self._account.settle_marks(about.conversation, target, called=isinstance(message, CallEnded))
        elif isinstance(message, (TypeStop, CallEnded)):
            self._settle_typing(about.conversation, about.thread)

    def _settle_typing(self, conversation: str, thread: str | None) -> None:
        if not self._lanes.keeps_typing(conversation, thread):
            self._account.ledger.typing_over(conversation, thread)

    def _report(self, reports: Sequence[Report]) -> None:
        for report in reports:
            if isinstance(report, MarkReport):
                key = reaction_key(self._account.name, report.conversation)
                self._account.settle_marks(report.conversation, report.message, called=False)
            else:
                key = typing_key(self._account.name, report.conversation)
                self._settle_typing(report.conversation, report.thread)  # it may have ended with whatever was taken in
            ref = self.runtime.lookup(key)
            if ref is not None:
                ref.tell(report)


def _answer(ref: ActorRef[Any], call_id: int, command: Command, outcome: Outcome) -> None:
    with suppress(ActorDeadError):  # livesign is stopping: that it may be there stands in the ledger
        ref.tell(CallEnded(call_id, outcome, command))
