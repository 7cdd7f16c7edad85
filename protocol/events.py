"""Every event a client sends and every reply it gets, as frozen tagged structs.

An event says *what happens* to a run; livesign decides what to show. On the wire each struct is one msgpack
map whose ``type`` names it in snake case (``ToolEnd`` is ``tool_end``). Ids are text of at most 255 bytes;
times are integer milliseconds (``_ms``), ``sent_at_ms`` is Unix time.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

__all__ = [
    "BARE_EVENTS",
    "PHASE_EVENTS",
    "PROTOCOL_VERSION",
    "RUN_EVENTS",
    "TERMINAL_EVENTS",
    "Ack",
    "Alive",
    "Call",
    "CallResult",
    "Cancelled",
    "Child",
    "ChildEnd",
    "Clear",
    "Closing",
    "Code",
    "Compacting",
    "CompactingEnd",
    "Done",
    "Error",
    "Event",
    "Gap",
    "Hello",
    "Id",
    "Merged",
    "Moved",
    "Ping",
    "Pong",
    "Progress",
    "Queued",
    "Received",
    "Rejected",
    "Reply",
    "Restore",
    "RunEvent",
    "Sending",
    "Sent",
    "Silent",
    "State",
    "Stats",
    "StatsReply",
    "Subscribe",
    "Text",
    "Thinking",
    "Tool",
    "ToolEnd",
    "TypingStart",
    "TypingStop",
    "Waiting",
    "Welcome",
]

PROTOCOL_VERSION = 1

Id: TypeAlias = Annotated[str, Meta(min_length=1, max_length=255)]
DurationMs: TypeAlias = Annotated[int, Meta(ge=1, le=2**53)]
DelayMs: TypeAlias = Annotated[int, Meta(ge=0, le=2**53)]
UnixMs: TypeAlias = Annotated[int, Meta(ge=0, le=2**53)]
Code: TypeAlias = Literal[
    "malformed", "unknown_type", "missing_field", "wrong_type", "bad_value", "too_large", "unauthorized",
    "unknown_account", "limit",
]  # fmt: skip


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class Event(Struct, frozen=True, kw_only=True, gc=False, tag_field="type", tag=_snake, omit_defaults=True):
    """Base of everything a client sends. ``id`` asks for an `Ack` and makes the event idempotent."""

    id: Id | None = None


class RunEvent(Event, frozen=True, kw_only=True):
    """An event of one run. ``run`` defaults to ``message``; at least one of the two is given.

    ``account`` may be left out where the client may use exactly one. ``thread`` is fixed by the event that
    opens the run. ``lease_ms`` in the opening event makes the run live by events only (the connection does
    not count).
    """

    conversation: Id
    account: Id | None = None
    message: Id | None = None
    run: Id | None = None
    thread: Id | None = None
    lease_ms: DurationMs | None = None


class Hello(Event, frozen=True, kw_only=True):
    """First map of a TCP connection (optional on a Unix socket)."""

    protocol: int = 1
    client: str = ""
    session: Id | None = None
    token: str | None = None
    role: Literal["send", "execute", "subscribe"] = "send"


class Received(RunEvent, frozen=True, kw_only=True):
    """A message was accepted: opens the run; the ack gate decides whether it is marked."""

    direct: bool
    mentioned: bool = False
    mentionable: bool | None = None
    """Whether the bot can be mentioned there; absent: every chat that is not direct."""
    can_detect_mention: bool = True
    bypass_mention: bool | None = None
    from_bot: bool = False
    sender: Id | None = None
    forum: bool = False
    sent_at_ms: UnixMs | None = None
    kind: Literal["text", "audio", "command", "interaction", "scheduled"] = "text"


class Queued(RunEvent, frozen=True, kw_only=True):
    """Waiting to be worked on; opens a run without the gate."""


class Waiting(RunEvent, frozen=True, kw_only=True):
    """The run waits: for a ``slot``, or for the ``user``'s answer."""

    on: Literal["slot", "user"]


class Thinking(RunEvent, frozen=True, kw_only=True):
    """The model works."""


class Tool(RunEvent, frozen=True, kw_only=True):
    """A tool started; with ``call`` it is a span, open until its `ToolEnd`."""

    name: str | None = None
    call: Id | None = None


class ToolEnd(RunEvent, frozen=True, kw_only=True):
    """The span ``call`` ended. ``ok`` is information only: a failed tool is not a failed run."""

    call: Id
    ok: bool = True


class Compacting(RunEvent, frozen=True, kw_only=True):
    """The context is being summarised."""


class CompactingEnd(RunEvent, frozen=True, kw_only=True):
    """Back to the phase before."""


class Text(RunEvent, frozen=True, kw_only=True):
    """Answer text is streaming; ``visible`` is false for reasoning and for text that will not be posted."""

    visible: bool = True


class Progress(RunEvent, frozen=True, kw_only=True):
    """Work moved on: resets the stall clocks and changes no phase."""


class Alive(Event, frozen=True, kw_only=True):
    """Life, not progress. Without a run: all runs of this session."""

    conversation: Id | None = None
    account: Id | None = None
    message: Id | None = None
    run: Id | None = None
    thread: Id | None = None


