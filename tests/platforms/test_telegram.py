"""The Telegram adapter: golden requests for each operation, golden answers for each documented error."""

from __future__ import annotations

import json
from typing import Any

import pytest

from actors.platforms.spec import Credentials, Request, Response
from actors.platforms.telegram import EMOJIS, SPEC, TelegramAdapter
from actors.presence.policy import DEFAULT_EMOJI
from actors.presence.terms import Command, Op, Outcome, OutcomeKind
from tests.platforms import schemas

K = OutcomeKind
TOKEN = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"
CREDENTIALS = Credentials(token=TOKEN)
ADAPTER = TelegramAdapter()

GROUP = "-1001234567890"
SET = Command(Op.SET, GROUP, None, "42", "👀", idempotency_key="k1")
CLEAR = Command(Op.CLEAR, GROUP, None, "42", idempotency_key="k2")
TYPING = Command(Op.TYPING_START, GROUP, "7")


def answer(status: int, body: Any, headers: dict[str, str] | None = None) -> Response:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Response(status, headers or {}, data)


def failure(code: int, description: str, **parameters: Any) -> Response:
    body: dict[str, Any] = {"ok": False, "error_code": code, "description": description}
    if parameters:
        body["parameters"] = parameters
    return answer(code, body)


def made(command: Command) -> tuple[str, dict[str, Any]]:
    """Method and body of the request for ``command``, checked against the specification."""
    request = ADAPTER.request(command, CREDENTIALS)
    assert isinstance(request, Request)
    assert request.method == "POST"
    assert request.headers == (("Content-Type", "application/json"),)
    prefix, _, method = request.path.rpartition("/")
    assert prefix == f"/bot{TOKEN}"
    body = json.loads(request.body)
    schemas.api("telegram").check(request)
    return method, body


EYES = [{"type": "emoji", "emoji": "👀"}]
CHAT = -1001234567890

GOLDEN_REQUESTS = {
    "set": (SET, "setMessageReaction", {"chat_id": CHAT, "message_id": 42, "reaction": EYES}),
    "set in a topic needs no thread": (
        Command(Op.SET, GROUP, "7", "42", "👀", forum=True),
        "setMessageReaction",
        {"chat_id": CHAT, "message_id": 42, "reaction": EYES},
    ),
    "set in a public channel": (
        Command(Op.SET, "@livesign", None, "1", "👀"),
        "setMessageReaction",
        {"chat_id": "@livesign", "message_id": 1, "reaction": EYES},
    ),
    "clear": (CLEAR, "setMessageReaction", {"chat_id": CHAT, "message_id": 42, "reaction": []}),
    "remove": (
        Command(Op.REMOVE, "817", None, "42", "👀"),
        "setMessageReaction",
        {"chat_id": 817, "message_id": 42, "reaction": []},
    ),
    "typing": (
        Command(Op.TYPING_START, "817"),
        "sendChatAction",
        {"chat_id": 817, "action": "typing"},
    ),
    "typing in a topic": (
        Command(Op.TYPING_START, GROUP, "7", forum=True),
        "sendChatAction",
        {"chat_id": CHAT, "action": "typing", "message_thread_id": 7},
    ),
    "typing in the General topic": (
        Command(Op.TYPING_START, GROUP, None, forum=True),
        "sendChatAction",
        {"chat_id": CHAT, "action": "typing", "message_thread_id": 1},
    ),
}


@pytest.mark.parametrize(("command", "method", "body"), GOLDEN_REQUESTS.values(), ids=GOLDEN_REQUESTS.keys())
def test_each_operation_is_the_documented_request(command: Command, method: str, body: Any) -> None:
    assert made(command) == (method, body)


def test_a_typing_stop_needs_no_call() -> None:
    assert ADAPTER.request(Command(Op.TYPING_STOP, GROUP), CREDENTIALS) == Outcome(K.OK)
    assert not SPEC.rules.typing_stop


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (Command(Op.SET, GROUP, None, "wamid.1", "👀"), K.BAD_REQUEST),
        (Command(Op.SET, GROUP, None, None, "👀"), K.BAD_REQUEST),
        (Command(Op.TYPING_START, GROUP, "main"), K.BAD_REQUEST),
        (Command(Op.SET, GROUP, None, "42", "✅"), K.INVALID_REACTION),
        (Command(Op.SET, GROUP, None, "42", None), K.INVALID_REACTION),
    ],
)
def test_what_cannot_be_called_has_its_outcome_at_once(command: Command, kind: OutcomeKind) -> None:
    outcome = ADAPTER.request(command, CREDENTIALS)
    assert isinstance(outcome, Outcome)
    assert outcome.kind is kind


def test_the_emojis_are_the_73_of_the_specification() -> None:
    assert schemas.telegram_emojis() == EMOJIS
    assert len(EMOJIS) == 73
    assert not any("\ufe0f" in emoji for emoji in EMOJIS)


