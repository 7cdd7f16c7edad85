"""RouterActor: every event of every client, embedded or not, comes through here.

It asks the run table what an event does, answers the client, and delivers what follows to the two actors of the
conversation. It keeps one timer per run that can end by itself. A conversation's actors are started by their supervisor
on the first delivery; until they are there, deliveries wait in order. A conversation with nothing left to do is
passivated: the router is the only sender of events, so nothing can be lost between the question and the stop.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import islice
from typing import Any

from pykka import ActorDeadError

from actors.conversation import local_minute
from actors.conversation_state import (
    Concluded,
    Conversation,
    ConversationParked,
    ConversationStarted,
    Deliver,
    LetBe,
    Passivated,
    PassivateIfIdle,
    Place,
    Settled,
    StillBusy,
    TakenOver,
    TerminalCrashed,
    is_terminal,
)
from actors.keys import conversation_key, io_key, reaction_key, typing_key
from actors.ledger import Place as LedgerPlace
from actors.ledger import RestRow, RunRow
from actors.messages import FromClient, SessionDown, SessionUp, Subscription, SubscriptionEnded
from actors.platform_messages import Changed, Release, ShowMark, TypeStop
from actors.presence.policy import Chain
from actors.presence.presented import ack_chain, is_quiet, resting_chain
from actors.presence.reaction import ReactionMachine
from actors.presence.run import NEVER_MS, EndedRun
from actors.presence.runs import Decision, MergeError, TooManyRunsError
from actors.presence.terms import Rank, RunInfo, RunKey, Verdict
from actors.router_state import (
    Adopted,
    AdoptRuns,
    ConversationsLost,
    EndAccount,
    EndAll,
    Entry,
    Idle,
    RouterFailedOn,
    RouterState,
    StartConversation,
)
from actors.runtime import Actor, ActorRef
from protocol import events
from protocol.events import Ack, Rejected, RunEvent

ENDS_AT_A_TIME = 200
FAILS_MAX = 3
"""So often a message of our own side is tried, that the router fails on."""


END_EVENTS: dict[str, type[events.Done | events.Error | events.Cancelled | events.Silent]] = {
    "done": events.Done,
    "error": events.Error,
    "cancelled": events.Cancelled,
    "silent": events.Silent,
}


class RouterActor(Actor):
    """Dispatches events to conversations; see the module's text."""

    mailbox_capacity = 1_000_000
    """Readers pause on the runtime's backlog long before this."""

    def __init__(self, state: RouterState, conversations: ActorRef[Any]) -> None:
        super().__init__()
        self._state = state
        self._runs = state.runs
        self._conversations = conversations

    def on_start(self) -> None:
        self._adopt_runs()
        self._move_deadlines(self._runs.open)
        for place, entry in self._state.conversations.items():
            if entry.waiting is not None:
                self._conversations.tell(StartConversation(entry.state))
            elif entry.open_runs == 0:
                self._watch_idle(place)

    def on_receive(self, message: Any) -> None:
        match message:
            case FromClient():
                self._event(message)
            case RunKey():
                self._carry_out(self._runs.on_deadline(message, self.now_ms))
            case SessionUp(session):
                self._move_deadlines(self._runs.session_up(session))
            case SessionDown(session):
                self._move_deadlines(self._runs.session_down(session, self.now_ms))
            case Concluded(key, verdict):
                self._concluded(key, verdict)
            case Settled(key, not_shown):
                self._settled(key, not_shown)
            case Idle(place):
                self._passivate(place)
            case ConversationStarted(place):
                self._started(place)
            case Passivated(place):
                self._passivated(place)
            case StillBusy(place):
                self._started(place)
            case ConversationsLost():
                self._restart_conversations()
            case ConversationParked(place):
                self._parked(place)
            case TerminalCrashed(info, typing):
                self._terminal_crashed(info, typing)
            case RouterFailedOn(failed):
                self._failed_on(failed)
            case EndAll():
                self._end_all(message)
            case EndAccount(account):
                self._end_runs([key for key in self._runs.open if key.account == account], "account removed")
                self._end_scopes(account)
            case Changed(account, conversation, target):
                self._changed(RunKey(account, conversation, target))
            case AdoptRuns():
                self._move_deadlines(self._adopt_runs())
            case Subscription():
                self._subscribe(message)
            case SubscriptionEnded(_, reply):
                self._state.subscribers.drop(reply)

    # --- events --------------------------------------------------------------------------------------------

    def _event(self, message: FromClient) -> None:
        event = message.event
        if message.repeated and self._is_used(message):
            self._answer(message, "duplicate")
            return
        self._state.counters["events"] += 1
        account = event.account if isinstance(event, (RunEvent, events.Alive)) else None
        if account is None:
            allowed = self._state.accounts if message.accounts is None else tuple(message.accounts)
            if len(allowed) != 1 and isinstance(event, RunEvent):
                self._reject(message, "missing_field", "account", "there are several accounts: name one")
                return
            account = allowed[0] if allowed else ""
        elif account not in self._state.accounts:
            self._reject(message, "unknown_account", "account", f"there is no account {account!r}")
            return
        if self._state.draining:
            self._reject(message, "limit", None, "livesign is shutting down and takes no new events")
            return
        if isinstance(event, (events.TypingStart, events.TypingStop)) and event.scope is not None:
            self._deliver((account, event.conversation), Deliver(None, event))
            self._acknowledge(message, "applied")
            return
        try:
            decision = self._runs.handle(account, event, message.session, self.now_ms, self.clock.wall_ms())
        except MergeError as error:
            self._reject(message, "bad_value", "into", str(error))
            return
        except TooManyRunsError as error:
            self._reject(message, "limit", None, str(error))
            return
        self._carry_out(decision)
        self._acknowledge(message, decision.result)

    def _is_used(self, message: FromClient) -> bool:
        """Whether an event with this id was applied. One that was told before, and refused, was not."""
        event_id = message.event.id
        return event_id is not None and self._state.ledger.has_used(message.session, event_id)

    def _acknowledge(self, message: FromClient, result: Any) -> None:
        if message.event.id is None:
            return
        self._state.ledger.used(message.session, message.event.id)
        self._answer(message, result)

    def _answer(self, message: FromClient, result: Any) -> None:
        """As soon as the ledger holds what the event has done."""
        if message.reply is not None and message.event.id is not None:
            self._state.ledger.after_commit(partial(message.reply, Ack(id=message.event.id, result=result)))

    def _reject(self, message: FromClient, code: Any, name: str | None, detail: str) -> None:
        self._state.counters["rejected"] += 1
        if message.reply is not None:
            message.reply(Rejected(code=code, field=name, detail=detail, id=message.event.id))

    def _carry_out(self, decision: Decision) -> None:
        if decision.opened is not None:
            self._entry(decision.opened.key[:2]).open_runs += 1
            self._state.ledger.opened(self._row(decision))
            if decision.opened.message is not None:
                self._state.ledger.rest(LedgerPlace(*decision.opened.key[:2], decision.opened.message), None)
        if decision.taken_over is not None:
            self._tell_reaction(TakenOver(decision.taken_over))
        for info, event in decision.deliveries:
            if isinstance(event, events.Clear | events.Restore):
                self._rests_otherwise(info, event)
            self._deliver(info.key[:2], Deliver(info, event))
        watched = self._state.subscribers.any
        for key in decision.touched:
            run = self._runs.open.get(key)
            if run is not None:
                self._arm(key, run.deadline_ms())
                if watched:
                    self._state.subscribers.tell(run)
        if decision.left is not None:
            self._tell_reaction(LetBe(decision.left))
        for key in decision.ended:
            self._ended(key)

    def _ended(self, key: RunKey) -> None:
        self.cancel(key)
        place = key[:2]
        entry = self._state.conversations.get(place)
        if entry is not None:
            entry.open_runs -= 1
            if entry.open_runs == 0:
                self._watch_idle(place)
        ended = self._runs.ended[key.account].get(key)
        if ended is not None:
            self._rests(ended)  # before the run is known as ended: then nobody else would show it
            self._state.ledger.ended(key, ended.outcome, ended.reason, self.clock.wall_ms())
        self._tell_ended(ended)
        self._stop_orphaned_typing(key)

    def _rests(self, ended: EndedRun) -> None:
        """Note what stays on its message, for the case that this process does not live to show it."""
        if ended.settling:
            quiet, delayed = self._hushed(ended)
            self._note_rest(ended.info, resting_chain(ended.info, ended.outcome, quiet=quiet, delayed=delayed))

    def _rests_otherwise(self, info: RunInfo, event: events.Clear | events.Restore) -> None:
        """A client has changed its mind after the end."""
        ended = self._runs.ended.get(info.key.account, {}).get(info.key)
        if ended is not None and ended.settling and self._runs.owns_marks(info):
            quiet, delayed = self._hushed(ended)
            restored = isinstance(event, events.Restore)
            self._note_rest(info, ack_chain(info, quiet=quiet, delayed=delayed) if restored else None)

    def _hushed(self, ended: EndedRun) -> tuple[bool, bool]:
        """Whether these are quiet hours, and whether it is too early for any mark."""
        status = ended.info.policy.status
        quiet = status.quiet_minutes is not None and is_quiet(status, local_minute(self.clock.wall_ms()))
        return quiet, self.now_ms < ended.opened_ms + status.start_delay_ms

    def _note_rest(self, info: RunInfo, chain: Chain | None) -> None:
        """Where another run has ended on the message since, that one decides."""
        if info.message is None:
            return
        ledger, place = self._state.ledger, LedgerPlace(info.key.account, info.key.conversation, info.message)
        held = ledger.resting(place)
        if held is None or held.run == info.key.run:
            ledger.rest(place, None if chain is None else RestRow(info.key.run, chain))

    def _tell_ended(self, ended: EndedRun | None) -> None:
        """It has ended, or more is known of its end."""
        if ended is None:
            return
        if self._state.on_ended is not None:
            self._state.on_ended(ended)
        if self._state.subscribers.any:
            self._state.subscribers.tell(ended)

    def _move_deadlines(self, keys: Iterable[RunKey]) -> None:
        for key in keys:
            self._arm(key, self._runs.deadline_ms(key))

    def _arm(self, key: RunKey, deadline_ms: int) -> None:
        if deadline_ms == NEVER_MS:
            self.cancel(key)
        else:
            self.schedule_at(deadline_ms, key, key=key)

    def _settled(self, key: RunKey, not_shown: bool) -> None:
        self._runs.settled(key, not_shown=not_shown)
        if not_shown:
            self._tell_ended(self._runs.ended.get(key.account, {}).get(key))

    def _concluded(self, key: RunKey, verdict: Verdict) -> None:
        ended = self._runs.ended.get(key.account, {}).get(key)
        if ended is not None:
            ended.verdict = verdict
            self._tell_ended(ended)

    # --- subscribers -----------------------------------------------------------------------------------------

    def _subscribe(self, subscription: Subscription) -> None:
        event = subscription.event
        if event.account is not None and event.account not in self._state.accounts:
            rejected = Rejected(
                code="unknown_account",
                field="account",
                detail=f"there is no account {event.account!r}",
                id=event.id,
            )
            subscription.reply(rejected)
            return
        self._state.subscribers.add(subscription)
        if event.id is not None:
            subscription.reply(Ack(id=event.id, result="applied"))
        for run in self._runs.open.values():
            self._state.subscribers.tell(run, subscription)

    def _changed(self, slot: RunKey) -> None:
        """Marks on a message (``slot.run``: the message), or typing of a conversation (empty), have changed."""
        if not self._state.subscribers.any:
            return
        if not slot.run:
            for run in self._runs.open_in(*slot[:2]):
                self._state.subscribers.tell(run)
            return
        key = self._runs.owner(slot)
        found = self._runs.open.get(key) or self._runs.ended.get(key.account, {}).get(key)
        if found is not None:
            self._state.subscribers.tell(found)

    def _row(self, decision: Decision) -> RunRow:
        assert decision.opened is not None
        run = self._runs.open.get(decision.opened.key)
        received = next((e for _, e in decision.deliveries if isinstance(e, events.Received)), None)
        return RunRow(
            decision.opened,
            run.lease_ms if run is not None else 0,
            run is not None and run.events_only,
            received.direct if received is not None else None,
            received.mentioned if received is not None else None,
            received.kind if received is not None else None,
            self.clock.wall_ms(),
        )

    def _adopt_runs(self) -> list[RunKey]:
        adopted, self._state.adopted = self._state.adopted, []
        for run in adopted:
            self._adopt(run)
        return [run.info.key for run in adopted]

    def _adopt(self, adopted: Adopted) -> None:
        info = adopted.info
        entry = self._entry(info.key[:2])
        entry.open_runs += 1
        if adopted.emoji is not None and info.message is not None:
            machine = entry.state.reactions[info.key.run] = ReactionMachine(info)
            machine.adopt((adopted.emoji,))
            entry.state.owners[info.message] = info.key.run

    def _tell_reaction(self, message: LetBe | TakenOver) -> None:
        """What is about marks only, and about those that are there."""
        entry = self._state.conversations.get(message.info.key[:2])
        if entry is not None and entry.waiting is not None:
            entry.waiting.append(message)
        elif entry is not None:
            self._hand_over(entry, message)

    def _stop_orphaned_typing(self, key: RunKey) -> None:
        """A run of an earlier process has ended before any machine knew of the typing that was left on."""
        ended = self._runs.ended[key.account].get(key)
        entry = self._state.conversations.get(key[:2])
        if ended is None or entry is None:
            return
        info = ended.info
        thread = info.thread if info.policy.typing.in_threads else None
        machine = entry.state.typing.get(thread)
        if machine is None or not machine.active:
            entry.state.io.tell(TypeStop(key.conversation, thread))

    # --- conversations ---------------------------------------------------------------------------------------

    def _entry(self, place: Place) -> Entry:
        entry = self._state.conversations.get(place)
        if entry is None:
            account, conversation = place
            io = self.runtime.lookup(io_key(account))
            assert io is not None
            policy = self._state.policy_for(account, conversation, None, None, None)
            state = Conversation(account, conversation, policy, io, self.actor_ref, self._state.wants_verdicts)
            entry = self._state.conversations[place] = Entry(state)
            self._conversations.tell(StartConversation(entry.state))
        return entry

    def _deliver(self, place: Place, delivery: Deliver) -> None:
        entry = self._entry(place)
        if entry.waiting is not None:
            entry.waiting.append(delivery)
        else:
            self._hand_over(entry, delivery)
        if entry.open_runs == 0:
            self._watch_idle(place)

    def _hand_over(self, entry: Entry, delivery: Deliver | LetBe | TakenOver) -> None:
        info = delivery.info
        assert entry.reaction is not None
        assert entry.typing is not None
        try:
            if isinstance(delivery, LetBe | TakenOver):
                entry.reaction.tell(delivery)
                return
            if info is not None and info.message is not None and (info.ack_allowed or info.status_allowed):
                entry.reaction.tell(delivery)
            entry.typing.tell(delivery)
        except ActorDeadError:
            # Their supervisor is being restarted, or the conversation is about to be parked: it will say so.
            entry.waiting = [delivery]

    def _started(self, place: Place) -> None:
        entry = self._state.conversations.get(place)
        if entry is None:  # it was given up meanwhile
            ref = self.runtime.lookup(conversation_key(*place))
            if ref is not None:
                ref.tell(PassivateIfIdle())
            return
        reaction, typing = self.runtime.lookup(reaction_key(*place)), self.runtime.lookup(typing_key(*place))
        if reaction is None or typing is None:
            return
        entry.reaction, entry.typing = reaction, typing
        entry.given_up = False
        waiting, entry.waiting = entry.waiting or (), None
        for delivery in waiting:
            self._hand_over(entry, delivery)
        self._tell_ends(entry)
        if entry.open_runs == 0:
            self._watch_idle(place)

    def _tell_ends(self, entry: Entry) -> None:
        """What was told of the end of a run may have been lost with the actors."""
        account, conversation = entry.state.account, entry.state.conversation
        known = self._runs.ended.get(account, {})
        for key in entry.state.open_runs:
            ended = known.get(key)
            if ended is not None:
                end = END_EVENTS[ended.outcome](conversation=conversation)
                self._deliver((account, conversation), Deliver(ended.info, end, again=True))

    def _watch_idle(self, place: Place) -> None:
        if self._state.idle_ms:
            self.schedule(self._state.idle_ms, Idle(place), key=place)

    def _passivate(self, place: Place) -> None:
        entry = self._state.conversations.get(place)
        ref = self.runtime.lookup(conversation_key(*place))
        if entry is None or entry.open_runs or entry.waiting is not None or ref is None:
            return
        entry.waiting = []
        ref.tell(PassivateIfIdle())

    def _passivated(self, place: Place) -> None:
        entry = self._state.conversations.get(place)
        if entry is None:
            return
        if entry.waiting or entry.open_runs:
            entry.reaction = entry.typing = None
            entry.waiting = entry.waiting or []
            self._conversations.tell(StartConversation(entry.state))
        else:
            del self._state.conversations[place]

    # --- faults ----------------------------------------------------------------------------------------------

    def _parked(self, place: Place) -> None:
        """End the runs of a conversation that cannot be kept running; if that fails too, clean up without it."""
        entry = self._state.conversations.get(place)
        if entry is None:
            return
        self._state.counters["parked"] += 1
        if entry.open_runs == 0 and (entry.given_up or not entry.waiting):
            self._clean_up(entry)
            self._give_up_rests(entry)
            del self._state.conversations[place]
            return
        self._give_up_rests(entry)
        entry.given_up = True
        entry.waiting = []
        self._conversations.tell(StartConversation(entry.state))
        self._tell_ends(entry)
        for run in list(self._runs.open_in(*place)):
            end = events.Error(conversation=place[1], reason="gave_up")
            self._carry_out(self._runs.end(run.key, end, self.now_ms))

    def _restart_conversations(self) -> None:
        for entry in self._state.conversations.values():
            if entry.waiting is None:
                entry.waiting = []
            self._conversations.tell(StartConversation(entry.state))

    def _clean_up(self, entry: Entry) -> None:
        state = entry.state
        for message, run in state.owners.items():
            state.io.tell(ShowMark(state.conversation, message, (), Rank.TERMINAL))
            state.io.tell(Release(state.conversation, message, run))
        for thread in state.typing:
            state.io.tell(TypeStop(state.conversation, thread))
        state.forget()  # actors that are about to start have nothing to tell again

    def _give_up_rests(self, entry: Entry) -> None:
        """Where no machine is left that would bring a message to rest, nobody tries."""
        place = (entry.state.account, entry.state.conversation)
        for info in self._runs.settling():
            if info.key[:2] == place and info.key.run not in entry.state.reactions:
                self._note_rest(info, None)

    def _terminal_crashed(self, info: RunInfo, typing: bool) -> None:
        ended = self._runs.crashed_terminal(info.key)
        if ended is not None:
            self._tell_ended(ended)
            if not typing:
                self._rests(ended)
            end = events.Error(conversation=info.key.conversation, reason="crashed_terminal")
            self._deliver(info.key[:2], Deliver(info, end, again=typing))

    def _failed_on(self, message: Any) -> None:
        """Make good for it. A terminal still ends its run; another event is refused, so that its client may send it
        again; what the router's own side has told it is taken in once more."""
        fails = 1
        while isinstance(message, RouterFailedOn):
            message, fails = message.message, fails + 1
        if not isinstance(message, FromClient):
            # A conversation of whose end it has not heard was started again with the router.
            if fails <= FAILS_MAX and not isinstance(message, Passivated):
                self.on_receive(message)
        elif self._is_used(message):  # it came again meanwhile, and went well
            self._answer(message, "duplicate")
        elif fails == 1 and (is_terminal(message.event) or isinstance(message.event, events.Clear)):
            self._crashed_terminal(message)
        else:
            self._reject(message, "limit", None, "livesign failed on this event and has not applied it: send it again")

    def _crashed_terminal(self, message: FromClient) -> None:
        event = message.event
        assert isinstance(event, RunEvent)
        account = event.account or (self._state.accounts[0] if len(self._state.accounts) == 1 else "")
        key = RunKey(account, event.conversation, event.run or event.message or "")
        if key not in self._runs.open:
            self._event(message)
            return
        end = events.Error(conversation=event.conversation, reason="crashed_terminal")
        self._carry_out(self._runs.end(key, end, self.now_ms))
        self._acknowledge(message, "applied")

    def _end_all(self, message: EndAll) -> None:
        """End what is open, some at a time, and take away the final marks that are still held."""
        if self._state.draining:
            self._end_some(message)
            return
        self._state.draining = True
        for info in self._runs.settling():
            clear = events.Clear(conversation=info.key.conversation)
            self._rests_otherwise(info, clear)
            self._deliver(info.key[:2], Deliver(info, clear))
        self._end_scopes(None)
        self._end_some(message)

    def _end_some(self, message: EndAll) -> None:
        """Others have their turn in between: a budget of time is no good while nobody looks at the clock."""
        self._end_runs(list(islice(self._runs.open, ENDS_AT_A_TIME)), message.reason)
        if self._runs.open:
            self.actor_ref.tell(message)

    def _end_scopes(self, account: str | None) -> None:
        """Stop the bare indicators of an account (None: of all)."""
        for place, entry in list(self._state.conversations.items()):
            if account not in (None, place[0]):
                continue
            for thread, machine in list(entry.state.typing.items()):
                for scope in machine.scopes:
                    stop = events.TypingStop(conversation=place[1], thread=thread, scope=scope)
                    self._deliver(place, Deliver(None, stop))

    def _end_runs(self, keys: list[RunKey], reason: str) -> None:
        for key in keys:
            end = events.Cancelled(conversation=key.conversation, reason=reason)
            self._carry_out(self._runs.end(key, end, self.now_ms))
