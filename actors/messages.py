"""What clients' sessions tell the router; the embedded path uses the same messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from protocol.events import Event, Reply, Subscribe

__all__ = ["FromClient", "ReplyTo", "SessionDown", "SessionUp", "Subscription", "SubscriptionEnded"]

ReplyTo = Callable[[Reply], None]
"""Hands a reply to the client: never blocks, never raises, does nothing once the client is gone. To be called
in the runtime's thread."""


@dataclass(slots=True)
class FromClient:
    """A checked event of one session.

    It is answered through ``reply``: `Ack` if the event has an id, `Rejected` in any case. ``accounts`` are
    those that the client may use (None: all); an account that the event names is among them already.
    """

    session: str
    event: Event
    reply: ReplyTo | None
    accounts: frozenset[str] | None = None


@dataclass(slots=True)
class SessionUp:
    """The session has its first connection (again)."""

    session: str


@dataclass(slots=True)
class SessionDown:
    """The last connection of the session is gone."""

    session: str


@dataclass(slots=True)
class Subscription:
    """``reply`` gets `State` from now on: for ``event.conversation`` and ``event.account`` if given, always
    within
    ``accounts``. Answered like any event."""

    session: str
    event: Subscribe
    reply: ReplyTo
    accounts: frozenset[str] | None = None


@dataclass(slots=True)
class SubscriptionEnded:
    """The connection behind ``reply`` is gone: all its subscriptions are over."""

    session: str
    reply: ReplyTo
