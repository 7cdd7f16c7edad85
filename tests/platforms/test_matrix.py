"""The Matrix adapter: golden requests for each operation, golden answers for each documented error."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from actors.platforms.matrix import SPEC, MatrixAdapter
from actors.platforms.spec import Credentials, Request, Response
from actors.presence.terms import Command, Op, Outcome, OutcomeKind
from tests.platforms import schemas

K = OutcomeKind
TOKEN = "syt_Ym90_AbCdEf_0xYz"
USER = "@bot:example.org"
CREDENTIALS = Credentials(token=TOKEN, base_url="https://hs.example.org", options={"user_id": USER})
ADAPTER = MatrixAdapter()

ROOM = "!636q39766251:example.org"
EVENT = "$143273582443PhrSn:example.org"
V3_EVENT = "$acR1l0raoZnm60CBwAVgqbZqoO/mYU81xysh1u7XcJk+"
SET = Command(Op.SET, ROOM, None, EVENT, "👀", idempotency_key="livesign-1")
REMOVE = Command(Op.REMOVE, ROOM, None, EVENT, "👀", "$mark:example.org", idempotency_key="livesign-2")
TYPING = Command(Op.TYPING_START, ROOM, idempotency_key="livesign-3")
STOP = Command(Op.TYPING_STOP, ROOM, idempotency_key="livesign-4")

ROOM_PATH = "/_matrix/client/v3/rooms/%21636q39766251%3Aexample.org"


def answer(status: int, body: Any, headers: dict[str, str] | None = None) -> Response:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Response(status, headers or {}, data)


def failure(status: int, code: str, text: str = "", **more: Any) -> Response:
    return answer(status, {"errcode": code, "error": text, **more})


def made(command: Command, credentials: Credentials = CREDENTIALS) -> Request:
    request = ADAPTER.request(command, credentials)
    assert isinstance(request, Request)
    assert request.headers[0] == ("Authorization", f"Bearer {TOKEN}")
    return request


# --- requests ---------------------------------------------------------------------------


def test_a_mark_is_an_annotation_sent_under_the_idempotency_key() -> None:
    request = made(SET)
    assert (request.method, request.path) == ("PUT", f"{ROOM_PATH}/send/m.reaction/livesign-1")
    assert json.loads(request.body) == {"m.relates_to": {"rel_type": "m.annotation", "event_id": EVENT, "key": "👀"}}
    values = {"room": ROOM, "type": "m.reaction", "txn": "livesign-1"}
    assert schemas.api("matrix").check(request) == ("set", values)


def test_the_key_of_a_mark_is_written_as_other_clients_write_it() -> None:
    assert json.loads(made(replace(SET, emoji="👍")).body)["m.relates_to"]["key"] == "👍\ufe0f"


def test_a_mark_is_removed_by_redacting_its_event() -> None:
    request = made(REMOVE)
    assert (request.method, request.path) == (
        "PUT",
        f"{ROOM_PATH}/redact/%24mark%3Aexample.org/livesign-2",
    )
    assert request.body == b"{}"
    values = {"room": ROOM, "event": "$mark:example.org", "txn": "livesign-2"}
    assert schemas.api("matrix").check(request) == ("remove", values)


def test_typing_is_held_for_thirty_seconds_and_stopped_explicitly() -> None:
    for command, body in ((TYPING, {"typing": True, "timeout": 30000}), (STOP, {"typing": False})):
        request = made(command)
        assert (request.method, request.path) == ("PUT", f"{ROOM_PATH}/typing/%40bot%3Aexample.org")
        assert json.loads(request.body) == body
        assert schemas.api("matrix").check(request) == ("typing", {"room": ROOM, "user": USER})


def test_typing_is_for_the_room_whatever_the_thread() -> None:
    assert made(replace(TYPING, thread="$thread")) == made(TYPING)
    assert not SPEC.rules.typing_in_threads


def test_every_segment_of_a_path_is_encoded() -> None:
    request = made(replace(REMOVE, handle=V3_EVENT, idempotency_key="a/b?c#d e"))
    assert request.path == (f"{ROOM_PATH}/redact/%24acR1l0raoZnm60CBwAVgqbZqoO%2FmYU81xysh1u7XcJk%2B/a%2Fb%3Fc%23d%20e")
    assert schemas.api("matrix").check(request)[1]["event"] == V3_EVENT


def test_a_removal_without_the_mark_s_id_begins_by_looking_for_it() -> None:
    request = made(replace(REMOVE, handle=None))
    assert request.method == "GET"
    assert request.path == (
        "/_matrix/client/v1/rooms/%21636q39766251%3Aexample.org/relations/%24143273582443PhrSn%3Aexample.org"
        "/m.annotation/m.reaction?dir=b&limit=250"
    )
    assert request.body == b""


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (Command(Op.CLEAR, ROOM, None, EVENT, idempotency_key="k"), K.BAD_REQUEST),
        (replace(SET, idempotency_key=""), K.BAD_REQUEST),
        (replace(SET, message=None), K.BAD_REQUEST),
        (replace(SET, message="817"), K.BAD_REQUEST),
        (replace(SET, conversation="#alias:example.org"), K.BAD_REQUEST),
        (replace(SET, conversation=".."), K.BAD_REQUEST),
        (replace(SET, emoji=""), K.INVALID_REACTION),
        (replace(SET, emoji="x" * 501), K.INVALID_REACTION),
    ],
)
def test_what_cannot_be_called_has_its_outcome_at_once(command: Command, kind: OutcomeKind) -> None:
    outcome = ADAPTER.request(command, CREDENTIALS)
    assert isinstance(outcome, Outcome)
    assert outcome.kind is kind


def test_typing_without_a_user_id_is_refused() -> None:
    outcome = ADAPTER.request(TYPING, Credentials(token=TOKEN))
    assert isinstance(outcome, Outcome)
    assert outcome.kind is K.BAD_REQUEST


def test_the_token_shows_in_no_representation() -> None:
    assert TOKEN not in f"{made(SET)!r} {CREDENTIALS!r}"


# --- who the account is -----------------------------------------------------------------


def test_a_configured_user_id_needs_no_introduction() -> None:
    assert ADAPTER.introduce(CREDENTIALS) is None


def test_an_account_without_a_user_id_asks_for_it() -> None:
    unknown = Credentials(token=TOKEN, base_url="https://hs.example.org", options={"device": "D"})
    request = ADAPTER.introduce(unknown)
    assert request is not None
    assert (request.method, request.path) == ("GET", "/_matrix/client/v3/account/whoami")
    known = ADAPTER.introduced(unknown, answer(200, {"user_id": USER, "device_id": "D"}))
    assert isinstance(known, Credentials)
    assert dict(known.options) == {"device": "D", "user_id": USER}
    assert (known.token, known.base_url) == (TOKEN, "https://hs.example.org")


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        (failure(401, "M_UNKNOWN_TOKEN", "Invalid access token passed.", soft_logout=False), K.AUTH),
        (failure(429, "M_LIMIT_EXCEEDED", retry_after_ms=100), K.RATE_LIMITED),
        (answer(502, b"<html>"), K.TRANSIENT),
        (answer(200, b"<html>"), K.TRANSIENT),
        (failure(403, "M_FORBIDDEN"), K.FORBIDDEN),
    ],
)
def test_a_failed_introduction_is_an_outcome(response: Response, kind: OutcomeKind) -> None:
    outcome = ADAPTER.introduced(CREDENTIALS, response)
    assert isinstance(outcome, Outcome)
    assert outcome.kind is kind
    assert outcome.scope in (None, "account")


# --- looking for our own mark -----------------------------------------------------------

LOOKING = replace(REMOVE, handle=None)


def annotation(event: str, sender: str, key: str) -> dict[str, Any]:
    relation = {"rel_type": "m.annotation", "event_id": EVENT, "key": key}
    return {"event_id": event, "sender": sender, "type": "m.reaction", "content": {"m.relates_to": relation}}


def page(*events: Any, following: str | None = None) -> Response:
    return answer(200, {"chunk": list(events)} | ({"next_batch": following} if following else {}))


def test_our_own_mark_among_others_is_the_one_that_is_redacted() -> None:
    response = page(
        annotation("$theirs", "@alice:example.org", "👀"),
        annotation("$other", USER, "👍\ufe0f"),
        annotation("$ours", USER, "👀"),
        following="t2",
    )
    found = ADAPTER.follow_up(LOOKING, CREDENTIALS, response)
    assert found == replace(REMOVE, handle="$ours")
    assert made(found).path == f"{ROOM_PATH}/redact/%24ours/livesign-2"


def test_the_form_of_the_key_does_not_matter() -> None:
    found = ADAPTER.follow_up(replace(LOOKING, emoji="⚡"), CREDENTIALS, page(annotation("$o", USER, "⚡\ufe0f")))
    assert found is not None
    assert found.handle == "$o"


def test_the_search_goes_on_to_the_next_page() -> None:
    first = page(annotation("$theirs", "@alice:example.org", "👀"), following="$t&2")
    second = ADAPTER.follow_up(LOOKING, CREDENTIALS, first)
    assert second is not None
    assert made(second).path.endswith("/m.annotation/m.reaction?dir=b&limit=250&from=%24t%262")
    third = ADAPTER.follow_up(second, CREDENTIALS, page(annotation("$ours", USER, "👀")))
    assert third == replace(REMOVE, handle="$ours")


@pytest.mark.parametrize("events", [(), ("x", None, {}), ({"sender": USER},), ({"sender": USER, "content": []},)])
def test_where_no_mark_of_ours_is_found_nothing_is_left_to_remove(events: tuple[Any, ...]) -> None:
    response = page(*events)
    assert ADAPTER.follow_up(LOOKING, CREDENTIALS, response) is None
    assert ADAPTER.outcome(LOOKING, response).kind is K.ALREADY_DONE


def test_a_redaction_is_the_last_word() -> None:
    assert ADAPTER.follow_up(REMOVE, CREDENTIALS, answer(200, {"event_id": "$x"})) is None
    assert ADAPTER.follow_up(SET, CREDENTIALS, page(annotation("$ours", USER, "👀"))) is None
    assert ADAPTER.follow_up(LOOKING, CREDENTIALS, failure(404, "M_NOT_FOUND")) is None


def test_a_failed_search_has_the_class_of_its_error() -> None:
    assert ADAPTER.outcome(LOOKING, failure(500, "M_UNKNOWN")).kind is K.TRANSIENT
    assert ADAPTER.outcome(LOOKING, failure(404, "M_NOT_FOUND")).kind is K.ALREADY_DONE
    assert ADAPTER.outcome(LOOKING, answer(200, b"<html>")).kind is K.UNKNOWN
