"""Microsoft Teams, the Bot Framework connector: marks (a public preview) are added and removed one by one, by id;
typing is shown for 3 s, in chats only.

- ``token`` is the bot's client secret; with it and ``app_id`` an access token is fetched from the tenant's login
  service, and anew when it has expired. ``base_url`` is the service URL of incoming activities.
- ``conversation`` is the conversation's id, which in a channel names the thread too (``;messageid=``); ``message``
  is the activity's id. Ids of channels end in ``@thread.tacv2`` or ``@thread.skype``: there typing shows nothing
  and is not called.
- Adding and removing succeed however often. Marks share 2/s over all conversations; typing counts among a
  conversation's messages, of which there are 1,800 an hour.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

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
from actors.platforms.emoji_names import TEAMS, named
from actors.platforms.oauth import fetched, token_request
from actors.platforms.spec import Credentials, HttpAdapter, Option, PlatformSpec, Request, Response
from actors.presence.pacing import Limit
from actors.presence.terms import Command, LaneRules, Op, Outcome, OutcomeKind

LOGIN: Final = "https://login.microsoftonline.com"
TENANT: Final = "botframework.com"
SCOPE: Final = "https://api.botframework.com/.default"

SPEC: Final = PlatformSpec(
    name="teams",
    ids="conversation id; -; activity id",
    rules=LaneRules(
        reactions="add_remove", typing=True, typing_stop=False, typing_lifetime_ms=3_000, typing_in_threads=False
    ),
    base_url="https://smba.trafficmanager.net/teams",
    options=(
        Option("app_id", "the bot's application id", required=True),
        Option("bot_id", "the bot's id in conversations", "28:APP_ID"),
        Option("tenant", "whose login service gives its tokens", TENANT),
        Option("login_url", "address of the login service", "the public cloud's", kind="url"),
    ),
    keepalive_ms=2_500,
    min_change_ms=2_000,
    concurrency=2,
    limits=MappingProxyType({
        "account.marks": Limit(per_ms=10_000, count=18, burst=1),
        "conversation.typing": Limit(per_ms=60_000, count=24, burst=1),
    }),
    needs="to be installed in the conversation; marks are a public preview",
    cannot="typing in channels; `⏳` (shown as `holdon`)",
    source=(
        "learn.microsoft.com: agent-reactions (2/s in all, idempotent), teams-reactions-reference, rate-limit "
        "(1,800/h a conversation), bot-framework-rest-connector-authentication; microsoft.github.io/spark.js "
        "activity spec (typing 3 s); keep-alive, spacing, concurrency and the shares of limits (R)"
    ),
)  # fmt: skip

_ID: Final = re.compile(r"[A-Za-z0-9_;\-]{1,200}")
_CHANNEL: Final = re.compile(r".*@thread\.(tacv2|skype)(;.*)?")

_K: Final = OutcomeKind
_CODES: Final[Mapping[str, tuple[OutcomeKind, str | None]]] = MappingProxyType({
    "ConversationNotFound": (_K.GONE, "conversation"),
    "BotNotInConversationRoster": (_K.FORBIDDEN, "conversation"),
    "ConversationBlockedByUser": (_K.FORBIDDEN, "conversation"),
    "BotDisabledByAdmin": (_K.FORBIDDEN, "conversation"),
    "MessageWritesBlocked": (_K.FORBIDDEN, "conversation"),
    "BotNotRegistered": (_K.AUTH, None),
    "Throttled": (_K.RATE_LIMITED, "route"),
    "PreconditionFailed": (_K.TRANSIENT, None),
})  # fmt: skip
"""What a code means and what a refusal covers."""


class TeamsAdapter(HttpAdapter):
    """See the module."""

    spec = SPEC

    def normalise(self, emoji: str) -> str | None:
        name = named(emoji, TEAMS)
        return name if _ID.fullmatch(name) else None

    def request(self, command: Command, credentials: Credentials) -> Request | Outcome:
        if command.op is Op.TYPING_STOP:
            return Outcome(OutcomeKind.OK)  # it fades by itself
        if command.op is Op.CLEAR:
            return Outcome(OutcomeKind.BAD_REQUEST, detail="Teams marks are removed one by one")
        activities = f"/v3/conversations/{segment(command.conversation)}/activities"
        if command.op is Op.TYPING_START:
            if _CHANNEL.fullmatch(command.conversation):
                return Outcome(OutcomeKind.FORBIDDEN, detail="Teams shows no typing in channels")
            body = {
                "type": "typing",
                "from": {"id": credentials.options.get("bot_id") or f"28:{credentials.options.get('app_id', '')}"},
                "conversation": {"id": command.conversation},
            }
            headers = (bearer(credentials.access), *JSON_HEADERS)
            return Request("POST", activities, headers, json_body(body))
        if not command.message:
            return Outcome(OutcomeKind.BAD_REQUEST, detail="a mark needs a message")
        name = self.normalise(command.emoji or "")
        if name is None:
            return Outcome(OutcomeKind.INVALID_REACTION, detail="neither a known emoji nor the id of one")
        path = f"{activities}/{segment(command.message)}/reactions/{segment(name)}"
        return Request("PUT" if command.op is Op.SET else "DELETE", path, (bearer(credentials.access),))

    def outcome(self, command: Command, response: Response) -> Outcome:
        if 200 <= response.status < 300:
            return plain_success(response)
        error = mapping_at(json_object(response.body), "error")
        code = text_at(error, "code")
        detail = f"{code} {text_at(error, 'message')}".strip()
        kind, scope = _CODES.get(code, (None, None))
        if response.status == 429 or kind is OutcomeKind.RATE_LIMITED:
            wait_ms = retry_after_ms(response.headers)
            return Outcome(OutcomeKind.RATE_LIMITED, retry_after_ms=wait_ms, scope="route", detail=detail)
        if kind is not None:
            return Outcome(kind, scope=scope, detail=detail)
        if response.status == 412:
            return Outcome(OutcomeKind.TRANSIENT, detail=detail)
        if response.status == 404:
            return Outcome(OutcomeKind.GONE, detail=detail)
        if response.status == 400 and command.op is Op.SET:
            return Outcome(OutcomeKind.INVALID_REACTION, detail=detail)
        return by_status(response, detail)

    def introduce(self, credentials: Credentials) -> Request | None:
        if credentials.access:
            return None
        fields = {
            "grant_type": "client_credentials",
            "client_id": credentials.options.get("app_id", ""),
            "client_secret": credentials.token,
            "scope": SCOPE,
        }
        path = f"/{segment(credentials.options.get('tenant') or TENANT)}/oauth2/v2.0/token"
        return token_request(credentials.options.get("login_url") or LOGIN, path, fields)

    def introduced(self, credentials: Credentials, response: Response) -> Credentials | Outcome:
        return fetched(credentials, response)

    def expired(self, response: Response) -> bool:
        return response.status == 401
