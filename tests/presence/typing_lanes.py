"""Typing lanes for tests."""

from __future__ import annotations

from collections.abc import Sequence

from actors.presence.terms import OK, LaneRules, Op, Outcome, OutcomeKind, Rank, RetryRules, TypingReport
from actors.presence.typing_lane import TypingLane

LASTING = LaneRules(typing_stop=True, typing_lifetime_ms=0)
MATRIX = LaneRules(typing_stop=True, typing_lifetime_ms=30_000)
TELEGRAM = LaneRules(typing_stop=False, typing_lifetime_ms=5000)
START, STOP = Op.TYPING_START, Op.TYPING_STOP
UNKNOWN = Outcome(OutcomeKind.UNKNOWN)
TRANSIENT = Outcome(OutcomeKind.TRANSIENT)


def lane(rules: LaneRules = LASTING, *, forum: bool = False) -> TypingLane:
    return TypingLane("c", "7", rules, RetryRules(), forum=forum)


def begin(target: TypingLane, now_ms: int = 0) -> Op | None:
    """Make the next call; which one it was."""
    proposal = target.next_command(now_ms)
    if proposal is None:
        return None
    assert proposal[1] is Rank.TYPING
    target.begin(proposal[0], now_ms)
    return proposal[0].op


def typing(rules: LaneRules = LASTING) -> TypingLane:
    """A lane whose indicator is on since 0."""
    target = lane(rules)
    target.start(1, 0)
    assert begin(target) is START
    target.end(OK, 0)
    return target


def told(reports: Sequence[TypingReport]) -> list[tuple[int | None, str, bool]]:
    return [(report.token, str(report.outcome.kind), report.called) for report in reports]
