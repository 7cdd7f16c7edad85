"""A platform that does what a scenario says, on the runtime's own clock; the twin of the HTTP platforms.

It keeps the truth of what a user of the platform would see: marks on messages and typing indicators with their
lifetimes. `livesign simulate` and the tests run the whole tree against it. Its faults are those of the sandbox.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from actors.platforms.spec import HttpAdapter, Response
from actors.presence.terms import Command, LaneRules, Op, Outcome, OutcomeKind
from actors.runtime import Actor, ActorRef, Runtime
from actors.sandbox.calls import Call
from actors.sandbox.faults import Faults, Verdict
from actors.witness import Witness

FOREVER_MS = 2**62


@dataclass(slots=True)
class CallRecord:
    """One call as the platform saw it."""

    t_ms: int
    account: str
    command: Command
    outcome: str | None = None
    ended_ms: int | None = None


@dataclass(slots=True)
class World:
    """What users of all scripted platforms see, and every call that was made."""

    faults: Faults
    calls: list[CallRecord] = field(default_factory=list)
    marks: dict[tuple[str, str, str], dict[str, str]] = field(default_factory=dict)
    """(account, conversation, message) to emoji and handle, in the order they were set."""
    typing: dict[tuple[str, str, str | None], int] = field(default_factory=dict)
    """(account, conversation, thread) to the time at which the indicator ends by itself."""
    away_ms: int = 0
    """How long the host has slept: the platform's clock is ahead of the runtime's by that."""
    witness: Witness = field(default_factory=Witness)
    _handles: int = 0

    def apply(self, account: str, command: Command, rules: LaneRules, now_ms: int) -> str | None:
        """The call takes effect. Returns the platform's handle of a new mark."""
        place = (account, command.conversation, command.thread if rules.typing_in_threads else None)
        if command.op is Op.TYPING_START:
            life_ms = rules.typing_lifetime_ms
            self.typing[place] = now_ms + life_ms if life_ms else FOREVER_MS
            return None
        if command.op is Op.TYPING_STOP:
            self.typing.pop(place, None)
            return None
        target = (account, command.conversation, command.message or "")
        marks = self.marks.setdefault(target, {})
        if command.op is Op.SET:
            if rules.reactions == "replace":
                marks.clear()
            self._handles += 1
            return marks.setdefault(command.emoji or "", f"h{self._handles}")
        if command.op is Op.REMOVE:
            marks.pop(command.emoji or "", None)
        else:
            marks.clear()
        if not marks:
            del self.marks[target]
        return None

    def posted(self, account: str, conversation: str, thread: str | None) -> None:
        """The bot has posted there, and its post ends the indicator."""
        self.typing.pop((account, conversation, thread), None)
        self.witness.posted(account, conversation, thread)

    def typing_at(self, now_ms: int) -> list[tuple[str, str, str | None]]:
        return [place for place, until_ms in self.typing.items() if until_ms > now_ms]


@dataclass(frozen=True, slots=True)
class _End:
    record: CallRecord
    outcome: Outcome
    applied: bool
    done: Callable[[Outcome], None]


class _Delays(Actor):
    """Ends the calls of one scripted account when their latency is over."""

    mailbox_capacity = 1_000_000

    def __init__(self, platform: ScriptedPlatform) -> None:
        super().__init__()
        self._platform = platform

    def on_receive(self, message: Any) -> None:
        if isinstance(message, _End):
            self._platform.end(message)
        else:
            at_ms, end = message
            self.schedule_at(at_ms, end, key=id(end))


class ScriptedPlatform:
    """One account's port into the `World`."""

    def __init__(
        self,
        account: str,
        rules: LaneRules,
        world: World,
        runtime: Runtime,
        adapter: HttpAdapter | None = None,
    ) -> None:
        self._account = account
        self._rules = rules
        self._world = world
        self._runtime = runtime
        self._adapter = adapter
        self._delays: ActorRef[Any] = runtime.spawn(_Delays, self)
        self._in_flight: dict[int, _End] = {}

    def call(self, command: Command, deadline_ms: int, done: Callable[[Outcome], None]) -> None:
        now_ms = self._now_ms()
        record = CallRecord(now_ms, self._account, command)
        self._world.calls.append(record)
        self._world.witness.called(record)
        thread = command.thread
        call = Call(command.op, self._account, command.conversation, thread, command.message, command.emoji)
        verdict = self._world.faults.judge(call, now_ms)
        latency_ms = verdict.latency_ms
        if verdict.outcome == "hang" or latency_ms >= deadline_ms:
            arrives = verdict.applied or verdict.outcome == "ok"
            end = _End(record, Outcome(OutcomeKind.UNKNOWN, detail="deadline"), arrives, done)
            latency_ms = deadline_ms
        else:
            outcome = self._outcome(verdict, command)
            end = _End(record, outcome, outcome.kind is OutcomeKind.OK or verdict.applied, done)
        self._in_flight[id(end)] = end
        if latency_ms == 0:
            self.end(end)
        else:
            self._delays.tell((self._runtime.clock.now_ms() + latency_ms, end))

    def _now_ms(self) -> int:
        return self._runtime.clock.now_ms() + self._world.away_ms

    def _outcome(self, verdict: Verdict, command: Command) -> Outcome:
        raw = verdict.response
        if raw is not None:
            if self._adapter is None:
                return Outcome(OutcomeKind.BAD_REQUEST, detail="this platform has no adapter for raw responses")
            body = raw.body.encode() if isinstance(raw.body, str) else msgspec.json.encode(raw.body)
            headers: Mapping[str, str] = {name.lower(): value for name, value in raw.headers.items()}
            return self._adapter.outcome(command, Response(raw.status, headers, body))
        kind = OutcomeKind(verdict.outcome)
        return Outcome(kind, retry_after_ms=verdict.retry_after_ms, scope=verdict.scope, detail="scripted")

    def abandon(self) -> None:
        """The process was killed: calls under way reach the platform, and nobody hears the answer."""
        for end in list(self._in_flight.values()):
            self._finish(end)
            end.record.outcome = "lost"

    def end(self, end: _End) -> None:
        """The call's latency is over: it takes effect, and the answer goes back."""
        if id(end) in self._in_flight:
            end.done(self._finish(end))

    def _finish(self, end: _End) -> Outcome:
        del self._in_flight[id(end)]
        now_ms = self._now_ms()
        end.record.ended_ms = now_ms
        outcome = end.outcome
        end.record.outcome = "hang" if outcome.kind is OutcomeKind.UNKNOWN else outcome.kind.value
        if end.applied:
            handle = self._world.apply(self._account, end.record.command, self._rules, now_ms)
            if outcome.happened and outcome.handle is None:
                outcome = replace(outcome, handle=handle)
        self._world.witness.answered(end.record, outcome, end.applied)
        return outcome

    def close(self) -> None:
        """Nothing is held."""
