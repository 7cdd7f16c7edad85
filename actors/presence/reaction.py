"""The status mark of one run: which emoji should be on its message now.

Which phase a run is in, and which state's mark goes with it, is decided in `phases`; this machine adds time
and the end. ``desired`` is what the platform was last asked to show; *pending* is what it will be asked for
when the timer ``show`` ends.

Rules:

- ``received`` shows the ack, if allowed, and nothing else. Status marks begin with the first phase.
- ``queued`` is asked for at once, other phases after ``debounce_ms``. Each different phase starts the
  debounce anew, but no burst waits longer than three of them. Asking for what shows drops what is pending.
- Without progress the stall marks are shown at once, ``stall_soft_ms`` and ``stall_hard_ms`` after the last
  progress; the next progress brings the phase back, debounced. A phase that is pending is not lost to a
  stall. The clocks are off before the first phase, while waiting, and from ``restore`` or a final ``sent``
  to the next phase.
- States outside the presentation, and in quiet hours all but done and error, leave the mark as it is.
- ``min_change_ms`` delays every change but done, error and removals; ``start_delay_ms`` every mark.
- The first terminal wins. ``done`` and ``error`` show their mark at once; it is held from its confirmation
  on and then settled. ``cancelled``, ``silent`` and ``clear`` remove the marks at once. A terminal that is
  not presented settles at once; with ``keep`` that leaves the ack.
- A refused phase leaves the mark before it. A refused terminal removes all marks and is told as not shown.
- A newer run on the same message takes the marks over: this one shows nothing any more (`disown`).

| stage | event | next stage | effect |
| --- | --- | --- | --- |
| open | received, phase, progress, restore | open | show, now or later |
| open | confirmed | open | none |
| open | refused | open | none; the mark before it is desired again |
| open | done, error, presented | final | show the final mark |
| open | done, error, not presented | leaving | clear; the ack, unless settle is clear |
| open | cancelled, silent, clear | leaving | clear |
| final | confirmed, settle keep | gone | finished |
| final | confirmed | held | arm ``hold`` |
| final | refused: chain used up, bad request, forbidden | leaving | clear |
| final | refused otherwise | gone | finished, not shown |
| held | ``hold`` | leaving | clear, or show the ack |
| final, held, leaving, gone | clear | leaving | clear; nothing if that was asked already |
| final, held, leaving, gone | restore | leaving | show the ack; as clear where none is allowed |
| leaving | confirmed, or refused otherwise | gone | finished |
| leaving | refused: chain used up, bad request, forbidden | leaving; gone if it was the clear | clear; finished |
| final, held, leaving, gone | anything else | the same | none |

A run that never asked for a mark goes from open to gone.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from actors.presence.reaction_marks import STALL, ReactionMarks, Wanted
from actors.presence.terms import Effect, Finished, MarkReport, OutcomeKind, Rank, RunInfo, Verdict
from protocol import events
from protocol.events import Event

__all__ = ["ReactionMachine"]

_HOLD = "hold"
_NOT_TO_BE_HAD = (OutcomeKind.INVALID_REACTION, OutcomeKind.BAD_REQUEST, OutcomeKind.FORBIDDEN)
_ENDS: dict[type[Event], str] = {
    events.Done: "done",
    events.Error: "error",
    events.Cancelled: "cancelled",
    events.Silent: "silent",
    events.Clear: "cancelled",
}


class ReactionMachine(ReactionMarks):
    """One run's marks. Pure: effects out, reports and timeouts in; ``deadlines`` are the armed timers."""

    __slots__ = ("_end", "_judged", "_not_shown", "_stage", "verdict")

    def __init__(self, info: RunInfo) -> None:
        super().__init__(info)
        self._stage = "open"
        self._end = ""
        self._not_shown = False
        self._judged = False
        self.verdict: Verdict | None = None
        """What showed at the end, as soon as that is certain. Who has read it sets it to None."""

    @property
    def phase(self) -> str:
        """Queued, waiting, thinking, tool, compacting, or how the run ended."""
        return self._end or self._phases.phase

    @property
    def ended(self) -> bool:
        """Whether the run had its terminal (its marks may still be held)."""
        return bool(self._end)

    def handle(self, event: Event, now_ms: int, *, local_minute: int = 0) -> Sequence[Effect]:
        """Take one event of the run. ``local_minute``: minute of the local day, for the quiet hours."""
        self._look_at_clock(now_ms, local_minute)
        kind = type(event)
        if self._end:
            self._after_the_end(kind, now_ms)
        elif kind in _ENDS and not (isinstance(event, events.Error) and event.scope == "lane"):
            self._finish(_ENDS[kind], now_ms)
        elif kind is events.Restore:
            self._restore(now_ms)
        else:
            self._follow(event, now_ms)
        return self._take()

    def on_timeout(self, key: Hashable, now_ms: int) -> Sequence[Effect]:
        """The timer ``key`` has ended. A timer that is not armed any more is ignored."""
        if self.deadlines.pop(key, None) is None:
            return ()
        if key == _HOLD:
            self._settle(now_ms)
        else:
            self._on_mark_timer(key, now_ms)
        return self._take()

    def on_mark(self, report: MarkReport, now_ms: int) -> Sequence[Effect]:
        """What was desired is confirmed or refused. A report about an older wish is ignored."""
        if self._disowned or (report.chain is not None and report.chain != (self.desired or ())):
            return ()
        if self._stage == "open":
            self._on_open_mark(report.refused is None)
        elif self._stage == "final":
            self._on_final_mark(report.emoji, report.refused, now_ms)
        elif self._stage == "leaving":
            if report.refused in _NOT_TO_BE_HAD and self.desired is not None:
                self._leave(None, now_ms)
            else:
                self._gone()
        return self._take()

    def cancel_pending(self, now_ms: int) -> Sequence[Effect]:
        """Forget the phase that waits for its debounce; what was asked for already goes on."""
        self._drop_pending()
        return self._take()

    def disown(self) -> Sequence[Effect]:
        """A newer run owns the message. Its marks are the caller's to clear if the newer run shows none."""
        self._disowned = True
        self._stop_timers()
        if self._end and self._stage != "gone":
            self._gone()
        return self._take()

    def restart(self, now_ms: int) -> Sequence[Effect]:
        """The actor was restarted: stall clocks begin anew, other timers are kept, the wish is told again."""
        if self._stage == "gone" or self._disowned:
            return ()
        self._tell_again()
        self._rearm(now_ms)
        return self._take()

    # --- the end ----------------------------------------------------------------------------------------

    def _after_the_end(self, kind: type[Event], now_ms: int) -> None:
        if self._disowned or kind not in (events.Clear, events.Restore):
            return
        chain = self._ack_now(now_ms) if kind is events.Restore else None
        if chain is not None or self.desired is not None:
            self._leave(chain, now_ms)

    def _finish(self, end: str, now_ms: int) -> None:
        self._end = end
        self._stop_timers()
        chain = self._chain(end, now_ms) if end in ("done", "error") else None
        if self._disowned:
            self._gone()
        elif chain is not None and not self._delayed(now_ms):
            self._stage = "final"
            self._tell(Wanted(chain, Rank.TERMINAL), now_ms)
        elif end in ("done", "error") and self._status.settle != "clear":
            self._leave(self._ack_now(now_ms), now_ms)
        else:
            self._leave(None, now_ms)

    def _on_final_mark(self, emoji: str | None, refused: OutcomeKind | None, now_ms: int) -> None:
        self._not_shown = refused is not None
        self._judge(Verdict(emoji) if refused is None else Verdict(None, refused.value))
        if refused in _NOT_TO_BE_HAD:
            self._leave(None, now_ms)
        elif refused is not None or self._status.settle == "keep":
            self._gone()
        else:
            status = self._status
            hold_ms = status.done_hold_ms if self._end == "done" else status.error_hold_ms
            if status.settle == "restore":
                hold_ms = max(hold_ms, self._wait_to_change_ms(now_ms))
            self._stage = "held"
            self._arm(_HOLD, now_ms + hold_ms)

    def _settle(self, now_ms: int) -> None:
        self._leave(self._ack_now(now_ms) if self._status.settle == "restore" else None, now_ms)

    def _leave(self, chain: tuple[str, ...] | None, now_ms: int) -> None:
        """The last change: to the ack or to no mark."""
        self._disarm(_HOLD)
        if chain is None and not self._touched:
            self._gone()
        else:
            self._stage = "leaving"
            self._tell(Wanted(chain, Rank.TERMINAL), now_ms)

    def _judge(self, verdict: Verdict) -> None:
        if not self._judged:
            self._judged, self.verdict = True, verdict

    def _gone(self) -> None:
        problem = None if self._end not in ("done", "error") else "superseded" if self._disowned else "not_presented"
        self._judge(Verdict(None, problem))
        self._stage = "gone"
        self._out.append(Finished(self._not_shown))

    def _rearm(self, now_ms: int) -> None:
        self._progress_ms = now_ms
        for key, saved_ms in list(self.deadlines.items()):
            due_ms = self._stall_due_ms() if key == STALL else None
            self._arm(key, max(saved_ms, now_ms) if due_ms is None else due_ms)
