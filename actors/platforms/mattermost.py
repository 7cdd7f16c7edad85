"""Mattermost REST API v4: marks are added and removed one by one, by name; typing lives 5 s and cannot be stopped.

- The bot's user id is part of each call and is asked once; ``me`` is not allowed there.
- ``thread`` is the id of a thread's first post: typing shows in that thread.
- Ids of errors decide before statuses. The answer to too many calls is plain text; what is counted is the host or
  the token, whatever the call.
- Deleting what is not there, and adding what is, succeed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, Literal

from actors.platforms.answers import (
    JSON_HEADERS,
    bearer,
    by_status,
    json_body,
    json_object,
    retry_after_ms,
    segment,
    text_at,
)
from actors.platforms.emoji_names import SHORT, named
from actors.platforms.spec import Credentials, HttpAdapter, Option, PlatformSpec, Request, Response
from actors.presence.pacing import Limit
from actors.presence.terms import TYPING_OPS, Command, LaneRules, Op, Outcome, OutcomeKind

SPEC: Final = PlatformSpec(
    name="mattermost",
    ids="channel id; id of the thread's first post; post id",
    rules=LaneRules(
        reactions="add_remove", typing=True, typing_stop=False, typing_lifetime_ms=5_000, typing_in_threads=True
    ),
    base_url=None,
    options=(Option("user_id", "the bot's id", "asked from the server"),),
    keepalive_ms=4_000,
    min_change_ms=700,
    concurrency=4,
    limits=MappingProxyType({"account": Limit(per_ms=1_000, count=8)}),
    needs=(
        "permissions `add_reaction`, `remove_reaction` and, for typing, `create_post`; to be a member of the channel"
    ),
    cannot="typing where the server's EnableUserTypingMessages is off",
    source=(
        "github.com/mattermost/mattermost-api-reference reactions, users; server/channels: api4, app/reaction.go, "
        "app/ratelimit.go (10/s where it is on); TimeBetweenUserTypingUpdatesMilliseconds (5 s); keep-alive, spacing "
        "and the shares of limits (R)"
    ),
)

_NAME: Final = re.compile(r"[a-zA-Z0-9_+-]{1,64}")

_K: Final = OutcomeKind
_IDS: Final[Mapping[str, tuple[OutcomeKind, str | None]]] = MappingProxyType({
    "app.emoji.get_by_name.no_result": (_K.INVALID_REACTION, None),
    "api.emoji.disabled.app_error": (_K.INVALID_REACTION, None),
    "model.reaction.is_valid.emoji_name.app_error": (_K.INVALID_REACTION, None),
    "app.reaction.save.save.too_many_reactions": (_K.FORBIDDEN, "message"),
    "api.context.permissions.app_error": (_K.FORBIDDEN, None),
    "api.reaction.save.archived_channel.app_error": (_K.FORBIDDEN, "conversation"),
    "api.reaction.delete.archived_channel.app_error": (_K.FORBIDDEN, "conversation"),
    "api.reaction.save_reaction.user_id.app_error": (_K.BAD_REQUEST, None),
    "api.reaction.save_reaction.invalid.app_error": (_K.BAD_REQUEST, None),
})  # fmt: skip
"""What the id of an error means and what a refusal covers. A post can be full of marks, whatever the emoji; an
unknown name is "disabled" where custom emojis are off."""

_NO_POST: Final = "app.post.get."
_API: Final = "/api/v4"


class MattermostAdapter(HttpAdapter):
    """See the module."""

    spec = SPEC

    def normalise(self, emoji: str) -> str | None:
        name = named(emoji, SHORT)
        return name if _NAME.fullmatch(name) else None

    def request(self, command: Command, credentials: Credentials) -> Request | Outcome:
        if command.op is Op.TYPING_STOP:
            return Outcome(OutcomeKind.OK)  # it fades by itself
        if command.op is Op.CLEAR:
            return Outcome(OutcomeKind.BAD_REQUEST, detail="Mattermost marks are removed one by one")
        user = credentials.options.get("user_id", "")
        if command.op is Op.TYPING_START:
            body = {"channel_id": command.conversation}
            if command.thread is not None:
                body["parent_id"] = command.thread
            return _request("POST", f"/users/{segment(user)}/typing", credentials, body)
        if not command.message:
            return Outcome(OutcomeKind.BAD_REQUEST, detail="a mark needs a message")
        name = self.normalise(command.emoji or "")
        if name is None:
            return Outcome(OutcomeKind.INVALID_REACTION, detail="neither a known emoji nor the name of one")
        if command.op is Op.SET:
            body = {"user_id": user, "post_id": command.message, "emoji_name": name}
            return _request("POST", "/reactions", credentials, body)
        post = f"/users/{segment(user)}/posts/{segment(command.message)}"
        return _request("DELETE", f"{post}/reactions/{segment(name)}", credentials)

    def outcome(self, command: Command, response: Response) -> Outcome:
        answer = json_object(response.body)
        if 200 <= response.status < 300:
            done = text_at(answer, "emoji_name") if command.op is Op.SET else text_at(answer, "status") == "OK"
            return Outcome(OutcomeKind.OK) if done else Outcome(OutcomeKind.UNKNOWN, detail="not Mattermost's answer")
        error = text_at(answer, "id")
        detail = f"{error} {text_at(answer, 'message')}".strip()
        if response.status == 429:
            wait_ms = retry_after_ms(response.headers)
            return Outcome(OutcomeKind.RATE_LIMITED, retry_after_ms=wait_ms, scope="account", detail="429")
        if response.status < 500:
            if error in _IDS:
                kind, scope = _IDS[error]
                return Outcome(kind, scope=scope, detail=detail)
            if response.status == 404 and error.startswith(_NO_POST) and command.op not in TYPING_OPS:
                return Outcome(OutcomeKind.GONE, detail=detail)
        return by_status(response, detail)

    def introduce(self, credentials: Credentials) -> Request | None:
        return None if credentials.options.get("user_id") else _request("GET", "/users/me", credentials)

    def introduced(self, credentials: Credentials, response: Response) -> Credentials | Outcome:
        user = text_at(json_object(response.body), "id")
        if response.status == 200 and user:
            return replace(credentials, options=MappingProxyType({**credentials.options, "user_id": user}))
        if response.status == 200:
            return Outcome(OutcomeKind.TRANSIENT, detail="users/me: an answer that is not Mattermost's")
        outcome = self.outcome(_WHO, response)
        return replace(outcome, scope="account") if outcome.kind is OutcomeKind.FORBIDDEN else outcome


_WHO: Final = Command(Op.TYPING_START, "")


def _request(
    method: Literal["GET", "POST", "DELETE"],
    path: str,
    credentials: Credentials,
    body: Mapping[str, str] | None = None,
) -> Request:
    token = bearer(credentials.token)
    if body is None:
        return Request(method, _API + path, (token,))
    return Request(method, _API + path, (token, *JSON_HEADERS), json_body(body))
