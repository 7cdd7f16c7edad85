"""Every event a client sends, as frozen tagged structs; the replies are those of `protocol.replies`.

An event says *what happens* to a run; livesign decides what to show. On the wire each struct is one msgpack
map whose ``type`` names it in snake case (``ToolEnd`` is ``tool_end``). Ids are text of at most 255 bytes;
times are integer milliseconds (``_ms``), ``sent_at_ms`` is Unix time.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from protocol.replies import (
    Ack,
    Call,
    Closing,
    Code,
    Gap,
    Pong,
    Rejected,
    Reply,
    State,
    StatsReply,
    Welcome,
    snake,
)  # fmt: skip

__all__ = [
    "BARE_EVENTS", "PHASE_EVENTS", "PROTOCOL_VERSION", "RUN_EVENTS", "TERMINAL_EVENTS", "Ack", "Alive", "Call",
    "CallResult", "Cancelled", "Child", "ChildEnd", "Clear", "Closing", "Code", "Compacting", "CompactingEnd",
    "Done", "Error", "Event", "Gap", "Hello", "Id", "Merged", "Moved", "Ping", "Pong", "Progress", "Queued",
    "Received", "Rejected", "Reply", "Restore", "RunEvent", "Sending", "Sent", "Silent", "State", "Stats",
    "StatsReply", "Subscribe", "Text", "Thinking", "Tool", "ToolEnd", "TypingStart", "TypingStop", "Waiting",
    "Welcome",
]  # fmt: skip

PROTOCOL_VERSION = 1

Id: TypeAlias = Annotated[str, Meta(min_length=1, max_length=255)]
DurationMs: TypeAlias = Annotated[int, Meta(ge=1, le=2**53)]
DelayMs: TypeAlias = Annotated[int, Meta(ge=0, le=2**53)]
UnixMs: TypeAlias = Annotated[int, Meta(ge=0, le=2**53)]


class Event(Struct, frozen=True, kw_only=True, gc=False, tag_field="type", tag=snake, omit_defaults=True):
    """Base of everything a client sends."""

    id: Id | None = None
    """Asks for an `Ack`, and makes sure that the event counts once: of each session the last 4,096 are
    remembered, until ten minutes after its end."""


class RunEvent(Event, frozen=True, kw_only=True):
    """An event of one run; at least one of ``message`` and ``run`` is given."""

    conversation: Id
    """The chat; what the ids are on each platform is in platforms.md."""
    account: Id | None = None
    """The account's name in the configuration; may be left out where the client may use exactly one."""
    message: Id | None = None
    """The message that carries the marks; absent: the run has typing and no marks."""
    run: Id | None = None
    """The run's own name, where it is not its message's only one; absent: the message's id."""
    thread: Id | None = None
    """Where the reply goes, and so typing. Fixed by the event that opens the run."""
    lease_ms: DurationMs | None = None
    """In the opening event: the run lives by events only, so long after each; an open connection does not count."""


class Hello(Event, frozen=True, kw_only=True):
    """First map of a TCP connection (optional on a Unix socket); answered with `Welcome`."""

    protocol: int = 1
    """The only version there is."""
    client: str = ""
    """Its name, for logs."""
    session: Id | None = None
    """The session to go on with after a lost connection; absent: a new one."""
    token: str | None = None
    """Needed on TCP."""
    role: Literal["send", "execute", "subscribe"] = "send"
    """`send`: events of runs, and `Subscribe` where the grant allows. `execute`: makes calls. `subscribe`: only listens."""


class Received(RunEvent, frozen=True, kw_only=True):
    """A message was accepted: opens the run; the ack gate decides whether it is marked."""

    direct: bool
    """A private chat, not a group."""
    mentioned: bool = False
    """The message mentions the bot."""
    mentionable: bool | None = None
    """Whether the bot can be mentioned there; absent: every chat that is not direct."""
    can_detect_mention: bool = True
    """Whether mentions can be seen there at all."""
    bypass_mention: bool | None = None
    """As good as mentioned: a command, or a reply to the bot."""
    from_bot: bool = False
    """Another bot wrote it (`ack.from_bots`)."""
    sender: Id | None = None
    """Who wrote it; nothing depends on it."""
    forum: bool = False
    """Telegram: the group has topics."""
    sent_at_ms: UnixMs | None = None
    """When it was written; old ones get no mark (`ack.max_age_ms`)."""
    kind: Literal["text", "audio", "command", "interaction", "scheduled"] = "text"
    """What a `[[match]]` block of the configuration can ask for."""


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
    """Chooses the mark (`tools.*` of the configuration)."""
    call: Id | None = None
    """An id of this call within its run."""


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
    """An id of the helper within its run."""
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
    """Get `State` replies from now on; with ``what`` calls, on a connection whose `Hello` has the role execute, every `Call`."""

    conversation: Id | None = None
    """Of this conversation only."""
    account: Id | None = None
    """Of this account only; absent: of all that the client may use."""
    what: Literal["states", "calls"] = "states"


class CallResult(Event, frozen=True, kw_only=True):
    """An executor's answer to a `Call`."""

    call_id: Id
    outcome: str
    """`ok`; `already_done`; `gone`: the message or chat is no more; `forbidden`; `invalid_reaction`: not this emoji;
    `rate_limited`; `transient`: try again later; `unknown`: nobody knows whether it happened; `auth`: the credentials are
    refused, stop; `bad_request`: never try this again."""
    retry_after_ms: DelayMs | None = None
    """Of `rate_limited`: how long to wait."""
    scope: str | None = None
    """What the limit or refusal is about: `account`, `conversation`, `route` (this kind of call) or `message`."""
    handle: str | None = None
    """What the platform needs to take this mark off again; it comes back with the `remove`."""
    detail: str | None = None
    """Words for the log; no secrets."""


class Ping(Event, frozen=True, kw_only=True):
    """Answered with `Pong`. Who has pinged once and then says nothing for ``silence_ms`` is taken for lost."""


class Stats(Event, frozen=True, kw_only=True):
    """Answered with the counters, as ``stats``."""


TERMINAL_EVENTS = (Done, Error, Cancelled, Silent)
PHASE_EVENTS = (Queued, Waiting, Thinking, Tool, Compacting, Text)
RUN_EVENTS = (
    Received, Queued, Waiting, Thinking, Tool, ToolEnd, Compacting, CompactingEnd, Text, Progress, Child,
    ChildEnd, Merged, Moved, Sending, Sent, Done, Error, Cancelled, Silent, Clear, Restore, TypingStart,
    TypingStop,
)  # fmt: skip
BARE_EVENTS = (Hello, Alive, Subscribe, CallResult, Ping, Stats)
