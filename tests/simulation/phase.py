"""What a run's mark must be while it is open, by the words of the design: told by an independent hand from its events."""

from __future__ import annotations

from actors.presence.policy import StatusSettings
from actors.presence.tools import categorise
from protocol import events
from protocol.events import Event

NAMES: dict[type[Event], str] = {
    events.Queued: "queued", events.Thinking: "thinking", events.Text: "thinking", events.Compacting: "compacting",
}  # fmt: skip
GOES_ON = (
    events.Progress, events.ToolEnd, events.CompactingEnd, events.Child, events.ChildEnd, events.Moved, events.Sending,
    events.Sent, events.Error,
)  # fmt: skip


CLOSE_MS = 200
"""So soon after a stall it may have been lost in a crash."""


class Phase:
    """One run's state, its open tool spans, and since when it makes no progress."""

    def __init__(self, status: StatusSettings, now_ms: int) -> None:
        self._status = status
        self._stalls = (("stall_hard", status.stall_hard_ms), ("stall_soft", status.stall_soft_ms))
        self._state = ""
        """Empty before the first event."""
        self._before = "thinking"
        self._span: str | None = None
        self._spans: dict[str, tuple[str, int]] = {}
        self._since_ms = now_ms
        self._still = True
        """Nothing stalls until the next phase."""
        self._stalled: str | None = None
        """The stall that showed when its actor was restarted."""
        self.known = True
        """Whether what shows can be told from the events: not after a restore, or in another process."""
        self.shown: str | None = None
        """The last state that is presented."""

    def see(self, event: Event, now_ms: int) -> None:
        """Follow an event that does not end the run."""
        if isinstance(event, events.Restore):
            self.known = False
        elif isinstance(event, events.Received) and not self._state:
            self._state = "queued"  # with no mark of its own
        state = self._after(event, now_ms)
        if state is None:
            return
        self._since_ms = now_ms
        self._stalled = None
        if isinstance(event, events.Sent) and event.final and event.ok:
            self._still = True
        elif not isinstance(event, GOES_ON) or not self._state:
            self._still = False
            self.known = self.known or self._presented(state)
        if (state != self._state or not isinstance(event, GOES_ON)) and self._presented(state):
            self.shown = state
        self._state = state

    def _after(self, event: Event, now_ms: int) -> str | None:
        """The state after this event; None: it is neither a phase nor progress."""
        match event:
            case events.Tool(name=name, call=call):
                state = categorise(name, self._status.tools)
                self._span = call
                if call is not None:
                    self._spans.pop(call, None)
                    self._spans[call] = (state, now_ms)
                return state
            case events.Thinking() | events.Text():
                return self._newest(now_ms) or "thinking"
            case events.Waiting(on=on):
                return "waiting_user" if on == "user" else "waiting"
            case events.Compacting():
                if self._state not in ("", "compacting"):
                    self._before = self._state
                return "compacting"
            case events.Queued():
                return "queued"
        if not isinstance(event, GOES_ON):
            return None
        if not self._state:
            return "thinking"
        if isinstance(event, events.ToolEnd):
            ended = self._spans.pop(event.call, None)
            if ended is not None and event.call == self._span:
                self._span = None
                if self._state not in ("", "thinking", "queued", "waiting", "waiting_user", "compacting"):
                    return self._newest(now_ms) or self._state
        elif isinstance(event, events.CompactingEnd) and self._state == "compacting":
            return self._newest(now_ms) or self._before
        return self._state

    def _newest(self, now_ms: int) -> str | None:
        if not self._spans:
            return None
        call, (state, opened_ms) = next(reversed(self._spans.items()))
        if 0 < self._status.span_max_ms <= now_ms - opened_ms:
            self._spans.clear()
            return None
        self._span = call
        return state

    def _presented(self, state: str) -> bool:
        return self._status.presentation is None or state in self._status.presentation

    def mark(self, now_ms: int, slack_ms: int) -> tuple[bool, str | None]:
        """Whether it is certain what shows now, and the state whose mark that is (None: the ack, or nothing)."""
        quiet_ms = now_ms - self._since_ms
        if not self.known or quiet_ms < slack_ms or self._about_to_stall(quiet_ms, slack_ms):
            return False, None
        return True, self._stall(quiet_ms) or self._stalled or self.shown

    def restarted(self, now_ms: int) -> None:
        """Its actor has failed: the stall clocks begin anew, and what shows stays."""
        quiet_ms = now_ms - self._since_ms
        if self._about_to_stall(quiet_ms, CLOSE_MS):
            self.known = False
        self._stalled = self._stall(quiet_ms) or self._stalled
        self._since_ms = now_ms

    def _about_to_stall(self, quiet_ms: int, slack_ms: int) -> bool:
        """Whether it has just stalled, if it has."""
        return any(ms and 0 <= quiet_ms - ms < slack_ms for _, ms in self._stalls)

    def _stall(self, quiet_ms: int) -> str | None:
        if not self._state or self._still or self._state in ("waiting", "waiting_user"):
            return None
        return next((state for state, ms in self._stalls if 0 < ms <= quiet_ms and self._presented(state)), None)
