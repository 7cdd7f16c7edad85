"""WhatsApp Cloud API (Graph): one mark of ours on a message, each set replaces it; typing is tied to an inbound
message, marks that as read, and lives 25 s.

- ``conversation`` is the user's phone number, ``message`` the id of the user's message (``wamid...``).
- Typing names the newest message that is being worked on; without one there is no call. It is not refreshed:
  whether a repeat within its 25 s shows anything is contested, so ``typing.keepalive_ms`` may be set to more than
  that. It marks the message as read: who does not want that sets ``typing.mode = "never"``.
- Marks are messages: they spend the budget of the pair (one message per 6 s to one user) that the reply needs.
- Codes decide, statuses vary. A mark on a message that is too old or deleted can be accepted and fail later by
  webhook; nobody is told here.
- An answer about the open window or the recipient concerns this message only: the next inbound one opens it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from actors.platforms.answers import (
    JSON_HEADERS,
    bearer,
    by_status,
    json_body,
    json_object,
    mapping_at,
    segment,
    text_at,
)
from actors.platforms.emoji import is_emoji, qualified
from actors.platforms.spec import Credentials, HttpAdapter, Option, PlatformSpec, Request, Response
from actors.presence.pacing import Limit
from actors.presence.terms import Command, LaneRules, Op, Outcome, OutcomeKind

LONG_WAIT_MS: Final = 3_600_000

SPEC: Final = PlatformSpec(
    name="whatsapp",
    ids="the user's phone number; -; id of the user's message (wamid...)",
    rules=LaneRules(
        reactions="replace", typing=True, typing_stop=False, typing_lifetime_ms=25_000, typing_in_threads=False
    ),
    base_url="https://graph.facebook.com/v25.0",
    options=(Option("phone_number_id", "the bot's phone number, by its id", required=True),),
    keepalive_ms=0,
    min_change_ms=6_000,
    presentation="ends",
    ack_variant="whatsapp",
    concurrency=8,
    limits=MappingProxyType({
        "account": Limit(per_ms=1_000, count=20),
        "conversation": Limit(per_ms=60_000, count=10, burst=5),
    }),
    needs=(
        "a token that may send messages for the number (the permission is said to be "
        "`whatsapp_business_messaging`); a message of the user's in the last 24 h"
    ),
    cannot=(
        "typing without marking the message as read, or for longer than 25 s; marks on messages older than 30 "
        "days (the failure is told to the webhook only)"
    ),
    source=(
        "developers.facebook.com/documentation/business-messaging/whatsapp: reaction-messages, typing-indicators "
        "(25 s), throughput (20/s at least), support/error-codes; pair limit (10/min, retry after 4^n s): copies of "
        "Meta's text by others; that typing counts as a message, one shot, spacing and concurrency (R)"
    ),
)  # fmt: skip

_K: Final = OutcomeKind
_AUTH_CODES: Final = frozenset({0, 190, 3, 10, *range(200, 300), 131005, 368, 131031, 131042, 131045, 131037, 33})
_CODES: Final[Mapping[int, tuple[OutcomeKind, str | None, int | None]]] = MappingProxyType({
    131056: (_K.RATE_LIMITED, "conversation", None),
    130429: (_K.RATE_LIMITED, "account", None),
    4: (_K.RATE_LIMITED, "account", None),
    80007: (_K.RATE_LIMITED, "account", None),
    131048: (_K.RATE_LIMITED, "account", LONG_WAIT_MS),
    131049: (_K.RATE_LIMITED, "conversation", LONG_WAIT_MS),
    131064: (_K.RATE_LIMITED, "account", LONG_WAIT_MS),
    131047: (_K.FORBIDDEN, "message", None),
    131021: (_K.FORBIDDEN, "conversation", None),
    131026: (_K.FORBIDDEN, "conversation", None),
    131030: (_K.FORBIDDEN, "conversation", None),
    131050: (_K.FORBIDDEN, "conversation", None),
    130472: (_K.FORBIDDEN, "conversation", None),
    130497: (_K.FORBIDDEN, "conversation", None),
    131000: (_K.TRANSIENT, None, None),
    131016: (_K.TRANSIENT, None, None),
    131057: (_K.TRANSIENT, None, None),
    1: (_K.TRANSIENT, None, None),
    2: (_K.TRANSIENT, None, None),
    100: (_K.BAD_REQUEST, None, None),
    131008: (_K.BAD_REQUEST, None, None),
    131051: (_K.BAD_REQUEST, None, None),
    **dict.fromkeys(_AUTH_CODES, (_K.AUTH, None, None)),
})  # fmt: skip
"""What a code means, what it covers, and the wait where it is known."""

_BAD_VALUE: Final = 131009


class WhatsappAdapter(HttpAdapter):
    """See the module."""

    spec = SPEC

    def normalise(self, emoji: str) -> str | None:
        return qualified(emoji) if is_emoji(emoji) else None

    def request(self, command: Command, credentials: Credentials) -> Request | Outcome:
        if command.op is Op.TYPING_STOP:
            return Outcome(OutcomeKind.OK)  # it fades by itself
        body: dict[str, Any] = {"messaging_product": "whatsapp"}
        if command.op is Op.TYPING_START:
            if not command.inbound:
                return Outcome(OutcomeKind.OK)  # nothing to tie it to, so nothing that could be shown
            body |= {"status": "read", "message_id": command.inbound, "typing_indicator": {"type": "text"}}
            return _call(body, credentials)
        if not command.message:
            return Outcome(OutcomeKind.BAD_REQUEST, detail="a mark needs a message")
        emoji = self.normalise(command.emoji or "") if command.op is Op.SET else ""
        if emoji is None:
            return Outcome(OutcomeKind.INVALID_REACTION, detail="not an emoji")
        body |= {
            "recipient_type": "individual",
            "to": command.conversation,
            "type": "reaction",
            "reaction": {"message_id": command.message, "emoji": emoji},
        }
        return _call(body, credentials)

    def outcome(self, command: Command, response: Response) -> Outcome:
        answer = json_object(response.body)
        error = mapping_at(answer, "error")
        code = error.get("code")
        detail = _told(error)
        if isinstance(code, int) and not isinstance(code, bool):
            if code == _BAD_VALUE:
                refused = command.op is Op.SET and "emoji" in detail.lower()
                return Outcome(OutcomeKind.INVALID_REACTION if refused else OutcomeKind.BAD_REQUEST, detail=detail)
            if code in _CODES:
                kind, scope, wait_ms = _CODES[code]
                return Outcome(kind, scope=scope, retry_after_ms=wait_ms, detail=detail)
        if not 200 <= response.status < 300:
            return by_status(response, detail)
        if answer.get("success") is True or (isinstance(answer.get("messages"), list) and answer["messages"]):
            return Outcome(OutcomeKind.OK)
        return Outcome(OutcomeKind.UNKNOWN, detail="an answer that is not the Cloud API's")


def _told(error: Mapping[str, Any]) -> str:
    parts = (text_at(error, "message"), text_at(mapping_at(error, "error_data"), "details"))
    return " ".join(filter(None, parts))


def _call(body: Mapping[str, Any], credentials: Credentials) -> Request:
    number = segment(credentials.options.get("phone_number_id", ""))
    return Request("POST", f"/{number}/messages", (bearer(credentials.token), *JSON_HEADERS), json_body(body))
