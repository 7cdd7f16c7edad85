"""Matrix client-server API: each mark is an event of its own, taken off by redacting it; typing can be
stopped.

- The idempotency key is the transaction id: a repeat of a call gets the first call's answer, with the event
  id again. Ids must never repeat for one access token, also not after a restart.
- To remove a mark its event id is needed. Where it is not known (M_DUPLICATE_ANNOTATION tells none, a lost
  process took it along) a removal begins by looking for it among the message's annotations: the first request
  asks for a page, and `follow_up` turns the page into the redaction, or into the next page. Until the id is
  known the command's handle is the place where the search stands: ``page:`` and the server's token. Event ids
  begin with ``$``.
- Keys carry U+FE0F wherever Unicode knows two forms, else other clients count them apart.
- Servers keep typing until it is stopped or runs out, a message of the bot's own does not end it.
- Messages, marks and redactions share one budget of the account; typing has none.
- Codes decide; texts only where the code is M_UNKNOWN (`_UNKNOWN_TEXTS`, Synapse's wording).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, Literal
from urllib.parse import urlencode

from actors.platforms.answers import (
    JSON_HEADERS,
    by_status,
    duration_ms,
    json_body,
    json_object,
    mapping_at,
    plain_success,
    retry_after_ms,
    segment,
    text_at,
)
from actors.platforms.emoji import bare, marked
from actors.platforms.spec import Credentials, HttpAdapter, Option, PlatformSpec, Request, Response
from actors.presence.pacing import Limit
from actors.presence.terms import TYPING_OPS, Command, LaneRules, Op, Outcome, OutcomeKind

TYPING_MS: Final = 30_000
PAGE: Final = 250
"""Annotations per page when looking for our own; newest come first."""
MAX_KEY_LENGTH: Final = 500
DEFAULT_WAIT_MS: Final = 5_000

SPEC: Final = PlatformSpec(
    name="matrix",
    ids="room id (!...); -; event id ($...)",
    rules=LaneRules(
        reactions="add_remove",
        removal_needs_handle=True,
        typing=True,
        typing_stop=True,
        typing_lifetime_ms=TYPING_MS,
        typing_in_threads=False,
    ),
    base_url=None,
    options=(Option("user_id", "the bot's id", "asked from the server"),),
    keepalive_ms=20_000,
    min_change_ms=5_000,
    presentation="ends",
    post_clears_typing=False,
    concurrency=2,
    limits=MappingProxyType({"account.marks": Limit(per_ms=5_000, count=8, burst=8)}),
    needs="to have joined the room, with the power level for `m.reaction` and to redact its own events",
    cannot=(
        "typing in a thread: it shows in the room; quick changes: Synapse grants one event in 5 s, unless it "
        "exempts the bot from `rc_message`"
    ),
    source=(
        "spec.matrix.org client-server v1.18: room_send, redaction, typing, relations, event_annotations; "
        "form of keys: m.reaction.yaml; Synapse: rc_message (0.2/s, burst 10, of which two are left to the "
        "reply), its errors, no limit on typing; keep-alive, spacing and concurrency (R)"
    ),
)

_CODES: Final[Mapping[str, tuple[OutcomeKind, str | None]]] = MappingProxyType({
    "M_DUPLICATE_ANNOTATION": (OutcomeKind.ALREADY_DONE, None),
    "M_NOT_FOUND": (OutcomeKind.GONE, None),
    "M_TOO_LARGE": (OutcomeKind.INVALID_REACTION, None),
    "M_FORBIDDEN": (OutcomeKind.FORBIDDEN, "conversation"),
    "M_GUEST_ACCESS_FORBIDDEN": (OutcomeKind.FORBIDDEN, "conversation"),
    "M_RESOURCE_LIMIT_EXCEEDED": (OutcomeKind.FORBIDDEN, "account"),
    "M_USER_LIMIT_EXCEEDED": (OutcomeKind.FORBIDDEN, "account"),
    "M_UNKNOWN_TOKEN": (OutcomeKind.AUTH, None),
    "M_MISSING_TOKEN": (OutcomeKind.AUTH, None),
    "M_USER_LOCKED": (OutcomeKind.AUTH, None),
    "M_USER_SUSPENDED": (OutcomeKind.AUTH, None),
    "M_USER_DEACTIVATED": (OutcomeKind.AUTH, None),
    "M_UNKNOWN_DEVICE": (OutcomeKind.AUTH, None),
    "M_BAD_JSON": (OutcomeKind.BAD_REQUEST, None),
    "M_NOT_JSON": (OutcomeKind.BAD_REQUEST, None),
    "M_INVALID_PARAM": (OutcomeKind.BAD_REQUEST, None),
    "M_MISSING_PARAM": (OutcomeKind.BAD_REQUEST, None),
    "M_UNRECOGNIZED": (OutcomeKind.BAD_REQUEST, None),
})  # fmt: skip
"""What a code means and what a refusal covers."""

_UNKNOWN_TEXTS: Final = (
    ("unknown event", OutcomeKind.GONE),
    ("must be in the same room", OutcomeKind.GONE),
    ("key is too long", OutcomeKind.INVALID_REACTION),
)

_V3: Final = "/_matrix/client/v3"
_V1: Final = "/_matrix/client/v1"
_PAGE_HANDLE: Final = "page:"


class MatrixAdapter(HttpAdapter):
    """See the module."""

    spec = SPEC

    def normalise(self, emoji: str) -> str | None:
        key = marked(emoji)
        return key if 0 < len(key) <= MAX_KEY_LENGTH else None

    def request(self, command: Command, credentials: Credentials) -> Request | Outcome:
        if command.op is Op.CLEAR:
            return Outcome(OutcomeKind.BAD_REQUEST, detail="Matrix marks are removed one by one")
        fault = _bad_target(command)
        if fault:
            return Outcome(OutcomeKind.BAD_REQUEST, detail=fault)
        room = f"{_V3}/rooms/{segment(command.conversation)}"
        if command.op in TYPING_OPS:
            return _typing(command, credentials, room)
        if command.op is Op.SET:
            if self.normalise(command.emoji or "") is None:
                return Outcome(OutcomeKind.INVALID_REACTION, detail="an empty mark, or one of more than 500 characters")
            return _mark(command, credentials, room)
        if _searching(command):
            return _page(command, credentials)
        path = f"{room}/redact/{segment(command.handle or '')}/{segment(command.idempotency_key)}"
        return _request("PUT", path, credentials, {})

    def outcome(self, command: Command, response: Response) -> Outcome:
        answer = json_object(response.body)
        if 200 <= response.status < 300:
            return self._success(command, response, answer)
        code, text = text_at(answer, "errcode"), text_at(answer, "error")
        detail = f"{code} {text}".strip()
        if code == "M_LIMIT_EXCEEDED" or response.status == 429:
            wait_ms = duration_ms(answer.get("retry_after_ms"), 1)
            if wait_ms is None:
                wait_ms = retry_after_ms(response.headers)
            if wait_ms is None:
                wait_ms = DEFAULT_WAIT_MS
            return Outcome(OutcomeKind.RATE_LIMITED, retry_after_ms=wait_ms, scope="account", detail=detail)
        if response.status < 500 and code in _CODES:
            kind, scope = _CODES[code]
            if kind is OutcomeKind.GONE and command.op is Op.REMOVE:
                return Outcome(OutcomeKind.ALREADY_DONE, detail=detail)
            if kind is OutcomeKind.FORBIDDEN and response.status == 400 and command.op in TYPING_OPS:
                # Synapse's answer to typing in another user's name: the configuration is wrong, not the room.
                return Outcome(OutcomeKind.BAD_REQUEST, detail=detail)
            return Outcome(kind, scope=scope, detail=detail)
        if response.status == 400 and code == "M_UNKNOWN":
            for known, kind in _UNKNOWN_TEXTS:
                if known in text.lower():
                    return Outcome(kind, detail=detail)
        return by_status(response, detail)

    def _success(self, command: Command, response: Response, answer: Mapping[str, Any]) -> Outcome:
        if command.op is Op.SET:
            event = text_at(answer, "event_id")
            if not event:
                return Outcome(OutcomeKind.UNKNOWN, detail="no event id in the answer")
            return Outcome(OutcomeKind.OK, handle=event)
        if command.op is Op.REMOVE and not text_at(answer, "event_id"):
            if isinstance(answer.get("chunk"), list):
                return Outcome(OutcomeKind.ALREADY_DONE, detail="no mark of ours on the message")
            return Outcome(OutcomeKind.UNKNOWN, detail="an answer that is not Matrix")
        return plain_success(response)

    def follow_up(self, command: Command, credentials: Credentials, response: Response) -> Command | None:
        if command.op is not Op.REMOVE or not _searching(command) or response.status != 200:
            return None
        page = json_object(response.body)
        event = _own_mark(page, command.emoji or "", credentials.options.get("user_id", ""))
        if event:
            return replace(command, handle=event)
        following = text_at(page, "next_batch")
        return replace(command, handle=_PAGE_HANDLE + following) if following else None

    def introduce(self, credentials: Credentials) -> Request | None:
        if credentials.options.get("user_id"):
            return None
        return _request("GET", f"{_V3}/account/whoami", credentials)

    def introduced(self, credentials: Credentials, response: Response) -> Credentials | Outcome:
        user = text_at(json_object(response.body), "user_id")
        if response.status == 200 and user:
            return replace(credentials, options=MappingProxyType({**credentials.options, "user_id": user}))
        if response.status == 200:
            return Outcome(OutcomeKind.TRANSIENT, detail="whoami: an answer that is not Matrix")
        outcome = self.outcome(_WHOAMI, response)
        return replace(outcome, scope="account") if outcome.kind is OutcomeKind.FORBIDDEN else outcome


_WHOAMI: Final = Command(Op.TYPING_STOP, "")


def _bad_target(command: Command) -> str:
    """What is wrong with the ids of ``command`` (their first characters are fixed); empty: nothing."""
    if not command.conversation.startswith("!"):
        return "a Matrix conversation is a room id: it begins with !"
    if command.op in TYPING_OPS:
        return ""
    if not (command.message or "").startswith("$"):
        return "a Matrix message is an event id: it begins with $"
    return "" if command.idempotency_key else "a Matrix call needs an idempotency key"


def _mark(command: Command, credentials: Credentials, room: str) -> Request:
    relation = {"rel_type": "m.annotation", "event_id": command.message, "key": marked(command.emoji or "")}
    path = f"{room}/send/m.reaction/{segment(command.idempotency_key)}"
    return _request("PUT", path, credentials, {"m.relates_to": relation})


def _typing(command: Command, credentials: Credentials, room: str) -> Request | Outcome:
    user = credentials.options.get("user_id", "")
    if not user.startswith("@"):
        return Outcome(OutcomeKind.BAD_REQUEST, detail="the account's user_id (@name:server) is not known")
    wanted = command.op is Op.TYPING_START
    body = {"typing": True, "timeout": TYPING_MS} if wanted else {"typing": False}
    return _request("PUT", f"{room}/typing/{segment(user)}", credentials, body)


def _searching(command: Command) -> bool:
    return command.handle is None or command.handle.startswith(_PAGE_HANDLE)


def _page(command: Command, credentials: Credentials) -> Request:
    """One page of the annotations of the command's message."""
    query = {"dir": "b", "limit": str(PAGE)}
    if command.handle is not None:
        query["from"] = command.handle.removeprefix(_PAGE_HANDLE)
    relations = f"{_V1}/rooms/{segment(command.conversation)}/relations/{segment(command.message or '')}"
    return _request("GET", f"{relations}/m.annotation/m.reaction?{urlencode(query)}", credentials)


def _own_mark(page: Mapping[str, Any], emoji: str, user: str) -> str:
    """The event id of ``user``'s annotation ``emoji`` on the page; empty: not there."""
    events = page.get("chunk")
    for event in events if isinstance(events, list) else []:
        if not isinstance(event, dict) or event.get("sender") != user:
            continue
        relation = mapping_at(mapping_at(event, "content"), "m.relates_to")
        if bare(text_at(relation, "key")) == bare(emoji):
            return text_at(event, "event_id")
    return ""


def _request(
    method: Literal["GET", "PUT"],
    path: str,
    credentials: Credentials,
    body: Mapping[str, object] | None = None,
) -> Request:
    authorization = ("Authorization", f"Bearer {credentials.token}")
    if body is None:
        return Request(method, path, (authorization,))
    return Request(method, path, (authorization, *JSON_HEADERS), json_body(body))
