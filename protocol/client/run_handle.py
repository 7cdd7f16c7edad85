"""A run as a context manager: what happens inside becomes events, and so does the way it ends."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, Self

from protocol import events
from protocol.events import Event, RunEvent

__all__ = ["RunHandle", "ToolSpan"]


class RunHandle:
    """One run. Leaving the ``with`` block ends it: done; on an exception error, with the exception's class
    as reason; on an interrupt or a cancellation (any other `BaseException`) cancelled. A terminal that was
    sent inside the block counts instead.

    Entering opens the run: by `Received` if ``received`` has its fields (``direct`` at least), else by
    `Progress`. ``send`` takes every event; what it raises is the caller's.
    """

    def __init__(
        self,
        send: Callable[[Event], object],
        *,
        conversation: str,
        account: str | None = None,
        message: str | None = None,
        run: str | None = None,
        thread: str | None = None,
        lease_ms: int | None = None,
        received: dict[str, Any] | None = None,
    ) -> None:
        self._send = send
        self._names: dict[str, Any] = {
            "conversation": conversation,
            "account": account,
            "message": message,
            "run": run,
            "thread": thread,
            "lease_ms": lease_ms,
        }
        self._received = received
        self._calls = 0
        self._ended = False

    def __enter__(self) -> Self:
        if self._received:
            self._tell(events.Received, **self._received)
        else:
            self._tell(events.Progress)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._ended:
            return
        if kind is None:
            self.done()
        elif issubclass(kind, Exception):
            self.error(kind.__name__)
        else:
            self.cancelled(kind.__name__)

    def _tell(self, kind: type[RunEvent], **fields: Any) -> None:
        self._send(kind(**{**self._names, **fields}))

    def _end(self, kind: type[RunEvent], **fields: Any) -> None:
        self._ended = True
        self._tell(kind, **fields)

    # --- phases and progress -------------------------------------------------------------------------------

    def queued(self) -> None:
        self._tell(events.Queued)

    def waiting(self, on: Literal["slot", "user"]) -> None:
        self._tell(events.Waiting, on=on)

    def thinking(self) -> None:
        self._tell(events.Thinking)

    def tool(self, name: str | None = None) -> ToolSpan:
        """A tool starts now; it ends with the ``with`` block of the span, or with `ToolSpan.end`."""
        self._calls += 1
        call = str(self._calls)
        self._tell(events.Tool, name=name, call=call)
        return ToolSpan(lambda ok: self._tell(events.ToolEnd, call=call, ok=ok))

    def compacting(self) -> None:
        self._tell(events.Compacting)

    def compacting_end(self) -> None:
        self._tell(events.CompactingEnd)

    def text(self, visible: bool = True) -> None:
        self._tell(events.Text, visible=visible)

    def progress(self) -> None:
        self._tell(events.Progress)

    def alive(self) -> None:
        names = {key: value for key, value in self._names.items() if key != "lease_ms"}
        self._send(events.Alive(**names))

    def child(self, child: str, max_ms: int | None = None) -> None:
        self._tell(events.Child, child=child, max_ms=max_ms)

    def child_end(self, child: str, ok: bool = True) -> None:
        self._tell(events.ChildEnd, child=child, ok=ok)

    def moved(self, thread: str) -> None:
        """The reply goes to another thread; so do the events from here on."""
        self._names["thread"] = thread
        self._tell(events.Moved)

    def sending(self, final: bool = False) -> None:
        self._tell(events.Sending, final=final)

    def sent(self, final: bool = False, ok: bool = True) -> None:
        self._tell(events.Sent, final=final, ok=ok)

    def typing_start(self) -> None:
        self._tell(events.TypingStart)

    def typing_stop(self) -> None:
        self._tell(events.TypingStop)

    def restore(self) -> None:
        self._tell(events.Restore)

    # --- ends ----------------------------------------------------------------------------------------------

    def done(self, reason: str | None = None) -> None:
        self._end(events.Done, reason=reason)

    def error(self, reason: str | None = None) -> None:
        self._end(events.Error, reason=reason)

    def cancelled(self, reason: str | None = None) -> None:
        self._end(events.Cancelled, reason=reason)

    def silent(self, reason: str | None = None) -> None:
        self._end(events.Silent, reason=reason)

    def clear(self) -> None:
        self._end(events.Clear)

    def merged(self, into: str) -> None:
        """The run follows another one from here on, to its end."""
        self._end(events.Merged, into=into)


class ToolSpan:
    """An open tool call; an exception inside its block makes it end as not ok."""

    def __init__(self, end: Callable[[bool], None]) -> None:
        self._end = end

    def end(self, ok: bool = True) -> None:
        """The tool ended."""
        self._end(ok)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(kind is None)
