"""A client's side of a session, without socket, thread or clock: what it has to say, and what answers mean.

After each connect: hello, then (once welcome) the subscriptions, what still holds of open runs (`OpenRuns`), and everything
that was not acknowledged (`Outbox`), in order. Whoever uses this sees to it that only one thread does at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from weakref import WeakKeyDictionary, WeakValueDictionary

from protocol.client.open_runs import OpenRuns
from protocol.client.outbox import Outbox
from protocol.client.outcome import NOT_FOLLOWED, RunOutcome
from protocol.client.run_handle import RunHandle
from protocol.codec import encode, normalise
from protocol.events import (
    TERMINAL_EVENTS,
    Ack,
    Closing,
    Event,
    Gap,
    Hello,
    Pong,
    Rejected,
    Reply,
    RunEvent,
    State,
    StatsReply,
    Subscribe,
    Welcome,
)

__all__ = ["Core"]

log = logging.getLogger("livesign.client")

OnState = Callable[[State], object]
_ENDS = ("done", "error", "cancelled", "silent")


class Followed:
    """What is known, by states, of the end of one run."""

    __slots__ = ("__weakref__", "outcome")

    def __init__(self) -> None:
        self.outcome = RunOutcome("open", final=False)

    def take(self, state: State) -> None:
        """The run's present state."""
        if state.phase in _ENDS:
            reason = None if state.reason == "not_shown" else state.reason  # the problem says it better
            self.outcome = RunOutcome(state.phase, reason, state.mark, state.problem, state.final)


class Core:
    """One session. ``capacity``: events that may wait."""

    def __init__(self, hello: Hello, capacity: int) -> None:
        self.hello = encode(normalise(hello))
        self.outbox = Outbox(capacity)
        self.open_runs = OpenRuns()
        self.welcome: Welcome | None = None
        """None: there is no good connection."""
        self.counters: dict[str, int] = {}
        """Of the last `StatsReply`."""
        self.last_error: str | None = None
        """Why there is no connection, or was none."""
        self.answers: dict[str, Ack | Rejected | None] = {}
        """Of the events that somebody waits for."""
        self._subscriptions: list[tuple[Subscribe, OnState]] = []
        self._first = bytearray()
        """What goes out before the events that wait."""
        self._anew = False
        """The subscriptions are to be sent again, for states were lost."""
        self._follows = False
        self._followed: WeakValueDictionary[tuple[str, str], Followed] = WeakValueDictionary()
        self._of_handle: WeakKeyDictionary[RunHandle, Followed] = WeakKeyDictionary()

    # --- for the program -----------------------------------------------------------------------------------

    def add(self, event: Event) -> str:
        """An event to send; returns its id. Raises `OutboxFullError`."""
        return self.outbox.add(event)

    def subscribe(self, subscription: Subscribe, on_state: OnState) -> None:
        """Have ``on_state`` called with what shows, now and after each connect."""
        self._subscriptions.append((subscription, on_state))
        if self.welcome is not None:
            self._first += encode(subscription)

    def follow(self) -> None:
        """Follow what shows of the runs that are opened here, so that their outcome is known."""
        self._follows = True
        self._subscriptions.append((Subscribe(), _ignore))

    def made(self, run: RunHandle) -> None:
        """A run handle was made here."""
        if not self._follows:
            return
        key = run.conversation, run.name
        known = self._followed.get(key)
        if known is not None and known.outcome.outcome != "open":
            late = self._of_handle[run] = Followed()
            late.outcome = RunOutcome(known.outcome.outcome, known.outcome.reason, problem="ended_before")
        else:
            self._followed[key] = self._of_handle[run] = known or Followed()

    def followed(self, run: RunHandle) -> Followed | None:
        """What is known of this run by states; None: it is not followed."""
        return self._of_handle.get(run)

    # --- for the connection --------------------------------------------------------------------------------

    def begin(self) -> bytes:
        """There is a new connection; what is said first."""
        self.welcome = None
        self._anew = False
        self._first.clear()
        self.outbox.begin_again()
        return self.hello

    def take(self, max_bytes: int) -> bytes:
        """What to send next, about ``max_bytes``; nothing before the welcome."""
        if self.welcome is None:
            return b""
        if self._anew:
            self._anew = False
            self._subscribe_all()
        if self._first:
            first = bytes(self._first)
            self._first.clear()
            return first
        return self.outbox.take(max_bytes)

    def lost(self, reason: str) -> bool:
        """The connection is gone, or there was none; returns whether it had been a good one."""
        if reason != self.last_error:
            log.warning("no connection to livesign: %s", reason)
        was_good = self.welcome is not None
        self.welcome = None
        self.last_error = reason
        return was_good

    def heard(self, reply: Reply) -> None:
        """A reply. Raises ConnectionError for the last one. A `State` is also to be given to `listeners`."""
        match reply:
            case Ack() | Rejected():
                self._settle(reply)
            case Welcome():
                self._welcomed(reply)
            case State():
                followed = self._followed.get((reply.conversation, reply.run))
                if followed is not None:
                    followed.take(reply)
            case Gap():
                log.warning("%d states were lost, because they were not read in time", reply.dropped)
                self._anew = True  # once, however many are told
            case StatsReply():
                self.counters = reply.counters
            case Closing():
                raise ConnectionError(reply.reason)
            case Pong():
                pass

    def _welcomed(self, welcome: Welcome) -> None:
        if self.welcome is not None:
            return
        self.welcome = welcome
        self.last_error = None
        self._subscribe_all()
        self._first += self.open_runs.retell()

    def _subscribe_all(self) -> None:
        for subscription, _ in self._subscriptions:
            self._first += encode(subscription)

    def listeners(self, state: State) -> list[OnState]:
        """Who wants to hear of this state."""
        return [
            on_state
            for wanted, on_state in self._subscriptions
            if wanted.account in (None, state.account) and wanted.conversation in (None, state.conversation)
        ]

    def _settle(self, reply: Ack | Rejected) -> None:
        event = self.outbox.settle(reply.id) if reply.id is not None else None
        if event is not None and isinstance(reply, Ack):
            self.open_runs.acknowledged(event, reply.result)
            if reply.result == "late" and isinstance(event, TERMINAL_EVENTS):
                self._ended_before(event)
        if reply.id in self.answers:
            self.answers[reply.id] = reply
        elif (
            isinstance(reply, Rejected) and self.welcome is not None
        ):  # before, it is the hello: closing says why, once
            log.warning("livesign rejected an event: %s: %s", reply.code, reply.detail)

    def _ended_before(self, event: RunEvent) -> None:
        """No state will tell of the end of a run that had ended before it was followed."""
        followed = self._followed.get((event.conversation, event.run or event.message or ""))
        if followed is not None and followed.outcome.outcome == "open":
            followed.outcome = RunOutcome(str(event.__struct_config__.tag), problem="ended_before")


def outcome_by_ack(run: RunHandle) -> RunOutcome:
    """All that is known of a run whose states are not followed: how it was ended here."""
    ended = run.ended
    outcome = {None: "open", "clear": "cancelled", "merged": "open"}.get(ended, ended) or "open"
    return RunOutcome(outcome, problem=NOT_FOLLOWED, final=False)


def _ignore(state: State) -> None:
    """What is followed is kept by the core itself."""
