"""The lanes of one account, found by conversation and then by message or typing target.

A conversation's record goes with its last lane, so that memory follows what is wanted and shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from actors.presence.breaker import Kind
from actors.presence.mark_lane import MarkLane
from actors.presence.ready import Waiting
from actors.presence.terms import (
    Command,
    LaneRules,
    MarkReport,
    Op,
    Outcome,
    OutcomeKind,
    RetryRules,
    TypingReport,
)
from actors.presence.typing_lane import TypingLane


class MarkEntry(Waiting):
    """The lane of a message and its place in the order of calls."""

    __slots__ = ("failed", "lane", "saved")

    def __init__(self, lane: MarkLane) -> None:
        super().__init__(lane.conversation)
        self.lane = lane
        self.failed = False
        """Its last call failed, so that the next one is a retry."""
        self.saved = 0
        """Saved calls of the lane that are counted already."""

    def end(self, command: Command, outcome: Outcome, now_ms: int, *, called: bool = True) -> Sequence[MarkReport]:
        """Tell the lane how its call ended.

        A forbidden add ends the lane, and with it what it knows. Where a mark of ours may be on the message, the
        lane is told that only this new one is impossible, so that the other one is still taken away.
        """
        forbidden = outcome.kind is OutcomeKind.FORBIDDEN and outcome.scope != "message"
        if not forbidden or not self._may_carry_one(command):
            return self.lane.end(outcome, now_ms, called=called)
        reports = self.lane.end(replace(outcome, kind=OutcomeKind.BAD_REQUEST), now_ms, called=called)
        return [replace(report, refused=report.refused and OutcomeKind.FORBIDDEN) for report in reports]

    def takes_away(self, command: Command) -> bool:
        """Whether the lane's next call shows nothing new."""
        return self.lane.takes_away(command)

    def lapse(self, now_ms: int) -> Sequence[MarkReport]:
        """Marks do not end by themselves."""
        return ()

    def refuse(self, command: Command, outcome: Outcome, now_ms: int) -> Sequence[MarkReport]:
        """Let the lane's next call end without making it."""
        self.lane.begin(command, now_ms)
        return self.end(command, outcome, now_ms, called=False)

    def _may_carry_one(self, command: Command) -> bool:
        """Whether another mark may be on the message, or this one by an earlier try that nobody knows the end of."""
        if command.op is not Op.SET:
            return False
        return any(emoji != command.emoji for emoji in self.lane.possible) or self.lane.doubted_before(command.emoji)


class TypingEntry(Waiting):
    """The lane of a typing target and its place in the order of calls."""

    __slots__ = ("failed", "lane", "saved")

    def __init__(self, lane: TypingLane) -> None:
        super().__init__(lane.conversation)
        self.lane = lane
        self.failed = False
        self.saved = 0

    def end(self, command: Command, outcome: Outcome, now_ms: int) -> Sequence[TypingReport]:
        """Tell the lane how its call ended."""
        return self.lane.end(outcome, now_ms)

    def takes_away(self, command: Command) -> bool:
        """Whether the lane's next call shows nothing new."""
        return command.op is Op.TYPING_STOP

    def lapse(self, now_ms: int) -> Sequence[TypingReport]:
        """Let go of a stop whose indicator is over by itself."""
        return self.lane.lapse(now_ms)

    def refuse(self, command: Command, outcome: Outcome, now_ms: int) -> Sequence[TypingReport]:
        """Let the lane's next call end without making it."""
        self.lane.begin(command, now_ms)
        return [replace(report, called=False) for report in self.lane.end(outcome, now_ms)]


Entry = MarkEntry | TypingEntry


class _Conversation:
    __slots__ = ("flights", "low_flights", "marks", "typing")

    def __init__(self) -> None:
        self.flights = 0
        self.low_flights = 0
        self.marks: dict[str, MarkEntry] = {}
        self.typing: dict[str | None, TypingEntry] = {}

    def of(self, kind: Kind) -> list[Entry]:
        return list(self.typing.values() if kind is Kind.TYPING else self.marks.values())


