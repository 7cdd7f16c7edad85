"""What a livesign that was started anew has to hear of the runs that are still open.

It finds open runs and marks in its ledger and waits a while for their client: any event of a run takes it over. What it
cannot know is where the work stands: the phase, open tools and helper runs. So after each connect, before everything that
was not acknowledged, the client tells again, of every run whose opening was acknowledged and whose end was not: the event
that opened it, and what of its acknowledged events still holds. A livesign that was there all the time takes that as a sign
of life. No ids, so no answers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from protocol import events
from protocol.codec import encode
from protocol.events import PHASE_EVENTS, TERMINAL_EVENTS, Event, RunEvent

__all__ = ["OpenRuns"]

RUNS_MAX = 100_000
Key = tuple[str | None, str, str]


@dataclass(slots=True)
class _Told:
    """What still holds of one run."""

    opening: Event
    phase: Event | None = None
    tools: dict[str, Event] = field(default_factory=dict)
    children: dict[str, Event] = field(default_factory=dict)
    moved: Event | None = None
    sent: Event | None = None
    """The final post; no phase came after it."""

    def events(self) -> list[Event]:
        single = (self.opening, self.moved, self.phase if self.phase != self.opening else None)
        several = (*self.tools.values(), *self.children.values(), self.sent)
        return [event for event in (*single, *several) if event is not None]


class OpenRuns:
    """Fed with what was acknowledged. Not safe for threads by itself."""

    def __init__(self, runs_max: int = RUNS_MAX) -> None:
        self._runs: dict[Key, _Told] = {}
        self._runs_max = runs_max

    def __len__(self) -> int:
        return len(self._runs)

    def acknowledged(self, event: Event, result: str) -> None:
        """livesign has this event; ``result`` as in its `Ack`."""
        if not isinstance(event, RunEvent) or (event.run is None and event.message is None):
            return
        key = event.account, event.conversation, event.run or event.message or ""
        if result in ("late", "unknown") or _ends(event):
            self._runs.pop(key, None)
            return
        told = self._runs.get(key)
        if told is None:
            if isinstance(event, (events.Received, events.Progress, *PHASE_EVENTS)):
                told = self._runs[key] = _Told(_without_call(event))
                if len(self._runs) > self._runs_max:
                    del self._runs[next(iter(self._runs))]
            else:
                return
        _note(told, event)

    def retell(self) -> bytes:
        """All that still holds, encoded; in each run in the order in which it makes sense."""
        return b"".join(
            encode(msgspec.structs.replace(event, id=None)) for told in self._runs.values() for event in told.events()
        )


def _note(told: _Told, event: RunEvent) -> None:
    if isinstance(event, events.Tool) and event.call is not None:
        told.tools[event.call] = event
        told.phase = _without_call(event)  # what shows on when the span has ended
    elif isinstance(event, events.ToolEnd):
        told.tools.pop(event.call, None)
    elif isinstance(event, PHASE_EVENTS):
        told.phase, told.sent = event, None
    elif isinstance(event, events.Child):
        told.children[event.child] = event
    elif isinstance(event, events.ChildEnd):
        told.children.pop(event.child, None)
    elif isinstance(event, events.Moved):
        told.moved = event
    elif isinstance(event, events.Sent):
        told.sent = event if event.final and event.ok else None


def _without_call(event: Event) -> Event:
    """A tool that is no span: the next phase takes its mark away."""
    return msgspec.structs.replace(event, call=None) if isinstance(event, events.Tool) else event


def _ends(event: RunEvent) -> bool:
    """Whether nobody has to take the run over any more. (One that follows another ends with that.)"""
    if isinstance(event, events.Error):
        return event.scope == "run"
    return isinstance(event, (*TERMINAL_EVENTS, events.Clear, events.Merged))
