"""Plays a recorded status script on one `ReactionMachine` and one `MarkLane`, against a scripted platform.

The machine keeps its final mark (settle keep) and presents everything; there is no pacing and no deadline. A
call that the script lets fail is not retried; a failed removal is tried again at the next change. A removal
of a mark that is not on the message, and a clearing of an empty message, is answered at once and leaves no
trace.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from actors.presence.mark_lane import MarkLane
from actors.presence.policy import DEFAULT_EMOJI, AckSettings, Policy, StatusSettings
from actors.presence.reaction import ReactionMachine
from actors.presence.terms import (
    Cancel,
    Clear,
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
    Show,
)
from protocol import events
from protocol.events import Event
from tests.conformance.recorded_rule import categories_for

__all__ = ["Played", "emoji_table", "play"]

Trace = dict[str, Any]
Call = list[Any]

STATE_NAMES = {"stallSoft": "stall_soft", "stallHard": "stall_hard"}
DONE = Outcome(OutcomeKind.OK)
FAILED = Outcome(OutcomeKind.TRANSIENT)
NO_RETRIES = RetryRules(phase_tries=1, terminal_retries=False)


@dataclass
class Played:
    """What the platform saw."""

    calls: list[Call] = field(default_factory=list)
    """Time of begin, set, remove or clear, emoji."""
    ends: list[Call | None] = field(default_factory=list)
    """Per call: time of end, ok or err; None: never ended."""
    visible: list[str] = field(default_factory=list)
    timers_at_end: list[str] = field(default_factory=list)
    """Timers that were armed after a terminal."""
    ended_ms: int | None = None
    """When the first terminal came."""


def emoji_table(config: Trace) -> dict[str, str]:
    """The emoji of each state by our names, with ``ack`` for the initial one. A null override is absent."""
    table = {state: chain[0] for state, chain in DEFAULT_EMOJI.items()}
    table["ack"] = table["queued"] = config["initialEmoji"]
    for name, emoji in config.get("emojis", {}).items():
        if emoji:
            table[STATE_NAMES.get(name, name)] = emoji
    return table


def play(trace: Trace) -> Played:
    """Run the whole script and then every timer that is left."""
    return _Player(trace).run()


class _Player:
    def __init__(self, trace: Trace) -> None:
        config = trace["config"]
        self._script: list[list[Any]] = trace["script"]
        self._sync = config.get("mode") == "sync"
        self._latency_ms: list[int | None] = config.get("latencyMs") or [0]
        faults = config.get("faults", {})
        self._failing_calls = set(faults.get("calls", ()))
        self._failing = {
            Op.SET: set(faults.get("setEmojis", ())),
            Op.REMOVE: set(faults.get("removeEmojis", ())),
        }
        self._replaces = not config["hasRemove"]
        self._machine = ReactionMachine(_info(config, self._script))
        rules = LaneRules(reactions="replace" if self._replaces else "add_remove")
        self._lane = MarkLane("chat", "message", rules, NO_RETRIES)
        self._now_ms = 0
        self._heap: list[tuple[int, int, Hashable]] = []
        self._armed: dict[Hashable, int] = {}
        """Key of a timer, or number of a call in flight: its number in the heap."""
        self._numbers = count()
        self._flights: dict[int, tuple[Command, bool]] = {}
        self.played = Played()

    def run(self) -> Played:
        for at, row in enumerate(self._script):
            self._run_timers(row[0])
            self._now_ms = row[0]
            self._do(row[1], row[2] if len(row) > 2 else None)
            together = self._sync and at + 1 < len(self._script) and self._script[at + 1][0] == row[0]
            if not together:
                self._settle()
        self._run_timers(None)
        return self.played

    def _do(self, op: str, name: str | None) -> None:
        if op == "cancel_pending":
            self._perform(self._machine.cancel_pending(self._now_ms))
            return
        ended = self._machine.ended
        self._perform(self._machine.handle(_event(op, name), self._now_ms))
        if self._machine.ended and not ended:
            self.played.ended_ms = self._now_ms
        if self._machine.ended:
            self.played.timers_at_end += [str(key) for key in self._machine.deadlines]

    def _run_timers(self, until_ms: int | None) -> None:
        while self._heap and (until_ms is None or self._heap[0][0] <= until_ms):
            at_ms, number, key = heapq.heappop(self._heap)
            if self._armed.get(key) != number:
                continue
            del self._armed[key]
            self._now_ms = at_ms
            if isinstance(key, int):
                self._end(key)
            else:
                self._perform(self._machine.on_timeout(key, at_ms))
            self._settle()

    def _perform(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Show(chain, rank):
                    self._report(self._lane.show(chain, rank, self._now_ms))
                case Clear(rank):
                    self._report(self._lane.show((), rank, self._now_ms))
                case Schedule(key, at_ms):
                    self._arm(key, at_ms)
                case Cancel(key):
                    self._armed.pop(key, None)
                case _:
                    pass

    def _report(self, reports: Sequence[Any]) -> None:
        for report in reports:
            self._perform(self._machine.on_mark(report, self._now_ms))

    def _arm(self, key: Hashable, at_ms: int) -> None:
        number = self._armed[key] = next(self._numbers)
        heapq.heappush(self._heap, (at_ms, number, key))

    # --- the platform -------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Everything that can go on without time passing goes on."""
        while (following := self._lane.next_command(self._now_ms)) is not None:
            command = following[0]
            self._lane.begin(command, self._now_ms)
            visible = self.played.visible
            absent = command.emoji not in visible if command.op is Op.REMOVE else not visible
            if command.op is not Op.SET and absent:
                self._report(self._lane.end(DONE, self._now_ms))
                continue
            index = len(self.played.calls)
            fails = index in self._failing_calls or command.emoji in self._failing.get(command.op, ())
            self.played.calls.append([self._now_ms, str(command.op), command.emoji])
            self.played.ends.append(None)
            self._flights[index] = command, fails
            latency_ms = self._latency_ms[index % len(self._latency_ms)]
            if latency_ms == 0:
                self._end(index)
            elif latency_ms is not None:
                self._arm(index, self._now_ms + latency_ms)

    def _end(self, index: int) -> None:
        command, fails = self._flights.pop(index)
        self.played.ends[index] = [self._now_ms, "err" if fails else "ok"]
        visible = self.played.visible
        if not fails:
            if command.op is Op.CLEAR or (command.op is Op.SET and self._replaces):
                visible.clear()
            elif command.emoji in visible:
                visible.remove(command.emoji)
            if command.op is Op.SET and command.emoji is not None:
                visible.append(command.emoji)
        self._report(self._lane.end(FAILED if fails else DONE, self._now_ms))


