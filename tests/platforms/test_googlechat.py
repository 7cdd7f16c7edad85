"""The Google Chat adapter: golden requests for each operation and for the login, golden answers for each
documented error."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from actors.platforms.googlechat import SPEC, GoogleChatAdapter
from actors.platforms.spec import Credentials, Response
from actors.presence.policy import DEFAULT_EMOJI
from actors.presence.terms import Command, Op, Outcome, OutcomeKind
from tests.platforms.golden import answer, form_of, header, json_of, made, no_call

K = OutcomeKind
CREDENTIALS = Credentials(token="ya29.access-token")
LOGIN = Credentials(token="GOCSPX-secret:1//0g-refresh", options={"client_id": "1.apps.googleusercontent.com"})
ADAPTER = GoogleChatAdapter()

SPACE, MESSAGE = "spaces/AAAABBBB", "spaces/AAAABBBB/messages/CCCC.DDDD"
MARK = f"{MESSAGE}/reactions/EEEE=="
SET = Command(Op.SET, SPACE, None, MESSAGE, "👀", idempotency_key="k1")
REMOVE = replace(SET, op=Op.REMOVE, handle=MARK)
LOOKING = replace(REMOVE, handle=None)


def test_a_mark_is_a_reaction_that_is_created() -> None:
    request = made(ADAPTER, SET, CREDENTIALS)
    assert (request.method, request.path) == ("POST", f"/v1/{MESSAGE}/reactions")
    assert json_of(request) == {"emoji": {"unicode": "👀"}}
    assert header(request, "Authorization") == "Bearer ya29.access-token"
    assert json_of(made(ADAPTER, replace(SET, emoji="⚠"), CREDENTIALS)) == {"emoji": {"unicode": "⚠\ufe0f"}}


def test_a_mark_is_removed_by_its_resource_name() -> None:
    request = made(ADAPTER, REMOVE, CREDENTIALS)
    assert (request.method, request.path, request.body) == ("DELETE", f"/v1/{MESSAGE}/reactions/EEEE%3D%3D", b"")


@pytest.mark.parametrize(
    ("options", "wanted"),
    [({}, 'emoji.unicode = "👀"'), ({"user": "users/123"}, 'emoji.unicode = "👀" AND user.name = "users/123"')],
)
def test_a_removal_without_a_name_begins_by_looking_for_the_mark(options: dict[str, str], wanted: str) -> None:
    request = made(ADAPTER, LOOKING, replace(CREDENTIALS, options=options))
    parts = urlsplit(request.path)
    assert (request.method, parts.path, request.body) == ("GET", f"/v1/{MESSAGE}/reactions", b"")
    assert parse_qs(parts.query) == {"pageSize": ["200"], "filter": [wanted]}


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (Command(Op.TYPING_START, SPACE), K.FORBIDDEN),
        (Command(Op.TYPING_STOP, SPACE), K.FORBIDDEN),
        (replace(SET, op=Op.CLEAR), K.BAD_REQUEST),
        (replace(SET, message=None), K.BAD_REQUEST),
        (replace(SET, message="CCCC.DDDD"), K.BAD_REQUEST),
        (replace(SET, message=f"{MESSAGE}/../x"), K.BAD_REQUEST),
        (replace(SET, conversation="AAAABBBB"), K.BAD_REQUEST),
        (replace(SET, emoji="eyes"), K.INVALID_REACTION),
        (replace(SET, emoji=None), K.INVALID_REACTION),
    ],
)
def test_what_cannot_be_called_has_its_outcome_at_once(command: Command, kind: OutcomeKind) -> None:
    assert no_call(ADAPTER, command, CREDENTIALS).kind is kind
    assert not SPEC.rules.typing


def test_names_cannot_climb_out_of_the_path() -> None:
    request = made(ADAPTER, replace(SET, message="spaces/../messages/a?b#c"), CREDENTIALS)
    assert request.path == "/v1/spaces/%2E%2E/messages/a%3Fb%23c/reactions"


def test_every_default_emoji_can_be_set() -> None:
    assert all(ADAPTER.normalise(emoji) for chain in DEFAULT_EMOJI.values() for emoji in chain)


# --- the login --------------------------------------------------------------------------


def test_a_plain_token_is_used_as_it_is() -> None:
    assert ADAPTER.introduce(CREDENTIALS) is None


def test_with_a_client_access_tokens_are_fetched() -> None:
    request = ADAPTER.introduce(LOGIN)
    assert request is not None
    assert (request.method, request.server, request.path) == ("POST", "https://oauth2.googleapis.com", "/token")
    assert form_of(request) == {
        "grant_type": "refresh_token",
        "client_id": "1.apps.googleusercontent.com",
        "client_secret": "GOCSPX-secret",
        "refresh_token": "1//0g-refresh",
    }
    known = ADAPTER.introduced(LOGIN, answer(200, {"access_token": "ya29.new", "expires_in": 3599}))
    assert isinstance(known, Credentials)
    assert ADAPTER.introduce(known) is None
    assert header(made(ADAPTER, SET, known), "Authorization") == "Bearer ya29.new"
    assert ADAPTER.expired(answer(401))
    assert not ADAPTER.expired(answer(403))


def test_a_revoked_refresh_token_is_auth() -> None:
    outcome = ADAPTER.introduced(LOGIN, answer(400, {"error": "invalid_grant"}))
    assert isinstance(outcome, Outcome)
    assert outcome.kind is K.AUTH


# --- answers ----------------------------------------------------------------------------


def failure(status: int, name: str, headers: dict[str, str] | None = None) -> Response:
    return answer(status, {"error": {"code": status, "message": "what it says", "status": name}}, headers)


def listed(*names: str, more: str = "") -> Response:
    reactions = [{"name": name, "user": {"name": "users/1"}, "emoji": {"unicode": "👀"}} for name in names]
    return answer(200, {"reactions": reactions, **({"nextPageToken": more} if more else {})})


def test_a_mark_s_resource_name_is_its_handle() -> None:
    created = {"name": MARK, "user": {"name": "users/123"}, "emoji": {"unicode": "👀"}}
    assert ADAPTER.outcome(SET, answer(200, created)) == Outcome(K.OK, handle=MARK)
    assert ADAPTER.outcome(REMOVE, answer(200, {})) == Outcome(K.OK)


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b'{"name":5}', b'{"name":"spaces/x"}', b"[]"])
def test_a_mark_without_a_name_is_not_known_to_be_there(body: bytes) -> None:
    assert ADAPTER.outcome(SET, answer(200, body)).kind is K.UNKNOWN


def test_a_removal_that_is_answered_by_something_else_is_not_known_to_have_happened() -> None:
    assert ADAPTER.outcome(REMOVE, answer(200, b"<html>")).kind is K.UNKNOWN


ERRORS = [
    (409, "ALREADY_EXISTS", K.ALREADY_DONE),
    (409, "", K.ALREADY_DONE),
    (404, "NOT_FOUND", K.GONE),
    (404, "", K.GONE),
    (403, "PERMISSION_DENIED", K.FORBIDDEN),
    (403, "", K.FORBIDDEN),
    (400, "INVALID_ARGUMENT", K.INVALID_REACTION),
    (400, "FAILED_PRECONDITION", K.BAD_REQUEST),
    (400, "", K.BAD_REQUEST),
    (401, "UNAUTHENTICATED", K.AUTH),
    (401, "", K.AUTH),
    (429, "RESOURCE_EXHAUSTED", K.RATE_LIMITED),
    (429, "", K.RATE_LIMITED),
    (500, "INTERNAL", K.TRANSIENT),
    (503, "UNAVAILABLE", K.TRANSIENT),
    (504, "DEADLINE_EXCEEDED", K.TRANSIENT),
    (502, "", K.TRANSIENT),
]


@pytest.mark.parametrize(("status", "name", "kind"), ERRORS)
def test_each_documented_error_has_its_outcome(status: int, name: str, kind: OutcomeKind) -> None:
    outcome = ADAPTER.outcome(SET, failure(status, name))
    assert (outcome.kind, outcome.scope, outcome.retry_after_ms) == (kind, None, None)
    assert "what it says" in outcome.detail


def test_removing_what_is_not_there_is_already_done() -> None:
    for command in (REMOVE, LOOKING):
        assert ADAPTER.outcome(command, failure(404, "NOT_FOUND")).kind is K.ALREADY_DONE
    assert ADAPTER.outcome(REMOVE, failure(400, "INVALID_ARGUMENT")).kind is K.BAD_REQUEST


def test_a_limit_has_the_header_s_seconds_where_there_is_one() -> None:
    outcome = ADAPTER.outcome(SET, failure(429, "RESOURCE_EXHAUSTED", {"retry-after": "4"}))
    assert (outcome.kind, outcome.retry_after_ms, outcome.scope) == (K.RATE_LIMITED, 4_000, None)


# --- looking for our own mark -----------------------------------------------------------


def test_the_mark_that_was_found_is_the_one_that_is_removed() -> None:
    found = ADAPTER.follow_up(LOOKING, CREDENTIALS, listed(MARK))
    assert found == REMOVE
    assert ADAPTER.follow_up(REMOVE, CREDENTIALS, answer(200, {})) is None


def test_no_such_mark_leaves_nothing_to_remove() -> None:
    for response in (listed(), answer(200, {})):
        assert ADAPTER.follow_up(LOOKING, CREDENTIALS, response) is None
        assert ADAPTER.outcome(LOOKING, response).kind is K.ALREADY_DONE


def test_of_several_marks_none_is_taken_for_ours() -> None:
    response = listed(MARK, f"{MESSAGE}/reactions/other")
    assert ADAPTER.follow_up(LOOKING, CREDENTIALS, response) is None
    outcome = ADAPTER.outcome(LOOKING, response)
    assert (outcome.kind, outcome.scope) == (K.FORBIDDEN, "message")


@pytest.mark.parametrize("reactions", [None, {}, ["x"], [{"name": 5}], [{"name": "spaces/x/messages/y"}]])
def test_a_strange_page_has_no_marks(reactions: Any) -> None:
    assert ADAPTER.follow_up(LOOKING, CREDENTIALS, answer(200, {"reactions": reactions})) is None


def test_a_search_that_is_answered_by_something_else_proves_nothing() -> None:
    assert ADAPTER.follow_up(LOOKING, CREDENTIALS, answer(200, b"<html>")) is None
    assert ADAPTER.outcome(LOOKING, answer(200, b"<html>")).kind is K.UNKNOWN
    assert ADAPTER.follow_up(SET, CREDENTIALS, listed(MARK)) is None
