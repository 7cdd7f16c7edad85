"""Replays recorded typing traces: our machine and lane against a scripted platform on virtual time.

``reply_start`` is an explicit typing_start, ``idle`` and ``cleanup`` are a typing_stop. The recorded
controller served one reply: once it is closed (by either of them or by its TTL) a later start is not
replayed. There is no deadline, no pacing and no probe; a failed start counts, a failed stop is not retried.
A trace without quirks must match call by call; one with quirks is held to what a better controller must keep
(`_ends_well`, `_does_better`).
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from actors.presence.policy import Policy, TypingSettings
from actors.presence.terms import (
    OK,
    Cancel,
    Command,
    Effect,
    LaneRules,
    Op,
    Outcome,
    OutcomeKind,
    RetryRules,
    RunInfo,
    RunKey,
    Schedule,
    StartTyping,
    StopTyping,
    TypingReport,
    WithdrawTyping,
)
from actors.presence.typing import TypingMachine
from actors.presence.typing_lane import TypingLane
from protocol import events

__all__ = ["Played", "play", "replay_typing"]

KEY = RunKey("a", "c", "m")
FAILED = {Op.TYPING_START: Outcome(OutcomeKind.TRANSIENT), Op.TYPING_STOP: Outcome(OutcomeKind.BAD_REQUEST)}
"""Failed and not retried."""

Trace = dict[str, Any]


@dataclass
class Played:
    """What the replay saw."""

    calls: list[list[Any]] = field(default_factory=list)
    ends: list[list[Any] | None] = field(default_factory=list)
    ttl_at: list[int] = field(default_factory=list)
    closed_at: int | None = None
    timers_end: int = 0
    problems: list[str] = field(default_factory=list)


class _Player:
    """The world of one trace."""

    def __init__(self, trace: Trace) -> None:
        config = trace["config"]
        typing = TypingSettings(
            mode="never",
            keepalive_ms=config.get("keepaliveIntervalMs", 3000),
            ttl_ms=config.get("maxDurationMs", 60_000),
            start_failures=math.floor(config.get("maxConsecutiveFailures", 2)),
            probe_ms=0,
            post_clears=False,
        )
        self._info = RunInfo(KEY, KEY.run, None, Policy(typing=typing), False, False)
        rules = LaneRules(typing_stop=config["hasStop"], typing_lifetime_ms=0)
        self._machine = TypingMachine()
        self._lane = TypingLane(KEY.conversation, None, rules, RetryRules())
        self._latency: dict[Op, list[int | None]] = {
            Op.TYPING_START: config.get("startLatencyMs") or [0],
            Op.TYPING_STOP: config.get("stopLatencyMs") or [0],
        }
        self._failing: dict[Op, list[int]] = {
            Op.TYPING_START: config.get("failStart", []),
            Op.TYPING_STOP: config.get("failStop", []),
        }
        self._made = {Op.TYPING_START: 0, Op.TYPING_STOP: 0}
        self._now_ms = 0
        self._order = itertools.count()
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        """Timers and call ends: time, order of arming, what happens."""
        self._armed: dict[Hashable, int] = {}
        self.played = Played()

    def run(self, script: Iterable[list[Any]], end_ms: int, sync: bool) -> Played:
        """Play the script and go on until ``end_ms``. ``sync``: rows of the same ms run back to back."""
        opening = events.Received(conversation=KEY.conversation, message=KEY.run, direct=True)
        self._perform(self._machine.handle(self._info, opening, 0))
        for t_ms, op, *_ in script:
            self._advance(t_ms - 1 if sync and t_ms == self._now_ms else t_ms)
            self._now_ms = t_ms
            self._op(op)
            if not sync:
                self._advance(t_ms)
        self._advance(end_ms)
        self.played.timers_end = len(self._machine.deadlines)
        return self.played

    def _op(self, op: str) -> None:
        if self.played.closed_at is not None:
            return
        if op == "reply_start":
            event: events.Event = events.TypingStart(conversation=KEY.conversation, run=KEY.run)
        else:
            event = events.TypingStop(conversation=KEY.conversation, run=KEY.run)
            self.played.closed_at = self._now_ms
        self._perform(self._machine.handle(self._info, event, self._now_ms))

    def _advance(self, to_ms: int) -> None:
        """Fire everything due until ``to_ms``, in order of time and then of arming."""
        while self._due and self._due[0][0] <= to_ms:
            at_ms, _, happen = heapq.heappop(self._due)
            self._now_ms = at_ms
            happen()
        self._now_ms = max(self._now_ms, to_ms)

    def _later(self, at_ms: int, happen: Callable[[], None]) -> int:
        number = next(self._order)
        heapq.heappush(self._due, (at_ms, number, happen))
        return number

    def _perform(self, effects: Iterable[Effect]) -> None:
        reports: list[TypingReport] = []
        for effect in effects:
            match effect:
                case Schedule(key, at_ms):
                    self._arm(key, at_ms)
                case Cancel(key):
                    self._armed.pop(key, None)
                case StartTyping(token):
                    reports += self._lane.start(token, self._now_ms)
                case StopTyping():
                    reports += self._lane.stop(self._now_ms)
                case WithdrawTyping():
                    reports += self._lane.withdraw(self._now_ms)
        self._pump()
        self._tell(reports)

    def _arm(self, key: Hashable, at_ms: int) -> None:
        def fire() -> None:
            if self._armed.get(key) == number:
                del self._armed[key]
                was_wanted = self._machine.wanted
                effects = self._machine.on_timeout(key, self._now_ms)
                if was_wanted and not self._machine.wanted:
                    self.played.ttl_at.append(self._now_ms)
                    self.played.closed_at = self._now_ms
                self._perform(effects)

        number = self._armed[key] = self._later(at_ms, fire)

    def _pump(self) -> None:
        if (proposal := self._lane.next_command(self._now_ms)) is None:
            return
        command = proposal[0]
        played, nth = self.played, self._made[command.op]
        self._made[command.op] += 1
        if any(end is None for end in played.ends):
            played.problems.append(f"two calls in flight at {self._now_ms}")
        index = len(played.calls)
        played.calls.append([self._now_ms, "start" if command.op is Op.TYPING_START else "stop"])
        played.ends.append(None)
        self._lane.begin(command, self._now_ms)
        latencies = self._latency[command.op]
        latency_ms = latencies[nth % len(latencies)]
        if latency_ms is not None:
            self._later(self._now_ms + latency_ms, lambda: self._end(index, command, nth))

    def _end(self, index: int, command: Command, nth: int) -> None:
        failed = nth in self._failing[command.op]
        self.played.ends[index] = [self._now_ms, "err" if failed else "ok"]
        reports = self._lane.end(FAILED[command.op] if failed else OK, self._now_ms)
        self._pump()
        self._tell(reports)

    def _tell(self, reports: Iterable[TypingReport]) -> None:
        for report in reports:
            if report.token is None:
                self._perform(self._machine.on_stopped(report.outcome, self._now_ms))
            else:
                self._perform(
                    self._machine.on_started(report.token, report.outcome, self._now_ms, called=report.called)
                )


def play(trace: Trace) -> Played:
    """Replay a trace with livesign's machine and lane."""
    sync = trace["config"].get("mode", trace.get("mode")) == "sync"
    return _Player(trace).run(trace["script"], trace["end_ms"], sync)


