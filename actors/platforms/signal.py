"""Signal, through signal-cli-rest-api: one mark of ours on a message, each set replaces it; typing lives 15 s and
can be stopped.

- The service has no login: it belongs on a private network. ``number`` is the bot's own.
- ``conversation`` is a phone number, a user's id or a group's (``group.`` and base64). A message is known by its
  author and the time it was sent: ``message`` is ``author:timestamp``, or in a direct chat the timestamp alone.
- Every failure is a 400 with a text; `_TEXTS` is the one place that reads it. Nothing says "already done", and
  every call is a real message to all members, so few states are shown.
- The service can take seconds for a call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal

from actors.platforms.answers import JSON_HEADERS, by_status, json_body, json_object, segment, text_at
from actors.platforms.emoji import is_emoji, qualified
from actors.platforms.spec import (
    NO_OPTIONS,
    Credentials,
    HttpAdapter,
    Option,
    Options,
    PlatformSpec,
    Request,
    Response,
)
from actors.presence.pacing import Limit
from actors.presence.terms import TYPING_OPS, Command, LaneRules, Op, Outcome, OutcomeKind

LIMIT_WAIT_MS: Final = 60_000

SPEC: Final = PlatformSpec(
    name="signal",
    ids="phone number, user id, or group id (group....); -; author:timestamp, or the timestamp alone in a direct chat",
    rules=LaneRules(
        reactions="replace", typing=True, typing_stop=True, typing_lifetime_ms=15_000, typing_in_threads=False
    ),
    base_url=None,
    needs_token=False,
    options=(Option("number", "the bot's phone number", required=True),),
    keepalive_ms=10_000,
    min_change_ms=3_000,
    presentation="ends",
    typing_deadline_ms=9_750,
    concurrency=1,
    limits=MappingProxyType({"account": Limit(per_ms=1_000, count=1)}),
    needs=(
        "a registered number; signal-cli-rest-api in one of its json-rpc modes, on a private network (it asks for "
        "no login)"
    ),
    cannot="more than one mark (not documented); several emojis as one",
    source=(
        "github.com/bbernhard/signal-cli-rest-api src/docs/swagger.json, src/api, src/client; github.com/AsamK/"
        "signal-cli man page (typing 15 s); that a mark replaces the one before, texts of errors, limits, keep-alive, "
        "deadline and spacing (R)"
    ),
)

_GROUP: Final = "group."
_TIMESTAMP: Final = re.compile(r"\d{1,15}", re.ASCII)

_K: Final = OutcomeKind
_TEXTS: Final[tuple[tuple[str, OutcomeKind, str | None], ...]] = (
    ("rate limit", _K.RATE_LIMITED, "account"),
    ("captcha", _K.RATE_LIMITED, "account"),
    ("challenge", _K.RATE_LIMITED, "account"),
    ("specified account does not exist", _K.AUTH, None),
    ("untrusted", _K.FORBIDDEN, "conversation"),
    ("not registered", _K.FORBIDDEN, "conversation"),
    ("group not found", _K.FORBIDDEN, "conversation"),
    ("not a group member", _K.FORBIDDEN, "conversation"),
    ("invalid group id", _K.FORBIDDEN, "conversation"),
    ("failed to send message", _K.TRANSIENT, None),
    ("ioexception", _K.TRANSIENT, None),
    ("connection refused", _K.TRANSIENT, None),
    ("couldn't process request", _K.BAD_REQUEST, None),
)
"""What a text contains (in lower case), what it means, what a refusal covers."""


class SignalAdapter(HttpAdapter):
    """See the module."""

    spec = SPEC

    def __init__(self, options: Options = NO_OPTIONS) -> None:
        self._number = options.get("number", "")

    def normalise(self, emoji: str) -> str | None:
        return qualified(emoji) if is_emoji(emoji) else None

    def request(self, command: Command, credentials: Credentials) -> Request | Outcome:
        number = segment(credentials.options.get("number", ""))
        body: dict[str, Any] = {"recipient": command.conversation}
        if command.op in TYPING_OPS:
            method: Literal["PUT", "DELETE"] = "PUT" if command.op is Op.TYPING_START else "DELETE"
            return _request(method, f"/v1/typing-indicator/{number}", body)
        author, _, timestamp = (command.message or "").rpartition(":")
        if not author and not command.conversation.startswith(_GROUP):
            author = command.conversation
        if not author or not _TIMESTAMP.fullmatch(timestamp):
            return Outcome(OutcomeKind.BAD_REQUEST, detail="a Signal message is author:timestamp")
        body |= {"target_author": author, "timestamp": int(timestamp)}
        if command.op is not Op.SET:
            return _request("DELETE", f"/v1/reactions/{number}", body)
        emoji = self.normalise(command.emoji or "")
        if emoji is None:
            return Outcome(OutcomeKind.INVALID_REACTION, detail="not an emoji")
        return _request("POST", f"/v1/reactions/{number}", {**body, "reaction": emoji})

    def outcome(self, command: Command, response: Response) -> Outcome:
        if response.status == 204:
            return Outcome(OutcomeKind.OK)
        if 200 <= response.status < 300:
            return Outcome(OutcomeKind.UNKNOWN, detail="an answer that is not the service's")
        told = text_at(json_object(response.body), "error")
        lowered = told.lower()
        if response.status == 400:
            if "not registered" in lowered and self._is_ours(told):
                return Outcome(OutcomeKind.AUTH, detail=told)
            for text, kind, scope in _TEXTS:
                if text in lowered:
                    wait_ms = LIMIT_WAIT_MS if kind is OutcomeKind.RATE_LIMITED else None
                    return Outcome(kind, retry_after_ms=wait_ms, scope=scope, detail=told)
        return by_status(response, told)

    def _is_ours(self, told: str) -> bool:
        """Whether a text is about the bot's own number, and not about a longer one that holds it."""
        return bool(self._number) and re.search(rf"(?<!\d){re.escape(self._number)}(?!\d)", told) is not None


def _request(method: Literal["POST", "PUT", "DELETE"], path: str, body: Mapping[str, Any]) -> Request:
    return Request(method, path, JSON_HEADERS, json_body(body))
