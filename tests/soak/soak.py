"""livesign on all platforms at once, on virtual time, before limiters that share nothing with its pacing."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from actors.sandbox.calls import Call
from actors.sandbox.faults import FaultPlan, Faults, Verdict
from actors.scenario import read
from actors.simulate import Result, Simulation
from tests.config_trees import account_on
from tests.soak import traffic
from tests.soak.documented import CHANGE_MS, ENDS, LIMITS, TYPING, Limiter, Window
from tests.soak.naive import Naive

REST_MS = 600_000
"""After the last wave, so that what had to wait can be taken off."""


class LimitedWorld(Faults):
    """Answers of all platforms: slow, sometimes failing, and refusing what is above a limit.

    ``share``: how much of the documented limits the platforms really grant.
    """

    def __init__(self, share: float, seed: int) -> None:
        super().__init__(FaultPlan(), 0)
        self.limiters = {name: Limiter(name, share) for name in LIMITS}
        self.refused: dict[str, list[int]] = {name: [] for name in LIMITS}
        self.into_blocks: list[str] = []
        self.overlaps: list[str] = []
        self.changes: list[str] = []
        """Changes of a message's mark that came too soon."""
        self._busy: dict[tuple[str, ...], int] = {}
        """Lane to when its last call ends."""
        self._shown: dict[tuple[str, ...], list[tuple[str, int]]] = {}
        """Message to its marks, and when they were asked for."""
        self._blocks: dict[tuple[str, ...], tuple[int, int]] = {}
        """Scope to (when livesign knows of it, when it ends)."""
        self._rng = random.Random(seed)

    def judge(self, call: Call, now_ms: int) -> Verdict:
        rng, op = self._rng, call.op.value
        latency_ms = rng.choice((20, 60, 60, 150, 400))
        self._note_lane(call, now_ms, now_ms + latency_ms)
        for scope in _scopes(call.account, op, call.conversation):
            known_ms, until_ms = self._blocks.get(scope, (0, 0))
            if known_ms < now_ms < until_ms:
                self.into_blocks.append(f"{call.account}: {op} at {now_ms} ms, blocked by {scope} until {until_ms} ms")
        wait_ms, window = self.limiters[call.account].ask(op, call.conversation, now_ms)
        if window is not None:
            self.refused[call.account].append(now_ms)
            self._block(call, window, now_ms + latency_ms, now_ms + latency_ms + wait_ms)
            return Verdict("rate_limited", latency_ms, wait_ms, window.scope)
        if rng.random() < 0.01:
            return Verdict("transient", latency_ms)
        if op == "set":
            self._note_change(call, now_ms)
        return Verdict(latency_ms=latency_ms)

    def _note_lane(self, call: Call, now_ms: int, ends_ms: int) -> None:
        """One message's marks, or one typing target, have one call under way at most."""
        lane = (call.account, call.conversation, call.message or "", "" if call.message else call.thread or "")
        if now_ms < self._busy.get(lane, 0):
            self.overlaps.append(
                f"{'/'.join(lane)}: {call.op} at {now_ms} ms, before the answer at {self._busy[lane]} ms"
            )
        self._busy[lane] = max(ends_ms, self._busy.get(lane, 0))

    def _note_change(self, call: Call, now_ms: int) -> None:
        """A mark that had to wait may be followed at once by one that did not, but three do not come in one such time."""
        message = (call.account, call.conversation, call.message or "")
        shown = self._shown.setdefault(message, [])
        if call.emoji in ENDS or (shown and shown[-1][0] == call.emoji):
            return
        shown.append((call.emoji or "", now_ms))
        if len(shown) > 2 and now_ms - shown[-3][1] < CHANGE_MS.get(call.account, 0):
            self.changes.append(f"{'/'.join(message)}: {shown[-3:]}")

    def _block(self, call: Call, window: Window, known_ms: int, until_ms: int) -> None:
        account, op, conversation = call.account, call.op.value, call.conversation
        scope: tuple[str, ...] = (account, "", conversation)
        if window.scope == "account":
            scope = (account, "", "")
        elif window.scope == "route":
            scope = (account, _route(account, op), conversation if window.by == "conversation" else "")
        if until_ms > self._blocks.get(scope, (0, 0))[1]:
            self._blocks[scope] = (known_ms, until_ms)


def _route(account: str, op: str) -> str:
    return op if account == "slack" and op not in TYPING else "typing" if op in TYPING else "marks"


def _scopes(account: str, op: str, conversation: str) -> list[tuple[str, ...]]:
    route = _route(account, op)
    return [(account, "", ""), (account, "", conversation), (account, route, ""), (account, route, conversation)]


@dataclass
class Soak:
    """What was seen; ``problems`` empty: every limit was kept."""

    result: Result
    platforms: LimitedWorld
    naive: dict[str, Naive]
    minutes: float
    calls: Counter[str] = field(default_factory=Counter)

    @property
    def problems(self) -> list[str]:
        world = self.platforms
        found = [*self.result.violations, *world.into_blocks, *world.overlaps, *world.changes]
        found += [f"mark left on {'/'.join(place)}" for place in self.result.world.marks]
        left = self.result.to_json()
        return found + [f"{left[name]} {name} left" for name in ("typing", "open_runs", "ledger_rows") if left[name]]

    def table(self) -> list[dict[str, Any]]:
        """A row a platform."""
        return [self._row(name) for name in self.naive]

    def _row(self, name: str) -> dict[str, Any]:
        naive = self.naive[name]
        peaks = {c.window.name: round(c.peak, 2) for c in self.platforms.limiters[name].counters}
        left = sum(place[0] == name for place in self.result.world.marks)
        return {
            "platform": name,
            "calls": self.calls[name],
            "refused": len(self.platforms.refused[name]),
            "left": left,
            "naive_calls": naive.calls,
            "naive_refused": naive.refused,
            "naive_left": naive.left,
            "peaks": peaks,
        }


def soak(minutes: float = 30, seed: int = 0, share: float = 1.0) -> Soak:
    """Play the traffic. ``share`` below 1: the platforms grant less than they document."""
    rows = traffic.rows(minutes, seed)
    accounts = {name: account_on(name) for name in LIMITS}
    until_ms = int(minutes * 60_000) + REST_MS
    tree = {"config": {"accounts": accounts, "ack": {"scope": "all"}}, "events": rows, "until_ms": until_ms}
    simulation = Simulation(read(tree))
    platforms = LimitedWorld(share, seed)
    simulation.world.faults = platforms
    result = simulation.run()
    naive = {name: Naive(name) for name in LIMITS}
    for bot in naive.values():
        bot.play(rows)
    return Soak(result, platforms, naive, minutes, Counter(call.account for call in result.world.calls))
