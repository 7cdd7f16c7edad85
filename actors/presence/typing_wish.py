"""Whether one run (or one bare scope) wants typing: the part of typing that is decided run by run.

A wish is off for as long as one reason against it holds; it wants typing when none does.

| reason   | comes with                          | goes with                                      |
| -------- | ----------------------------------- | ---------------------------------------------- |
| MODE     | the run opens                       | what the mode asks for, see below              |
| DELAY    | MODE goes and start_delay_ms is set | start_delay_ms later                           |
| USER     | waiting on the user                 | the next phase event (waiting on a slot also)  |
| EXPIRED  | the TTL is over                     | the next progress (`alive` is none)            |
| STOPPED  | an explicit typing_stop             | -                                              |
| REFUSED  | the platform refused the target     | -                                              |
| ANSWERED | a final `sent` that is ok           | -                                              |

An explicit typing_start takes all of them away.

| mode     | typing begins with                                                                       |
| -------- | ---------------------------------------------------------------------------------------- |
| instant  | the run's first event                                                                    |
| thinking | the first phase after queued or waiting (a run that `progress` opens is thinking)        |
| message  | the first visible text                                                                   |
| never    | an explicit typing_start only                                                            |

- The machine arms the TTL of a run when the target's first start has ended. From then on it counts from the
  last sign of life: any event of the run, and an open tool span until span_max_ms after it opened. `alive`
  counts only until quiet_max_ms after the last progress (0: always). A TTL of 0 is off.
- `sending` holds the calls back until `sent`, or for sending_max_ms; the wish itself stays.
"""

from __future__ import annotations

from actors.presence.policy import Policy
from actors.presence.terms import RunKey
from protocol import events
from protocol.events import Event

__all__ = ["ANSWERED", "DELAY", "EXPIRED", "MODE", "REFUSED", "STOPPED", "USER", "TypingWish"]

MODE, DELAY, USER, EXPIRED, STOPPED, REFUSED, ANSWERED = (1 << bit for bit in range(7))

_PHASES = frozenset(events.PHASE_EVENTS)
_WORK = _PHASES - {events.Queued, events.Waiting}
_PROGRESS = _PHASES | {
    events.Progress, events.ToolEnd, events.CompactingEnd, events.Child, events.ChildEnd, events.Merged,
    events.Moved, events.Sending, events.Sent, events.Error, events.TypingStart,
}  # fmt: skip
"""An error arrives here with scope lane only."""
_OWN = frozenset((events.Tool, events.ToolEnd, events.Sending, events.Sent, events.TypingStart, events.TypingStop))
_SPANS_MAX = 256
"""More open tool spans than this are not remembered: the newest decide."""


