"""The run table: which runs are open, who holds them, and which end was the first.

Rules (design §5, opening and ending; lease):

1. ``received``, phase events and ``progress`` open an unknown run. Anything else for an unknown run is ``unknown``,
   anything for an ended run is ``late``; both change nothing. ``received`` of a known message is a ``duplicate``: its
   sender takes the lease.
2. Every session that sends an event for a run holds it. `Run` says when a run's time is over.
3. The first terminal wins. ``done`` waits for open children; the other terminals do not. ``clear`` before the end is
   a cancelled run. Livesign's own ends take the same path.
4. A run merged into another ends with it, in the same way. A run cannot be merged into itself, a follower of itself,
   or something that is not open.
5. The newest run of a message owns its marks.

The table decides *that* a run goes on or ends; `Decision.deliveries` are the events the two machines are to see.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from actors.presence.ack import gate_allows, too_old
from actors.presence.policy import Policy
from actors.presence.run import NEVER_MS, EndedRun, Run
from actors.presence.terms import RunInfo, RunKey
from protocol import events
from protocol.events import Event, RunEvent

Result: TypeAlias = Literal["applied", "duplicate", "late", "unknown"]
PolicyFor: TypeAlias = Callable[[str, str, bool | None, bool | None, str | None], Policy]
"""(account, conversation, direct, mentioned, kind) to the settings of a run that opens there."""

ENDED_KEPT_MS = 24 * 3_600_000
ENDED_MAX = 100_000
SENT_GRACE_MS = 10_000

OPENING = (
    events.Received, events.Queued, events.Waiting, events.Thinking, events.Tool, events.Compacting, events.Text,
    events.Progress,
)  # fmt: skip
PHASES = {
    events.Queued: "queued",
    events.Waiting: "waiting",
    events.Thinking: "thinking",
    events.Tool: "tool",
    events.Compacting: "compacting",
    events.Text: "thinking",
}
_OUTCOMES = {
    events.Done: "done",
    events.Error: "error",
    events.Cancelled: "cancelled",
    events.Silent: "silent",
}
Terminal: TypeAlias = events.Done | events.Error | events.Cancelled | events.Silent


class TooManyRunsError(ValueError):
    """The session holds as many open runs as it may. Nothing was changed."""


class MergeError(ValueError):
    """A ``merged`` names a run that is unknown, ended, or itself. Nothing was changed."""


@dataclass(slots=True)
class Decision:
    """What an event did. ``touched``: runs whose deadline may have moved; ``ended``: runs that are over now."""

    result: Result = "applied"
    deliveries: list[tuple[RunInfo, Event]] = field(default_factory=list)
    touched: list[RunKey] = field(default_factory=list)
    ended: list[RunKey] = field(default_factory=list)
    opened: RunInfo | None = None
    taken_over: RunInfo | None = None
    """A run that an earlier process had left, and that has a client again."""
    left: RunInfo | None = None
    """A run that ended without anybody to tell: its marks stay as they are."""


class RunTable:
    """All runs of all accounts; plain data that outlives the actors."""

    __slots__ = (
        "_by_message",
        "_connected",
        "_ended_order",
        "_policy_for",
        "_sessions",
        "counters",
        "ended",
        "open",
        "session_max",
    )

    def __init__(self, policy_for: PolicyFor, session_max: int = 0) -> None:
        """``session_max``: open runs that one session may hold; 0: any number."""
        self._policy_for = policy_for
        self.session_max = session_max
        self.open: dict[RunKey, Run] = {}
        self.ended: dict[str, dict[RunKey, EndedRun]] = {}
        self._ended_order: dict[str, deque[RunKey]] = {}
        self._by_message: dict[RunKey, RunKey] = {}
        self._sessions: dict[str, dict[RunKey, None]] = {}
        """The runs that each session holds, in the order in which it came to hold them."""
        self._connected: set[str] = set()
        self.counters: dict[str, int] = dict.fromkeys(
            (
                "late_events",
                "duplicate_messages",
                "unknown_events",
                "leases_expired",
                "runs_opened",
                "runs_ended",
            ),
            0,
        )

    def use_policies(self, policy_for: PolicyFor) -> None:
        """Runs that open from now on get their settings here; open runs keep theirs."""
        self._policy_for = policy_for

    # --- events --------------------------------------------------------------------------------------------

    def handle(self, account: str, event: Event, session: str, now_ms: int, wall_ms: int) -> Decision:
        """Apply one run event of ``account``.

        Raises `MergeError` for a bad ``merged``, `TooManyRunsError` for a run too many; then nothing has changed.
        """
        assert isinstance(event, RunEvent | events.Alive)
        if event.conversation is None or (event.run is None and event.message is None):
            return self._all_alive(event, session, now_ms)
        key = RunKey(account, event.conversation, event.run or event.message or "")
        run = self.open.get(key)
        if run is None and type(event) is events.Received and event.run is None:
            run = self.open.get(self._by_message.get(key, key))
        if run is not None:
            return self._known(run, event, session, now_ms)
        ended = self.ended.get(account, {}).get(key)
        if ended is not None:
            return self._late(ended, event, now_ms)
        if not isinstance(event, OPENING):
            self.counters["unknown_events"] += 1
            return Decision("unknown")
        if self.session_max and len(self._sessions.get(session, ())) >= self.session_max:
            raise TooManyRunsError(f"this session has {self.session_max} open runs, which is the limit")
        return self._open(key, event, session, now_ms, wall_ms)

    def _open(self, key: RunKey, event: RunEvent, session: str, now_ms: int, wall_ms: int) -> Decision:
        received = event if isinstance(event, events.Received) else None
        policy = self._policy_for(
            key.account,
            key.conversation,
            received.direct if received else None,
            received.mentioned if received else None,
            received.kind if received else None,
        )
        ack, status = _gate(received, policy, wall_ms)
        info = RunInfo(key, event.message, event.thread, policy, ack, status, received is not None and received.forum)
        lease_ms = policy.lease.ms if event.lease_ms is None else event.lease_ms
        run = self.open[key] = Run(info, now_ms, lease_ms, event.lease_ms is not None, now_ms)
        if event.message is not None:
            self._by_message[RunKey(key.account, key.conversation, event.message)] = key
        self.counters["runs_opened"] += 1
        self._hold(run, session)
        decision = Decision(opened=info)
        self._apply(run, event, now_ms, decision)
        return decision

    def _known(self, run: Run, event: RunEvent | events.Alive, session: str, now_ms: int) -> Decision:
        if isinstance(event, events.Merged):
            self._check_merge(run, event)
        self._hold(run, session)
        run.last_event_ms = now_ms
        decision = Decision(taken_over=run.info if run.adopt_until_ms else None)
        run.adopt_until_ms = 0
        if isinstance(event, events.Received):
            self.counters["duplicate_messages"] += 1
            decision.result = "duplicate"
            decision.touched.append(run.key)
            return decision
        if isinstance(event, events.TERMINAL_EVENTS) and run.done is not None and not _is_lane_error(event):
            decision.result = "late"
            self.counters["late_events"] += 1
            return decision
        self._apply(run, event, now_ms, decision)
        return decision

    def _apply(self, run: Run, event: RunEvent | events.Alive, now_ms: int, decision: Decision) -> None:
        kind = type(event)
        phase = PHASES.get(kind)
        if phase is not None:
            run.phase = phase
            run.final_sent_ms = None
            on_user = isinstance(event, events.Waiting) and event.on == "user"
            run.waiting_since_ms = now_ms if on_user else None
        elif isinstance(event, events.Child):
            limit_ms = run.info.policy.lease.child_max_ms
            run.children = run.children or {}
            run.children[event.child] = now_ms + (limit_ms if event.max_ms is None else min(event.max_ms, limit_ms))
        elif isinstance(event, events.ChildEnd):
            if run.children is not None and run.children.pop(event.child, None) is not None and not event.ok:
                run.child_failed = True
        elif isinstance(event, events.Merged):
            self._leave(run)
            into = self.open[RunKey(run.key.account, run.key.conversation, event.into)]
            run.merged_into = into.key
            into.followers = [*(into.followers or ()), run.key]
        elif isinstance(event, events.Sending):
            run.sending = True
        elif isinstance(event, events.Sent):
            run.sending = False
            if event.final and event.ok:
                run.final_sent_ms = now_ms
        elif isinstance(event, events.Clear):
            self._end(run, events.Cancelled(conversation=run.key.conversation, reason="cleared"), now_ms, decision)
            return
        elif isinstance(event, events.Done):
            run.done = event
            if not run.children:
                self._finish_done(run, now_ms, decision)
            else:
                decision.touched.append(run.key)
            return
        elif isinstance(event, events.TERMINAL_EVENTS) and not _is_lane_error(event):
            self._end(run, event, now_ms, decision)
            return
        decision.deliveries.append((run.info, event))
        decision.touched.append(run.key)
        if run.done is not None and not run.children:
            self._finish_done(run, now_ms, decision)

    def _leave(self, run: Run) -> None:
        """It follows nobody any more."""
        into = self.open.get(run.merged_into) if run.merged_into is not None else None
        if into is not None and into.followers is not None:
            into.followers.remove(run.key)
        run.merged_into = None

    def _finish_done(self, run: Run, now_ms: int, decision: Decision) -> None:
        assert run.done is not None
        end: Terminal = run.done
        if run.child_failed:
            end = events.Error(conversation=run.key.conversation, reason="child_failed")
        self._end(run, end, now_ms, decision)

    def _late(self, ended: EndedRun, event: RunEvent | events.Alive, now_ms: int) -> Decision:
        settling = ended.settling and isinstance(event, events.Clear | events.Restore)
        if settling or (isinstance(event, events.Sent) and now_ms < ended.sending_until_ms):
            ended.sending_until_ms = 0 if isinstance(event, events.Sent) else ended.sending_until_ms
            return Decision(deliveries=[(ended.info, event)])
        if isinstance(event, events.Received):
            self.counters["duplicate_messages"] += 1
            return Decision("duplicate")
        self.counters["late_events"] += 1
        return Decision("late")

    def _all_alive(self, event: RunEvent | events.Alive, session: str, now_ms: int) -> Decision:
        decision = Decision()
        for key in self._sessions.get(session, ()):
            run = self.open[key]
            run.last_event_ms = now_ms
            decision.deliveries.append((run.info, event))
            decision.touched.append(key)
        return decision

    def _check_merge(self, run: Run, event: events.Merged) -> None:
        target = RunKey(run.key.account, run.key.conversation, event.into)
        if target not in self.open:
            raise MergeError(f"the run {event.into!r} is not open in this conversation")
        while target is not None and target in self.open:
            if target == run.key:
                raise MergeError(f"the run {event.into!r} already follows this one")
            target = self.open[target].merged_into  # type: ignore[assignment]

    # --- ends ----------------------------------------------------------------------------------------------

    def _end(self, run: Run, event: Terminal, now_ms: int, decision: Decision) -> None:
        """The one teardown: every end of a run, sent or not, comes through here."""
        key = run.key
        del self.open[key]
        for session in run.holders:
            held = self._sessions.get(session)
            if held is not None:
                held.pop(key, None)
                if not held:
                    del self._sessions[session]
        info = run.info
        settling = False
        if info.message is not None:
            slot = RunKey(key.account, key.conversation, info.message)
            settling = self._by_message.get(slot) == key
            if settling:
                del self._by_message[slot]
        settling = settling and (info.ack_allowed or info.status_allowed)
        sending_until_ms = now_ms + SENT_GRACE_MS if run.sending else 0
        self._remember(
            EndedRun(info, _OUTCOMES[type(event)], event.reason, run.opened_ms, now_ms, settling, sending_until_ms),
            now_ms,
        )
        self.counters["runs_ended"] += 1
        decision.deliveries.append((info, event))
        decision.ended.append(key)
        self._leave(run)
        for follower in run.followers or ():
            if follower in self.open:
                follow = self.open[follower]
                follow.merged_into = None
                self._end(follow, event, now_ms, decision)

    def end(self, key: RunKey, event: Terminal, now_ms: int) -> Decision:
        """End a run for a reason of livesign's own. Nothing happens if it is not open."""
        decision = Decision("late")
        run = self.open.get(key)
        if run is not None:
            decision.result = "applied"
            self._end(run, event, now_ms, decision)
        return decision

    def adopt(self, info: RunInfo, lease_ms: int, events_only: bool, age_ms: int, now_ms: int) -> None:
        """An earlier process has left this run open, ``age_ms`` old: any event of it takes it over within
        ``lease.adopt_ms``."""
        run = self.open[info.key] = Run(info, now_ms - age_ms, lease_ms, events_only, now_ms)
        run.adopt_until_ms = now_ms + max(1, info.policy.lease.adopt_ms)
        if info.message is not None:
            self._by_message[RunKey(info.key.account, info.key.conversation, info.message)] = info.key

    def adopt_ended(self, key: RunKey, outcome: str, reason: str | None, policy: Policy, now_ms: int) -> None:
        """An earlier process has seen the end of this run: nothing revives it."""
        info = RunInfo(key, None, None, policy, ack_allowed=False, status_allowed=False)
        self._remember(EndedRun(info, outcome, reason, now_ms, now_ms, settling=False), now_ms)

    def crashed_terminal(self, key: RunKey) -> EndedRun | None:
        """The actor that was to show this end failed on it: the run counts as an error."""
        ended = self.ended.get(key.account, {}).get(key)
        if ended is not None and ended.reason != "gave_up":
            ended.outcome, ended.reason = "error", "crashed_terminal"
        return ended

    def settled(self, key: RunKey, *, not_shown: bool) -> None:
        """The marks of an ended run are at rest; ``not_shown``: its final mark never showed."""
        ended = self.ended.get(key.account, {}).get(key)
        if ended is not None:
            ended.settling = False
            if not_shown:
                ended.reason = "not_shown"

    def on_deadline(self, key: RunKey, now_ms: int) -> Decision:
        """Look at a run whose `Run.deadline_ms` has come; early or needless calls do nothing."""
        decision = Decision()
        run = self.open.get(key)
        if run is None:
            return decision
        conversation = key.conversation
        if run.adopt_until_ms and now_ms >= run.adopt_until_ms:
            self._end(run, _recovered(run), now_ms, decision)
            if run.info.policy.recovery_marks == "leave":
                decision.deliveries = [each for each in decision.deliveries if each[0] is not run.info]
                decision.left = run.info
        elif now_ms >= run.run_max_deadline_ms():
            self._end(run, events.Error(conversation=conversation, reason="run_max"), now_ms, decision)
        elif now_ms >= run.lease_deadline_ms():
            self.counters["leases_expired"] += 1
            self._end(run, events.Error(conversation=conversation, reason="lease_expired"), now_ms, decision)
        elif now_ms >= run.wait_deadline_ms():
            self._end(run, events.Cancelled(conversation=conversation, reason="wait_max"), now_ms, decision)
        else:
            if run.children:
                run.children = {child: at_ms for child, at_ms in run.children.items() if at_ms > now_ms}
            if now_ms >= run.final_deadline_ms():
                run.done = run.done or events.Done(conversation=conversation, reason="final_sent")
                run.final_sent_ms = None
            if run.done is not None and not run.children:
                self._finish_done(run, now_ms, decision)
            else:
                decision.touched.append(key)
        return decision

    def _remember(self, ended: EndedRun, now_ms: int) -> None:
        account = ended.info.key.account
        kept = self.ended.setdefault(account, {})
        order = self._ended_order.setdefault(account, deque())
        kept[ended.info.key] = ended
        order.append(ended.info.key)
        while len(order) > ENDED_MAX or now_ms - kept[order[0]].ended_ms > ENDED_KEPT_MS:
            del kept[order.popleft()]

    # --- sessions ------------------------------------------------------------------------------------------

    def _hold(self, run: Run, session: str) -> None:
        if session in run.holders:
            return
        run.holders = (*run.holders, session)
        run.connected += session in self._connected
        self._sessions.setdefault(session, {})[run.key] = None

    def session_up(self, session: str) -> list[RunKey]:
        """A client is connected (again). Returns the runs whose deadline moved."""
        if session in self._connected:
            return []
        self._connected.add(session)
        keys = list(self._sessions.get(session, ()))
        for key in keys:
            self.open[key].connected += 1
        return keys

    def session_down(self, session: str, now_ms: int) -> list[RunKey]:
        """A client is gone: the leases of its runs begin to count. Returns the runs whose deadline moved."""
        if session not in self._connected:
            return []
        self._connected.discard(session)
        keys = list(self._sessions.get(session, ()))
        for key in keys:
            run = self.open[key]
            run.connected -= 1
            run.held_until_ms = now_ms
        return keys

    # --- questions -----------------------------------------------------------------------------------------

    def deadline_ms(self, key: RunKey) -> int:
        run = self.open.get(key)
        return NEVER_MS if run is None else run.deadline_ms()

    def owns_marks(self, info: RunInfo) -> bool:
        """Whether this run is the newest of its message."""
        if info.message is None:
            return False
        slot = RunKey(info.key.account, info.key.conversation, info.message)
        return self._by_message.get(slot, info.key) == info.key

    def settling(self) -> list[RunInfo]:
        """Ended runs whose marks are not yet at rest. Walks all that is remembered: for rare events only."""
        kept = (ended for account in self.ended.values() for ended in account.values())
        return [ended.info for ended in kept if ended.settling]

    def owner(self, slot: RunKey) -> RunKey:
        """The run that owns the marks of a message (``slot.run``: the message)."""
        return self._by_message.get(slot, slot)

    def open_in(self, account: str, conversation: str) -> Iterator[Run]:
        """Open runs of one conversation. Walks the whole table: for rare events only."""
        return (run for key, run in self.open.items() if key[:2] == (account, conversation))


def _gate(received: events.Received | None, policy: Policy, wall_ms: int) -> tuple[bool, bool]:
    """Whether the ack and the status marks may show."""
    if received is None:
        return False, policy.status.enabled
    if received.from_bot and not policy.ack.from_bots:
        return False, False
    if received.sent_at_ms is not None and too_old(received.sent_at_ms, wall_ms, policy.ack.max_age_ms):
        return False, False
    allowed = gate_allows(received, policy.ack)
    return allowed, policy.status.enabled and (allowed or policy.status.gate == "none")


def _recovered(run: Run) -> Terminal:
    """How a run ends that nobody has taken over."""
    kind = events.Error if run.info.policy.recovery_marks == "error" else events.Cancelled
    return kind(conversation=run.key.conversation, reason="recovered")


def _is_lane_error(event: Event) -> bool:
    return isinstance(event, events.Error) and event.scope == "lane"