class Child(RunEvent, frozen=True, kw_only=True):
    """A helper run that keeps this run open, for ``max_ms`` at most."""

    child: Id
    max_ms: DurationMs | None = None


class ChildEnd(RunEvent, frozen=True, kw_only=True):
    """The helper ended; ``ok`` false makes a waiting `Done` an error."""

    child: Id
    ok: bool = True


class Merged(RunEvent, frozen=True, kw_only=True):
    """This message is worked on inside the run ``into`` and follows its outcome."""

    into: Id


class Moved(RunEvent, frozen=True, kw_only=True):
    """The reply goes to ``thread`` from now on: typing follows, marks stay."""

    thread: Id  # required here


class Sending(RunEvent, frozen=True, kw_only=True):
    """The bot's own reply goes out now: typing is held back."""

    final: bool = False


class Sent(RunEvent, frozen=True, kw_only=True):
    """The bot's own reply has gone out (or not: ``ok`` false)."""

    final: bool = False
    ok: bool = True


class Done(RunEvent, frozen=True, kw_only=True):
    """Terminal: delivered."""

    reason: str | None = None


class Error(RunEvent, frozen=True, kw_only=True):
    """Terminal: failed. With ``scope`` lane it is progress only."""

    reason: str | None = None
    scope: Literal["run", "lane"] = "run"


class Cancelled(RunEvent, frozen=True, kw_only=True):
    """Terminal: called off; marks are removed."""

    reason: str | None = None


class Silent(RunEvent, frozen=True, kw_only=True):
    """Terminal: nothing to say; marks are removed."""

    reason: str | None = None


class Clear(RunEvent, frozen=True, kw_only=True):
    """Take the marks off now; before the end it is a terminal without mark."""


class Restore(RunEvent, frozen=True, kw_only=True):
    """Show the ack again, where the gate allowed one."""


class TypingStart(RunEvent, frozen=True, kw_only=True):
    """Type now. With ``scope``: a bare indicator without a run."""

    scope: Id | None = None


class TypingStop(RunEvent, frozen=True, kw_only=True):
    """Stop typing until the next `TypingStart`. With ``scope``: that bare indicator."""

    scope: Id | None = None


class Subscribe(Event, frozen=True, kw_only=True):
    """Get `State` replies from now on (``what`` calls: the calls, for an executor)."""

    conversation: Id | None = None
    account: Id | None = None
    what: Literal["states", "calls"] = "states"


class CallResult(Event, frozen=True, kw_only=True):
    """An executor's answer to a `Call`."""

    call_id: Id
    outcome: str
    retry_after_ms: DelayMs | None = None
    scope: str | None = None
    handle: str | None = None
    detail: str | None = None


class Ping(Event, frozen=True, kw_only=True):
    """Answered with `Pong`."""


class Stats(Event, frozen=True, kw_only=True):
    """Answered with `StatsReply`."""


TERMINAL_EVENTS = (Done, Error, Cancelled, Silent)
PHASE_EVENTS = (Queued, Waiting, Thinking, Tool, Compacting, Text)
RUN_EVENTS = (
    Received, Queued, Waiting, Thinking, Tool, ToolEnd, Compacting, CompactingEnd, Text, Progress, Child,
    ChildEnd, Merged, Moved, Sending, Sent, Done, Error, Cancelled, Silent, Clear, Restore, TypingStart,
    TypingStop,
)  # fmt: skip
BARE_EVENTS = (Hello, Alive, Subscribe, CallResult, Ping, Stats)


class Reply(Struct, frozen=True, kw_only=True, gc=False, tag_field="type", tag=_snake, omit_defaults=True):
    """Base of everything livesign answers."""


class Welcome(Reply, frozen=True, kw_only=True):
    protocol: int
    server: str
    session: str
    accounts: list[str]
    limits: dict[str, int]


class Ack(Reply, frozen=True, kw_only=True):
    id: str
    result: Literal["applied", "duplicate", "late", "unknown"]


class Rejected(Reply, frozen=True, kw_only=True):
    """The event changed nothing. ``detail`` says why, in words."""

    code: Code
    detail: str
    id: str | None = None
    field: str | None = None


class Call(Reply, frozen=True, kw_only=True):
    """A call handed to an executor; ``deadline_ms`` is a duration from sending."""

    call_id: str
    account: str
    conversation: str
    op: Literal["set", "remove", "clear", "typing_start", "typing_stop"]
    deadline_ms: int
    thread: str | None = None
    message: str | None = None
    emoji: str | None = None
    handle: str | None = None
    epoch: int = 0


class State(Reply, frozen=True, kw_only=True):
    """What shows now, for subscribers. Of a run that has ended also what people saw at the end, as soon as it is certain."""

    account: str
    conversation: str
    run: str
    phase: str
    shown: list[str]
    typing: bool
    message: str | None = None
    reason: str | None = None
    final: bool = False
    mark: str | None = None
    problem: str | None = None


class Gap(Reply, frozen=True, kw_only=True):
    """``dropped`` `State` replies were lost because the reader was slow."""

    dropped: int


class Pong(Reply, frozen=True, kw_only=True):
    pass


class StatsReply(Reply, frozen=True, kw_only=True, tag="stats"):
    counters: dict[str, int]


class Closing(Reply, frozen=True, kw_only=True):
    """The connection is closed after this, because of ``reason``."""

    reason: str
