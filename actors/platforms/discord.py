"""Discord REST API v10: marks are added and removed one by one, at most 20 different ones on a message; typing lives
10 s and cannot be stopped.

- A thread is a channel: what was written in a thread has the thread's id as its conversation. ``thread`` is where
  the reply goes, if that is another place: typing follows it, marks stay. The message that a thread was made of
  has the thread's id; where it is not in the thread, it is in the channel above, which is looked for once.
- The path holds the emoji, percent-encoded with no safe characters; custom ones are ``name:id``. Which form of an
  emoji (U+FE0F) the server takes is not documented: the fully qualified one is sent, and where it is unknown
  (10014) the other one, once. The form that was taken is the mark's handle, so that the same is removed.
- Codes decide before statuses; code 0 says nothing. A limit without JSON, or with none of the API's own headers,
  comes from the edge in front of the API and means that the host has made too many refused calls: everything
  stops for minutes.
- An answer that says that its bucket is empty says when it is full again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, Literal

from actors.platforms.answers import (
    by_status,
    duration_ms,
    json_object,
    plain_success,
    retry_after_ms,
    segment,
    text_at,
)
from actors.platforms.emoji import bare, is_emoji, marked, qualified
from actors.platforms.spec import Credentials, HttpAdapter, PlatformSpec, Request, Response
from actors.presence.pacing import Limit
from actors.presence.terms import TYPING_OPS, Command, LaneRules, Op, Outcome, OutcomeKind

USER_AGENT: Final = "DiscordBot (livesign, 1)"
EDGE_WAIT_MS: Final = 300_000
"""The least wait after a limit of the edge."""

SPEC: Final = PlatformSpec(
    name="discord",
    ids="id of the channel or thread that the message is in; id of the thread the reply goes to; message id",
    rules=LaneRules(
        reactions="add_remove", typing=True, typing_stop=False, typing_lifetime_ms=10_000, typing_in_threads=True
    ),
    base_url="https://discord.com/api/v10",
    keepalive_ms=8_000,
    min_change_ms=1_000,
    concurrency=4,
    limits=MappingProxyType({
        "account": Limit(per_ms=1_000, count=40),
        "route.marks": Limit(per_ms=300, count=1),
    }),
    needs=(
        "View Channel, Read Message History, Add Reactions; custom emojis of other servers: Use External Emojis; "
        "typing (not documented): Send Messages, in threads Send Messages in Threads"
    ),
    cannot="a mark on a message that has 20 different ones",
    source=(
        "github.com/discord/discord-api-docs: rate-limits (50/s a bot; 10,000 refused calls in 10 min), message, "
        "channel (typing 10 s), opcodes-and-status-codes; its threads 182, 395 (reactions: 1 per 0.25 s whatever the "
        "headers say), 1047 (U+FE0F); keep-alive, spacing and the shares of limits (R)"
    ),
)  # fmt: skip

_CUSTOM: Final = re.compile(r"(?:<a?:)?(\w{1,32}:\d{1,20})>?", re.ASCII)

_K: Final = OutcomeKind
_CODES: Final[Mapping[int, tuple[OutcomeKind, str | None]]] = MappingProxyType({
    10003: (_K.GONE, "conversation"),
    10004: (_K.GONE, "conversation"),
    10008: (_K.GONE, None),
    10014: (_K.INVALID_REACTION, None),
    50151: (_K.INVALID_REACTION, None),
    30010: (_K.FORBIDDEN, "message"),
    90001: (_K.FORBIDDEN, "message"),
    50021: (_K.FORBIDDEN, "message"),
    50001: (_K.FORBIDDEN, "conversation"),
    50007: (_K.FORBIDDEN, "conversation"),
    50278: (_K.FORBIDDEN, "conversation"),
    50008: (_K.FORBIDDEN, "conversation"),
    50013: (_K.FORBIDDEN, None),
    50024: (_K.FORBIDDEN, None),
    50083: (_K.FORBIDDEN, None),
    160005: (_K.FORBIDDEN, None),
    90002: (_K.BAD_REQUEST, None),
    50035: (_K.BAD_REQUEST, None),
    50109: (_K.BAD_REQUEST, None),
    40001: (_K.AUTH, None),
    40002: (_K.AUTH, None),
    40333: (_K.AUTH, None),
    50014: (_K.AUTH, None),
    20028: (_K.RATE_LIMITED, None),
    20029: (_K.RATE_LIMITED, None),
    40062: (_K.RATE_LIMITED, None),
    130000: (_K.TRANSIENT, None),
})  # fmt: skip
"""What a code means and what a refusal covers. 30010: the message has its 20 marks, whatever the emoji."""

_LIMIT_SCOPES: Final = MappingProxyType({"global": "account", "user": "route", "shared": "route"})
_UNKNOWN_MESSAGE: Final = 10008
_UNKNOWN_EMOJI: Final = 10014
_PARENT: Final = "parent"
"""The handle of a command that asks for the channel above a thread."""


class DiscordAdapter(HttpAdapter):
    """See the module."""

    spec = SPEC

    def normalise(self, emoji: str) -> str | None:
        return _form(emoji)

    def request(self, command: Command, credentials: Credentials) -> Request | Outcome:
        if command.op is Op.TYPING_STOP:
            return Outcome(OutcomeKind.OK)  # it fades by itself
        if command.op is Op.CLEAR:
            return Outcome(OutcomeKind.BAD_REQUEST, detail="Discord marks are removed one by one")
        typing = command.op is Op.TYPING_START
        channel = command.thread if typing and command.thread else command.conversation
        for what, value in (("channel", channel), ("message", "0" if typing else command.message or "")):
            if not (value.isascii() and value.isdigit()):
                return Outcome(OutcomeKind.BAD_REQUEST, detail=f"a Discord {what} id is a number")
        if typing:
            return _request("POST", f"/channels/{channel}/typing", credentials)
        if command.handle == _PARENT:
            return _request("GET", f"/channels/{channel}", credentials)
        emoji = (command.op is Op.REMOVE and command.handle) or command.emoji or ""
        if _form(emoji) is None:
            return Outcome(OutcomeKind.INVALID_REACTION, detail="neither an emoji nor name:id of a custom one")
        path = f"/channels/{channel}/messages/{command.message}/reactions/{segment(emoji)}/@me"
        return _request("PUT" if command.op is Op.SET else "DELETE", path, credentials)

    def outcome(self, command: Command, response: Response) -> Outcome:
        answer = json_object(response.body)
        if 200 <= response.status < 300:
            return _success(command, response)
        if response.status == 429:
            return _limited(response, answer)
        code = answer.get("code")
        detail = f"{code} {text_at(answer, 'message')}" if code else text_at(answer, "message")
        if response.status < 500 and isinstance(code, int) and code in _CODES:
            kind, scope = _CODES[code]
            if kind is OutcomeKind.RATE_LIMITED:
                return replace(_limited(response, answer), detail=detail)
            if command.op is Op.REMOVE and kind is OutcomeKind.INVALID_REACTION:
                return Outcome(OutcomeKind.ALREADY_DONE, detail=detail)
            if kind is OutcomeKind.GONE and command.op is Op.TYPING_START and command.thread:
                scope = None  # the thread that the reply goes to, not where the message is
            return Outcome(kind, scope=scope, detail=detail)
        return by_status(response, detail)

    def follow_up(self, command: Command, credentials: Credentials, response: Response) -> Command | None:
        if command.op in TYPING_OPS or command.op is Op.CLEAR:
            return None
        answer = json_object(response.body)
        if command.handle == _PARENT:
            above = text_at(answer, "parent_id") if response.status == 200 else ""
            return replace(command, conversation=above, handle=None) if above else None
        if answer.get("code") == _UNKNOWN_MESSAGE and command.message == command.conversation and not command.handle:
            return replace(command, handle=_PARENT)
        if answer.get("code") == _UNKNOWN_EMOJI and command.op is Op.SET:
            other = _other_form(command.emoji or "")
            return replace(command, emoji=other) if other and command.emoji == _form(other) else None
        return None


def _form(emoji: str) -> str | None:
    custom = _CUSTOM.fullmatch(emoji)
    if custom is not None:
        return custom[1]
    return qualified(emoji) if is_emoji(emoji) else None


def _other_form(emoji: str) -> str | None:
    """The same emoji with U+FE0F if it has none, and without if it has; None: there is one form only."""
    other = bare(emoji) if bare(emoji) != emoji else marked(emoji)
    return None if other == emoji else other


def _success(command: Command, response: Response) -> Outcome:
    if command.handle == _PARENT:
        if not text_at(json_object(response.body), "id"):
            return Outcome(OutcomeKind.UNKNOWN, detail="an answer that is not the API's")
        # The channel above is not told: the message cannot be found.
        return Outcome(OutcomeKind.GONE, detail="not in the thread, and no channel above it")
    outcome = plain_success(response)
    if command.op is not Op.TYPING_START and response.status != 204:
        return Outcome(OutcomeKind.UNKNOWN, detail="an answer that is not the API's")
    if outcome.kind is not OutcomeKind.OK:
        return outcome
    if command.op is Op.SET and command.emoji != _form(command.emoji or ""):
        outcome = replace(outcome, handle=command.emoji)
    if response.headers.get("x-ratelimit-remaining") == "0":
        wait_ms = _seconds(response.headers.get("x-ratelimit-reset-after", ""))
        outcome = replace(outcome, retry_after_ms=wait_ms, scope="route")
    return outcome


def _limited(response: Response, answer: Mapping[str, Any]) -> Outcome:
    wait_ms = duration_ms(answer.get("retry_after"), 1_000)
    if wait_ms is None:
        wait_ms = retry_after_ms(response.headers)
    if not _by_the_api(response, answer):
        wait_ms = max(wait_ms or 0, retry_after_ms(response.headers) or 0, EDGE_WAIT_MS)
        return Outcome(OutcomeKind.RATE_LIMITED, retry_after_ms=wait_ms, scope="account", detail="429 by the edge")
    scope = _LIMIT_SCOPES.get(response.headers.get("x-ratelimit-scope", ""))
    if answer.get("global") is True or response.headers.get("x-ratelimit-global", "").lower() == "true":
        scope = "account"
    detail = f"429 {text_at(answer, 'message')}".rstrip()
    return Outcome(OutcomeKind.RATE_LIMITED, retry_after_ms=wait_ms, scope=scope, detail=detail)


def _by_the_api(response: Response, answer: Mapping[str, Any]) -> bool:
    """The API answers in JSON, with one of its codes, or with headers that say which limit it was or (Via) that the edge
    has only passed it on."""
    told = any(name == "via" or name.startswith("x-ratelimit-") for name in response.headers)
    code = answer.get("code")
    return bool(answer) and (told or (isinstance(code, int) and code in _CODES))


def _seconds(text: str) -> int | None:
    try:
        return duration_ms(float(text), 1_000)
    except ValueError:
        return None


def _request(method: Literal["GET", "POST", "PUT", "DELETE"], path: str, credentials: Credentials) -> Request:
    return Request(method, path, (("Authorization", f"Bot {credentials.token}"), ("User-Agent", USER_AGENT)))
