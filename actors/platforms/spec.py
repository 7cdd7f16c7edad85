"""What one platform is like: a frozen row of facts with their source, and the pure functions that speak to
it.

An adapter never sends anything. It turns a `Command` into a `Request` and a `Response` into an `Outcome`;
`port` makes the calls and `transport` owns the sockets.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

from actors.presence.pacing import Limit
from actors.presence.terms import Command, LaneRules, Outcome

Options: TypeAlias = Mapping[str, str]
NO_OPTIONS: Options = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Credentials:
    """How an account reaches its platform. ``repr`` shows no secret."""

    token: str = field(default="", repr=False)
    access: str = field(default="", repr=False)
    """The token of limited life that `HttpAdapter.introduce` got for ``token``, on platforms that want that."""
    base_url: str | None = None
    """None: the platform's own (`PlatformSpec.base_url`)."""
    options: Options = field(default_factory=lambda: NO_OPTIONS)
    """Platform-specific, not secret (Matrix: ``user_id``)."""
    proxy: str | None = field(default=None, repr=False)
    """``http://[user:password@]host:port``; None: none."""
    ca_file: str | None = None
    """Certificates to trust instead of the system's (PEM)."""


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request; ``path`` is already percent-encoded. Path, headers and body may hold secrets, so they are
    never printed."""

    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: bytes = field(default=b"", repr=False)
    server: str | None = None
    """Base URL of another server than the account's (that of its logins); None: the account's."""


@dataclass(frozen=True, slots=True)
class Response:
    """One HTTP answer; ``body`` is capped by the transport."""

    status: int
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Names in lower case."""
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Option:
    """A key of accounts that only this platform has. Adapters find its value in `Credentials.options`, as text."""

    name: str
    meaning: str
    default: str = ""
    """For people; empty: there is none."""
    required: bool = False
    kind: Literal["text", "url", "flag", "ms"] = "text"
    allowed: tuple[str, ...] = ()
    """The only values; empty: any of its kind."""


@dataclass(frozen=True, slots=True)
class PlatformSpec:
    """A platform's row. Times in ms; limits as `Limit`."""

    name: str
    ids: str
    """What ``conversation``, ``thread`` and ``message`` of an event are here, for people."""
    rules: LaneRules
    base_url: str | None
    """None: must be configured."""
    needs_token: bool = True
    options: tuple[Option, ...] = ()
    keepalive_ms: int = 3_000
    """Refresh interval of typing; 0: never refreshed, either because it lasts or because a refresh before its end
    does nothing."""
    min_change_ms: int = 0
    """Least time between two changes of one message's mark (done, error and removals are exempt)."""
    presentation: Literal["full", "ends"] = "full"
    post_clears_typing: bool = True
    typing_deadline_ms: int = 3_000
    """Longest time of a typing call; more where the platform is known to take longer."""
    ack_variant: Literal["default", "whatsapp"] = "default"
    concurrency: int = 4
    limits: Mapping[str, Limit] = field(default_factory=lambda: MappingProxyType({}))
    """By scope, as `actors.presence.pacing` names them."""
    emoji_allowed: frozenset[str] | None = None
    """Normalised emojis the platform accepts; None: any."""
    needs: str = ""
    """What the bot must be allowed to do, for people."""
    cannot: str = ""
    """What cannot be shown, for people."""
    source: str = ""
    """Where the facts come from; (R) marks a value that was chosen, not documented."""

    @property
    def required_options(self) -> tuple[str, ...]:
        """Names of the options that an account must have."""
        return tuple(option.name for option in self.options if option.required)


class HttpAdapter(ABC):
    """A platform that is reached over HTTP. All methods are pure; the last four have defaults that fit most.

    The ``scope`` of a FORBIDDEN tells what is refused: "account" calls of this kind (marks, typing) of the
    whole account, "conversation" and None calls of this kind there, "message" this message or this typing target
    only (a message can be full of marks). That of a GONE tells whether the conversation is gone, that of an
    INVALID_REACTION whether the emoji is refused on this message only; None: in the whole conversation.
    """

    spec: PlatformSpec

    def __init__(self, options: Options = NO_OPTIONS) -> None:  # noqa: B027 - most are alike whatever the options
        """For an account with ``options``. Raises ValueError for a value that is not of its kind."""

    def normalise(self, emoji: str) -> str | None:
        """The form that is sent for ``emoji``; None: this platform cannot show it. Idempotent."""
        return emoji or None

    @abstractmethod
    def request(self, command: Command, credentials: Credentials) -> Request | Outcome:
        """The call as an HTTP request, or its outcome where no call is needed or possible."""

    @abstractmethod
    def outcome(self, command: Command, response: Response) -> Outcome:
        """The typed outcome of the platform's answer to ``command``."""

    def follow_up(self, command: Command, credentials: Credentials, response: Response) -> Command | None:
        """The command to make at once in place of ``command``, when the answer says what it should have been
        (the conversation has a new id, the mark's handle had to be looked up). None: ``response`` is the last
        word."""
        return None

    def introduce(self, credentials: Credentials) -> Request | None:
        """What must be asked before an account's first call. None: nothing."""
        return None

    def introduced(self, credentials: Credentials, response: Response) -> Credentials | Outcome:
        """The credentials completed by the answer to `introduce`, or why there are none."""
        return credentials

    def expired(self, response: Response) -> bool:
        """Whether the call was refused because what `introduce` got is too old. It is then asked for again and the
        call made once more, once."""
        return False


def whole_option(options: Options, name: str, default: int) -> int:
    """The option ``name`` as a whole number. Raises ValueError."""
    value = options.get(name, str(default))
    if not (value.isascii() and value.isdigit()):
        raise ValueError(f"{name} must be a whole number, not {value!r}")
    return int(value)
