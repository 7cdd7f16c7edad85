"""The Matrix adapter's outcomes: golden answers for each documented error."""

from __future__ import annotations

from typing import Any

import pytest

from actors.presence.terms import Outcome, OutcomeKind
from tests.platforms.test_matrix import ADAPTER, REMOVE, SET, STOP, TYPING, answer, failure

K = OutcomeKind


def test_a_mark_s_event_id_is_its_handle() -> None:
    assert ADAPTER.outcome(SET, answer(200, {"event_id": "$r:example.org"})) == Outcome(K.OK, handle="$r:example.org")


def test_other_successes_are_ok() -> None:
    assert ADAPTER.outcome(REMOVE, answer(200, {"event_id": "$redaction"})) == Outcome(K.OK)
    assert ADAPTER.outcome(TYPING, answer(200, {})) == Outcome(K.OK)
    assert ADAPTER.outcome(STOP, answer(200, {})) == Outcome(K.OK)


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b'{"event_id":5}', b"[]"])
def test_a_mark_without_an_event_id_is_not_known_to_be_there(body: bytes) -> None:
    assert ADAPTER.outcome(SET, answer(200, body)).kind is K.UNKNOWN
    assert ADAPTER.outcome(REMOVE, answer(200, body)).kind is K.UNKNOWN


ERRORS = [
    (400, "M_DUPLICATE_ANNOTATION", "Can't send same reaction twice", K.ALREADY_DONE, None),
    (400, "M_UNKNOWN", "Can't send relation to unknown event", K.GONE, None),
    (400, "M_UNKNOWN", "Relations must be in the same room", K.GONE, None),
    (400, "M_UNKNOWN", "Aggregation key is too long", K.INVALID_REACTION, None),
    (400, "M_UNKNOWN", "something nobody has seen before", K.BAD_REQUEST, None),
    (404, "M_NOT_FOUND", "Event not found.", K.GONE, None),
    (413, "M_TOO_LARGE", "event too large", K.INVALID_REACTION, None),
    (403, "M_FORBIDDEN", "User @bot:example.org not in room", K.FORBIDDEN, "conversation"),
    (403, "M_GUEST_ACCESS_FORBIDDEN", "Guest access not allowed", K.FORBIDDEN, "conversation"),
    (403, "M_RESOURCE_LIMIT_EXCEEDED", "limit reached", K.FORBIDDEN, "account"),
    (403, "M_USER_LIMIT_EXCEEDED", "limit reached", K.FORBIDDEN, "account"),
    (401, "M_UNKNOWN_TOKEN", "Invalid access token passed.", K.AUTH, None),
    (401, "M_MISSING_TOKEN", "Missing access token", K.AUTH, None),
    (401, "M_USER_LOCKED", "locked", K.AUTH, None),
    (403, "M_USER_SUSPENDED", "suspended", K.AUTH, None),
    (403, "M_USER_DEACTIVATED", "deactivated", K.AUTH, None),
    (403, "M_UNKNOWN_DEVICE", "no such device", K.AUTH, None),
    (400, "M_BAD_JSON", "bad", K.BAD_REQUEST, None),
    (400, "M_NOT_JSON", "bad", K.BAD_REQUEST, None),
    (400, "M_INVALID_PARAM", "bad", K.BAD_REQUEST, None),
    (400, "M_MISSING_PARAM", "bad", K.BAD_REQUEST, None),
    (404, "M_UNRECOGNIZED", "Unrecognized request", K.BAD_REQUEST, None),
    (405, "M_UNRECOGNIZED", "Unrecognized request", K.BAD_REQUEST, None),
    (418, "ORG.EXAMPLE.TEAPOT", "short and stout", K.BAD_REQUEST, None),
    (500, "M_UNKNOWN", "Internal server error", K.TRANSIENT, None),
    (502, "M_FORBIDDEN", "a gateway's idea", K.TRANSIENT, None),
]


@pytest.mark.parametrize(("status", "code", "text", "kind", "scope"), ERRORS)
def test_each_documented_error_has_its_outcome(
    status: int, code: str, text: str, kind: OutcomeKind, scope: str | None
) -> None:
    outcome = ADAPTER.outcome(SET, failure(status, code, text))
    assert (outcome.kind, outcome.scope, outcome.handle) == (kind, scope, None)
    assert code in outcome.detail


def test_removing_what_is_not_there_is_already_done() -> None:
    assert ADAPTER.outcome(REMOVE, failure(404, "M_NOT_FOUND")).kind is K.ALREADY_DONE


def test_typing_in_another_user_s_name_is_a_wrong_configuration() -> None:
    response = failure(400, "M_FORBIDDEN", "Cannot set another user's typing state")
    assert ADAPTER.outcome(TYPING, response).kind is K.BAD_REQUEST
    assert ADAPTER.outcome(TYPING, failure(403, "M_FORBIDDEN", "not in room")).kind is K.FORBIDDEN


@pytest.mark.parametrize(
    ("body", "headers", "wait_ms"),
    [
        ({"retry_after_ms": 886}, {"retry-after": "1"}, 886),
        ({"retry_after_ms": 0}, {"retry-after": "1"}, 0),
        ({}, {"retry-after": "3"}, 3_000),
        ({"retry_after_ms": "soon"}, {"retry-after": "3"}, 3_000),
        ({}, {}, 5_000),
        ({"retry_after_ms": None}, {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, 5_000),
    ],
)
def test_a_limit_is_the_account_s_and_the_body_s_time_counts_first(
    body: dict[str, Any], headers: dict[str, str], wait_ms: int
) -> None:
    response = answer(429, {"errcode": "M_LIMIT_EXCEEDED", "error": "Too Many Requests", **body}, headers)
    outcome = ADAPTER.outcome(SET, response)
    assert (outcome.kind, outcome.retry_after_ms, outcome.scope) == (K.RATE_LIMITED, wait_ms, "account")


@pytest.mark.parametrize(
    ("status", "kind"), [(401, K.AUTH), (403, K.FORBIDDEN), (302, K.BAD_REQUEST), (504, K.TRANSIENT)]
)
def test_an_answer_that_is_not_json_has_the_class_of_its_status(status: int, kind: OutcomeKind) -> None:
    assert ADAPTER.outcome(SET, answer(status, b"<html>")).kind is kind
