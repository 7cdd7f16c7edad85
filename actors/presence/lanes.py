"""All lanes of one account: which call goes next, and what its answer means for the others.

`show`, `type_start` and `type_stop` say what is wanted; `next` begins the call that goes first, if any may
start now; `end` takes its answer. Nothing here waits: `wake_at_ms` says when to ask again if nothing
happens before.

Order
    Terminal before ack before phase before typing; inside a class conversations take turns (`ready`). One
    call at a time per lane. Phases and typing take at most half of the connections, one conversation at
    most half (rounded up). A lane whose call may not start stands aside for the others: its scope is paced
    or blocked (`pacing`), its conversation's circuit is being probed (`breaker`), or it backs off after a
    failure.

Answers
    `health` says what they mean. A refused target is not asked again for as long as its circuit is open:
    what is wanted there is refused at once, without a call. Where a mark of ours shows already, a forbidden
    new one is refused as that one mark only, so that the old one can still be taken away. When the account
    is stopped, what is wanted waits for `revive`, but for typing, which is refused.

Reports
    Every method that can finish or refuse something returns reports for the machines. An answer to a call
    that is not known (any more) changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from actors.presence.breaker import Refusals, Refused
from actors.presence.health import Health
from actors.presence.lane_calls import Begin, LaneCalls
from actors.presence.lane_table import LaneTable, MarkEntry
from actors.presence.lesson import Learned
from actors.presence.marks import Mark
from actors.presence.pacing import Limit, Pacing, ScopeKey
from actors.presence.terms import (
    OK,
    LaneRules,
    MarkReport,
    Outcome,
    OutcomeKind,
    Rank,
    Report,
    RetryRules,
    TypingReport,
)

__all__ = ["Begin", "Lanes"]


class Lanes:
    """The lanes of one account.

    ``concurrency``: calls under way at most. ``key_prefix`` makes idempotency keys unique over restarts.
    ``refusals``: see `health.Health`.
    """

    def __init__(
        self,
        account: str,
        rules: LaneRules,
        pacing: Pacing,
        retry: RetryRules,
        concurrency: int,
        *,
        key_prefix: str = "",
        refusals: Refusals | None = None,
    ) -> None:
        self.account = account
        self._pacing = pacing
        self._health = Health(refusals)
        self._table = LaneTable(rules, retry, self._is_refused, key_prefix)
        self._calls = LaneCalls(self._table, pacing, self._health, concurrency)
        self._now_ms = 0

    # --- what is wanted -------------------------------------------------------------------------------------

    def show(
        self,
        conversation: str,
        message: str,
        chain: tuple[str, ...],
        rank: Rank,
        now_ms: int,
        *,
        forum: bool = False,
    ) -> list[Report]:
        """This mark should show (the first of ``chain`` that can be had), or none (empty chain)."""
        self._now_ms = now_ms
        if self._health.is_dead(conversation, message, now_ms):
            refused = OutcomeKind.GONE if chain else None
            return [MarkReport(conversation, message, chain[0] if chain else None, refused, chain)]
        entry = self._table.mark(conversation, message)
        if entry is None:
            entry = self._table.add_mark(conversation, message, forum)
        return self._calls.changed(entry, entry.lane.show(chain, rank, now_ms), now_ms)

    def release(self, conversation: str, message: str, now_ms: int) -> list[Report]:
        """The run is over, its last wish told: drop the lane once that holds, and let a kept mark be."""
        self._now_ms = now_ms
        entry = self._table.mark(conversation, message)
        if entry is None:
            return []
        entry.lane.release()
        return self._calls.changed(entry, (), now_ms)

    def type_start(
        self,
        conversation: str,
        thread: str | None,
        token: int,
        now_ms: int,
        *,
        forum: bool = False,
        inbound: str | None = None,
    ) -> list[Report]:
        """Make one typing call (start or refresh). Every token is answered by exactly one report."""
        self._now_ms = now_ms
        if self._health.stopped:
            return [TypingReport(conversation, thread, token, Outcome(OutcomeKind.AUTH), called=False)]
        entry = self._table.typing(conversation, thread)
        if entry is None:
            entry = self._table.add_typing(conversation, thread, forum)
        return self._calls.changed(entry, entry.lane.start(token, now_ms, inbound), now_ms)

    def type_withdraw(self, conversation: str, thread: str | None, now_ms: int) -> list[Report]:
        """Do not make the start that has not begun; what is on stays on."""
        self._now_ms = now_ms
        entry = self._table.typing(conversation, thread)
        if entry is None:
            return []
        return self._calls.changed(entry, entry.lane.withdraw(now_ms), now_ms)

    def type_stop(self, conversation: str, thread: str | None, now_ms: int) -> list[Report]:
        """Typing should be off."""
        self._now_ms = now_ms
        entry = self._table.typing(conversation, thread)
        if entry is None:
            return [TypingReport(conversation, thread, None, OK, called=False)]
        return self._calls.changed(entry, entry.lane.stop(now_ms), now_ms)

    # --- calls ----------------------------------------------------------------------------------------------

    def next(self, now_ms: int) -> Begin | None:
        """Begin the call that goes first, if one may start now. Ask again until None."""
        self._now_ms = now_ms
        return self._calls.next(now_ms)

    def end(self, call_id: int, outcome: Outcome, now_ms: int) -> list[Report]:
        """The call has ended."""
        self._now_ms = now_ms
        return self._calls.end(call_id, outcome, now_ms)

    def take_reports(self) -> list[Report]:
        """What `next` has finished or refused without a call."""
        return self._calls.take_reports()

    def wake_at_ms(self) -> int | None:
        """When `next` may have something again if nothing happens; None: something must happen first."""
        return self._calls.order.wake_at_ms(self._now_ms)

    def restart(self, now_ms: int) -> list[Report]:
        """Whoever made the calls was restarted: nobody knows how those under way ended."""
        self._now_ms = now_ms
        return self._calls.restart(now_ms)

    # --- faults and changes ---------------------------------------------------------------------------------

    def revive(self, now_ms: int) -> None:
        """The credentials have changed: call again, also what was forbidden."""
        self._now_ms = now_ms
        self._health.revive()

    def reachable(self, now_ms: int) -> list[Report]:
        """Whoever makes the calls is back: no lane backs off any longer. In an outage one of them probes at once."""
        self._now_ms = now_ms
        self._health.reachable(now_ms)
        return self._calls.retry_now(now_ms)

    def posted(self, conversation: str, now_ms: int) -> None:
        """The bot has posted there: what was forbidden may be allowed again, so the next wish asks."""
        self._now_ms = now_ms
        self._health.reopen(conversation, now_ms)

    def change(self, limits: Mapping[str, Limit], reserve: float, concurrency: int, now_ms: int) -> None:
        """Other limits from now on; calls under way go on."""
        self._now_ms = now_ms
        self._pacing.change(limits, reserve)
        self._calls.order.regroup(concurrency)
        self._calls.place_all(now_ms)

    def share(self, refusals: Refusals) -> None:
        """Calls go out from another host now: its refused calls count."""
        self._health.share(refusals)

    def moved(self, now_ms: int) -> dict[ScopeKey, Learned]:
        """The account is at another server now, `change` follows. What the old one has counted, blocked and refused says
        nothing of it, and answers to calls under way there are lost. What was learned, as it stands now: for the ledger."""
        self._now_ms = now_ms
        self._calls.lose(now_ms)
        self._health.moved()
        return self._pacing.moved()

    def adopt(self, conversation: str, message: str, emoji: str, mark: Mark, now_ms: int) -> None:
        """An earlier process left this mark on the message. Of several, oldest first, the last is kept."""
        self._now_ms = now_ms
        entry = self._table.mark(conversation, message)
        if entry is None:
            entry = self._table.add_mark(conversation, message)
        entry.lane.adopt(emoji, mark, now_ms)
        self._calls.place(entry, now_ms)

    def find(self, conversation: str, message: str, emoji: str, mark: Mark, now_ms: int) -> None:
        """An earlier process left this mark on a message that has a lane here: it is there unless one of ours took its
        place, and goes unless it is wanted."""
        self._now_ms = now_ms
        entry = self._table.mark(conversation, message)
        if entry is not None:
            entry.lane.find(emoji, mark)
            self._calls.place(entry, now_ms)

    def adopt_typing(self, conversation: str, thread: str | None, now_ms: int) -> None:
        """An earlier process may have left typing on there."""
        self._now_ms = now_ms
        if self._table.typing(conversation, thread) is None:
            entry = self._table.add_typing(conversation, thread)
            entry.lane.start(0, now_ms)
            proposal = entry.lane.next_command(now_ms)
            if proposal is not None:
                entry.lane.begin(proposal[0], now_ms)
                entry.lane.end(OK, now_ms)
            self._calls.place(entry, now_ms)

    def take_learned(self, now_ms: int) -> dict[ScopeKey, Learned]:
        """What limits have taught since this was asked last, to be kept over a restart."""
        return self._pacing.take_learned(now_ms)

    def learn(self, scope: ScopeKey, learned: Learned, age_ms: int, now_ms: int) -> None:
        """An earlier process has learned this, ``age_ms`` ago."""
        self._pacing.learn(scope, learned, age_ms, now_ms)

    def used_before(self, conversation: str, age_ms: int, now_ms: int) -> None:
        """An earlier process was at work there until ``age_ms`` ago: its budgets may have been empty then."""
        self._pacing.used_before(conversation, age_ms, now_ms)

    def take_refused(self, now_ms: int) -> Refused:
        """The refused calls of the last ten minutes, if there are new ones, to be kept over a restart."""
        return self._health.take_refused(now_ms)

    def inherit_refused(self, refused: Refused, age_ms: int, now_ms: int) -> None:
        """An earlier process has counted these, ``age_ms`` ago."""
        self._health.inherit_refused(refused, age_ms, now_ms)

    # --- what there is --------------------------------------------------------------------------------------

    @property
    def counters(self) -> Counter[str]:
        """calls_made, calls_saved, retries, rate_limited, breaker_opened, accounts_stopped, refusal_pauses,
        outages_ended, late_answers, and ``outcome_`` with each outcome kind."""
        return self._calls.counters

    @property
    def stopped(self) -> str | None:
        """Why nothing is called (``auth``); None: the account works."""
        return self._health.stopped

    @property
    def under_way(self) -> int:
        """Calls that have not ended."""
        return len(self._calls.under_way)

    @property
    def idle(self) -> bool:
        """Nothing is under way, and nothing is wanted that could be called."""
        return not self._calls.under_way and (self.stopped is not None or not self._calls.order.waiting)

    def __len__(self) -> int:
        """Lanes kept."""
        return len(self._table)

    def shown_marks(self) -> dict[tuple[str, str], dict[str, str | None]]:
        """By conversation and message: the marks that are certainly there, with their handles."""
        return {
            (entry.conversation, entry.lane.message): shown
            for entry in self._table.entries()
            if isinstance(entry, MarkEntry) and (shown := entry.lane.shown)
        }

    def shown(self, conversation: str, message: str) -> Mapping[str, str | None] | None:
        """The marks that are certainly on this message; None: nothing is wanted or owed there."""
        entry = self._table.mark(conversation, message)
        return None if entry is None else entry.lane.shown

    def possible(self, conversation: str, message: str) -> Mapping[str, Mark] | None:
        """The marks that are, or may be, on this message; None: nothing is wanted or owed there."""
        entry = self._table.mark(conversation, message)
        return None if entry is None else entry.lane.possible

    def keeps_marks(self, conversation: str, message: str) -> bool:
        """Whether a mark is wanted or owed there."""
        return self._table.mark(conversation, message) is not None

    def keeps_typing(self, conversation: str, thread: str | None) -> bool:
        """Whether typing is wanted or owed there."""
        return self._table.typing(conversation, thread) is not None

    def snapshot(self, now_ms: int) -> dict[str, object]:
        """For people; no secrets. O(n) in what is blocked."""
        blocks = self._pacing.blocks(now_ms)
        return {
            "account": self.account,
            "lanes": len(self._table),
            "conversations": self._table.conversations,
            "waiting": self._calls.order.counts(),
            "in_flight": self.under_way,
            "blocked": {" ".join(filter(None, key)): until_ms for key, until_ms in blocks.items()},
            **self._health.snapshot(now_ms),
            "counters": dict(self.counters),
        }

    def sweep(self, now_ms: int) -> None:
        """Drop what is forgotten anyway; O(n), for quiet times."""
        self._pacing.sweep(now_ms)
        self._health.sweep(now_ms)

    # --- inside ---------------------------------------------------------------------------------------------

    def _is_refused(self, conversation: str, emoji: str) -> bool:
        return self._health.is_refused(conversation, emoji, self._now_ms)
