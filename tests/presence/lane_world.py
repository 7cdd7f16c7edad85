"""A platform for `Lanes` under test: explicit time, scripted or random answers, everything recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from actors.presence.breaker import Refusals
from actors.presence.lanes import Begin, Lanes
from actors.presence.pacing import Limit, Pacing
from actors.presence.terms import OK, LaneRules, Outcome, OutcomeKind, Rank, Report, RetryRules

ADD_REMOVE = LaneRules(reactions="add_remove", typing_stop=True, typing_lifetime_ms=0)
REPLACE = LaneRules()


def make_lanes(
    limits: dict[str, Limit] | None = None,
    *,
    rules: LaneRules = REPLACE,
    concurrency: int = 1_000,
    retry: RetryRules | None = None,
    reserve: float = 0.0,
    refusals: Refusals | None = None,
) -> Lanes:
    pacing = Pacing(limits or {}, reserve)
    return Lanes("bot", rules, pacing, retry or RetryRules(), concurrency, refusals=refusals)


def refusal(kind: str, *, retry_after_ms: int | None = None, scope: str | None = None) -> Outcome:
    return Outcome(OutcomeKind(kind), retry_after_ms=retry_after_ms, scope=scope)


def always_ok(begin: Begin, at_ms: int) -> Outcome:
    return OK


def forbidding(conversation: str, until_ms: int = 1 << 60) -> Callable[[Begin, int], Outcome]:
    """Everything is forbidden in one conversation until then."""

    def answer(begin: Begin, at_ms: int) -> Outcome:
        forbidden = begin.command.conversation == conversation and at_ms < until_ms
        return refusal("forbidden") if forbidden else OK

    return answer


def down_until(until_ms: int, kind: str = "transient") -> Callable[[Begin, int], Outcome]:
    """Every call fails until then."""
    return lambda begin, at_ms: refusal(kind) if at_ms < until_ms else OK


@dataclass
class World:
    """Runs lanes as a driver would: begins what may begin, answers after ``latency_ms``, sleeps until woken."""

    lanes: Lanes
    answer: Callable[[Begin, int], Outcome] = always_ok
    latency_ms: int = 50
    now_ms: int = 0
    calls: list[tuple[int, Begin]] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    under_way: list[tuple[int, Begin]] = field(default_factory=list)
    most_under_way: int = 0

    def show(self, conversation: str, message: str, *chain: str, rank: Rank = Rank.TERMINAL) -> list[Report]:
        reports = self.lanes.show(conversation, message, chain, rank, self.now_ms)
        self.reports += reports
        return reports

    def pump(self) -> list[Begin]:
        """Begin everything that may begin now."""
        begun = []
        while (begin := self.lanes.next(self.now_ms)) is not None:
            self.calls.append((self.now_ms, begin))
            self.under_way.append((self.now_ms + self.latency_ms, begin))
            begun.append(begin)
        self.most_under_way = max(self.most_under_way, len(self.under_way))
        return begun

    def run(self, until_ms: int) -> None:
        """Let time pass. A lane that asks to be woken for nothing again and again fails the test."""
        self.pump()
        idle_rounds = 0
        while True:
            wake_ms = self.lanes.wake_at_ms()
            if wake_ms is not None and wake_ms <= self.now_ms:
                idle_rounds += 1
                assert idle_rounds < 3, f"woken for nothing at {self.now_ms}"
                wake_ms = self.now_ms
            times = [at_ms for at_ms, _ in self.under_way] + ([] if wake_ms is None else [wake_ms])
            if not times or min(times) > until_ms:
                break
            if min(times) > self.now_ms:
                idle_rounds = 0
            self.now_ms = max(self.now_ms, min(times))
            self._answer_due()
            self.pump()
        self.now_ms = until_ms

    def _answer_due(self) -> None:
        due = [pair for pair in self.under_way if pair[0] <= self.now_ms]
        self.under_way = [pair for pair in self.under_way if pair[0] > self.now_ms]
        for _, begin in due:
            self.reports += self.lanes.end(begin.call_id, self.answer(begin, self.now_ms), self.now_ms)

    def starts(self, conversation: str | None = None) -> list[int]:
        return [at for at, begin in self.calls if conversation in (None, begin.command.conversation)]

    def made(self) -> list[str]:
        """The calls so far, as ``conversation/message emoji`` or the op where there is no emoji."""
        commands = [begin.command for _, begin in self.calls]
        return [f"{c.conversation}/{c.message or '-'} {c.emoji or c.op.value}" for c in commands]
