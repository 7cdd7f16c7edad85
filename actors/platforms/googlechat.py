"""Google Chat API: marks are resources of their own, taken off by deleting them; there is no typing.

- Reactions need a user's login, an app's own is refused: they appear as that user's. With the option ``client_id``
  the token is ``CLIENT_SECRET:REFRESH_TOKEN`` and access tokens are fetched with it; without, it is an access
  token, which lives an hour.
- ``conversation`` is the space (``spaces/...``), ``message`` the message (``spaces/.../messages/...``). A mark's
  resource name is its handle. Where it is not known (the mark was there already, a lost process took it along), a
  removal begins by looking for it: the mark of the option ``user``, else the only one with this emoji.
- Every space has one write a second for all apps and all kinds of writes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlencode

from actors.platforms.answers import (
    JSON_HEADERS,
    bearer,
    by_status,
    json_body,
    json_object,
    mapping_at,
    plain_success,
    retry_after_ms,
    segment,
    text_at,
)
from actors.platforms.emoji import is_emoji, qualified
from actors.platforms.oauth import fetched, token_request
from actors.platforms.spec import Credentials, HttpAdapter, Option, PlatformSpec, Request, Response
from actors.presence.pacing import Limit
from actors.presence.terms import TYPING_OPS, Command, LaneRules, Op, Outcome, OutcomeKind

LOGIN: Final = "https://oauth2.googleapis.com"
PAGE: Final = 200

SPEC: Final = PlatformSpec(
    name="googlechat",
    ids="spaces/...; -; spaces/.../messages/...",
    rules=LaneRules(reactions="add_remove", removal_needs_handle=True, typing=False, typing_lifetime_ms=0),
    base_url="https://chat.googleapis.com",
    options=(
        Option("client_id", "with it, token is CLIENT_SECRET:REFRESH_TOKEN"),
        Option("user", "users/ID of the login, to find its marks again"),
    ),
    keepalive_ms=0,
    min_change_ms=3_000,
    presentation="ends",
    concurrency=2,
    limits=MappingProxyType({
        "account": Limit(per_ms=1_000, count=8),
        "conversation": Limit(per_ms=2_000, count=1),
    }),
    needs="a user's login (not the app's) with `chat.messages.reactions`: the marks are that user's",
    cannot="typing",
    source=(
        "developers.google.com/workspace/chat: spaces.messages.reactions create, delete, list; limits (600 reaction "
        "writes a minute a project, 60 writes a minute a space); spacing, concurrency and the shares of limits (R)"
    ),
)  # fmt: skip

_SPACE: Final = re.compile(r"spaces/[^/]+")
_MESSAGE: Final = re.compile(r"spaces/[^/]+/messages/[^/]+")
_REACTION: Final = re.compile(r"spaces/[^/]+/messages/[^/]+/reactions/[^/]+")

_K: Final = OutcomeKind
_STATUSES: Final[Mapping[str, OutcomeKind]] = MappingProxyType({
    "ALREADY_EXISTS": _K.ALREADY_DONE,
    "NOT_FOUND": _K.GONE,
    "PERMISSION_DENIED": _K.FORBIDDEN,
    "INVALID_ARGUMENT": _K.INVALID_REACTION,
    "FAILED_PRECONDITION": _K.BAD_REQUEST,
    "UNAUTHENTICATED": _K.AUTH,
    "RESOURCE_EXHAUSTED": _K.RATE_LIMITED,
    "INTERNAL": _K.TRANSIENT,
    "UNAVAILABLE": _K.TRANSIENT,
    "DEADLINE_EXCEEDED": _K.TRANSIENT,
})  # fmt: skip


class GoogleChatAdapter(HttpAdapter):
    """See the module."""

    spec = SPEC

    def normalise(self, emoji: str) -> str | None:
        return qualified(emoji) if is_emoji(emoji) else None

    def request(self, command: Command, credentials: Credentials) -> Request | Outcome:
        if command.op in TYPING_OPS:
            return Outcome(OutcomeKind.FORBIDDEN, scope="account", detail="Google Chat has no typing")
        if command.op is Op.CLEAR:
            return Outcome(OutcomeKind.BAD_REQUEST, detail="Google Chat marks are removed one by one")
        if not (_SPACE.fullmatch(command.conversation) and _MESSAGE.fullmatch(command.message or "")):
            return Outcome(OutcomeKind.BAD_REQUEST, detail="ids are spaces/... and spaces/.../messages/...")
        token = bearer(credentials.access or credentials.token)
        reactions = f"/v1/{_segments(command.message or '')}/reactions"
        emoji = self.normalise(command.emoji or "")
        if emoji is None:
            return Outcome(OutcomeKind.INVALID_REACTION, detail="not an emoji")
        if command.op is Op.SET:
            body = {"emoji": {"unicode": emoji}}
            return Request("POST", reactions, (token, *JSON_HEADERS), json_body(body))
        if command.handle is None:
            query = urlencode({"pageSize": PAGE, "filter": _filter(emoji, credentials)})
            return Request("GET", f"{reactions}?{query}", (token,))
        return Request("DELETE", f"/v1/{_segments(command.handle)}", (token,))

    def outcome(self, command: Command, response: Response) -> Outcome:
        answer = json_object(response.body)
        if 200 <= response.status < 300:
            return _success(command, response, answer)
        error = mapping_at(answer, "error")
        status = text_at(error, "status")
        detail = f"{status} {text_at(error, 'message')}".strip()
        kind = _STATUSES.get(status)
        if kind is None:
            outcome = by_status(response, detail)
            kind = {404: OutcomeKind.GONE, 409: OutcomeKind.ALREADY_DONE}.get(response.status, outcome.kind)
        if kind is OutcomeKind.GONE and command.op is Op.REMOVE:
            kind = OutcomeKind.ALREADY_DONE
        if kind is OutcomeKind.INVALID_REACTION and command.op is not Op.SET:
            kind = OutcomeKind.BAD_REQUEST
        wait_ms = retry_after_ms(response.headers) if kind is OutcomeKind.RATE_LIMITED else None
        return Outcome(kind, retry_after_ms=wait_ms, detail=detail)

    def follow_up(self, command: Command, credentials: Credentials, response: Response) -> Command | None:
        if command.op is not Op.REMOVE or command.handle is not None or response.status != 200:
            return None
        found = _names(json_object(response.body))
        return replace(command, handle=found[0]) if len(found) == 1 else None

    def introduce(self, credentials: Credentials) -> Request | None:
        client = credentials.options.get("client_id")
        if credentials.access or not client:
            return None
        secret, _, refresh = credentials.token.partition(":")
        fields = {
            "grant_type": "refresh_token",
            "client_id": client,
            "client_secret": secret,
            "refresh_token": refresh,
        }
        return token_request(LOGIN, "/token", fields)

    def introduced(self, credentials: Credentials, response: Response) -> Credentials | Outcome:
        return fetched(credentials, response)

    def expired(self, response: Response) -> bool:
        return response.status == 401


def _success(command: Command, response: Response, answer: Mapping[str, Any]) -> Outcome:
    if command.op is Op.SET:
        name = text_at(answer, "name")
        if not _REACTION.fullmatch(name):
            return Outcome(OutcomeKind.UNKNOWN, detail="no reaction in the answer")
        return Outcome(OutcomeKind.OK, handle=name)
    if command.handle is not None:
        return plain_success(response)
    found = _names(answer)
    if not answer and response.body.strip() != b"{}":
        return Outcome(OutcomeKind.UNKNOWN, detail="an answer that is not Google Chat's")
    if not found:
        return Outcome(OutcomeKind.ALREADY_DONE, detail="no such mark on the message")
    return Outcome(
        OutcomeKind.FORBIDDEN, scope="message", detail="which of several marks is ours needs the option user"
    )


def _names(answer: Mapping[str, Any]) -> list[str]:
    """The resource names of the reactions on a page."""
    listed = answer.get("reactions")
    reactions = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return [name for each in reactions if _REACTION.fullmatch(name := text_at(each, "name"))]


def _filter(emoji: str, credentials: Credentials) -> str:
    user = credentials.options.get("user")
    mine = f' AND user.name = "{user}"' if user else ""
    return f'emoji.unicode = "{emoji}"{mine}'


def _segments(name: str) -> str:
    """A resource name as a path."""
    return "/".join(segment(part) for part in name.split("/"))