def replay_typing(trace: Trace) -> list[str]:
    """Replay a trace and say what is wrong with the result. Empty: passed."""
    played = play(trace)
    problems = played.problems + _ends_well(trace, played)
    if trace.get("quirks"):
        return problems + _does_better(trace, played)
    tied = set(trace.get("ties", {}).get("timer", ())) & set(trace.get("ttl_at", ()))
    for name, got, wanted in (
        ("calls", _untied(played.calls, tied), _untied(trace["calls"], tied)),
        ("ttl_at", played.ttl_at, trace.get("ttl_at", [])),
        ("timers_end", played.timers_end, trace["timers_end"]),
    ):
        if got != wanted:
            problems.append(f"{name}: {got!r} instead of {wanted!r}")
    if "ends" in trace and played.calls == trace["calls"] and played.ends != trace["ends"]:
        problems.append(f"ends: {played.ends!r} instead of {trace['ends']!r}")
    return problems


def _untied(calls: list[list[Any]], tied: set[int]) -> list[list[Any]]:
    """A tick and the TTL in the same ms: that last start may be there or not."""
    return [call for call in calls if not (call[1] == "start" and call[0] in tied)]


def _ends_well(trace: Trace, played: Played) -> list[str]:
    """For every trace: nothing after the close but one stop, exactly where it is needed; no timer left."""
    problems = []
    closed_at = math.inf if played.closed_at is None else played.closed_at
    if any(op == "start" and t_ms > closed_at for t_ms, op in played.calls):
        problems.append(f"a start after the close at {closed_at}: {played.calls!r}")
    if played.closed_at is not None and played.timers_end:
        problems.append(f"{played.timers_end} timers left after the close")
    stops = [t_ms for t_ms, op in played.calls if op == "stop"]
    if stops != (needed := _needed_stops(trace, played)):
        problems.append(f"stops at {stops!r}, needed at {needed!r}")
    return problems


def _needed_stops(trace: Trace, played: Played) -> list[int]:
    """One stop at the close, if a start has succeeded; where one was in flight then, when that has ended."""
    if played.closed_at is None or not trace["config"]["hasStop"]:
        return []
    ends = [end for (_, op), end in zip(played.calls, played.ends, strict=True) if op == "start"]
    if None in ends or not any(end is not None and end[1] == "ok" for end in ends):
        return []
    settled_at = max(played.closed_at, *(end[0] for end in ends if end is not None))
    return [settled_at] if settled_at <= trace["end_ms"] else []


def _does_better(trace: Trace, played: Played) -> list[str]:
    """Traces with quirks: only overlapping starts change what is made; a long TTL does not fire at once."""
    quirks = set(trace["quirks"])
    if "timer_overflow" in quirks:
        return [f"the TTL fired at {played.ttl_at!r}"] if played.ttl_at else []
    closed_at = math.inf if played.closed_at is None else played.closed_at
    made = [t_ms for t_ms, op in played.calls if op == "start"]
    recorded = [t_ms for t_ms, op in trace["calls"] if op == "start" and t_ms <= closed_at]
    if "overlapping_starts" not in quirks:
        return [] if made == recorded else [f"starts at {made!r} instead of {recorded!r}"]
    if stray := [t_ms for t_ms in made if not _has_reason(t_ms, trace, played)]:
        return [f"starts without a reason at {stray!r}"]
    config = trace["config"]
    index_counts = "failStart" in config or len(config.get("startLatencyMs", ())) > 1
    if not index_counts and len(made) > len(recorded):
        return [f"more starts than recorded: {made!r} instead of {recorded!r}"]
    return []


def _has_reason(t_ms: int, trace: Trace, played: Played) -> bool:
    """At a reply_start, after a failed call that one had joined, or on the grid of an end."""
    if any(row[0] == t_ms and row[1] == "reply_start" for row in trace["script"]):
        return True
    if [t_ms, "err"] in played.ends:
        return True
    interval_ms = trace["config"].get("keepaliveIntervalMs", 3000)
    before = [end[0] for end in played.ends if end is not None and end[0] < t_ms]
    return interval_ms > 0 and any((t_ms - end_ms) % interval_ms == 0 for end_ms in before)
