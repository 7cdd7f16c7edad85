"""What one platform is like: a frozen row of facts, each with its source, and the request/response pair of HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, Protocol

from actors.presence.pacing import Limit
from actors.presence.terms import Command, LaneRules, Outcome


@dataclass(frozen=True, slots=True)
class Credentials:
    """How an account reaches its platform. ``repr`` never shows the token."""

    token: str = field(default="", repr=False)
    base_url: str | None = None
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Platform-specific, not secret (Matrix: ``user_id``)."""


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request; ``path`` is already percent-encoded and may hold a secret, so it is never printed."""

    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Response:
    """One HTTP answer; ``body`` is capped by the transport."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes


@dataclass(frozen=True, slots=True)
class PlatformSpec:
    """A platform's row. Times in ms; limits as `Limit` per scope."""

    name: str
    rules: LaneRules
    base_url: str | None
    """None: must be configured."""
    needs_token: bool = True
    required_options: tuple[str, ...] = ()
    keepalive_ms: int = 3_000
    min_change_ms: int = 0
    presentation: Literal["full", "ends"] = "full"
    post_clears_typing: bool = True
    ack_variant: Literal["default", "whatsapp"] = "default"
    concurrency: int = 4
    limits: Mapping[str, Limit] = field(default_factory=lambda: MappingProxyType({}))
    """By scope: account, conversation, route, message."""
    emoji_allowed: frozenset[str] | None = None
    """Normalised emojis the platform accepts; None: any."""
    source: str = ""


class HttpAdapter(Protocol):
    """Two pure functions of a platform that is reached over HTTP."""

    spec: PlatformSpec

    def normalise(self, emoji: str) -> str | None:
        """The form that is sent for ``emoji``; None: this platform cannot show it."""

    def request(self, command: Command, credentials: Credentials) -> Request:
        """The call as an HTTP request."""

    def outcome(self, command: Command, response: Response) -> Outcome:
        """The typed outcome of the platform's answer."""
