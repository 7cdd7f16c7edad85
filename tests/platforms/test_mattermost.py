"""The Mattermost adapter: golden requests for each operation, golden answers for each documented error."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from actors.platforms.mattermost import MattermostAdapter
from actors.platforms.spec import Credentials, Response
from actors.presence.policy import DEFAULT_EMOJI
from actors.presence.terms import Command, Op, Outcome, OutcomeKind
from tests.platforms.golden import answer, header, json_of, made, no_call

K = OutcomeKind
BOT, CHANNEL, POST, ROOT = (
    "botbotbotbotbotbotbotbotbo",
    "ch1ch1ch1ch1ch1ch1ch1ch1ch",
    "po1po1po1po1po1po1po1po1po",
    "ro1",
)
UNKNOWN = Credentials(token="9xuqwrwgstrb3mzrxb83nb357a", base_url="https://chat.example.org")
CREDENTIALS = replace(UNKNOWN, options={"user_id": BOT})
ADAPTER = MattermostAdapter()

SET = Command(Op.SET, CHANNEL, None, POST, "eyes", idempotency_key="k1")
REMOVE = replace(SET, op=Op.REMOVE)
TYPING = Command(Op.TYPING_START, CHANNEL)

GOLDEN_REQUESTS: dict[str, tuple[Command, str, str, Any]] = {
    "set": (SET, "POST", "/api/v4/reactions", {"user_id": BOT, "post_id": POST, "emoji_name": "eyes"}),
    "set by the emoji itself": (
        replace(SET, emoji="👍"),
        "POST",
        "/api/v4/reactions",
        {"user_id": BOT, "post_id": POST, "emoji_name": "+1"},
    ),
    "remove": (REMOVE, "DELETE", f"/api/v4/users/{BOT}/posts/{POST}/reactions/eyes", None),
    "remove +1": (replace(REMOVE, emoji="+1"), "DELETE", f"/api/v4/users/{BOT}/posts/{POST}/reactions/%2B1", None),
    "typing": (TYPING, "POST", f"/api/v4/users/{BOT}/typing", {"channel_id": CHANNEL}),
    "typing in a thread": (
        replace(TYPING, thread=ROOT),
        "POST",
        f"/api/v4/users/{BOT}/typing",
        {"channel_id": CHANNEL, "parent_id": ROOT},
    ),
}


@pytest.mark.parametrize(("command", "method", "path", "body"), GOLDEN_REQUESTS.values(), ids=GOLDEN_REQUESTS.keys())
def test_each_operation_is_the_documented_request(command: Command, method: str, path: str, body: Any) -> None:
    request = made(ADAPTER, command, CREDENTIALS)
    assert (request.method, request.path, json_of(request)) == (method, path, body)
    assert header(request, "Authorization") == f"Bearer {CREDENTIALS.token}"


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (Command(Op.TYPING_STOP, CHANNEL), K.OK),
        (replace(SET, op=Op.CLEAR), K.BAD_REQUEST),
        (replace(SET, message=None), K.BAD_REQUEST),
        (replace(SET, emoji="🦑"), K.INVALID_REACTION),
        (replace(SET, emoji="a/b"), K.INVALID_REACTION),
        (replace(SET, emoji=None), K.INVALID_REACTION),
    ],
)
def test_what_cannot_be_called_has_its_outcome_at_once(command: Command, kind: OutcomeKind) -> None:
    assert no_call(ADAPTER, command, CREDENTIALS).kind is kind


@pytest.mark.parametrize(
    ("emoji", "name"),
    [
        ("⏳", "hourglass_flowing_sand"),
        ("⌛", "hourglass"),
        ("👨\u200d💻", "male-technologist"),
        (":eyes:", "eyes"),
        ("TeamLogo", "TeamLogo"),
        ("", None),
    ],
)
def test_emojis_go_by_their_names(emoji: str, name: str | None) -> None:
    assert ADAPTER.normalise(emoji) == name


def test_every_default_emoji_can_be_set() -> None:
    assert all(ADAPTER.normalise(emoji) for chain in DEFAULT_EMOJI.values() for emoji in chain)


# --- who the bot is ---------------------------------------------------------------------


def test_the_bot_s_id_is_asked_once() -> None:
    request = ADAPTER.introduce(UNKNOWN)
    assert request is not None
    assert (request.method, request.path) == ("GET", "/api/v4/users/me")
    known = ADAPTER.introduced(UNKNOWN, answer(200, {"id": BOT, "username": "livesign"}))
    assert known == CREDENTIALS
    assert ADAPTER.introduce(CREDENTIALS) is None


@pytest.mark.parametrize(
    ("response", "kind", "scope"),
    [
        (answer(401, {"id": "api.context.session_expired.app_error"}), K.AUTH, None),
        (answer(403, {"id": "api.context.permissions.app_error"}), K.FORBIDDEN, "account"),
        (answer(429, b"limit exceeded"), K.RATE_LIMITED, "account"),
        (answer(502, b"<html>"), K.TRANSIENT, None),
        (answer(200, b"<html>"), K.TRANSIENT, None),
    ],
)
def test_a_failed_introduction_is_an_outcome(response: Response, kind: OutcomeKind, scope: str | None) -> None:
    outcome = ADAPTER.introduced(UNKNOWN, response)
    assert isinstance(outcome, Outcome)
    assert (outcome.kind, outcome.scope) == (kind, scope)


# --- answers ----------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 201])
def test_successes_are_ok(status: int) -> None:
    saved = {"user_id": BOT, "post_id": POST, "emoji_name": "eyes", "create_at": 1_700_000_000_000}
    assert ADAPTER.outcome(SET, answer(status, saved)) == Outcome(K.OK)
    for command in (REMOVE, TYPING):
        assert ADAPTER.outcome(command, answer(200, {"status": "OK"})) == Outcome(K.OK)


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b"[]", b'{"status":"no"}', b'{"emoji_name":5}'])
def test_a_success_that_is_not_mattermost_s_is_never_ok(body: bytes) -> None:
    for command in (SET, REMOVE, TYPING):
        assert ADAPTER.outcome(command, answer(200, body)).kind is K.UNKNOWN


ERRORS = [
    (404, "app.post.get.app_error", K.GONE, None),
    (404, "app.emoji.get_by_name.no_result", K.INVALID_REACTION, None),
    (403, "api.emoji.disabled.app_error", K.INVALID_REACTION, None),
    (400, "model.reaction.is_valid.emoji_name.app_error", K.INVALID_REACTION, None),
    (400, "app.reaction.save.save.too_many_reactions", K.FORBIDDEN, "message"),
    (403, "api.context.permissions.app_error", K.FORBIDDEN, None),
    (403, "api.reaction.save.archived_channel.app_error", K.FORBIDDEN, "conversation"),
    (403, "api.reaction.delete.archived_channel.app_error", K.FORBIDDEN, "conversation"),
    (403, "api.reaction.save_reaction.user_id.app_error", K.BAD_REQUEST, None),
    (400, "api.reaction.save_reaction.invalid.app_error", K.BAD_REQUEST, None),
    (404, "api.context.404.app_error", K.BAD_REQUEST, None),
    (401, "api.context.session_expired.app_error", K.AUTH, None),
    (500, "app.reaction.save.save.app_error", K.TRANSIENT, None),
    (500, "app.emoji.get_by_name.no_result", K.TRANSIENT, None),
]


@pytest.mark.parametrize(("status", "error", "kind", "scope"), ERRORS)
def test_each_documented_error_has_its_outcome(status: int, error: str, kind: OutcomeKind, scope: str | None) -> None:
    body = {"id": error, "message": "what it says", "status_code": status}
    for command in (SET, REMOVE):
        outcome = ADAPTER.outcome(command, answer(status, body))
        assert (outcome.kind, outcome.scope) == (kind, scope)
        assert "what it says" in outcome.detail


def test_a_server_without_the_typing_call_has_no_post_that_is_gone() -> None:
    assert ADAPTER.outcome(TYPING, answer(404, {"id": "app.post.get.app_error"})).kind is K.BAD_REQUEST


def test_a_limit_is_plain_text_and_holds_for_the_account() -> None:
    headers = {"retry-after": "1", "x-ratelimit-reset": "1", "content-type": "text/plain"}
    outcome = ADAPTER.outcome(SET, answer(429, b"limit exceeded", headers))
    assert (outcome.kind, outcome.retry_after_ms, outcome.scope) == (K.RATE_LIMITED, 1_000, "account")
