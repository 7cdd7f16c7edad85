"""One conversation: a ReactionActor and a TypingActor under their ConversationSupervisor.

The actors are thin drivers: they feed a pure machine, perform its effects and schedule its timers. The machines are
plain data in `Conversation`, owned by the supervisor and handed to the actors at each start, so a crash costs the one
message that caused it. After a restart an actor re-arms its timers and tells again what it desires. If the message that
failed was a terminal, the supervisor tells the router, and the run ends as an error.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from actors.conversation_state import (
    Concluded,
    Conversation,
    ConversationParked,
    ConversationStarted,
    Deliver,
    LetBe,
    Passivated,
    PassivateIfIdle,
    Settled,
    StillBusy,
    TakenOver,
    TerminalCrashed,
    Thread,
    is_terminal,
)
from actors.keys import conversation_key, reaction_key, typing_key
from actors.platform_messages import Posted, Release, ShowMark, TypeStart, TypeStop, TypeWithdraw
from actors.presence.reaction import ReactionMachine
from actors.presence.terms import (
    Cancel,
    Clear,
    Effect,
    Finished,
    MarkReport,
    Rank,
    RunInfo,
    Schedule,
    Show,
    StartTyping,
    StopTyping,
    TypingReport,
    WithdrawTyping,
)
from actors.presence.typing import TypingMachine
from actors.runtime import Actor, ChildSpec, Restart, Supervisor
from protocol import events
from protocol.events import Event


class MarkDue(NamedTuple):
    """A reaction machine's timer: its message, and its key."""

    run: str
    key: Any


class TypingDue(NamedTuple):
    """A typing machine's timer: its message, and its key."""

    thread: Thread
    key: Any


class ReactionActor(Actor):
    """Drives the reaction machines of one conversation."""

    def __init__(self, state: Conversation) -> None:
        super().__init__()
        self._state = state

    def on_start(self) -> None:
        for run, machine in list(self._state.reactions.items()):
            self._perform(run, machine, machine.restart(self.now_ms))

    def on_receive(self, message: Any) -> None:
        match message:
            case Deliver(info, event, again) if info is not None:
                if not again or info.key.run in self._state.reactions:
                    self._deliver(info, event)
            case LetBe(info):
                machine = self._state.reactions.get(info.key.run)
                if machine is not None:
                    self._perform(info.key.run, machine, machine.disown())
                    self._finish(info.key.run, info, not_shown=False)
            case TakenOver(info):
                machine = self._state.reactions.get(info.key.run)
                if machine is not None:
                    self._perform(info.key.run, machine, machine.take_over(self.now_ms))
            case MarkDue(run, key):
                machine = self._state.reactions.get(run)
                if machine is not None:
                    self._perform(run, machine, machine.on_timeout(key, self.now_ms))
            case MarkReport():
                run = self._state.owners.get(message.message, "")
                machine = self._state.reactions.get(run)
                if machine is not None:
                    self._perform(run, machine, machine.on_mark(message, self.now_ms))

    def _deliver(self, info: RunInfo, event: Event) -> None:
        run = info.key.run
        machine = self._state.reactions.get(run)
        older: ReactionMachine | None = None
        if machine is None:
            if isinstance(event, (events.Clear, events.Restore)) and info.message not in self._state.owners:
                self._state.io.tell(
                    Release(info.key.conversation, info.message or "", run)
                )  # it is at rest, say so again
            if isinstance(event, (events.Clear, events.Restore, events.Sent)):
                return
            machine = self._state.reactions[run] = ReactionMachine(info)
            older = self._take_over(info)
        minute = 0 if info.policy.status.quiet_minutes is None else local_minute(self.clock.wall_ms())
        effects = machine.handle(event, self.now_ms, local_minute=minute)
        if older is not None:
            self._perform(older.info.key.run, older, older.disown())
            if not any(isinstance(effect, Show) for effect in effects):
                effects = [Clear(), *effects]
        self._perform(run, machine, effects)

    def _take_over(self, info: RunInfo) -> ReactionMachine | None:
        """The newest run of a message owns its marks; the machine that had them until now, if there is one."""
        assert info.message is not None
        before = self._state.owners.get(info.message, "")
        self._state.owners[info.message] = info.key.run
        return self._state.reactions.get(before)

    def _perform(self, run: str, machine: ReactionMachine, effects: Sequence[Effect]) -> None:
        info = machine.info
        if machine.verdict is not None and self._state.wants_verdicts():
            self._state.router.tell(Concluded(info.key, machine.verdict))
            machine.verdict = None
        for effect in effects:
            match effect:
                case Show(chain, rank):
                    self._show(info, chain, rank)
                case Clear(rank):
                    self._show(info, (), rank)
                case Schedule(key, at_ms):
                    due = MarkDue(run, key)
                    self.schedule_at(at_ms, due, key=due)
                case Cancel(key):
                    self.cancel(MarkDue(run, key))
                case Finished(not_shown):
                    self._finish(run, info, not_shown)

    def _show(self, info: RunInfo, chain: tuple[str, ...], rank: Rank) -> None:
        assert info.message is not None
        self._state.io.tell(ShowMark(info.key.conversation, info.message, chain, rank, info.forum))

    def _finish(self, run: str, info: RunInfo, not_shown: bool) -> None:
        self._state.reactions.pop(run, None)
        if info.message is not None and self._state.owners.get(info.message) == run:
            del self._state.owners[info.message]
            self._state.io.tell(Release(info.key.conversation, info.message, run))
        self._state.router.tell(Settled(info.key, not_shown))


