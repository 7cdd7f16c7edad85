"""What clients' sessions tell the router (the embedded path uses the same), and the base of all messages."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from protocol.events import Event, Reply, Subscribe

__all__ = ["FromClient", "Message", "ReplyTo", "SessionDown", "SessionUp", "Subscription", "SubscriptionEnded"]


class Message(Struct, frozen=True, gc=False):
    """Base of what our actors tell each other. An event makes many, so they are quick to make and the garbage
    collector does not look at them; therefore a message is never part of a cycle."""


ReplyTo = Callable[[Reply], None]
"""Hands a reply to the client: never blocks, never raises, does nothing once the client is gone. To be called
in the runtime's thread."""


class FromClient(Message, frozen=True):
    """A checked event of one session.

    It is answered through ``reply``: `Ack` if the event has an id, `Rejected` in any case. ``accounts`` are
    those that the client may use (None: all); an account that the event names is among them already.
    ``repeated``: the session has told an event with this id before; the router knows what became of that one.
    """

    session: str
    event: Event
    reply: ReplyTo | None
    accounts: frozenset[str] | None = None
    repeated: bool = False


class SessionUp(Message, frozen=True):
    """The session has its first connection (again)."""

    session: str


class SessionDown(Message, frozen=True):
    """The last connection of the session is gone."""

    session: str


class Subscription(Message, frozen=True):
    """``reply`` gets `State` from now on: for ``event.conversation`` and ``event.account`` if given, always
    within
    ``accounts``. Answered like any event."""

    session: str
    event: Subscribe
    reply: ReplyTo
    accounts: frozenset[str] | None = None


class SubscriptionEnded(Message, frozen=True):
    """The connection behind ``reply`` is gone: all its subscriptions are over."""

    session: str
    reply: ReplyTo
