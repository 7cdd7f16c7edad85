"""A typing target on virtual time: machine, lane, and a platform that does what the test says."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from actors.presence.policy import Policy, StatusSettings, TypingSettings
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
from protocol.events import Event

FAILED = Outcome(OutcomeKind.TRANSIENT)
LASTING = LaneRules(typing_stop=True, typing_lifetime_ms=0)
"""An indicator that stays until it is stopped: nothing hides a missing stop."""

Answer = tuple[int | None, Outcome]
"""How a call ends: after so many ms (None: never), and how."""


def policy(**typing: Any) -> Policy:
    """Typing settings for tests; ``span_max_ms`` goes to the status settings."""
    span_max_ms = typing.pop("span_max_ms", 1_800_000)
    return Policy(typing=TypingSettings(**typing), status=StatusSettings(span_max_ms=span_max_ms))


def info(run: str, settings: Policy) -> RunInfo:
    return RunInfo(RunKey("a", "c", run), run, None, settings, True, True)


class TypingWorld:
    """Feeds events to the machine and runs its timers and calls; ``calls`` is what the platform saw."""

    def __init__(self, rules: LaneRules = LASTING, *, open_ms: int = 0, **typing: Any) -> None:
        self.policy = policy(**typing)
        self.machine = TypingMachine(self.policy)
        self.lane = TypingLane("c", None, rules, RetryRules())
        self.now_ms = open_ms
        self.calls: list[tuple[int, str]] = []
        self.answers: dict[int, Answer] = {}
        """By number of the call; the others end at once and well."""
        self.answer: Callable[[int, Op], Answer] = lambda nth, op: self.answers.get(nth, (0, OK))
        self.blocked = False
        """No call may begin: the account is paced."""
        self.infos: dict[str, RunInfo] = {}
        self.effects: list[Effect] = []
        """All effects so far."""
        self._order = itertools.count()
        self._queue: list[tuple[int, int, int, Callable[[], None]]] = []
        self.armed: dict[Hashable, int] = {}

    # --- what a test does ---

    def tell(self, at_ms: int, run: str, kind: type[Event], **fields: Any) -> TypingWorld:
        """At ``at_ms`` this event of the run comes in."""
        self.advance(at_ms)
        known = self.infos.setdefault(run, info(run, self.policy))
        if kind is events.Received:
            fields.setdefault("direct", True)
        event = kind(conversation="c", message=run, **fields)  # type: ignore[call-arg]
        self.perform(self.machine.handle(known, event, at_ms))
        return self.settle()

    def scope(self, at_ms: int, scope: str, kind: type[Event] = events.TypingStart) -> TypingWorld:
        """At ``at_ms`` a bare scope is started or stopped."""
        self.advance(at_ms)
        event = kind(conversation="c", run="-", scope=scope)  # type: ignore[call-arg]
        self.perform(self.machine.handle(None, event, at_ms))
        return self.settle()

    def open(self, at_ms: int = 0, run: str = "m", **typing: Any) -> TypingWorld:
        """At ``at_ms`` a message is received, with settings of its own if given."""
        if typing:
            self.infos[run] = info(run, policy(**typing))
        return self.tell(at_ms, run, events.Received)

    def advance(self, to_ms: int) -> TypingWorld:
        """Let time go by, with everything that is due until then."""
        while self._queue and self._queue[0][0] <= to_ms:
            at_ms, _, _, happen = heapq.heappop(self._queue)
            self.now_ms = max(at_ms, self.now_ms)
            happen()
        self.now_ms = to_ms
        return self

    def settle(self) -> TypingWorld:
        return self.advance(self.now_ms)

    def unblock(self, at_ms: int) -> TypingWorld:
        """Calls may begin again."""
        self.advance(at_ms)
        self.blocked = False
        self._pump()
        return self.settle()

    def end_call(self, at_ms: int, outcome: Outcome) -> None:
        """A call that would not end by itself ends now."""
        self.advance(at_ms)
        assert self.lane.in_flight is not None
        self._end(self.lane.in_flight, outcome)
        self.settle()

    def sleep(self, to_ms: int) -> TypingWorld:
        """The process does not run until then: what was due comes late."""
        self.now_ms = to_ms
        return self.settle()

    @property
    def starts(self) -> list[int]:
        return [at_ms for at_ms, op in self.calls if op == "start"]

    @property
    def stops(self) -> list[int]:
        return [at_ms for at_ms, op in self.calls if op == "stop"]

    # --- machinery ---

    def perform(self, effects: Iterable[Effect]) -> None:
        reports: list[TypingReport] = []
        for effect in effects:
            self.effects.append(effect)
            match effect:
                case Schedule(key, at_ms):
                    self._arm(key, at_ms)
                case Cancel(key):
                    self.armed.pop(key, None)
                case StartTyping(token):
                    reports += self.lane.start(token, self.now_ms)
                case StopTyping():
                    reports += self.lane.stop(self.now_ms)
                case WithdrawTyping():
                    reports += self.lane.withdraw(self.now_ms)
        self._pump()
        self._tell(reports)

    def _later(self, at_ms: int, happen: Callable[[], None], *, soon: bool = False) -> int:
        number = next(self._order)
        heapq.heappush(self._queue, (at_ms, 0 if soon else 1, number, happen))
        return number

    def _arm(self, key: Hashable, at_ms: int) -> None:
        def fire() -> None:
            if self.armed.get(key) == number:
                del self.armed[key]
                self.perform(self.machine.on_timeout(key, self.now_ms))

        number = self.armed[key] = self._later(at_ms, fire)

    def _pump(self) -> None:
        if self.blocked or (proposal := self.lane.next_command(self.now_ms)) is None:
            if self.lane.not_before_ms > self.now_ms:
                self._later(self.lane.not_before_ms, self._pump)
            return
        command = proposal[0]
        nth = len(self.calls)
        self.calls.append((self.now_ms, command.op.removeprefix("typing_")))
        self.lane.begin(command, self.now_ms)
        latency_ms, outcome = self.answer(nth, command.op)
        if latency_ms is not None:
            self._later(self.now_ms + latency_ms, lambda: self._end(command, outcome), soon=not latency_ms)

    def _end(self, command: Command, outcome: Outcome) -> None:
        assert self.lane.in_flight is command
        reports = self.lane.end(outcome, self.now_ms)
        self._pump()
        self._tell(reports)

    def _tell(self, reports: Iterable[TypingReport]) -> None:
        for report in reports:
            if report.token is None:
                effects = self.machine.on_stopped(report.outcome, self.now_ms)
            else:
                effects = self.machine.on_started(report.token, report.outcome, self.now_ms, called=report.called)
            self.perform(effects)


def assert_at_rest(world: TypingWorld) -> None:
    """Nothing is left: no timer, no wish, no call."""
    assert world.machine.idle
    assert not world.machine.active
    assert not world.machine.wanted
    assert not world.machine.deadlines
    assert not world.armed
    assert world.lane.idle
