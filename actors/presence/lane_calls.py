"""The calls of one account's lanes: placing lanes in the order, beginning the next call, taking its answer.

`health` says what an answer means for calls to come, `pacing` what it means for their time. A target whose
circuit is open is not asked again: what is wanted there is refused at once, without a call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from actors.presence.breaker import Gate
from actors.presence.health import Call, Health
from actors.presence.lane_table import Entry, LaneTable, MarkEntry
from actors.presence.order import Order
from actors.presence.pacing import Pacing
from actors.presence.terms import Command, Outcome, OutcomeKind, Rank, Report

_REFUSALS_MAX: Final = 8
"""Wishes of one lane refused at once by an open circuit; more than any chain of fallbacks has."""
_REFUSED: Final = Outcome(OutcomeKind.FORBIDDEN, detail="refused shortly before; not called")
_FAILED: Final = (OutcomeKind.TRANSIENT, OutcomeKind.UNKNOWN, OutcomeKind.RATE_LIMITED)


@dataclass(frozen=True, slots=True)
class Begin:
    """Make this call now and answer with `Lanes.end`."""

    call_id: int
    command: Command
    rank: Rank


class LaneCalls:
    """The calls of one account. ``counters`` are described at `lanes.Lanes.counters`."""

    def __init__(self, table: LaneTable, pacing: Pacing, health: Health, concurrency: int) -> None:
        self.order = Order(table, pacing, health, concurrency)
        self.counters: Counter[str] = Counter()
        self.under_way: dict[int, tuple[Call, Entry]] = {}
        self._table = table
        self._pacing = pacing
        self._health = health
        self._last_id = 0
        self._reports: list[Report] = []

    def changed(self, entry: Entry, reports: Sequence[Report], now_ms: int) -> list[Report]:
        """A wish of the lane has changed, and it said ``reports``: place it anew. What the machines have to
        be told."""
        self._reports += reports
        self.place(entry, now_ms)
        return self.take_reports()

    def take_reports(self) -> list[Report]:
        """What the machines have to be told since the last time."""
        reports, self._reports = self._reports, []
        return reports

    def place_all(self, now_ms: int) -> None:
        """Place every lane anew."""
        for entry in list(self._table.entries()):
            self.place(entry, now_ms)

    def retry_now(self, now_ms: int) -> list[Report]:
        """Let no lane back off any longer; more than can be called at once leave one by one. What the machines have
        to be told."""
        waiting = [entry for entry in self._table.entries() if entry.lane.not_before_ms > now_ms]
        if len(waiting) > self.order.concurrency:
            self._pacing.slow(now_ms)
        for entry in waiting:
            entry.lane.not_before_ms = 0
            self.place(entry, now_ms)
        return self.take_reports()

    def place(self, entry: Entry, now_ms: int) -> None:
        """Put the lane where it belongs now: among those that wait, parked, at rest, or away."""
        self._reports += entry.lapse(now_ms)
        self._count_saved(entry)
        lane = entry.lane
        for _ in range(_REFUSALS_MAX):
            at_ms = max(now_ms, lane.not_before_ms)
            proposal = lane.next_command(at_ms)
            if proposal is None:
                break
            command, rank = proposal
            refused = self._health.gate(entry.conversation, command.op, now_ms) is Gate.REFUSE
            if refused and not entry.takes_away(command):
                self._reports += entry.refuse(command, _REFUSED, now_ms)
                continue
            if at_ms > now_ms:
                self.order.park(entry, at_ms)
            else:
                self.order.put(entry, command, rank)
            return
        self.order.remove(entry)
        self._count_saved(entry)
        if lane.idle:
            self._table.drop(entry)

    def next(self, now_ms: int) -> Begin | None:
        """Begin the call that goes first, if one may start now. Ask again until None."""
        for entry in self.order.woken(now_ms):
            self.place(entry, now_ms)
        while (found := self.order.first(now_ms)) is not None:
            begun = self._begin(*found, now_ms)
            if begun is not None:
                return begun
        return None

    def end(self, call_id: int, outcome: Outcome, now_ms: int) -> list[Report]:
        """The call has ended."""
        flight = self.under_way.pop(call_id, None)
        if flight is None:
            self.counters["late_answers"] += 1
            return []
        call, entry = flight
        kind = outcome.kind
        self.counters[f"outcome_{kind}"] += 1
        entry.failed = kind in _FAILED
        self.order.ended(entry, call)
        verdict = self._health.ended(call, outcome, now_ms)
        if kind is OutcomeKind.RATE_LIMITED:
            self.counters["rate_limited"] += 1
            self._pacing.block(call.command, outcome.scope, outcome.retry_after_ms, now_ms, call.begun_ms)
        elif outcome.happened and outcome.retry_after_ms:
            self._pacing.pause(call.command, outcome.scope, outcome.retry_after_ms, now_ms)
        if verdict.recovered:
            self.counters["outages_ended"] += 1
            self._pacing.slow(now_ms)
        if verdict.stopped:
            self.counters["accounts_stopped"] += 1
        if verdict.paused:
            self.counters["refusal_pauses"] += 1
        self._reports += entry.end(call.command, outcome, now_ms)
        if isinstance(entry, MarkEntry) and entry.lane.dead is OutcomeKind.FORBIDDEN and outcome.scope == "message":
            self._health.bury(entry.conversation, entry.lane.message, now_ms)
        self.place(entry, now_ms)
        if verdict.opened is not None:
            self.counters["breaker_opened"] += 1
            for other in self._table.of(*verdict.opened):
                self.place(other, now_ms)
        return self.take_reports()

    def restart(self, now_ms: int) -> list[Report]:
        """Whoever made the calls was restarted: nobody knows how those under way ended."""
        self.lose(now_ms)
        return self.take_reports()

    def lose(self, now_ms: int) -> None:
        """Nobody will know how the calls under way ended."""
        flights, self.under_way = self.under_way, {}
        for call, entry in flights.values():
            self.order.ended(entry, call)
            self._health.lost(call)
            entry.failed = True
            self._reports += entry.end(call.command, Outcome(OutcomeKind.UNKNOWN), now_ms)
            self.place(entry, now_ms)

    # --- inside --------------------------------------------------------------------------------

    def _begin(self, entry: Entry, rank: Rank, now_ms: int) -> Begin | None:
        """Begin the lane's call; None: it has changed its mind or waits for its own budget."""
        proposal = entry.lane.next_command(now_ms)
        if proposal is None or proposal[1] is not rank:
            self.place(entry, now_ms)
            return None
        command = proposal[0]
        if wait_ms := self._pacing.message_wait(command, rank, now_ms):
            self.order.park(entry, wait_ms)
            return None
        self._last_id += 1
        call = Call(self._last_id, command, rank, now_ms)
        entry.lane.begin(command, now_ms)
        self._pacing.spend(command, now_ms)
        self._health.begun(call)
        self.order.begun(entry, call)
        self.under_way[call.call_id] = (call, entry)
        self.counters["calls_made"] += 1
        self.counters["retries"] += entry.failed
        return Begin(call.call_id, command, rank)

    def _count_saved(self, entry: Entry) -> None:
        self.counters["calls_saved"] += entry.lane.saved - entry.saved
        entry.saved = entry.lane.saved
