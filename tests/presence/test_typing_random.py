"""Random days of one target: whatever comes in and however calls end, nothing is left over."""

from __future__ import annotations

import random
from typing import Any

import pytest

from actors.presence.terms import OK, LaneRules, Op, Outcome, OutcomeKind, StopTyping
from protocol import events
from protocol.events import Event
from tests.presence.typing_world import LASTING, Answer, TypingWorld, assert_at_rest

RUNS = ("a", "b", "d")
SCOPES = ("s", "t")
KINDS: list[tuple[type[Event], dict[str, Any]]] = [
    (events.Received, {"direct": True}),
    (events.Queued, {}),
    (events.Thinking, {}),
    (events.Progress, {}),
    (events.Text, {}),
    (events.Tool, {"call": "1"}),
    (events.ToolEnd, {"call": "1"}),
    (events.Waiting, {"on": "user"}),
    (events.Alive, {}),
    (events.TypingStart, {}),
    (events.TypingStop, {}),
    (events.Sending, {}),
    (events.Sent, {}),
    (events.Sent, {"ok": False}),
    (events.Sent, {"final": True}),
    (events.Done, {}),
    (events.Cancelled, {}),
]
BAD = [Outcome(OutcomeKind(kind)) for kind in ("transient", "unknown", "rate_limited", "auth", "gone")]


class Day(TypingWorld):
    """A world that checks every call, and knows what the chat shows."""

    def __init__(self, rng: random.Random, rules: LaneRules) -> None:
        super().__init__(
            rules,
            ttl_ms=rng.choice([0, 9000, 60_000]),
            keepalive_ms=rng.choice([0, 2000, 3000]),
            mode=rng.choice(["instant", "thinking", "message", "never"]),
            start_failures=rng.choice([1, 2, 4]),
            probe_ms=rng.choice([0, 7000]),
            start_delay_ms=rng.choice([0, 0, 700]),
            post_clears=rng.random() < 0.5,
        )
        self.rng = rng
        self.calm = False
        self.shown = False
        self.held_until_ms = 0
        self.answer = self._random_answer

    def _random_answer(self, nth: int, op: Op) -> Answer:
        if op is Op.TYPING_START:
            assert self.machine.wanted, "a start that nobody wants"
            assert self.held_until_ms <= self.now_ms, "a start although the only run is posting"
        latency_ms = self.rng.choice([0, 0, 40, 900, 3000])
        outcome = OK if self.calm or self.rng.random() < 0.7 else self.rng.choice(BAD)
        if outcome.happened or outcome.kind is OutcomeKind.UNKNOWN:
            self.shown = op is Op.TYPING_START
        elif outcome.kind is OutcomeKind.GONE:
            self.shown = False
        return latency_ms, outcome

    def step(self, at_ms: int) -> None:
        """Anything may happen now."""
        if self.rng.random() < 0.1:
            switch = self.rng.choice([events.TypingStart, events.TypingStop])
            self.scope(at_ms, self.rng.choice(SCOPES), switch)
        else:
            kind, fields = self.rng.choice(KINDS)
            self.tell(at_ms, f"{self.rng.choice(RUNS)}{at_ms // 40_000}", kind, **fields)
        assert set(self.armed) == set(self.machine.deadlines)
        assert all(due_ms > self.now_ms for due_ms in self.machine.deadlines.values())

    def end(self, at_ms: int) -> None:
        """Everything ends, and from now on the platform does as it is told."""
        self.calm = True
        for run in list(self.infos):
            self.tell(at_ms, run, events.Done)
        for scope in SCOPES:
            self.scope(at_ms, scope, events.TypingStop)


@pytest.mark.parametrize("seed", range(150))
def test_a_random_day_leaves_nothing_behind(seed: int) -> None:
    rng = random.Random(seed)
    rules = rng.choice([LASTING, LASTING, LaneRules(typing_stop=False, typing_lifetime_ms=5000)])
    day = Day(rng, rules)
    at_ms = 0
    for _ in range(120):
        at_ms += rng.choice([0, 3, 250, 1100, 4000, 12_000])
        day.step(at_ms)
    day.end(at_ms)
    ended_at_ms = day.now_ms
    day.advance(at_ms + 300_000)
    assert all(start_ms <= ended_at_ms for start_ms in day.starts)
    assert_at_rest(day)
    if rules is LASTING:
        assert not day.shown
    told = sum(isinstance(effect, StopTyping) for effect in day.effects)
    assert told <= len(day.starts)


@pytest.mark.parametrize("seed", range(100))
def test_a_run_that_is_posting_makes_no_calls(seed: int) -> None:
    rng = random.Random(seed)
    day = Day(rng, LASTING)
    day.open()
    at_ms = 0
    for _ in range(60):
        at_ms += rng.choice([10, 400, 3000])
        kind, fields = rng.choice([row for row in KINDS if row[0] not in (events.Done, events.Cancelled)])
        day.advance(at_ms)
        if kind is events.Sending:
            day.held_until_ms = at_ms + 10_000
        elif kind is events.Sent:
            day.held_until_ms = 0
        day.tell(at_ms, "m", kind, **fields)
    day.end(at_ms)
    day.advance(at_ms + 300_000)
    assert_at_rest(day)
    assert not day.shown
