"""Every request that any adapter makes is a call that its platform documents, and each such call is made."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import jsonschema
import pytest

from actors.platforms.registry import PLATFORMS, adapter
from actors.platforms.spec import Credentials, HttpAdapter, Options, Request, Response
from actors.presence.policy import DEFAULT_EMOJI
from actors.presence.terms import Command, Op
from tests.platforms import schemas

PLACES: dict[str, list[tuple[str, str | None, str]]] = {
    # conversation, thread, message: every form of ids
    "telegram": [("-1001234567890", "7", "42"), ("@channel", None, "1"), ("817", None, "9")],
    "discord": [("290926798629997250", "1005870300000000000", "862341998999699498"), ("7", None, "7")],
    "slack": [("C0123456789", "1699999999.123400", "1700000000.000100")],
    "matrix": [("!636q/39:example.org", "$t", "$143/27+:example.org"), ("!hash_without_a_server", None, "$x")],
    "whatsapp": [("16505551234", None, "wamid.HBgL==")],
    "mattermost": [("ch1ch1", "ro1", "po1po1"), ("ch1ch1", None, "po1")],
    "zulip": [("7", "new ideas & more", "1234"), ("7", "", "1"), ("dm:9,10", None, "5"), ("dm:9", None, "5")],
    "signal": [("+16505551234", None, "1700000000123"), ("group.abc==", None, "+1650:1700000000123")],
    "teams": [("a:1pL6", None, "1485983408511"), ("19:2@thread.tacv2;messageid=1", None, "14"), ("19:5e@thread.v2", None, "1")],
    "googlechat": [("spaces/A", None, "spaces/A/messages/B.C")],
    "sandbox": [("any/name ?", "t/1", "m"), ("c", None, "m")],
}  # fmt: skip
TOKENS = {
    "telegram": "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw", "slack": "xoxb-1-2", "googlechat": "secret:refresh",
}  # fmt: skip
OPTIONS: dict[str, list[dict[str, str]]] = {
    "slack": [{"thread_status": "assistant"}, {"thread_status": "session"}],
    "matrix": [{"user_id": "@bot:example.org"}, {}],
    "whatsapp": [{"phone_number_id": "106540352242922"}],
    "mattermost": [{"user_id": "bot1"}, {}],
    "zulip": [{"email": "bot@chat.example.org"}],
    "signal": [{"number": "+4915112345678"}],
    "teams": [{"app_id": "00000000-1111"}],
    "googlechat": [{"client_id": "1.apps"}, {"client_id": "1.apps", "user": "users/1"}],
}
ANSWERS: dict[str, list[object]] = {
    # what makes an adapter ask for something else
    "telegram": [
        {"ok": False, "error_code": 400, "description": "group chat was upgraded to a supergroup chat",
         "parameters": {"migrate_to_chat_id": -1009}},
        {"ok": False, "error_code": 400, "description": "Bad Request: message thread not found"},
    ],
    "discord": [{"code": 10008}, {"code": 10014}],
    "matrix": [{"chunk": [{"sender": "@bot:example.org", "event_id": "$own", "content": {
        "m.relates_to": {"rel_type": "m.annotation", "key": "👀"}}}]}, {"chunk": [], "next_batch": "t/1"}],
    "zulip": [{"result": "error", "code": "REACTION_DOES_NOT_EXIST"}],
    "googlechat": [{"reactions": [{"name": "spaces/A/messages/B.C/reactions/D"}]}],
}  # fmt: skip
INTRODUCTIONS = {"matrix": {"user_id": "@bot:example.org"}, "mattermost": {"id": "bot1"}}
EMOJIS = [
    *sorted({emoji for chain in DEFAULT_EMOJI.values() for emoji in chain}),
    "🛠",
    "⏳",
    "party_parrot",
    "name:417",
]


def commands(platform: str, made: HttpAdapter) -> Iterator[Command]:
    for conversation, thread, message in PLACES[platform]:
        for forum in (False, True):
            yield Command(Op.TYPING_START, conversation, thread, forum=forum, inbound=message, idempotency_key="k 1")
            yield Command(Op.TYPING_START, conversation, None, forum=forum, inbound=message, idempotency_key="k2")
            yield Command(Op.TYPING_STOP, conversation, thread, forum=forum, idempotency_key="k/3")
        handles = {"matrix": "$mark", "googlechat": f"{message}/reactions/D=="}
        for emoji in filter(None, map(made.normalise, EMOJIS)):
            mark = Command(Op.SET, conversation, thread, message, emoji, idempotency_key="k#4")
            yield mark
            yield replace(mark, op=Op.REMOVE)
            yield replace(mark, op=Op.REMOVE, handle=handles.get(platform))
            yield replace(mark, op=Op.CLEAR, emoji=None)


def requests(platform: str, options: Options) -> Iterator[Request]:
    """Every request that an account with ``options`` makes, with what the answers make of them."""
    made = adapter(platform, options)
    credentials = Credentials(token=TOKENS.get(platform, "token"), options=options)
    if (login := made.introduce(credentials)) is not None:
        yield login
        told = json.dumps({"access_token": "a", **INTRODUCTIONS.get(platform, {})}).encode()
        introduced = made.introduced(credentials, Response(200, {}, told))
        assert isinstance(introduced, Credentials)
        credentials = introduced
    for command in commands(platform, made):
        for answer in (None, *ANSWERS.get(platform, ())):
            following: Command | None = command
            for _ in range(3):
                if following is None:
                    break
                request = made.request(following, credentials)
                if not isinstance(request, Request):
                    break
                yield request
                status = 200 if platform in ("matrix", "googlechat") else 400
                body = b"" if answer is None else json.dumps(answer).encode()
                following = made.follow_up(following, credentials, Response(status, {}, body))


@pytest.mark.parametrize("platform", PLACES)
def test_every_request_is_a_documented_call_and_every_documented_call_is_made(platform: str) -> None:
    documented = schemas.api(platform)
    made = set()
    for options in OPTIONS.get(platform, [{}]):
        for request in {repr(vars_of(each)): each for each in requests(platform, options)}.values():
            made.add(documented.check(request)[0])
    assert made == set(documented.calls)


def vars_of(request: Request) -> tuple[object, ...]:
    return request.method, request.path, request.headers, request.body, request.server


def test_every_platform_that_is_called_is_described() -> None:
    assert PLACES.keys() | {"callback", "remote"} == PLATFORMS.keys()


@pytest.mark.parametrize(
    ("platform", "wrong"),
    [
        ("telegram", Request("POST", "/bot1:x/sendChatAction", (("Content-Type", "application/json"),), b'{"chat_id":1}')),
        ("telegram", Request("GET", "/bot1:x/sendChatAction")),
        ("discord", Request("PUT", "/channels/1/messages/2/reactions/x/@me", (("Authorization", "Bot t"),))),
        ("mattermost", Request("DELETE", "/api/v4/users/me/posts/p/reactions/x", (("Authorization", "Bearer t"),))),
        ("slack", Request("POST", "/reactions.add", (("Authorization", "Bearer xoxb"), ("Content-Type", "text/plain")), b"{}")),
        ("googlechat", Request("POST", "/token", (("Content-Type", "application/x-www-form-urlencoded"),), b"a=b")),
    ],
)  # fmt: skip
def test_what_is_not_documented_is_found(platform: str, wrong: Request) -> None:
    with pytest.raises((AssertionError, KeyError, jsonschema.ValidationError)):
        schemas.api(platform).check(wrong)