class LaneTable:
    """All lanes. A lane is dropped by its owner once it is idle."""

    def __init__(
        self, rules: LaneRules, retry: RetryRules, is_refused: Callable[[str, str], bool], key_prefix: str
    ) -> None:
        self._rules = rules
        self._retry = retry
        self._is_refused = is_refused
        self._key_prefix = key_prefix
        self._keys = 0
        self._conversations: dict[str, _Conversation] = {}
        self._size = 0

    def __len__(self) -> int:
        """Lanes kept."""
        return self._size

    @property
    def conversations(self) -> int:
        """Conversations that have lanes."""
        return len(self._conversations)

    def mark(self, conversation: str, message: str) -> MarkEntry | None:
        """The lane of a message."""
        found = self._conversations.get(conversation)
        return None if found is None else found.marks.get(message)

    def typing(self, conversation: str, thread: str | None) -> TypingEntry | None:
        """The lane of a typing target."""
        found = self._conversations.get(conversation)
        return None if found is None else found.typing.get(thread)

    def add_mark(self, conversation: str, message: str, forum: bool = False) -> MarkEntry:
        """A lane for a message that has none."""
        entry = MarkEntry(
            MarkLane(
                conversation,
                message,
                self._rules,
                self._retry,
                self._is_refused,
                new_key=self._new_key,
                forum=forum,
            )
        )
        self._made(conversation).marks[message] = entry
        return entry

    def add_typing(self, conversation: str, thread: str | None, forum: bool = False) -> TypingEntry:
        """A lane for a typing target that has none."""
        lane = TypingLane(conversation, thread, self._rules, self._retry, new_key=self._new_key, forum=forum)
        entry = self._made(conversation).typing[thread] = TypingEntry(lane)
        return entry

    def drop(self, entry: Entry) -> None:
        """The lane is not needed any more."""
        found = self._conversations[entry.conversation]
        if isinstance(entry, MarkEntry):
            del found.marks[entry.lane.message]
        else:
            del found.typing[entry.lane.thread]
        self._size -= 1
        if not found.marks and not found.typing:
            del self._conversations[entry.conversation]

    def of(self, conversation: str, kind: Kind) -> list[Entry]:
        """The lanes of a conversation that make calls of this kind; "" means every conversation."""
        if not conversation:
            return [entry for found in self._conversations.values() for entry in found.of(kind)]
        found = self._conversations.get(conversation)
        return [] if found is None else found.of(kind)

    def entries(self) -> Iterator[Entry]:
        """Every lane."""
        for found in self._conversations.values():
            yield from found.marks.values()
            yield from found.typing.values()

    # --- calls under way ------------------------------------------------------------------------------------

    def begun(self, entry: Entry, low: bool) -> None:
        """The lane's call is under way. ``low``: a phase's or typing."""
        self._count(entry.conversation, low, 1)

    def ended(self, entry: Entry, low: bool) -> None:
        """The lane's call has ended."""
        self._count(entry.conversation, low, -1)

    def flights(self, conversation: str, low: bool) -> int:
        """Calls under way in a conversation that has lanes: those of phases and typing, or the others."""
        found = self._conversations[conversation]
        return found.low_flights if low else found.flights

    # --- inside ---------------------------------------------------------------------------------------------

    def _count(self, conversation: str, low: bool, more: int) -> None:
        found = self._conversations[conversation]
        if low:
            found.low_flights += more
        else:
            found.flights += more

    def _made(self, conversation: str) -> _Conversation:
        self._size += 1
        found = self._conversations.get(conversation)
        if found is None:
            found = self._conversations[conversation] = _Conversation()
        return found

    def _new_key(self) -> str:
        self._keys += 1
        return f"{self._key_prefix}{self._keys}"