@pytest.mark.parametrize("emoji", ["⚡\ufe0f", "❤\ufe0f\u200d🔥", "🤷\u200d♂\ufe0f", "✍\ufe0f"])
def test_the_variation_selector_is_stripped(emoji: str) -> None:
    bare = emoji.replace("\ufe0f", "")
    assert ADAPTER.normalise(emoji) == bare
    assert made(Command(Op.SET, GROUP, None, "42", emoji))[1]["reaction"] == [{"type": "emoji", "emoji": bare}]


@pytest.mark.parametrize("emoji", ["✅", "❌", "⏳", "🧠", "🛠", "👍🏽", "ok", ""])
def test_an_emoji_that_is_not_listed_has_no_form(emoji: str) -> None:
    assert ADAPTER.normalise(emoji) is None


def test_every_default_emoji_can_be_set() -> None:
    assert all(ADAPTER.normalise(emoji) for chain in DEFAULT_EMOJI.values() for emoji in chain)


def test_the_token_shows_in_no_representation() -> None:
    request = ADAPTER.request(SET, CREDENTIALS)
    assert TOKEN not in f"{request!r} {request} {CREDENTIALS!r}"


def test_a_token_stays_one_segment_of_the_path() -> None:
    request = ADAPTER.request(TYPING, Credentials(token="1:a/../b?c#d"))
    assert isinstance(request, Request)
    assert request.path == "/bot1:a%2F..%2Fb%3Fc%23d/sendChatAction"


# --- answers ----------------------------------------------------------------------------

ERRORS = [
    (400, "Bad Request: message to react not found", K.GONE, None),
    (400, "Bad Request: MESSAGE_ID_INVALID", K.GONE, None),
    (400, "Bad Request: MSG_ID_INVALID", K.GONE, None),
    (400, "Bad Request: REACTION_INVALID", K.INVALID_REACTION, None),
    (400, "Bad Request: CUSTOM_REACTIONS_TOO_MANY", K.INVALID_REACTION, None),
    (400, "Bad Request: DOCUMENT_INVALID", K.INVALID_REACTION, None),
    (400, "Bad Request: REACTIONS_TOO_MANY", K.INVALID_REACTION, "message"),
    (400, "Bad Request: REACTION_EMPTY", K.BAD_REQUEST, None),
    (400, "Bad Request: invalid reaction type specified", K.BAD_REQUEST, None),
    (400, "Bad Request: can't parse reaction types JSON object", K.BAD_REQUEST, None),
    (400, "Bad Request: wrong parameter action in request", K.BAD_REQUEST, None),
    (400, "Bad Request: message thread not found", K.GONE, "message"),
    (400, "Bad Request: invalid topic identifier specified", K.GONE, "message"),
    (400, "Bad Request: chat not found", K.FORBIDDEN, "conversation"),
    (400, "Bad Request: CHANNEL_PRIVATE", K.FORBIDDEN, "conversation"),
    (400, "Bad Request: CHANNEL_INVALID", K.FORBIDDEN, "conversation"),
    (400, "Bad Request: PEER_ID_INVALID", K.FORBIDDEN, "conversation"),
    (400, "Bad Request: CHAT_WRITE_FORBIDDEN", K.FORBIDDEN, None),
    (400, "Bad Request: ANONYMOUS_REACTIONS_DISABLED", K.FORBIDDEN, None),
    (400, "Bad Request: PREMIUM_ACCOUNT_REQUIRED", K.FORBIDDEN, None),
    (400, "Bad Request: CHAT_ADMIN_REQUIRED", K.FORBIDDEN, None),
    (400, "Bad Request: USER_BANNED_IN_CHANNEL", K.FORBIDDEN, None),
    (400, "Bad Request: have no write access to the chat", K.FORBIDDEN, None),
    (400, "Bad Request: chat actions can't be sent to channel direct messages chats", K.FORBIDDEN, None),
    (400, "Bad Request: something nobody has seen before", K.BAD_REQUEST, None),
    (403, "Forbidden: bot was blocked by the user", K.FORBIDDEN, "conversation"),
    (403, "Forbidden: bot was kicked from the supergroup chat", K.FORBIDDEN, "conversation"),
    (403, "Forbidden: bot is not a member of the channel chat", K.FORBIDDEN, "conversation"),
    (403, "Forbidden: user is deactivated", K.FORBIDDEN, "conversation"),
    (403, "Forbidden: the group chat was deleted", K.FORBIDDEN, "conversation"),
    (403, "Forbidden: something nobody has seen before", K.FORBIDDEN, None),
    (401, "Unauthorized", K.AUTH, None),
    (404, "Not Found", K.AUTH, None),
    (404, "Not Found: method not found", K.BAD_REQUEST, None),
    (421, "Misdirected Request", K.AUTH, None),
    (409, "Conflict: something else", K.BAD_REQUEST, None),
    (500, "Internal Server Error", K.TRANSIENT, None),
    (500, "Internal Server Error: chat not found", K.TRANSIENT, None),
    (502, "Bad Gateway", K.TRANSIENT, None),
]


