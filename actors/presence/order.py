"""Which lane goes next, and may: the waiting lanes in order against budgets, health and free connections.

The order is that of `ready`. On the way to the first lane that may start, a class is skipped when it has no
free connection or the account holds it back, and a conversation leaves the queue when its budget is spent,
it is blocked, too many of its calls are under way, or its circuit is being probed; it comes back by itself.
"""

from __future__ import annotations

from actors.presence.breaker import NEVER, SHOWING, Gate
from actors.presence.health import Call, Health
from actors.presence.lane_table import Entry, LaneTable, MarkEntry, TypingEntry
from actors.presence.pacing import Pacing
from actors.presence.ready import Bin, Ready, Waiting
from actors.presence.terms import Command, Op, Rank


class Order:
    """The waiting lanes of one account."""

    def __init__(self, table: LaneTable, pacing: Pacing, health: Health, concurrency: int) -> None:
        self._table = table
        self._pacing = pacing
        self._health = health
        self._flights = 0
        self._low_flights = 0
        self.regroup(concurrency)

    def regroup(self, concurrency: int) -> None:
        """Forget all waiting lanes and begin anew with other limits; the owner places its lanes again.

        Ops that are paced alike, and held back by circuits alike, wait in the same bins.
        """
        for entry in self._table.entries():
            entry.bin = None
            entry.alarm = 0
        groups = {op: (self._pacing.groups[op], op in SHOWING) for op in Op}
        distinct = list(dict.fromkeys(groups.values()))
        self.concurrency = concurrency
        """Calls under way at most."""
        self._groups = {op: distinct.index(group) for op, group in groups.items()}
        self._ops = {group: op for op, group in sorted(self._groups.items(), key=lambda pair: pair[1])}
        self._ready = Ready(len(distinct))

    # --- waiting lanes --------------------------------------------------------------------------------------

    def put(self, entry: Entry, command: Command, rank: Rank) -> None:
        """The lane would make this call now."""
        self._ready.put(entry, rank, self._groups[command.op])

    def park(self, entry: Entry, at_ms: int) -> None:
        """The lane wants nothing before ``at_ms``."""
        self._ready.park(entry, at_ms)

    def remove(self, entry: Entry) -> None:
        """The lane wants nothing."""
        self._ready.remove(entry)

    def woken(self, now_ms: int) -> list[Entry]:
        """Parked lanes whose time has come; they are out, and have to be placed again."""
        return [_entry(item) for item in self._ready.woken(now_ms)]

    def first(self, now_ms: int) -> tuple[Entry, Rank] | None:
        """The lane that goes first and may start a call now, as far as the account and its conversation are
        concerned."""
        if self.full:
            return None
        for rank in Rank:
            open_groups = self._open_groups(rank, now_ms)
            if any(open_groups):
                item = self._ready.first(rank, open_groups, lambda waiting: self._held(waiting, now_ms))
                if item is not None:
                    return _entry(item), rank
        return None

    def wake_at_ms(self, now_ms: int) -> int | None:
        """When `first` or `woken` may have something if nothing happens before; None: something must happen
        first."""
        if self.full or self._health.stopped:
            return None
        alarm_ms = self._ready.next_ms()
        times = [] if alarm_ms is None else [max(alarm_ms, self._health.wait(Rank.TERMINAL, now_ms))]
        for rank in Rank:
            if self._has_room(rank):
                health_ms = self._health.wait(rank, now_ms)
                for group in self._ready.queued_groups(rank):
                    account_ms = self._pacing.account_wait(self._ops[group], rank, now_ms)
                    times.append(max(health_ms, account_ms, now_ms))
        at_ms = min(times, default=NEVER)
        return None if at_ms >= NEVER else at_ms

    # --- calls under way ------------------------------------------------------------------------------------

    @property
    def full(self) -> bool:
        """No connection is free."""
        return self._flights >= self.concurrency

    def begun(self, entry: Entry, call: Call) -> None:
        """The lane's call starts."""
        self._ready.take(entry)
        low = call.rank >= Rank.PHASE
        self._table.begun(entry, low)
        self._flights += 1
        self._low_flights += low

    def ended(self, entry: Entry, call: Call) -> None:
        """The lane's call has ended: what stood aside because of it comes back."""
        low = call.rank >= Rank.PHASE
        self._table.ended(entry, low)
        self._flights -= 1
        self._low_flights -= low
        self._ready.release(entry.conversation)
        if call.probe:
            self._ready.release("")

    # --- what there is --------------------------------------------------------------------------------------

    @property
    def waiting(self) -> bool:
        """Whether any lane waits for anything."""
        return self._ready.waiting

    def counts(self) -> dict[str, int]:
        """Lanes that would make a call now, by class, and lanes and conversations that wait for a time."""
        return {
            **{rank.name.lower(): self._ready.counts[rank] for rank in Rank},
            "parked": self._ready.parked,
        }

    # --- inside ---------------------------------------------------------------------------------------------

    def _held(self, waiting: Bin, now_ms: int) -> bool:
        """Whether the conversation's calls of this class may not start now; then they leave the queue."""
        op = self._ops[waiting.group]
        conversation, low = waiting.conversation, waiting.rank >= Rank.PHASE
        if self._health.gate(conversation, op, now_ms) is Gate.WAIT:
            self._ready.set_aside(waiting, "")
        elif self._table.flights(conversation, low) >= -(-self._connections(low) // 2):
            self._ready.set_aside(waiting, conversation)
        elif wait_ms := self._pacing.conversation_wait(op, conversation, waiting.rank, now_ms):
            self._ready.hold(waiting, wait_ms)
        else:
            return False
        return True

    def _has_room(self, rank: Rank) -> bool:
        """Whether connections are free for this class."""
        return rank < Rank.PHASE or self._low_flights < self._connections(low=True)

    def _connections(self, low: bool) -> int:
        """How many a class may use; one conversation may use half of them, rounded up."""
        return max(1, self.concurrency // 2) if low else self.concurrency

    def _open_groups(self, rank: Rank, now_ms: int) -> list[bool]:
        """Which groups of this class have somebody waiting whom the account lets through."""
        is_open = [False] * len(self._ops)
        queued = self._ready.queued_groups(rank)
        if queued and self._has_room(rank) and not self._health.wait(rank, now_ms):
            for group in queued:
                is_open[group] = not self._pacing.account_wait(self._ops[group], rank, now_ms)
        return is_open


def _entry(item: Waiting) -> Entry:
    assert isinstance(item, (MarkEntry, TypingEntry))
    return item
