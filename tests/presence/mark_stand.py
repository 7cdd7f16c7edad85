"""A stand for mark lanes: each call is begun and ended by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from actors.presence.mark_lane import MarkLane
from actors.presence.terms import LaneRules, MarkReport, Outcome, OutcomeKind, Rank, RetryRules


def nothing_refused(conversation: str, emoji: str) -> bool:
    return False


class Stand:
    """A lane whose calls are begun at once and end when told."""

    def __init__(
        self,
        reactions: str = "add_remove",
        is_refused: Callable[[str, str], bool] = nothing_refused,
        needs_handle: bool = False,
        **retry: Any,
    ) -> None:
        rules = LaneRules(reactions=reactions, removal_needs_handle=needs_handle)
        keys = iter(range(1, 1_000))
        self.lane = MarkLane("chat", "m", rules, RetryRules(**retry), is_refused, new_key=lambda: f"k{next(keys)}")
        self.now_ms = 0
        self.calls: list[str] = []
        self.keys: list[str] = []
        self.ranks: list[Rank] = []
        self.reports: list[MarkReport] = []

    def show(self, *chain: str, rank: Rank = Rank.PHASE) -> Stand:
        self.reports += self.lane.show(chain, rank, self.now_ms)
        return self

    def begin(self) -> Stand:
        """Begin the next call, which must be there."""
        following = self.lane.next_command(self.now_ms)
        assert following is not None
        command, rank = following
        assert (command.conversation, command.message, command.thread) == ("chat", "m", None)
        self.lane.begin(command, self.now_ms)
        handle = f"@{command.handle}" if command.handle else ""
        self.calls.append(f"{command.op} {command.emoji}{handle}" if command.emoji else str(command.op))
        self.keys.append(command.idempotency_key)
        self.ranks.append(rank)
        return self

    def end(self, kind: OutcomeKind = OutcomeKind.OK, handle: str | None = None, scope: str | None = None) -> Stand:
        self.reports += self.lane.end(Outcome(kind, handle=handle, scope=scope), self.now_ms)
        return self

    def refuse(self, kind: OutcomeKind) -> Stand:
        """End the call that was begun without having asked the platform."""
        self.reports += self.lane.end(Outcome(kind), self.now_ms, called=False)
        return self

    def call(self, *kinds: OutcomeKind) -> Stand:
        """Make the next calls, with these outcomes."""
        for kind in kinds:
            self.begin().end(kind)
        return self

    def settle(self) -> Stand:
        """Make every call that is left, each going well."""
        while not self.lane.settled:
            self.begin().end()
        return self

    def on(self, emoji: str) -> Stand:
        """A lane on whose message this mark is; what was recorded so far is forgotten."""
        self.show(emoji).settle()
        self.calls.clear()
        self.keys.clear()
        self.ranks.clear()
        self.reports.clear()
        return self

    @property
    def results(self) -> list[tuple[str | None, OutcomeKind | None]]:
        return [(report.emoji, report.refused) for report in self.reports]

    @property
    def shown(self) -> list[str]:
        return list(self.lane.shown)
