"""The sandbox adapter: golden requests, golden answers, and the models its options choose."""

from __future__ import annotations

import json
from typing import Any

import pytest

from actors.platforms.sandbox import SandboxAdapter
from actors.platforms.spec import Credentials, Request, Response
from actors.presence.terms import Command, LaneRules, Op, Outcome, OutcomeKind

K = OutcomeKind
ADAPTER = SandboxAdapter()
CREDENTIALS = Credentials(token="sandbox-token", base_url="http://127.0.0.1:8080")
SET = Command(Op.SET, "team chat", "t/1", "m?1", "👨\u200d💻")

MARKS = "/v1/chats/team%20chat/messages/m%3F1/marks"
CODER = "%F0%9F%91%A8%E2%80%8D%F0%9F%92%BB"


@pytest.mark.parametrize(
    ("op", "method", "path"),
    [
        (Op.SET, "PUT", f"{MARKS}/{CODER}"),
        (Op.REMOVE, "DELETE", f"{MARKS}/{CODER}"),
        (Op.CLEAR, "DELETE", MARKS),
        (Op.TYPING_START, "PUT", "/v1/chats/team%20chat/typing?thread=t%2F1"),
        (Op.TYPING_STOP, "DELETE", "/v1/chats/team%20chat/typing?thread=t%2F1"),
    ],
)
def test_each_operation_is_the_documented_request(op: Op, method: str, path: str) -> None:
    request = ADAPTER.request(Command(op, "team chat", "t/1", "m?1", "👨\u200d💻"), CREDENTIALS)
    assert isinstance(request, Request)
    assert (request.method, request.path, request.body) == (method, path, b"")
    assert request.headers == (("Authorization", "Bearer sandbox-token"),)


def test_without_a_thread_there_is_no_query() -> None:
    request = ADAPTER.request(Command(Op.TYPING_START, "c"), CREDENTIALS)
    assert isinstance(request, Request)
    assert request.path == "/v1/chats/c/typing"


def test_an_account_without_a_token_sends_none() -> None:
    request = ADAPTER.request(SET, Credentials())
    assert isinstance(request, Request)
    assert request.headers == ()


def test_names_cannot_climb_out_of_the_path() -> None:
    request = ADAPTER.request(Command(Op.SET, "..", None, ".", "👀"), CREDENTIALS)
    assert isinstance(request, Request)
    assert request.path == "/v1/chats/%2E%2E/messages/%2E/marks/%F0%9F%91%80"


def test_a_mark_needs_a_message_and_an_emoji() -> None:
    for command, kind in (
        (Command(Op.SET, "c", None, None, "👀"), K.BAD_REQUEST),
        (Command(Op.SET, "c", None, "m"), K.INVALID_REACTION),
    ):
        outcome = ADAPTER.request(command, CREDENTIALS)
        assert isinstance(outcome, Outcome)
        assert outcome.kind is kind


def answered(status: int, body: Any, headers: dict[str, str] | None = None) -> Outcome:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return ADAPTER.outcome(SET, Response(status, headers or {}, data))


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (404, "gone", K.GONE),
        (403, "forbidden", K.FORBIDDEN),
        (422, "invalid_reaction", K.INVALID_REACTION),
        (429, "rate_limited", K.RATE_LIMITED),
        (401, "auth", K.AUTH),
        (400, "bad_request", K.BAD_REQUEST),
        (503, "unavailable", K.TRANSIENT),
    ],
)
def test_each_code_has_its_outcome(status: int, code: str, kind: OutcomeKind) -> None:
    outcome = answered(status, {"ok": False, "code": code, "detail": "why"})
    assert (outcome.kind, outcome.detail, outcome.scope) == (kind, "why", None)


def test_successes_say_whether_it_held_already() -> None:
    assert answered(200, {"ok": True}) == Outcome(K.OK)
    assert answered(200, {"ok": True, "already": True}) == Outcome(K.ALREADY_DONE)


@pytest.mark.parametrize("scope", ["account", "conversation", "route"])
def test_a_limit_has_its_time_and_scope(scope: str) -> None:
    body = {"ok": False, "code": "rate_limited", "detail": "", "retry_after_ms": 1_500, "scope": scope}
    outcome = answered(429, body, {"retry-after": "2"})
    assert (outcome.retry_after_ms, outcome.scope) == (1_500, scope)


def test_a_scope_nobody_knows_is_left_out() -> None:
    assert answered(429, {"ok": False, "code": "rate_limited", "scope": "galaxy"}).scope is None


def test_an_answer_from_something_else_is_never_ok() -> None:
    assert answered(200, b"<html>").kind is K.UNKNOWN
    assert answered(502, b"<html>").kind is K.TRANSIENT
    assert answered(429, b"", {"retry-after": "2"}).retry_after_ms == 2_000


def test_options_choose_the_model() -> None:
    options = {
        "reactions": "add_remove", "typing_stop": "false", "typing_lifetime_ms": "10000",
        "post_clears_typing": "false", "typing_in": "direct",
    }  # fmt: skip
    spec = SandboxAdapter(options).spec
    assert spec.rules == LaneRules(
        reactions="add_remove",
        typing=True,
        typing_stop=False,
        typing_lifetime_ms=10_000,
        typing_in_threads=True,
    )
    assert not spec.post_clears_typing
    assert ADAPTER.spec.rules.reactions == "replace"


@pytest.mark.parametrize(("lifetime_ms", "keepalive_ms"), [("5000", 3_000), ("1000", 600), ("0", 0), ("60000", 3_000)])
def test_typing_is_refreshed_before_it_fades(lifetime_ms: str, keepalive_ms: int) -> None:
    assert SandboxAdapter({"typing_lifetime_ms": lifetime_ms}).spec.keepalive_ms == keepalive_ms


@pytest.mark.parametrize(
    "options",
    [{"reactions": "many"}, {"typing_stop": "yes"}, {"typing_lifetime_ms": "-1"}, {"typing_in": "attic"}],
)
def test_an_option_that_is_no_value_is_named(options: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        SandboxAdapter(options)
