"""What a bot can say of a run, each as one method; `protocol.client.run_handle` adds the block around it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, Literal, Self

from protocol import events
from protocol.codec import normalise
from protocol.events import Event, RunEvent

__all__ = ["ChildSpan", "RunEvents", "ToolSpan"]

_OF_OUR_MAKING = (events.ToolEnd, events.Text, events.Sending, events.Sent)
"""Events whose own fields need no check."""
_ENDS_LOOSE_TOOLS = (events.Queued, events.Waiting, events.Thinking, events.Text, events.Compacting)


class RunEvents(ABC):
    """The events of one run. ``names``: the fields that say which run it is."""

    __slots__ = ("_calls", "_loose", "_names", "ended")

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names
        self._loose: dict[ToolSpan, None] = {}
        """Tools told by a call alone: they end with the next phase."""
        self._calls = 0
        self.ended: str | None = None
        """How the run was ended here: the name of the last event; None: it was not."""

    @abstractmethod
    def _send(self, event: Event) -> None:
        """Tell this event."""

    # --- phases and progress -------------------------------------------------------------------------------

    def queued(self) -> None:
        """It waits to be worked on."""
        self._tell(events.Queued)

    def waiting(self, on: Literal["slot", "user"] = "user") -> None:
        """It waits for the user's answer, or for a slot. While it waits there are no stall marks."""
        self._tell(events.Waiting, on=on)

    def thinking(self) -> None:
        """The model works."""
        self._tell(events.Thinking)

    def tool(self, name: str | None = None) -> ToolSpan:
        """A tool starts now.

        ``with run.tool("web_search"):`` ends it with the block; tools may be nested and run side by side. Without a
        block it ends with `ToolSpan.end`, or with the next phase that is told.
        """
        self._calls += 1
        span = ToolSpan(self, str(self._calls))
        self._loose[span] = None
        self._tell(events.Tool, name=name, call=span.call)
        return span

    def compacting(self) -> None:
        """The context is being summarised."""
        self._tell(events.Compacting)

    def compacting_end(self) -> None:
        """Back to the phase before."""
        self._tell(events.CompactingEnd)

    def text(self, visible: bool = True) -> None:
        """Answer text is streaming; ``visible``: it will be posted."""
        self._tell(events.Text, visible=bool(visible))

    def progress(self) -> None:
        """Work moved on: the stall clocks begin anew."""
        self._tell(events.Progress)

    def alive(self) -> None:
        """Life, but no progress. Told by itself while the run is open."""
        self._send(events.Alive(**self._names))

    def child(self, child: str, max_ms: int | None = None) -> ChildSpan:
        """A helper run begins that keeps this run open; it ends with the span's block, or with `ChildSpan.end`."""
        self._tell(events.Child, child=child, max_ms=max_ms)
        return ChildSpan(self, child)

    def child_end(self, child: str, ok: bool = True) -> None:
        """The helper run has ended; not ``ok``: this run's done will count as an error."""
        self._tell(events.ChildEnd, child=child, ok=ok)

    def moved(self, thread: str) -> None:
        """The reply goes to another thread; so do the events from here on."""
        moved = normalise(events.Moved(**{**self._names, "thread": thread}))
        assert isinstance(moved, events.Moved)
        self._names["thread"] = moved.thread
        self._send(moved)

    def sending(self, final: bool = False) -> None:
        """The bot's own post goes out now: typing is held back."""
        self._tell(events.Sending, final=bool(final))

    def sent(self, final: bool = False, ok: bool = True) -> None:
        """The bot's own post has gone out, or not."""
        self._tell(events.Sent, final=bool(final), ok=bool(ok))

    def typing_start(self) -> None:
        """Type now."""
        self._tell(events.TypingStart)

    def typing_stop(self) -> None:
        """No typing until `typing_start`."""
        self._tell(events.TypingStop)

    def restore(self) -> None:
        """Show the ack mark again, where one was allowed."""
        self._tell(events.Restore)

    # --- ends ----------------------------------------------------------------------------------------------

    def done(self, reason: str | None = None) -> None:
        """The answer is delivered."""
        self._end(events.Done, reason=reason)

    def error(self, reason: str | None = None) -> None:
        """It failed. The reason is for logs and results, never shown to people."""
        self._end(events.Error, reason=reason)

    def cancelled(self, reason: str | None = None) -> None:
        """It was called off: the marks are taken off."""
        self._end(events.Cancelled, reason=reason)

    def silent(self, reason: str | None = None) -> None:
        """There is nothing to say: the marks are taken off."""
        self._end(events.Silent, reason=reason)

    def clear(self) -> None:
        """Take the marks off now; that also ends the run."""
        self._end(events.Clear)

    def merged(self, into: str) -> None:
        """This message is worked on inside the run ``into``, and follows it from here on, to its end."""
        self._end(events.Merged, into=into)

    # --- inside --------------------------------------------------------------------------------------------

    def _tell(self, kind: type[RunEvent], **fields: Any) -> None:
        if self._loose and kind in _ENDS_LOOSE_TOOLS:
            for span in list(self._loose):
                span.end()
        event: Event = kind(**self._names, **fields)
        self._send(event if kind in _OF_OUR_MAKING or not fields else normalise(event))

    def _end(self, kind: type[RunEvent], **fields: Any) -> None:
        self._tell(kind, **fields)
        self.ended = str(kind.__struct_config__.tag)


class ToolSpan:
    """A tool that runs; an exception inside its block makes it end as not ok."""

    __slots__ = ("_ended", "_run", "call")

    def __init__(self, run: RunEvents, call: str) -> None:
        self._run = run
        self.call = call
        """The id of the call within its run."""
        self._ended = False

    def end(self, ok: bool = True) -> None:
        """The tool has ended. Once is enough."""
        self._run._loose.pop(self, None)
        if not self._ended:
            self._ended = True
            self._run._tell(events.ToolEnd, call=self.call, ok=ok)

    def __enter__(self) -> Self:
        self._run._loose.pop(self, None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(kind is None)


class ChildSpan:
    """A helper run that keeps its parent open; an exception inside its block makes it end as not ok."""

    __slots__ = ("_run", "child")

    def __init__(self, run: RunEvents, child: str) -> None:
        self._run = run
        self.child = child

    def end(self, ok: bool = True) -> None:
        """The helper has ended."""
        self._run.child_end(self.child, ok)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(kind is None)
