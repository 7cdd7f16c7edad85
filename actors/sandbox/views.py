"""What the service tells about itself, as the JSON it sends and its client reads: state and calls."""

from __future__ import annotations

from msgspec import Struct, field


class MarkView(Struct, frozen=True):
    """One mark of one account on a message."""

    emoji: str
    account: str
    at_ms: int


class MessageView(Struct, frozen=True):
    """A message and its marks, oldest first."""

    id: str
    sender: str = field(name="from")
    """Empty where nobody posted it: a mark made it."""
    text: str
    thread: str | None
    bot: bool
    """Whether an account posted it."""
    at_ms: int
    marks: list[MarkView]


class TypingView(Struct, frozen=True):
    """Who types where."""

    account: str
    thread: str | None
    remaining_ms: int | None
    """None: until it is stopped."""


class ChatView(Struct, frozen=True):
    """One chat."""

    id: str
    direct: bool | None
    """None: nobody said."""
    messages: list[MessageView]
    typing: list[TypingView]


class State(Struct, frozen=True):
    """All of it. ``marks`` and ``typing`` count the whole service, also where only some chats are listed."""

    now_ms: int
    marks: int
    typing: int
    chat_count: int
    chats: list[ChatView]
    """The chat with the latest activity first."""


class CallView(Struct, frozen=True):
    """One call, with the field names of ``livesign simulate --json``. Times are the service's own."""

    t_ms: int
    account: str
    conversation: str
    thread: str | None
    message: str | None
    op: str
    emoji: str | None
    outcome: str
    ended_ms: int | None


class Calls(Struct, frozen=True):
    """The service's own count of the calls made to it."""

    total: int
    counts: dict[str, dict[str, int]]
    """By operation, then by outcome."""
    last: list[CallView]