class TypingActor(Actor):
    """Drives the typing machines of one conversation: one per target."""

    def __init__(self, state: Conversation) -> None:
        super().__init__()
        self._state = state

    def on_start(self) -> None:
        for thread, machine in list(self._state.typing.items()):
            self._perform(thread, machine, machine.restart(self.now_ms))

    def on_receive(self, message: Any) -> None:
        match message:
            case Deliver(info, event):
                self._deliver(info, event)
            case TypingDue(thread, key):
                machine = self._state.typing.get(thread)
                if machine is not None:
                    self._perform(thread, machine, machine.on_timeout(key, self.now_ms))
            case TypingReport():
                self._report(message)

    def _report(self, report: TypingReport) -> None:
        machine = self._state.typing.get(report.thread)
        if machine is None:
            return
        if report.token is None:
            effects = machine.on_stopped(report.outcome, self.now_ms)
        else:
            effects = machine.on_started(report.token, report.outcome, self.now_ms, called=report.called)
        self._perform(report.thread, machine, effects)

    def _deliver(self, info: RunInfo | None, event: Event) -> None:
        if isinstance(event, events.Sent) and event.ok:
            self._state.io.tell(Posted(self._state.conversation))
        thread = self._target(info, event)
        if isinstance(event, events.Moved) and info is not None and info.policy.typing.in_threads:
            self._move(info, thread, event.thread)
            thread = event.thread
        if info is not None and info.key.run in self._state.targets and is_terminal(event):
            self._state.moved_over.add(info.key.run)
        machine = self._state.typing.get(thread)
        if machine is None:
            machine = self._machine(thread)
        self._perform(thread, machine, machine.handle(info, event, self.now_ms))

    def _target(self, info: RunInfo | None, event: Event) -> Thread:
        if info is None:
            assert isinstance(event, events.TypingStart | events.TypingStop)
            return event.thread if self._state.policy.typing.in_threads else None
        if not info.policy.typing.in_threads:
            return None
        return self._state.targets.get(info.key.run, info.thread)

    def _move(self, info: RunInfo, old: Thread, new: Thread) -> None:
        """The run's reply goes to another thread: it leaves one target and joins the other."""
        if old == new:
            return
        self._state.targets[info.key.run] = new
        before = self._state.typing.get(old)
        if before is None:
            return
        member, effects = before.leave(info.key, self.now_ms)
        self._perform(old, before, effects)
        if member is not None:
            after = self._state.typing.get(new) or self._machine(new)
            self._perform(new, after, after.join(member, self.now_ms))

    def _machine(self, thread: Thread) -> TypingMachine:
        machine = self._state.typing[thread] = TypingMachine(self._state.policy)
        return machine

    def _perform(self, thread: Thread, machine: TypingMachine, effects: Sequence[Effect]) -> None:
        conversation = self._state.conversation
        for effect in effects:
            match effect:
                case StartTyping(token):
                    self._state.io.tell(TypeStart(conversation, thread, token, machine.forum, machine.inbound))
                case StopTyping():
                    self._state.io.tell(TypeStop(conversation, thread))
                case WithdrawTyping():
                    self._state.io.tell(TypeWithdraw(conversation, thread))
                case Schedule(key, at_ms):
                    due = TypingDue(thread, key)
                    self.schedule_at(at_ms, due, key=due)
                case Cancel(key):
                    self.cancel(TypingDue(thread, key))
        if machine.idle:
            self._state.typing.pop(thread, None)
            for run in [run for run in self._state.moved_over if self._state.targets[run] == thread]:
                del self._state.targets[run]
                self._state.moved_over.discard(run)


