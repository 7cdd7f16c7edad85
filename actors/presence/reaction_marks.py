"""The open run's part of the reaction machine: phases, debounce, stalls, and when a change may be made.

The rules stand in `actors.presence.reaction`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from actors.presence.phases import Phases, Step
from actors.presence.policy import Chain
from actors.presence.presented import ack_chain, is_quiet, marks_on, state_chain
from actors.presence.terms import Cancel, Clear, Effect, Rank, RunInfo, Schedule, Show
from protocol import events
from protocol.events import Event

__all__ = ["STALL", "ReactionMarks", "Wanted"]

BURST_DEBOUNCES = 3
"""A burst of phases waits for so many debounces at most."""

STALL = "stall"
_SHOW = "show"
_STALLS = ("stall_soft", "stall_hard")
_RESTING = ("ack", "queued", "waiting", "waiting_user")
"""States in which nothing stalls."""


class Wanted(NamedTuple):
    """A change to make: to this chain (None: no mark), with this rank."""

    chain: Chain | None
    rank: Rank
    stall: bool = False


class ReactionMarks:
    """What an open run wants to show, and when."""

    __slots__ = (
        "_base", "_burst_ms", "_changed_ms", "_confirmed", "_disowned", "_minute", "_minute_ms",
        "_opened_ms", "_out", "_pending", "_phases", "_progress_ms", "_rank", "_stall_next", "_stalled",
        "_stalls", "_started", "_status", "_stopped", "_touched", "deadlines", "desired", "info",
    )  # fmt: skip

    def __init__(self, info: RunInfo) -> None:
        status = info.policy.status
        self.info = info
        self.deadlines: dict[Hashable, int] = {}
        """The armed timers: key to time."""
        self.desired: Chain | None = None
        """What the platform was last asked to show, best first; None: nothing."""
        self._status = status
        self._phases = Phases(status)
        self._out: list[Effect] = []
        self._confirmed: Chain | None = None
        self._base: Chain | None = None
        """The mark of the last phase (or the ack) that is presented: what comes back after a stall."""
        self._pending: Wanted | None = None
        self._burst_ms: int | None = None
        """When the pending burst began; None: what is pending is not debounced."""
        self._rank = Rank.PHASE
        self._touched = False
        """Whether the platform was ever asked for a mark."""
        self._disowned = False
        self._opened_ms: int | None = None
        self._changed_ms = 0
        self._minute = self._minute_ms = 0
        """Minute of the local day, and when it was told."""
        delays = zip(_STALLS, (status.stall_soft_ms, status.stall_hard_ms), strict=True)
        self._stalls = tuple(sorted(((ms, state) for state, ms in delays if ms > 0), key=lambda stall: stall[0]))
        self._stall_next = 0
        """Index of the stall that comes next."""
        self._stalled = False
        """Whether a stall mark shows."""
        self._started = False
        """Whether the run had a phase."""
        self._stopped = False
        """Whether the stall clocks are off until the next phase."""
        self._progress_ms = 0

    def adopt(self, chain: Chain) -> None:
        """An earlier process has left this mark on the message: it is desired and shown until something happens."""
        self.desired = self._confirmed = self._base = chain
        self._touched = True
        emoji = self._status.emoji
        phases = {shown[0] for state, shown in emoji.items() if state not in _STALLS}
        if chain[0] not in phases and chain[0] in (emoji[state][0] for state in _STALLS):
            self._stalled = True
            self._base = emoji["queued"] if self.info.ack_allowed else None

    def take_over(self, now_ms: int) -> Sequence[Effect]:
        """A client goes on with the run that was left. If the mark is that of work, the stall clocks begin anew."""
        resting = {emoji for state in _RESTING for emoji in self._status.emoji.get(state, ())}
        if self._touched and not self._started and resting.isdisjoint(self.desired or ()):
            self._started = True
            self._progress_ms = now_ms
            self._restart_stalls(now_ms)
        return self._take()

    # --- events -----------------------------------------------------------------------------------------

    def _follow(self, event: Event, now_ms: int) -> None:
        """An event that does not end the run."""
        state = self._phases.state
        step = self._phases.take(event, now_ms)
        if step is Step.NONE:
            if isinstance(event, events.Received) and not state:
                self._show_ack(now_ms)
            return
        if step is Step.PHASE:
            self._started = True
            self._stopped = False
        elif isinstance(event, events.Sent) and event.final and event.ok:
            self._stopped = True
        if self._disowned:
            return
        pending = self._pending
        if step is Step.PHASE or state != self._phases.state or self._stalled or (pending and pending.stall):
            self._want_phase(now_ms, at_once=isinstance(event, events.Queued))
        self._stall_next = 0
        self._progress_ms = now_ms
        self._restart_stalls(now_ms)

    def _show_ack(self, now_ms: int) -> None:
        chain = self._ack_now(now_ms, early=True)
        if chain is not None and not self._disowned:
            self._base = chain
            self._request(Wanted(chain, Rank.ACK), now_ms, None)

    def _restore(self, now_ms: int) -> None:
        """Back to the ack, before the end; where none may show, what shows stays."""
        chain = self._ack_now(now_ms, early=True)
        if chain is None:
            return
        self._stopped = True
        self._disarm(STALL)
        self._drop_pending()
        if not self._disowned:
            self._base = chain
            self._request(Wanted(chain, Rank.ACK), now_ms, None)

    def _on_open_mark(self, confirmed: bool) -> None:
        if confirmed:
            self._confirmed = self.desired
        else:
            self.desired = self._confirmed
            self._stalled = False

    # --- timers -----------------------------------------------------------------------------------------

    def _on_mark_timer(self, key: Hashable, now_ms: int) -> None:
        if key == _SHOW:
            pending, self._pending = self._pending, None
            if pending is not None and not self._is_quiet(now_ms):
                self._tell(pending, now_ms)
        elif key == STALL:
            self._on_stall_timer(now_ms)

    def _on_stall_timer(self, now_ms: int) -> None:
        """The timer is left alone by progress; so it may have come too soon."""
        due_ms = self._stall_due_ms()
        if due_ms is None:
            return
        if due_ms > now_ms:
            self._arm(STALL, due_ms)
        elif self.deadlines.get(_SHOW, now_ms + 1) <= now_ms:  # the phase that is due now goes first
            self._arm(STALL, now_ms)
        else:
            state = self._stalls[self._stall_next][1]
            self._stall_next += 1
            self._stall(state, now_ms)
            due_ms = self._stall_due_ms()
            if due_ms is not None:
                self._arm(STALL, max(due_ms, now_ms))

    def _stall(self, state: str, now_ms: int) -> None:
        """Show the stall's mark, but not in the place of a phase that only waits for its debounce."""
        chain = self._chain(state, now_ms)
        if chain is None or chain == self.desired:
            return
        if self._pending is not None and not self._wait_to_change_ms(now_ms):
            return
        self._request(Wanted(chain, Rank.PHASE, stall=True), now_ms, None)

    def _restart_stalls(self, now_ms: int) -> None:
        """Count from ``now_ms``. A timer that ends sooner than the stall is left to find that out."""
        due_ms = self._stall_due_ms()
        if due_ms is None:
            self._disarm(STALL)
        elif self.deadlines.get(STALL, due_ms + 1) > due_ms:
            self._arm(STALL, due_ms)

    def _stall_due_ms(self) -> int | None:
        if not marks_on(self.info) or not self._started or self._stopped or self._phases.waiting:
            return None
        if self._stall_next >= len(self._stalls):
            return None
        return self._progress_ms + self._stalls[self._stall_next][0]

    # --- changes ----------------------------------------------------------------------------------------

    def _want_phase(self, now_ms: int, *, at_once: bool) -> None:
        chain = self._chain(self._phases.state, now_ms)
        if chain is not None:
            self._base = chain
        elif not self._stalled and not (self._pending and self._pending.stall):
            return
        else:  # the phase before comes back after a stall
            at_once = False
        self._request(Wanted(self._base, Rank.PHASE), now_ms, None if at_once else self._status.debounce_ms)

    def _request(self, wanted: Wanted, now_ms: int, debounce_ms: int | None) -> None:
        """Make the change when it may be made: debounced, or (None) at once. Off (0) is a debounce of 0."""
        pending = self._pending
        if wanted.chain == self.desired:
            self._drop_pending()
            return
        if pending is not None and pending.chain == wanted.chain:
            self._pending = wanted
            return
        wait_ms = self._wait_to_change_ms(now_ms)
        if debounce_ms is not None:
            if pending is None or self._burst_ms is None:
                self._burst_ms = now_ms
            longest_ms = self._burst_ms + BURST_DEBOUNCES * debounce_ms - now_ms
            wait_ms = max(wait_ms, min(debounce_ms, longest_ms))
        elif not wait_ms:
            self._tell(wanted, now_ms)
            return
        else:
            self._burst_ms = None
        self._pending = wanted
        self._arm(_SHOW, now_ms + wait_ms)

    def _tell(self, wanted: Wanted, now_ms: int) -> None:
        self._drop_pending()
        self.desired = wanted.chain
        self._rank = wanted.rank
        self._stalled = wanted.stall
        self._changed_ms = now_ms
        self._touched = True
        self._tell_again()

    def _tell_again(self) -> None:
        if self._touched:
            chain = self.desired
            self._out.append(Clear(self._rank) if chain is None else Show(chain, self._rank))

    def _drop_pending(self) -> None:
        self._pending = None
        self._disarm(_SHOW)

    def _wait_to_change_ms(self, now_ms: int) -> int:
        """How long no change but done, error and removals may be made."""
        wait_ms = (self._opened_ms or 0) + self._status.start_delay_ms - now_ms
        if self._touched and self._status.min_change_ms:
            wait_ms = max(wait_ms, self._changed_ms + self._status.min_change_ms - now_ms)
        return max(wait_ms, 0)

    def _delayed(self, now_ms: int) -> bool:
        """Whether it is too early for any mark."""
        return now_ms < (self._opened_ms or 0) + self._status.start_delay_ms

    # --- what is presented ------------------------------------------------------------------------------

    def _chain(self, state: str, now_ms: int) -> Chain | None:
        """The mark of ``state``; None: it is not presented."""
        return state_chain(self.info, state, quiet=self._is_quiet(now_ms))

    def _ack_now(self, now_ms: int, *, early: bool = False) -> Chain | None:
        """The ack's mark, where one is allowed now (``early``: it may be waited for)."""
        return ack_chain(self.info, quiet=self._is_quiet(now_ms), delayed=self._delayed(now_ms) and not early)

    def _is_quiet(self, now_ms: int) -> bool:
        return is_quiet(self._status, (self._minute + (now_ms - self._minute_ms) // 60_000) % 1_440)

    def _look_at_clock(self, now_ms: int, local_minute: int) -> None:
        self._minute, self._minute_ms = local_minute, now_ms
        if self._opened_ms is None:
            self._opened_ms = now_ms

    # --- effects ----------------------------------------------------------------------------------------

    def _arm(self, key: Hashable, at_ms: int) -> None:
        self.deadlines[key] = at_ms
        self._out.append(Schedule(key, at_ms))

    def _disarm(self, key: Hashable) -> None:
        if self.deadlines.pop(key, None) is not None:
            self._out.append(Cancel(key))

    def _stop_timers(self) -> None:
        self._pending = None
        for key in list(self.deadlines):
            self._disarm(key)

    def _take(self) -> Sequence[Effect]:
        if not self._out:
            return ()
        out, self._out = self._out, []
        return out
