"""A stand for reaction machines: virtual time, timers, and a platform that confirms at once unless told otherwise."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from actors.presence.policy import AckSettings, Policy, StatusSettings
from actors.presence.reaction import ReactionMachine
from actors.presence.terms import (
    Cancel,
    Clear,
    Effect,
    Finished,
    MarkReport,
    OutcomeKind,
    RunInfo,
    RunKey,
    Schedule,
    Show,
)
from protocol import events
from protocol.events import Event

TO: dict[str, Any] = {"conversation": "chat", "message": "m"}
RECEIVED = events.Received(direct=True, **TO)
QUEUED = events.Queued(**TO)
THINKING = events.Thinking(**TO)
TEXT = events.Text(**TO)
TOOL = events.Tool(**TO)
CODING = events.Tool(name="bash", **TO)
COMPACTING = events.Compacting(**TO)
COMPACTING_END = events.CompactingEnd(**TO)
PROGRESS = events.Progress(**TO)
DONE = events.Done(**TO)
ERROR = events.Error(**TO)
CANCELLED = events.Cancelled(**TO)
SILENT = events.Silent(**TO)
CLEAR = events.Clear(**TO)
RESTORE = events.Restore(**TO)
FINAL_SENT = events.Sent(final=True, **TO)
WAITING_USER = events.Waiting(on="user", **TO)
WAITING_SLOT = events.Waiting(on="slot", **TO)


def span(call: str, name: str = "") -> Event:
    return events.Tool(name=name or None, call=call, **TO)


def span_end(call: str) -> Event:
    return events.ToolEnd(call=call, **TO)


def info(*, ack: bool = True, allowed: bool = True, message: str | None = "m", **status: Any) -> RunInfo:
    return RunInfo(
        key=RunKey("a", "chat", "m"),
        message=message,
        thread=None,
        policy=Policy(ack=AckSettings(scope="all"), status=StatusSettings(**status)),
        ack_allowed=ack,
        status_allowed=allowed,
    )


class Stand:
    """``log`` is what was asked of the platform: (time, emoji or None)."""

    def __init__(self, **status: Any) -> None:
        self.machine = ReactionMachine(info(**status))
        self.now_ms = 0
        self.minute = 0
        self.log: list[tuple[int, str | None]] = []
        self.ranks: list[str] = []
        self.finished: list[Finished] = []
        self.confirms = True
        self.refuses: dict[str | None, OutcomeKind] = {}
        self._armed: dict[Hashable, int] = {}

    def send(self, *sent: Event) -> Stand:
        for event in sent:
            self.perform(self.machine.handle(event, self.now_ms, local_minute=self.minute))
        return self

    def to(self, at_ms: int) -> Stand:
        """Let time pass; timers end on the way."""
        while self._armed and min(self._armed.values()) <= at_ms:
            key = min(self._armed, key=lambda each: self._armed[each])
            self.now_ms = max(self.now_ms, self._armed.pop(key))
            self.perform(self.machine.on_timeout(key, self.now_ms))
        self.now_ms = at_ms
        return self

    def confirm(self, refused: OutcomeKind | None = None) -> Stand:
        """The platform's report about what was asked last."""
        chain = self.machine.desired or ()
        report = MarkReport("chat", "m", chain[0] if chain else None, refused, chain)
        return self.perform(self.machine.on_mark(report, self.now_ms))

    def perform(self, effects: Sequence[Effect]) -> Stand:
        asked = len(self.log)
        for effect in effects:
            match effect:
                case Show(chain, rank):
                    self._told(chain[0], rank.name)
                case Clear(rank):
                    self._told(None, rank.name)
                case Schedule(key, at_ms):
                    self._armed[key] = at_ms
                case Cancel(key):
                    del self._armed[key]
                case Finished():
                    self.finished.append(effect)
                case _:
                    raise AssertionError(effect)
        assert self._armed == self.machine.deadlines
        for _, emoji in self.log[asked:] if self.confirms else ():
            self.confirm(self.refuses.get(emoji))
        return self

    def _told(self, emoji: str | None, rank: str) -> None:
        self.log.append((self.now_ms, emoji))
        self.ranks.append(rank)

    @property
    def shown(self) -> str | None:
        return self.log[-1][1] if self.log else None