class ConversationSupervisor(Supervisor):
    """Starts, watches and restarts the two actors of a conversation; owns what they must not lose.

    Each of the two has its own restart budget. When one is spent, the router is told and the conversation ends.
    """

    intensity = 1_000_000
    """The budget that counts is each child's."""

    def __init__(self, state: Conversation, child_intensity: int, child_period_ms: int) -> None:
        super().__init__()
        self._state = state
        self._child_intensity = child_intensity
        self._child_period_ms = child_period_ms

    def on_start(self) -> None:
        account, conversation = self._state.account, self._state.conversation
        for cls, key in (
            (ReactionActor, reaction_key(account, conversation)),
            (TypingActor, typing_key(account, conversation)),
        ):
            self.start_child(
                ChildSpec(
                    id=cls,
                    cls=cls,
                    args=(self._state,),
                    key=key,
                    intensity=self._child_intensity,
                    period_ms=self._child_period_ms,
                )
            )
        self._state.router.tell(ConversationStarted((account, conversation)))

    def on_child_failed(self, child: ChildSpec, message: Any, error: BaseException) -> None:
        if isinstance(message, LetBe):
            self.children[child.id].tell(message)
        if isinstance(message, Deliver) and message.info is not None and is_terminal(message.event):
            self._state.router.tell(TerminalCrashed(message.info, child.id is TypingActor))

    def on_child_gave_up(self, child: ChildSpec) -> None:
        self._state.router.tell(ConversationParked((self._state.account, self._state.conversation)))
        self.stop()

    def on_receive(self, message: Any) -> Any:
        if not isinstance(message, PassivateIfIdle):
            return super().on_receive(message)
        place = (self._state.account, self._state.conversation)
        if self._state.idle and not any(child.depth for child in self.children.values()):
            self._state.router.tell(Passivated(place))
            self.stop()
        else:
            self._state.router.tell(StillBusy(place))
        return None


def local_minute(wall_ms: int) -> int:
    """Minute of the local day, for quiet hours."""
    local = time.localtime(wall_ms / 1000)
    return local.tm_hour * 60 + local.tm_min


def conversation_spec(state: Conversation, intensity: int, period_ms: int) -> ChildSpec:
    """How the conversations' supervisor starts this one."""
    key = conversation_key(state.account, state.conversation)
    return ChildSpec(
        id=key,
        cls=ConversationSupervisor,
        args=(state, intensity, period_ms),
        key=key,
        restart=Restart.TRANSIENT,
        intensity=intensity,
        period_ms=period_ms,
    )
