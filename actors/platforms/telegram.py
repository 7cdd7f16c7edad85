"""Telegram Bot API: one mark per message that each set replaces; typing that lives 5 s and cannot be stopped.

- The token is part of the path; nothing of the path is ever printed.
- Bots may use 73 emojis, all without U+FE0F, so it is stripped before comparing and sending.
- Typing has the topic's id. The General topic has none in updates, yet typing shows there only with id 1. A
  thread id is refused in private chats without topics and in groups that are no forum: then it is left out,
  once. In a forum the topic is gone, and typing elsewhere would be seen by the wrong people.
- A group that became a supergroup has a new id. Typing goes there at once; marks do not: the message ids of
  the old group mean other messages in the new one, so the message is gone.
- Errors have a text only; `_TEXTS` is the one place that reads it. Texts in capitals come from the core
  server.
- A message takes only so many different marks: then those of others that are on it can still be joined, so the
  chain is tried, and nothing is concluded about the emoji.
- A flood limit names its seconds but not what it covers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from actors.platforms.answers import (
    JSON_HEADERS,
    by_status,
    duration_ms,
    json_body,
    json_object,
    mapping_at,
    retry_after_ms,
    text_at,
)
from actors.platforms.spec import Credentials, HttpAdapter, PlatformSpec, Request, Response
from actors.presence.pacing import Limit
from actors.presence.terms import Command, LaneRules, Op, Outcome, OutcomeKind

_LISTED: Final = (
    "👍 👎 ❤ 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤\u200d🔥 "
    "🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 😴 😭 🤓 👻 👨\u200d💻 👀 🎃 🙈 😇 😨 "
    "🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷\u200d♂ 🤷 🤷\u200d♀ 😡"
)
EMOJIS: Final = frozenset(_LISTED.split())
"""Every emoji a bot may set, as the Bot API lists them."""

SPEC: Final = PlatformSpec(
    name="telegram",
    ids="chat id or @name; topic id; message id",
    rules=LaneRules(
        reactions="replace", typing=True, typing_stop=False, typing_lifetime_ms=5_000, typing_in_threads=True
    ),
    base_url="https://api.telegram.org",
    keepalive_ms=4_000,
    min_change_ms=1_000,
    concurrency=8,
    limits=MappingProxyType({
        "account": Limit(per_ms=1_000, count=25),
        "conversation": Limit(per_ms=1_000, count=3, burst=3),
        "group.marks": Limit(per_ms=60_000, count=20),
        "group.typing": Limit(per_ms=60_000, count=20),
    }),
    emoji_allowed=EMOJIS,
    needs=(
        "to be a member of the chat; groups may switch off reactions for members (`can_react_to_messages`); "
        "typing: to write there"
    ),
    cannot=(
        "any emoji but Telegram's 73 (`✅`, `❌` and `⏳` are none of them; a chat may allow fewer); typing in "
        "channels; more than one mark"
    ),
    source=(
        "core.telegram.org/bots/api 10.2: setMessageReaction, sendChatAction (5 s), ResponseParameters; "
        "texts of errors: github.com/tdlib/telegram-bot-api Client.cpp; limits are published for messages "
        "only (core.telegram.org/bots/faq: 1/s a chat, 20/min a group, 30/s in all): ours, keep-alive and concurrency (R)"
    ),
)  # fmt: skip

GENERAL_TOPIC: Final = 1


class _Text(NamedTuple):
    """A description that contains ``text`` (in lower case) means ``kind``."""

    text: str
    kind: OutcomeKind
    scope: str | None = None


_MOVED: Final = "group chat was upgraded to a supergroup chat"
_NO_THREAD: Final = ("message thread not found", "invalid topic identifier")

_TEXTS: Final = (
    _Text("message is not modified", OutcomeKind.ALREADY_DONE),
    _Text("message_not_modified", OutcomeKind.ALREADY_DONE),
    _Text("message to react not found", OutcomeKind.GONE),
    _Text("message_id_invalid", OutcomeKind.GONE),
    _Text("msg_id_invalid", OutcomeKind.GONE),
    _Text(_MOVED, OutcomeKind.GONE),
    *(_Text(text, OutcomeKind.GONE, "message") for text in _NO_THREAD),
    _Text("reaction_invalid", OutcomeKind.INVALID_REACTION),
    _Text("custom_reactions_too_many", OutcomeKind.INVALID_REACTION),
    _Text("document_invalid", OutcomeKind.INVALID_REACTION),
    _Text("reactions_too_many", OutcomeKind.INVALID_REACTION, "message"),
    _Text("reaction_empty", OutcomeKind.BAD_REQUEST),
    _Text("invalid reaction type specified", OutcomeKind.BAD_REQUEST),
    _Text("can't parse", OutcomeKind.BAD_REQUEST),
    _Text("wrong parameter action", OutcomeKind.BAD_REQUEST),
    _Text("method not found", OutcomeKind.BAD_REQUEST),
    _Text("chat not found", OutcomeKind.FORBIDDEN, "conversation"),
    _Text("channel_private", OutcomeKind.FORBIDDEN, "conversation"),
    _Text("channel_invalid", OutcomeKind.FORBIDDEN, "conversation"),
    _Text("peer_id_invalid", OutcomeKind.FORBIDDEN, "conversation"),
    _Text("chat_write_forbidden", OutcomeKind.FORBIDDEN),
    _Text("anonymous_reactions_disabled", OutcomeKind.FORBIDDEN),
    _Text("premium_account_required", OutcomeKind.FORBIDDEN),
    _Text("chat_admin_required", OutcomeKind.FORBIDDEN),
    _Text("user_banned_in_channel", OutcomeKind.FORBIDDEN),
    _Text("have no write access to the chat", OutcomeKind.FORBIDDEN),
    _Text("can't be sent to channel direct messages", OutcomeKind.FORBIDDEN),
    _Text("bot was blocked by the user", OutcomeKind.FORBIDDEN, "conversation"),
    _Text("bot was kicked", OutcomeKind.FORBIDDEN, "conversation"),
    _Text("is not a member", OutcomeKind.FORBIDDEN, "conversation"),
    _Text("user is deactivated", OutcomeKind.FORBIDDEN, "conversation"),
    _Text("group chat was deleted", OutcomeKind.FORBIDDEN, "conversation"),
)

_AUTH_STATUS: Final = frozenset({401, 404, 421})
"""Token refused; token not even of the right form; token of another server (self-hosted)."""


class TelegramAdapter(HttpAdapter):
    """See the module."""

    spec = SPEC

    def normalise(self, emoji: str) -> str | None:
        bare = emoji.replace("\ufe0f", "")
        return bare if bare in EMOJIS else None

    def request(self, command: Command, credentials: Credentials) -> Request | Outcome:
        if command.op is Op.TYPING_STOP:
            return Outcome(OutcomeKind.OK)  # it fades by itself
        if command.op is Op.TYPING_START:
            if not (command.thread or "0").isdecimal():
                return Outcome(OutcomeKind.BAD_REQUEST, detail="a Telegram thread id is a number")
            return _call("sendChatAction", _typing(command), credentials)
        if not (command.message or "").isdecimal():
            return Outcome(OutcomeKind.BAD_REQUEST, detail="a Telegram message id is a number")
        reaction: list[dict[str, str]] = []
        if command.op is Op.SET:
            emoji = self.normalise(command.emoji or "")
            if emoji is None:
                return Outcome(OutcomeKind.INVALID_REACTION, detail="not an emoji that Telegram lets bots set")
            reaction = [{"type": "emoji", "emoji": emoji}]
        body = {
            "chat_id": _chat(command.conversation),
            "message_id": int(command.message or ""),
            "reaction": reaction,
        }
        return _call("setMessageReaction", body, credentials)

    def outcome(self, command: Command, response: Response) -> Outcome:
        answer = json_object(response.body)
        if answer.get("ok") is True:
            return Outcome(OutcomeKind.OK)
        status = _code(answer, response)
        description = text_at(answer, "description")
        if status == 429:
            wait_ms = duration_ms(mapping_at(answer, "parameters").get("retry_after"), 1_000)
            if wait_ms is None:
                wait_ms = retry_after_ms(response.headers)
            return Outcome(OutcomeKind.RATE_LIMITED, retry_after_ms=wait_ms, detail=description)
        if 200 <= status < 300:
            return Outcome(OutcomeKind.UNKNOWN, detail="an answer that is not the Bot API's")
        if status < 500:
            lowered = description.lower()
            for row in _TEXTS:
                if row.text in lowered:
                    return Outcome(row.kind, scope=row.scope, detail=description)
            if status in _AUTH_STATUS:
                return Outcome(OutcomeKind.AUTH, detail=f"{status} {description}".rstrip())
        return by_status(Response(status, response.headers), description)

    def follow_up(self, command: Command, credentials: Credentials, response: Response) -> Command | None:
        if command.op is not Op.TYPING_START or response.status != 400:
            return None
        answer = json_object(response.body)
        new_id = mapping_at(answer, "parameters").get("migrate_to_chat_id")
        if isinstance(new_id, int) and str(new_id) != command.conversation:
            return replace(command, conversation=str(new_id))
        description = text_at(answer, "description").lower()
        if command.thread is not None and not command.forum and any(text in description for text in _NO_THREAD):
            return replace(command, thread=None)
        return None


def _call(method: str, body: dict[str, Any], credentials: Credentials) -> Request:
    return Request("POST", f"/bot{quote(credentials.token, safe=':')}/{method}", JSON_HEADERS, json_body(body))


def _typing(command: Command) -> dict[str, Any]:
    body: dict[str, Any] = {"chat_id": _chat(command.conversation), "action": "typing"}
    if command.thread:
        body["message_thread_id"] = int(command.thread)
    elif command.forum:
        body["message_thread_id"] = GENERAL_TOPIC
    return body


def _chat(conversation: str) -> int | str:
    """Numbers are chats, the rest are public names (``@channel``)."""
    return int(conversation) if conversation.removeprefix("-").isdecimal() else conversation


def _code(answer: Mapping[str, Any], response: Response) -> int:
    """The platform's own code where it gives one."""
    code = answer.get("error_code")
    return code if isinstance(code, int) else response.status