class TypingWish:
    """One run's wish for typing. Plain data with rules; it makes no effects."""

    __slots__ = (
        "_opened", "_progress_ms", "_settings", "_span_max_ms", "_spans", "delay_until_ms", "forum",
        "hold_until_ms", "inbound", "key", "off", "ttl_at_ms",
    )  # fmt: skip

    def __init__(
        self, key: RunKey | str, policy: Policy, now_ms: int, *, forum: bool = False, inbound: str | None = None
    ) -> None:
        """``key``: the run, or the name of a bare scope. A bare scope wants typing from the start."""
        self.key = key
        self.forum = forum
        self.inbound = inbound
        """The message that the run works on."""
        self.off = 0 if isinstance(key, str) else MODE
        """The reasons against typing that hold now."""
        self.ttl_at_ms: int | None = None
        """When the TTL is over; None: not armed. An open span may move the end further out: `due_ms`."""
        self.hold_until_ms: int | None = None
        """The bot's own reply is going out, until then at most."""
        self.delay_until_ms: int | None = None
        self._settings = policy.typing
        self._span_max_ms = policy.status.span_max_ms
        self._spans: dict[str, int] | None = None
        self._progress_ms = now_ms
        self._opened = False

    # --- settings that the target takes over from the oldest wish that wants typing -------------------------

    @property
    def keepalive_ms(self) -> int:
        """Refresh interval; 0 or less: no refresh."""
        return self._settings.keepalive_ms

    @property
    def failures_max(self) -> int:
        """So many failed starts in a row trip the guard: at least one."""
        return max(1, self._settings.start_failures)

    @property
    def probe_ms(self) -> int:
        return self._settings.probe_ms

    @property
    def post_clears(self) -> bool:
        """Whether the bot's own post ends the indicator."""
        return self._settings.post_clears

    # --- events ---------------------------------------------------------------------------------------------

    def note(self, event: Event, now_ms: int) -> None:
        """Take in an event of the run that is not its end."""
        kind = type(event)
        if kind is events.Alive:
            quiet_max_ms = self._settings.quiet_max_ms
            if quiet_max_ms <= 0 or now_ms <= self._progress_ms + quiet_max_ms:
                self.renew(now_ms)
            return
        if kind in _PROGRESS:
            self._progress_ms = now_ms
            self.off &= ~EXPIRED
        if kind in _PHASES:
            on_user = isinstance(event, events.Waiting) and event.on == "user"
            self.off = self.off | USER if on_user else self.off & ~USER
        if self.off & MODE and self._may_begin(event):
            self._begin(now_ms)
        self._opened = True
        if kind in _OWN:
            self._note_own(event, now_ms)
        if self.off:
            self.ttl_at_ms = None
        else:
            self.renew(now_ms)

    def _may_begin(self, event: Event) -> bool:
        match self._settings.mode:
            case "instant":
                return True
            case "thinking":
                return type(event) in _WORK or (not self._opened and isinstance(event, events.Progress))
            case "message":
                return isinstance(event, events.Text) and event.visible
            case _:
                return False

    def _begin(self, now_ms: int) -> None:
        self.off &= ~MODE
        if self._settings.start_delay_ms > 0:
            self.off |= DELAY
            self.delay_until_ms = now_ms + self._settings.start_delay_ms

    def _note_own(self, event: Event, now_ms: int) -> None:
        """What single events mean beyond being a phase or progress."""
        match event:
            case events.Tool(call=str(call)):
                self._open_span(call, now_ms)
            case events.ToolEnd(call=call) if self._spans:
                self._spans.pop(call, None)
            case events.Sending() if self._settings.sending_max_ms > 0:
                self.hold_until_ms = now_ms + self._settings.sending_max_ms
            case events.Sent(final=final, ok=ok):
                self.hold_until_ms = None
                if final and ok:
                    self.off |= ANSWERED
                    self.delay_until_ms = None
            case events.TypingStart():
                self.off = 0
                self.ttl_at_ms = self.delay_until_ms = None
            case events.TypingStop():
                self.off |= STOPPED

    def _open_span(self, call: str, now_ms: int) -> None:
        spans = self._spans = self._spans or {}
        spans.pop(call, None)
        if len(spans) >= _SPANS_MAX:
            del spans[next(iter(spans))]
        spans[call] = now_ms

    # --- time -----------------------------------------------------------------------------------------------

    def arm(self, now_ms: int) -> None:
        """The TTL counts from now, if there is one."""
        if self._settings.ttl_ms > 0:
            self.ttl_at_ms = now_ms + self._settings.ttl_ms

    def renew(self, now_ms: int) -> None:
        """A sign of life: an armed TTL begins anew."""
        if self.ttl_at_ms is not None:
            self.ttl_at_ms = now_ms + self._settings.ttl_ms

    def due_ms(self) -> int | None:
        """When `pass_due` has something to do next, if nothing happens before."""
        times = [at for at in (self.delay_until_ms, self.hold_until_ms, self._expiry_ms()) if at is not None]
        return min(times) if times else None

    def pass_due(self, now_ms: int) -> None:
        """Let take effect what is due: the delay, the longest hold, the TTL."""
        if self.delay_until_ms is not None and self.delay_until_ms <= now_ms:
            self.delay_until_ms = None
            self.off &= ~DELAY
        if self.hold_until_ms is not None and self.hold_until_ms <= now_ms:
            self.hold_until_ms = None
        expiry_ms = self._expiry_ms()
        if expiry_ms is not None and expiry_ms <= now_ms:
            self.ttl_at_ms = None
            self.off |= EXPIRED

    def _expiry_ms(self) -> int | None:
        if self.ttl_at_ms is None or not self._spans:
            return self.ttl_at_ms
        newest_ms = next(reversed(self._spans.values()))
        return max(self.ttl_at_ms, newest_ms + self._span_max_ms + self._settings.ttl_ms)
