"""The phase of one run, with its open tool spans. No time passes here; what shows is decided in
`reaction`.

| event | phase | mark (state) |
| --- | --- | --- |
| received, as the first event | queued | none of its own |
| queued | queued | queued |
| waiting on slot; on user | waiting | waiting; waiting_user |
| thinking, text | thinking; tool while a span is open | thinking; that of the newest open span |
| tool | tool | by the tool's category; with ``call`` it opens a span |
| tool_end of the span that shows | tool | that of the newest span still open; the same if it was the last |
| tool_end of another span or an unknown one | the same | the same |
| compacting | compacting | compacting |
| compacting_end in compacting | tool if a span is open, else the one before, else thinking | as the phase |
| any other progress, as the first event | thinking | thinking |
| any other progress later | the same | the same |

Progress is: the phase events, ``progress``, ``tool_end``, ``compacting_end``, ``child``, ``child_end``,
``moved``, ``sending``, ``sent`` and ``error`` of scope lane. A span that was opened ``span_max_ms`` ago no
longer counts as open.
"""

from __future__ import annotations

from enum import IntEnum

from actors.presence.policy import StatusSettings
from actors.presence.tools import categorise
from protocol.events import (
    PHASE_EVENTS,
    Child,
    ChildEnd,
    Compacting,
    CompactingEnd,
    Error,
    Event,
    Moved,
    Progress,
    Queued,
    Received,
    Sending,
    Sent,
    Text,
    Thinking,
    Tool,
    ToolEnd,
    Waiting,
)

__all__ = ["Phases", "Step"]

_PROGRESS = frozenset({Progress, ToolEnd, CompactingEnd, Child, ChildEnd, Moved, Sending, Sent, Error})
_PHASE = frozenset(PHASE_EVENTS)


class Step(IntEnum):
    """What an event means for the phase."""

    NONE = 0
    PROGRESS = 1
    PHASE = 2
    """A phase was asked for."""


class Phases:
    """``phase`` is the word for people, ``state`` the key of the mark; both empty before the first event."""

    __slots__ = ("_before", "_settings", "_span", "_spans", "phase", "state")

    def __init__(self, settings: StatusSettings) -> None:
        self._settings = settings
        self.phase = ""
        self.state = ""
        self._before = ("thinking", "thinking")
        """Phase and state that compacting interrupted."""
        self._spans: dict[str, tuple[str, int]] = {}
        """Open spans by call id, newest last: state, when opened."""
        self._span: str | None = None
        """The span whose mark shows."""

    def take(self, event: Event, now_ms: int) -> Step:
        """Follow one event that is not a terminal of the run."""
        kind = type(event)
        if kind in _PHASE:
            self._enter(event, now_ms)
            return Step.PHASE
        if kind is Received and not self.phase:
            self.phase = self.state = "queued"
            return Step.NONE
        if kind not in _PROGRESS:
            return Step.NONE
        if not self.phase:
            self.phase = self.state = "thinking"
            return Step.PHASE
        if isinstance(event, ToolEnd):
            self._end_span(event.call, now_ms)
        elif kind is CompactingEnd and self.phase == "compacting" and not self._show_newest(now_ms):
            self.phase, self.state = self._before
        return Step.PROGRESS

    @property
    def waiting(self) -> bool:
        """Whether the run waits, for a slot or for the user."""
        return self.phase == "waiting"

    def _enter(self, event: Event, now_ms: int) -> None:
        if isinstance(event, Text | Thinking):
            if not self._show_newest(now_ms):
                self.phase = self.state = "thinking"
        elif isinstance(event, Tool):
            self.phase = "tool"
            self.state = categorise(event.name, self._settings.tools)
            self._span = event.call
            if event.call is not None:
                self._spans.pop(event.call, None)
                self._spans[event.call] = (self.state, now_ms)
        elif isinstance(event, Waiting):
            self.phase = "waiting"
            self.state = "waiting_user" if event.on == "user" else "waiting"
        elif isinstance(event, Compacting):
            if self.phase and self.phase != "compacting":
                self._before = (self.phase, self.state)
            self.phase = self.state = "compacting"
        elif isinstance(event, Queued):
            self.phase = self.state = "queued"

    def _end_span(self, call: str, now_ms: int) -> None:
        ended = self._spans.pop(call, None)
        if ended is not None and call == self._span:
            self._span = None
            if self.phase == "tool":
                self._show_newest(now_ms)

    def _show_newest(self, now_ms: int) -> bool:
        """Show the newest open span. False: none is open."""
        if not self._spans:
            return False
        call, (state, opened_ms) = next(reversed(self._spans.items()))
        if 0 < self._settings.span_max_ms <= now_ms - opened_ms:
            self._spans.clear()
            return False
        self.phase, self.state, self._span = "tool", state, call
        return True
