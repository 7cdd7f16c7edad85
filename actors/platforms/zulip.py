"""Zulip REST API: marks are added and removed one by one, by name, code and type; typing can be stopped.

- ``conversation`` is a channel's id, or ``dm:`` and the ids of the users (``dm:9,10``); ``thread`` is the topic.
  Typing in a channel needs one. The key's owner is the option ``email``.
- A known emoji goes with its code and type: by name alone a custom emoji of the same name would come before it,
  and a removal could miss a mark that others set under another name. A name without a row is taken for a custom
  emoji; where a removal does not find it so, it is looked for among Unicode's, once (the handle says which).
- Bodies are forms; lists in them are JSON. Codes decide, and texts only under the code BAD_REQUEST (`_TEXTS`; the
  account's language must be English). The text for a deleted message is that for one out of reach.
- All calls of the account share 200 a minute. How long typing lives is the server's setting, told by its POST
  /register; 45 s is its default, and what another server says is the option ``typing_lifetime_ms``. Typing is renewed
  in two thirds of it at the latest.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, Literal
from urllib.parse import urlencode

from actors.platforms.answers import by_status, duration_ms, json_object, retry_after_ms, text_at
from actors.platforms.emoji_names import ZULIP, named
from actors.platforms.oauth import FORM
from actors.platforms.spec import (
    NO_OPTIONS,
    Credentials,
    HttpAdapter,
    Option,
    Options,
    PlatformSpec,
    Request,
    Response,
    whole_option,
)
from actors.presence.pacing import Limit
from actors.presence.terms import TYPING_OPS, Command, LaneRules, Op, Outcome, OutcomeKind

SPEC: Final = PlatformSpec(
    name="zulip",
    ids="channel id, or dm: and user ids (dm:9,10); topic; message id",
    rules=LaneRules(
        reactions="add_remove", typing=True, typing_stop=True, typing_lifetime_ms=45_000, typing_in_threads=True
    ),
    base_url=None,
    options=(
        Option("email", "the bot's address", required=True),
        Option("typing_lifetime_ms", "how long typing lasts; 0 (not on zulip): until ended", "45000", kind="ms"),
    ),
    keepalive_ms=20_000,
    min_change_ms=1_000,
    concurrency=2,
    limits=MappingProxyType({"account": Limit(per_ms=60_000, count=60)}),
    needs="to read the channel; typing: to write there; English as the bot's language",
    cannot="typing in channels with more than 100 subscribers",
    source=(
        "zulip.com/api: add-reaction, set-typing-status, rest-error-handling; github.com/zulip/zulip "
        "zerver/views/reactions.py, typing.py, zproject/default_settings.py (45 s; 200 calls a minute); keep-alive, "
        "spacing, concurrency and the share of the limit (R)"
    ),
)

_DIRECT: Final = "dm:"
_USERS: Final = re.compile(r"\d+(?:,\d+)*", re.ASCII)
_NAME: Final = re.compile(r"[a-z0-9_+\-]{1,100}")
_CODES_BY_NAME: Final = MappingProxyType(
    {name: "-".join(f"{ord(point):x}" for point in emoji) for emoji, name in ZULIP.items()}
)
_UNICODE: Final = "unicode_emoji"
_CUSTOM: Final = "realm_emoji"

_K: Final = OutcomeKind
_CODES: Final[Mapping[str, tuple[OutcomeKind, str | None]]] = MappingProxyType({
    "REACTION_ALREADY_EXISTS": (_K.ALREADY_DONE, None),
    "REACTION_DOES_NOT_EXIST": (_K.ALREADY_DONE, None),
    "STREAM_DOES_NOT_EXIST": (_K.FORBIDDEN, "conversation"),
    "UNAUTHORIZED_PRINCIPAL": (_K.FORBIDDEN, "conversation"),
    "INVALID_API_KEY": (_K.AUTH, None),
    "UNAUTHORIZED": (_K.AUTH, None),
    "USER_DEACTIVATED": (_K.AUTH, None),
    "REALM_DEACTIVATED": (_K.AUTH, None),
    "REQUEST_VARIABLE_MISSING": (_K.BAD_REQUEST, None),
    "REQUEST_VARIABLE_INVALID": (_K.BAD_REQUEST, None),
    "INVALID_JSON": (_K.BAD_REQUEST, None),
    "SERVER_NOT_READY": (_K.TRANSIENT, None),
})  # fmt: skip
"""What a code means and what a refusal covers."""

_TEXTS: Final = (
    (re.compile(r"invalid message\(s\)"), OutcomeKind.GONE),
    (
        re.compile(r"emoji '.*' does not exist|invalid emoji (code|name|type)|custom emoji"),
        OutcomeKind.INVALID_REACTION,
    ),
    (re.compile(r"disabled typing notifications"), OutcomeKind.FORBIDDEN),
)
"""Of the code BAD_REQUEST, in lower case."""


class ZulipAdapter(HttpAdapter):
    """See the module. Raises ValueError for a lifetime of typing under a second."""

    def __init__(self, options: Options = NO_OPTIONS) -> None:
        lifetime_ms = whole_option(options, "typing_lifetime_ms", SPEC.rules.typing_lifetime_ms)
        if lifetime_ms < 1_000:
            raise ValueError("typing_lifetime_ms must be at least 1000")
        rules = replace(SPEC.rules, typing_lifetime_ms=lifetime_ms)
        self.spec = replace(SPEC, rules=rules, keepalive_ms=min(SPEC.keepalive_ms, lifetime_ms * 2 // 3))

    def normalise(self, emoji: str) -> str | None:
        name = named(emoji, ZULIP)
        return name if _NAME.fullmatch(name) else None

    def request(self, command: Command, credentials: Credentials) -> Request | Outcome:
        if command.op is Op.CLEAR:
            return Outcome(OutcomeKind.BAD_REQUEST, detail="Zulip marks are removed one by one")
        if command.op in TYPING_OPS:
            target = _target(command)
            if isinstance(target, Outcome):
                return target
            fields = {"op": "start" if command.op is Op.TYPING_START else "stop", **target}
            return _request("POST", "/api/v1/typing", credentials, fields)
        message = command.message or ""
        if not (message.isascii() and message.isdigit()):
            return Outcome(OutcomeKind.BAD_REQUEST, detail="a Zulip message id is a number")
        name = self.normalise(command.emoji or "")
        if name is None:
            return Outcome(OutcomeKind.INVALID_REACTION, detail="neither a known emoji nor the name of one")
        method: Literal["POST", "DELETE"] = "POST" if command.op is Op.SET else "DELETE"
        return _request(method, f"/api/v1/messages/{message}/reactions", credentials, _mark(name, command))

    def outcome(self, command: Command, response: Response) -> Outcome:
        answer = json_object(response.body)
        code, told = text_at(answer, "code"), text_at(answer, "msg")
        detail = f"{code} {told}".strip()
        if answer.get("result") == "success":
            return Outcome(OutcomeKind.OK)
        if response.status == 429 or code == "RATE_LIMIT_HIT":
            wait_ms = duration_ms(answer.get("retry-after"), 1_000)
            if wait_ms is None:
                wait_ms = retry_after_ms(response.headers)
            return Outcome(OutcomeKind.RATE_LIMITED, retry_after_ms=wait_ms, scope="account", detail=detail)
        if 200 <= response.status < 300:
            return Outcome(OutcomeKind.UNKNOWN, detail="an answer that is not Zulip's")
        if code in _CODES:
            kind, scope = _CODES[code]
            return Outcome(kind, scope=scope, detail=detail)
        if response.status == 400 and code == "BAD_REQUEST":
            for text, kind in _TEXTS:
                if text.search(told.lower()):
                    return Outcome(kind, detail=detail)
        return by_status(response, detail)

    def follow_up(self, command: Command, credentials: Credentials, response: Response) -> Command | None:
        if command.op is not Op.REMOVE or command.handle is not None or command.emoji in _CODES_BY_NAME:
            return None
        missing = text_at(json_object(response.body), "code") == "REACTION_DOES_NOT_EXIST"
        return replace(command, handle=_UNICODE) if missing else None


def _mark(name: str, command: Command) -> dict[str, str]:
    fields = {"emoji_name": name}
    if name in _CODES_BY_NAME:
        fields |= {"emoji_code": _CODES_BY_NAME[name], "reaction_type": _UNICODE}
    elif command.op is Op.REMOVE:
        fields["reaction_type"] = command.handle or _CUSTOM
    return fields


def _target(command: Command) -> dict[str, str] | Outcome:
    """Where typing goes, as fields of the call."""
    place = command.conversation
    if place.startswith(_DIRECT):
        users = place.removeprefix(_DIRECT)
        if _USERS.fullmatch(users):
            return {"type": "direct", "to": f"[{users}]"}
    elif _USERS.fullmatch(place) and "," not in place:
        if command.thread is None:
            return Outcome(OutcomeKind.BAD_REQUEST, detail="typing in a Zulip channel needs a topic (thread)")
        return {"type": "stream", "stream_id": place, "topic": command.thread}
    return Outcome(OutcomeKind.BAD_REQUEST, detail="a Zulip conversation is a channel's id, or dm: and users' ids")


def _request(
    method: Literal["POST", "DELETE"], path: str, credentials: Credentials, fields: Mapping[str, Any]
) -> Request:
    pair = f"{credentials.options.get('email', '')}:{credentials.token}"
    headers = (
        ("Authorization", "Basic " + b64encode(pair.encode()).decode("ascii")),
        FORM,
    )
    return Request(method, path, headers, urlencode(fields).encode("ascii"))
