"""A run as a context manager: what happens inside becomes events, and so does the way it ends.

The same handle serves a bot that embeds livesign and the clients of a socket; what differs is its host.

| the block is left | the run ends as |
| --- | --- |
| normally | done |
| by an exception | error, with the exception's class as reason |
| by asyncio's CancelledError, KeyboardInterrupt, SystemExit, GreenletExit, GeneratorExit | cancelled |
| after `RunHandle.done`, ``silent``, ``error``, … in it | as was said there |

Whatever was raised goes on. No fault of livesign is raised into the block: what cannot be told is logged. Only a value that
no event could carry is refused, with `DecodeError`.
"""

from __future__ import annotations

import logging
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, Literal, Protocol, Self

from protocol import events
from protocol.client.keeper import Keeper, Pulse, owner_here
from protocol.client.outcome import RunOutcome
from protocol.codec import DecodeError, normalise
from protocol.events import Event, RunEvent

__all__ = ["ChildSpan", "RunHandle", "RunHost", "ToolSpan", "current_run"]

log = logging.getLogger("livesign.client")

RENEW_S = 10.0
"""A run that says nothing is renewed so often, or three times in a lease of its own."""
_CURRENT: ContextVar[RunHandle | None] = ContextVar("livesign_run", default=None)
_OF_OUR_MAKING = (events.ToolEnd, events.Text, events.Sending, events.Sent)
"""Events whose own fields need no check."""
_ENDS_LOOSE_TOOLS = (events.Queued, events.Waiting, events.Thinking, events.Text, events.Compacting)


class RunHost(Protocol):
    """What a handle needs of whoever made it."""

    keeper: Keeper

    def put(self, event: Event) -> object:
        """Take a checked event. Any thread; never waits. May raise when it cannot be taken."""

    def outcome_of(self, run: RunHandle, timeout_s: float) -> RunOutcome: ...

    async def aoutcome_of(self, run: RunHandle, timeout_s: float) -> RunOutcome: ...


def current_run() -> RunHandle | None:
    """The run whose block this code runs in (this thread, task or greenlet, and tasks started in it); None: none."""
    return _CURRENT.get()


class RunHandle:
    """One run: ``with`` or ``async with`` it, or `begin` it and end it yourself.

    While its block runs it is kept alive; a handle that is garbage-collected without an end is torn down.
    """

    __slots__ = (
        "__weakref__", "_begun", "_calls", "_host", "_loose", "_names", "_opening", "_pulse", "_token", "ended",
    )  # fmt: skip

    def __init__(self, host: RunHost, opening: RunEvent, renew_s: float = RENEW_S) -> None:
        """``opening``: the checked event that opens the run."""
        self._host = host
        self._opening = opening
        self._names: dict[str, Any] = {
            name: getattr(opening, name) for name in ("account", "conversation", "message", "run", "thread")
        }
        self._pulse = Pulse(self._names, renew_s if opening.lease_ms is None else opening.lease_ms / 3_000)
        self._loose: dict[ToolSpan, None] = {}
        """Tools told by a call alone: they end with the next phase."""
        self._calls = 0
        self._begun = False
        self._token: Token[RunHandle | None] | None = None
        self.ended: str | None = None
        """How the run was ended here: the name of the last event; None: it was not."""

    @property
    def conversation(self) -> str:
        """The conversation's id."""
        return str(self._names["conversation"])

    @property
    def account(self) -> str | None:
        """The account's name, where one was named."""
        account: str | None = self._names["account"]
        return account

    @property
    def name(self) -> str:
        """The run's own name: ``run``, else the message's id."""
        return str(self._names["run"] or self._names["message"])

    def __repr__(self) -> str:
        state = self.ended or ("open" if self._begun else "not begun")
        return f"<run {self.name} in {self.conversation}: {state}>"

    # --- the block -----------------------------------------------------------------------------------------

    def begin(self) -> Self:
        """Open the run without a block. End it with `done`, `error`, `cancelled` or `silent`. Once only."""
        if self._begun:
            raise RuntimeError("this run has begun already: make a new handle for a new run")
        self._begun = True
        self._host.keeper.add(self._pulse)
        self._send(self._opening)
        return self

    def __enter__(self) -> Self:
        self._pulse.owner = owner_here()
        self.begin()
        self._token = _CURRENT.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
        if self.ended is not None:
            return
        if kind is None:
            self.done()
        elif _cancels(kind):
            self.cancelled(kind.__name__)
        else:
            self.error(kind.__name__)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    def _leave(self) -> None:
        token, self._token = self._token, None
        if token is None:
            return
        try:
            _CURRENT.reset(token)
        except ValueError:  # left in another context than it was entered in
            _CURRENT.set(None)

    def __del__(self) -> None:
        pulse = getattr(self, "_pulse", None)
        if pulse is not None:
            pulse.lost = True  # no more than that: this may run at any place of any thread

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

    # --- results -------------------------------------------------------------------------------------------

    def outcome(self, timeout_s: float = 5.0) -> RunOutcome:
        """How it ended and what showed at the end. Waits until that is certain, ``timeout_s`` at most; never raises.

        In an asyncio task nothing waits: the answer is what is known now; `aoutcome` waits there.
        """
        return self._host.outcome_of(self, timeout_s)

    async def aoutcome(self, timeout_s: float = 5.0) -> RunOutcome:
        """The same for asyncio."""
        return await self._host.aoutcome_of(self, timeout_s)

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
        self._host.keeper.drop(self._pulse)

    def _send(self, event: Event) -> None:
        self._pulse.active = True
        try:
            self._host.put(event)
        except DecodeError:
            raise
        except Exception as error:
            log.warning("livesign was not told of %s: %s", event.__struct_config__.tag, error)


class ToolSpan:
    """A tool that runs; an exception inside its block makes it end as not ok."""

    __slots__ = ("_ended", "_run", "call")

    def __init__(self, run: RunHandle, call: str) -> None:
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

    def __init__(self, run: RunHandle, child: str) -> None:
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


def _cancels(kind: type[BaseException]) -> bool:
    """Whether leaving a block this way means that it was called off (gevent's Timeout means that it failed)."""
    return not issubclass(kind, Exception) and all(base.__module__ != "gevent.timeout" for base in kind.__mro__)
