"""Watches the sandbox's calls, and what it shows, with the eyes of its users and operators.

- no lane (a message's marks, a chat's typing) has two calls under way at once
- an account that was told to wait makes no call before the time is over
- nothing that is no end is shown, and no typing begins, once the end of the run was acknowledged
- at an end its mark shows, later than the end by what this measures
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

from actors.presence.terms import Op
from actors.sandbox.calls import Call, CallLog
from actors.sandbox.faults import FaultPlan, Faults, Verdict

DONE = "👍"
ON_THE_WAY_MS = 500
"""So long a call, or the answer that forbids it, may be on its way on a busy machine."""
TYPING = (Op.TYPING_START, Op.TYPING_STOP)
Lane = tuple[str, str, str | None]


@dataclass
class Judge:
    """What was seen. All times are the sandbox's."""

    now_ms: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    ended_ms: dict[Lane, int] = field(default_factory=dict)
    """When the end of a message's run was acknowledged."""
    told_ms: dict[Lane, int] = field(default_factory=dict)
    """When it was told."""
    idle: dict[tuple[str, str], int] = field(default_factory=dict)
    """Chats without a run, and since when."""
    shown_after_ms: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """By account, for each end that shows: when it was told, and how long that took."""
    marks: dict[Lane, str] = field(default_factory=dict)
    blocked: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Account: since when, and until when, it may not call."""
    _under_way: dict[Lane, int] = field(default_factory=dict)

    def begins(self, call: Call, now_ms: int) -> None:
        """A call has come in."""
        since_ms, until_ms = self.blocked.get(call.account, (0, 0))
        if since_ms + ON_THE_WAY_MS < now_ms < until_ms:
            self.violations.append(f"{call} although {call.account} was told to wait for {until_ms - now_ms} ms more")
        lane = _lane(call)
        ended_ms = self.ended_ms.get(lane)
        if call.op is Op.SET and call.emoji != DONE and ended_ms is not None and now_ms > ended_ms + ON_THE_WAY_MS:
            self.violations.append(f"{call} {now_ms - ended_ms} ms after the end")
        idle_ms = self.idle.get((call.account, call.conversation))
        if call.op is Op.TYPING_START and idle_ms is not None and now_ms > idle_ms + ON_THE_WAY_MS:
            self.violations.append(f"{call} {now_ms - idle_ms} ms after the last run there")

    def ends(self, call: Call, began_ms: int, now_ms: int | None, outcome: str) -> None:
        """It is answered, or (``now_ms`` None) never will be."""
        self.calls[outcome] += 1
        lane = _lane(call)
        if now_ms is None:
            return
        before_ms = self._under_way.get(lane, 0)
        if began_ms < before_ms:
            self.violations.append(f"{call} began {before_ms - began_ms} ms before another of its lane had ended")
        self._under_way[lane] = now_ms
        if outcome in ("ok", "already_done") and call.op not in TYPING:
            self._shows(lane, call, now_ms)

    def _shows(self, lane: Lane, call: Call, now_ms: int) -> None:
        if call.op is not Op.SET:
            self.marks.pop(lane, None)
            return
        self.marks[lane] = call.emoji or ""
        told_ms = self.told_ms.pop(lane, None) if call.emoji == DONE else None
        if told_ms is not None:
            self.shown_after_ms.setdefault(call.account, []).append((told_ms, now_ms - told_ms))

    def limited(self, account: str, now_ms: int, verdict: Verdict) -> None:
        """A call was refused: the account has to wait."""
        if verdict.retry_after_ms is not None:
            self.blocked[account] = (now_ms, now_ms + verdict.retry_after_ms)


class WatchedCalls(CallLog):
    """The sandbox's log, which tells the judge."""

    def __init__(self, judge: Judge) -> None:
        super().__init__(kept=100)
        self._judge = judge

    def note(self, call: Call, t_ms: int, ended_ms: int | None, outcome: str) -> None:
        super().note(call, t_ms, ended_ms, outcome)
        self._judge.ends(call, t_ms, ended_ms, outcome)


class WatchedFaults(Faults):
    """The sandbox's faults, which tell the judge."""

    def __init__(self, plan: FaultPlan, start_ms: int, judge: Judge) -> None:
        super().__init__(plan, start_ms)
        self._judge = judge

    def judge(self, call: Call, now_ms: int) -> Verdict:
        self._judge.begins(call, now_ms)
        verdict = super().judge(call, now_ms)
        if verdict.outcome == "rate_limited":
            self._judge.limited(call.account, now_ms, verdict)
        return verdict


def ideal_waits_ms(ends_ms: list[int], hold_ms: int, count: int, per_ms: int) -> list[int]:
    """How long ends told at these times wait where they and their removals alone have an account's budget, in the order in
    which they come: what pacing alone makes of them."""
    due = sorted([(at_ms, True) for at_ms in ends_ms] + [(at_ms + hold_ms, False) for at_ms in ends_ms])
    made: deque[int] = deque()
    waits = []
    for at_ms, shows in due:
        begun_ms = max(at_ms, made[-1] if made else 0)
        if len(made) == count:
            begun_ms = max(begun_ms, made.popleft() + per_ms)
        made.append(begun_ms)
        if shows:
            waits.append(begun_ms - at_ms)
    return waits


def _lane(call: Call) -> Lane:
    return call.account, call.conversation, None if call.op in TYPING else call.message