@pytest.mark.parametrize(("code", "description", "kind", "scope"), ERRORS)
def test_each_documented_error_has_its_outcome(
    code: int, description: str, kind: OutcomeKind, scope: str | None
) -> None:
    for command in (SET, CLEAR, TYPING):
        outcome = ADAPTER.outcome(command, failure(code, description))
        assert (outcome.kind, outcome.scope) == (kind, scope)
        assert description in outcome.detail


def test_texts_are_matched_in_any_case() -> None:
    assert ADAPTER.outcome(SET, failure(400, "BAD REQUEST: Message To React NOT FOUND")).kind is K.GONE


def test_a_success_is_ok() -> None:
    assert ADAPTER.outcome(SET, answer(200, {"ok": True, "result": True})) == Outcome(K.OK)


def test_a_mark_that_already_holds_is_already_done() -> None:
    assert ADAPTER.outcome(SET, failure(400, "Bad Request: MESSAGE_NOT_MODIFIED")).kind is K.ALREADY_DONE


def test_a_flood_limit_names_its_seconds_and_no_scope() -> None:
    outcome = ADAPTER.outcome(SET, failure(429, "Too Many Requests: retry after 7", retry_after=7))
    assert (outcome.kind, outcome.retry_after_ms, outcome.scope) == (K.RATE_LIMITED, 7_000, None)


def test_the_header_counts_where_the_body_names_no_time() -> None:
    outcome = ADAPTER.outcome(SET, answer(429, b"<html>slow down</html>", {"retry-after": "11"}))
    assert (outcome.kind, outcome.retry_after_ms) == (K.RATE_LIMITED, 11_000)


def test_a_limit_without_a_time_leaves_it_open() -> None:
    outcome = ADAPTER.outcome(SET, failure(429, "Too Many Requests"))
    assert (outcome.kind, outcome.retry_after_ms) == (K.RATE_LIMITED, None)


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b"null", b'{"ok":false}', b'{"ok":"true"}', b'{"ok":1}', b"\xff"]
)
def test_a_success_status_without_a_success_is_never_ok(body: bytes) -> None:
    assert ADAPTER.outcome(SET, answer(200, body)).kind is K.UNKNOWN


def test_the_code_in_the_body_counts_before_the_status() -> None:
    body = {"ok": False, "error_code": 403, "description": "Forbidden: bot was blocked by the user"}
    assert ADAPTER.outcome(SET, answer(200, body)).kind is K.FORBIDDEN


@pytest.mark.parametrize(("status", "kind"), [(401, K.AUTH), (403, K.FORBIDDEN), (404, K.AUTH), (503, K.TRANSIENT)])
def test_an_answer_that_is_not_json_has_the_class_of_its_status(status: int, kind: OutcomeKind) -> None:
    assert ADAPTER.outcome(SET, answer(status, b"<html>")).kind is kind


# --- targets that are not what they seemed ----------------------------------------------

UPGRADED = failure(400, "Bad Request: group chat was upgraded to a supergroup chat", migrate_to_chat_id=-1009876543210)


def test_typing_follows_a_group_to_its_new_id() -> None:
    old = Command(Op.TYPING_START, "-5001", idempotency_key="k")
    new = ADAPTER.follow_up(old, CREDENTIALS, UPGRADED)
    assert new == Command(Op.TYPING_START, "-1009876543210", idempotency_key="k")


def test_a_mark_in_an_upgraded_group_is_gone_and_never_lands_on_another_message() -> None:
    assert ADAPTER.follow_up(SET, CREDENTIALS, UPGRADED) is None
    assert ADAPTER.outcome(SET, UPGRADED).kind is K.GONE


def test_the_new_id_of_a_group_is_not_followed_to_itself() -> None:
    assert ADAPTER.follow_up(Command(Op.TYPING_START, "-1009876543210"), CREDENTIALS, UPGRADED) is None


@pytest.mark.parametrize("text", ["message thread not found", "invalid topic identifier specified"])
def test_a_refused_thread_is_left_out_once(text: str) -> None:
    refused = failure(400, f"Bad Request: {text}")
    again = ADAPTER.follow_up(TYPING, CREDENTIALS, refused)
    assert again == Command(Op.TYPING_START, GROUP, None)
    assert made(again)[1] == {"chat_id": CHAT, "action": "typing"}
    assert ADAPTER.follow_up(again, CREDENTIALS, refused) is None


def test_a_topic_of_a_forum_that_is_gone_is_not_replaced_by_another() -> None:
    command = Command(Op.TYPING_START, GROUP, "7", forum=True)
    refused = failure(400, "Bad Request: message thread not found")
    assert ADAPTER.follow_up(command, CREDENTIALS, refused) is None
    assert ADAPTER.outcome(command, refused).kind is K.GONE


def test_other_answers_are_the_last_word() -> None:
    for response in (
        answer(200, {"ok": True}),
        failure(400, "Bad Request: chat not found"),
        failure(500, "x"),
    ):
        assert ADAPTER.follow_up(TYPING, CREDENTIALS, response) is None