def _event(op: str, name: str | None) -> Event:
    if op == "tool":
        return events.Tool(conversation="chat", message="message", name=name)
    kinds: dict[str, type[events.RunEvent]] = {
        "queued": events.Queued,
        "thinking": events.Thinking,
        "compacting": events.Compacting,
        "done": events.Done,
        "error": events.Error,
        "clear": events.Clear,
        "restore_initial": events.Restore,
    }
    return kinds[op](conversation="chat", message="message")


def _info(config: Trace, script: list[list[Any]]) -> RunInfo:
    timing = config.get("timing", {})
    enabled = config.get("enabled", True)
    names = [row[2] for row in script if row[1] == "tool" and len(row) > 2 and row[2]]
    status = StatusSettings(
        enabled=enabled,
        debounce_ms=timing.get("debounceMs", 700),
        stall_soft_ms=timing.get("stallSoftMs", 10_000),
        stall_hard_ms=timing.get("stallHardMs", 30_000),
        settle="keep",
        emoji={state: (emoji,) for state, emoji in emoji_table(config).items()},
        tools=categories_for(names),
    )
    return RunInfo(
        key=RunKey("account", "chat", "message"),
        message="message",
        thread=None,
        policy=Policy(ack=AckSettings(scope="all"), status=status),
        ack_allowed=enabled,
        status_allowed=True,
    )
