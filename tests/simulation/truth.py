"""What users of the platforms see, and what the platforms' operators see, kept by an independent hand.

It knows the rows of the platforms and nothing of how livesign works: it counts calls in sliding windows, remembers who was
told to wait, and applies calls to marks and indicators. ``problem`` hears of every call that must not have been made:

- two calls of one lane (a message's marks, a typing target) under way at once,
- a call beyond a limit, after the bot's own share,
- a call into a scope that was told to wait, before the time is over.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping

from actors.config import Account
from actors.presence.terms import TYPING_OPS, Op, Outcome, OutcomeKind
from actors.scripted_platform import CallRecord
from tests.simulation.manners import Manners

Place = tuple[str, str, str | None]
FOREVER_MS = 1 << 60
JOIN_MS = 10_000
UNTOLD_MS = 5_000
"""A limit that names no time: so long nothing may be tried, at least."""


class Truth:
    """All platforms of one world."""

    def __init__(
        self, accounts: Callable[[], Mapping[str, Account]], problem: Callable[[str], None], lag_ms: int
    ) -> None:
        """``accounts``: those of the configuration in force. ``lag_ms``: so long a call may be on its way."""
        self._accounts = accounts
        self._lag_ms = lag_ms
        self.manners = Manners(accounts, problem, lag_ms)
        self.marks: dict[Place, dict[str, int]] = {}
        """(account, conversation, message): emoji and since when it shows."""
        self.was_set: dict[tuple[Place, str], int] = {}
        """When a mark was put there last, and livesign was told so."""
        self.typing: dict[Place, int] = {}
        """(account, conversation, thread): until when the indicator lives."""
        self.left: set[Place] = set()
        """Where the platform has said for good that it will not take something off."""
        self.tried: set[Place] = set()
        """Lanes that were ever called for."""
        self._problem = problem
        self._flying: dict[Place, tuple[bool, CallRecord]] = {}
        self._starts: dict[tuple[str, ...], deque[int]] = defaultdict(deque)
        self._waits: dict[tuple[str, ...], tuple[int, CallRecord, int]] = {}
        self._unsaid: dict[str, tuple[str, int]] = {}
        self._handles: dict[tuple[Place, str], tuple[str, int]] = {}
        """The handles of marks that livesign was told of, and when."""
        self._count_from_ms = 0

    @property
    def accounts(self) -> Mapping[str, Account]:
        return self._accounts()

    def forget_calls(self, known_before_ms: int, in_doubt: Iterable[tuple[Place, str, str]]) -> None:
        """The process is dead. The next one cannot know what was counted, nor what was not written down in time."""
        self._handles = {key: handle for key, handle in self._handles.items() if handle[1] < known_before_ms}
        self.manners.booted(in_doubt)
        self._flying.clear()
        self._starts.clear()
        self._waits.clear()
        self._unsaid.clear()

    def forget_calls_counted(self, t_ms: int) -> None:
        """Other limits are in force: what was counted for the old ones, or is on its way, says nothing."""
        self._starts.clear()
        self._count_from_ms = t_ms + self._lag_ms + (self._lag_ms > 0)

    def forget_wait(self, account: str) -> None:
        """An answer was lost on the way to the one who should have known it."""
        self._waits = {key: wait for key, wait in self._waits.items() if key[0] != account}

    def begin_anew(self) -> None:
        """What was left by the platform's fault is gone and forgotten."""
        for place in self.left:
            self.typing.pop(place, None)
            self.marks.pop(place, None)
        self.left.clear()

    def typing_at(self, now_ms: int) -> list[Place]:
        return [place for place, until_ms in self.typing.items() if until_ms > now_ms]

    # --- calls ----------------------------------------------------------------------------------------------

    def called(self, record: CallRecord, t_ms: int) -> None:
        """A call has begun."""
        command, account = record.command, record.account
        lane = lane_of(record)
        self.tried.add(lane)
        self.manners.called(lane, record, t_ms)
        before = self._flying.get(lane)
        if before is not None:
            self._problem(f"two calls under way for {lane}: {before[1].command.op} and {command.op}")
        self._flying[lane] = (True, record)
        if t_ms >= self._count_from_ms:
            self._count(record, t_ms)
        handle, _ = self._handles.pop((lane, command.emoji or ""), (None, 0))
        if command.op is Op.REMOVE and handle is not None and command.handle != handle:
            self._problem(f"{command.emoji} is removed from {lane} by {command.handle}, and has the handle {handle}")
        for key in _scopes(account, command.conversation, command.op):
            wait = self._waits.get(key)
            if wait is not None and wait[2] + self._lag_ms < t_ms < wait[0]:  # before, nobody can have heard of it
                self._problem(f"{command.op} in {key} although it was told to wait for {wait[0] - t_ms} ms more")

    def answered(self, record: CallRecord, outcome: Outcome, applied: bool, t_ms: int) -> None:
        """A call is over."""
        lane = lane_of(record)
        self.manners.answered(lane, record, outcome, t_ms)
        if self._flying.get(lane, (True, None))[1] is record:
            del self._flying[lane]
        target = _target(record, self.accounts[record.account])
        if applied:
            self._apply(record, t_ms)
        if outcome.happened and record.command.op is Op.SET:
            self.was_set[target, record.command.emoji or ""] = t_ms
            if self.accounts[record.account].spec.rules.removal_needs_handle and outcome.handle and not self._lag_ms:
                self._handles[target, record.command.emoji or ""] = (outcome.handle, t_ms)
        kind = outcome.kind
        if kind is OutcomeKind.RATE_LIMITED:
            self._wait(record, outcome, t_ms)
        refusals = (OutcomeKind.GONE, OutcomeKind.FORBIDDEN, OutcomeKind.BAD_REQUEST, OutcomeKind.INVALID_REACTION)
        if kind is OutcomeKind.GONE or (kind in refusals and record.command.op is not Op.TYPING_START):
            self.left.add(target)
        elif kind is OutcomeKind.ALREADY_DONE and not applied:
            self.left.add(target)  # the platform lies: whoever believes it is not to blame
        elif kind is OutcomeKind.AUTH:
            self.left.add(target)

    def is_flying(self, place: Place) -> bool:
        """Whether a call of this lane is under way."""
        return place in self._flying

    def flying_in(self, account: str, conversation: str) -> bool:
        """Whether a call in this conversation is under way."""
        return any(lane[:2] == (account, conversation) for lane in self._flying)

    def posted(self, place: Place) -> None:
        """The bot has posted, and that has ended the indicator there."""
        self.typing.pop(place, None)

    # --- inside ---------------------------------------------------------------------------------------------

    def _apply(self, record: CallRecord, t_ms: int) -> None:
        command = record.command
        rules = self.accounts[record.account].spec.rules
        place = _target(record, self.accounts[record.account])
        if command.op is Op.TYPING_START:
            self.typing[place] = t_ms + rules.typing_lifetime_ms if rules.typing_lifetime_ms else FOREVER_MS
        elif command.op is Op.TYPING_STOP:
            self.typing.pop(place, None)
        elif command.op is Op.SET:
            marks = self.marks.setdefault(place, {})
            if rules.reactions == "replace":
                marks.clear()
            marks[command.emoji or ""] = t_ms
        elif command.op is Op.REMOVE:
            marks = self.marks.get(place, {})
            marks.pop(command.emoji or "", None)
            if not marks:
                self.marks.pop(place, None)
        else:
            self.marks.pop(place, None)

    def _count(self, record: CallRecord, t_ms: int) -> None:
        account, command = self.accounts[record.account], record.command
        family = "typing" if command.op in TYPING_OPS else "marks"
        for name, limit in account.limits.items():
            scope, _, ops = name.partition(".")
            if ops not in ("", family, command.op.value) or (scope == "message" and command.message is None):
                continue
            if scope == "group" and not command.conversation.startswith("-"):
                continue
            here = command.conversation
            parts = {"account": (), "conversation": (here,), "group": (here,), "route": (here, family)}
            where = parts.get(scope, (command.conversation, command.message or ""))
            starts = self._starts[(record.account, name, *where)]
            while starts and starts[0] <= t_ms - max(1, limit.per_ms - self._lag_ms):
                starts.popleft()
            starts.append(t_ms)
            allowed = max(1, math.ceil(limit.count * (1 - account.reserve) - 1e-9))
            if len(starts) > allowed:
                self._problem(f"{len(starts)} calls within {limit.per_ms} ms for {name} {where}, {allowed} are allowed")

    def _wait(self, record: CallRecord, outcome: Outcome, t_ms: int) -> None:
        account, command = record.account, record.command
        family = "typing" if command.op in TYPING_OPS else "marks"
        until_ms = t_ms + (UNTOLD_MS if outcome.retry_after_ms is None else outcome.retry_after_ms)
        key: tuple[str, ...] = (account, "in", command.conversation)
        if outcome.scope == "account":
            key = (account,)
        elif outcome.scope == "route":
            key = (account, family, command.op.value, command.conversation)
        elif outcome.scope != "conversation":
            last = self._unsaid.get(account)
            self._unsaid[account] = (command.conversation, t_ms)
            if last is not None and last[0] != command.conversation and t_ms - last[1] <= JOIN_MS:
                key = (account,)
        known = self._waits.get(key)
        if known is None or known[0] < until_ms:
            self._waits[key] = (until_ms, record, t_ms)


def _scopes(account: str, conversation: str, op: Op) -> tuple[tuple[str, ...], ...]:
    family = "typing" if op in TYPING_OPS else "marks"
    return (account,), (account, "in", conversation), (account, family, op.value, conversation)


def lane_of(record: CallRecord) -> Place:
    """What at most one call is under way for."""
    command = record.command
    target = f"typing {command.thread}" if command.op in TYPING_OPS else command.message
    return record.account, command.conversation, target


def _target(record: CallRecord, account: Account) -> Place:
    command = record.command
    if command.op in TYPING_OPS:
        thread = command.thread if account.spec.rules.typing_in_threads else None
        return record.account, command.conversation, f"typing {thread}"
    return record.account, command.conversation, command.message
