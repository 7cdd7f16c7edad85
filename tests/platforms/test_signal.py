"""The Signal adapter: golden requests for each operation, golden answers for each documented error."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from actors.platforms.signal import LIMIT_WAIT_MS, SPEC, SignalAdapter
from actors.platforms.spec import Credentials
from actors.presence.policy import DEFAULT_EMOJI
from actors.presence.terms import Command, Op, Outcome, OutcomeKind
from tests.platforms.golden import answer, json_of, made, no_call

K = OutcomeKind
NUMBER, USER, GROUP = "+4915112345678", "+16505551234", "group.UzVvS0pEczZoUT09"
CREDENTIALS = Credentials(base_url="http://127.0.0.1:8080", options={"number": NUMBER})
ADAPTER = SignalAdapter(CREDENTIALS.options)

SENT = 1_700_000_000_123
SET = Command(Op.SET, USER, None, str(SENT), "👀", idempotency_key="k1")
IN_GROUP = replace(SET, conversation=GROUP, message=f"{USER}:{SENT}")
CLEAR = replace(SET, op=Op.CLEAR, emoji=None)
TYPING = Command(Op.TYPING_START, USER)
REACTIONS, INDICATOR = "/v1/reactions/%2B4915112345678", "/v1/typing-indicator/%2B4915112345678"
TARGET = {"recipient": USER, "target_author": USER, "timestamp": SENT}

GOLDEN_REQUESTS: dict[str, tuple[Command, str, str, dict[str, Any]]] = {
    "set": (SET, "POST", REACTIONS, {**TARGET, "reaction": "👀"}),
    "set in a group": (IN_GROUP, "POST", REACTIONS, {**TARGET, "recipient": GROUP, "reaction": "👀"}),
    "set on a message of a user without a number": (
        replace(SET, conversation=GROUP, message=f"0b1e1a5e-7f7a-4f8e-9c58-1d2ad2b9a9c1:{SENT}"),
        "POST",
        REACTIONS,
        {
            "recipient": GROUP,
            "target_author": "0b1e1a5e-7f7a-4f8e-9c58-1d2ad2b9a9c1",
            "timestamp": SENT,
            "reaction": "👀",
        },
    ),
    "clear": (CLEAR, "DELETE", REACTIONS, TARGET),
    "remove": (replace(SET, op=Op.REMOVE), "DELETE", REACTIONS, TARGET),
    "typing": (TYPING, "PUT", INDICATOR, {"recipient": USER}),
    "typing in a group": (replace(TYPING, conversation=GROUP), "PUT", INDICATOR, {"recipient": GROUP}),
    "stop": (replace(TYPING, op=Op.TYPING_STOP), "DELETE", INDICATOR, {"recipient": USER}),
}


@pytest.mark.parametrize(("command", "method", "path", "body"), GOLDEN_REQUESTS.values(), ids=GOLDEN_REQUESTS.keys())
def test_each_operation_is_the_documented_request(
    command: Command, method: str, path: str, body: dict[str, Any]
) -> None:
    request = made(ADAPTER, command, CREDENTIALS)
    assert (request.method, request.path, json_of(request)) == (method, path, body)
    assert [name for name, _ in request.headers] == ["Content-Type"]


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (replace(SET, message=None), K.BAD_REQUEST),
        (replace(SET, message="yesterday"), K.BAD_REQUEST),
        (replace(SET, conversation=GROUP), K.BAD_REQUEST),
        (replace(IN_GROUP, message=f"{USER}:"), K.BAD_REQUEST),
        (replace(SET, message="1" * 16), K.BAD_REQUEST),
        (replace(SET, emoji="ok"), K.INVALID_REACTION),
        (replace(SET, emoji=None), K.INVALID_REACTION),
    ],
)
def test_what_cannot_be_called_has_its_outcome_at_once(command: Command, kind: OutcomeKind) -> None:
    assert no_call(ADAPTER, command, CREDENTIALS).kind is kind


def test_every_default_emoji_can_be_set() -> None:
    assert all(ADAPTER.normalise(emoji) for chain in DEFAULT_EMOJI.values() for emoji in chain)


def test_no_content_is_ok_and_nothing_else_is() -> None:
    for command in (SET, CLEAR, TYPING):
        assert ADAPTER.outcome(command, answer(204)) == Outcome(K.OK)
        assert ADAPTER.outcome(command, answer(200, b"<html>")).kind is K.UNKNOWN
        assert ADAPTER.outcome(command, answer(200, {})).kind is K.UNKNOWN


ERRORS = [
    ("Failed to send message: [429] Rate Limited: rate limit exceeded", K.RATE_LIMITED, "account", LIMIT_WAIT_MS),
    ("CAPTCHA proof required for sending to x, available options \"challenge\"", K.RATE_LIMITED, "account", LIMIT_WAIT_MS),
    ("Please submit a challenge", K.RATE_LIMITED, "account", LIMIT_WAIT_MS),
    ("Failed to send message due to untrusted identities", K.FORBIDDEN, "conversation", None),
    (f"User {USER} is not registered.", K.FORBIDDEN, "conversation", None),
    (f"User {NUMBER} is not registered.", K.AUTH, None, None),
    (f"User {NUMBER}0 is not registered.", K.FORBIDDEN, "conversation", None),
    ("Specified account does not exist", K.AUTH, None, None),
    ("Group not found", K.FORBIDDEN, "conversation", None),
    ("User is not a group member", K.FORBIDDEN, "conversation", None),
    ("Invalid group id", K.FORBIDDEN, "conversation", None),
    ("Failed to send message: Connection closed!", K.TRANSIENT, None, None),
    ("java.io.IOException: broken pipe", K.TRANSIENT, None, None),
    ("dial tcp 127.0.0.1:6001: connect: connection refused", K.TRANSIENT, None, None),
    ("Couldn't process request - invalid request", K.BAD_REQUEST, None, None),
    ("something nobody has seen before", K.BAD_REQUEST, None, None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "scope", "wait_ms"), ERRORS)
def test_each_known_text_has_its_outcome(text: str, kind: OutcomeKind, scope: str | None, wait_ms: int | None) -> None:
    for told in (text, text.upper()):
        for command in (SET, CLEAR, TYPING):
            outcome = ADAPTER.outcome(command, answer(400, {"error": told}))
            assert (outcome.kind, outcome.scope, outcome.retry_after_ms) == (kind, scope, wait_ms)
            assert outcome.detail.endswith(told)


@pytest.mark.parametrize(
    ("status", "kind"), [(404, K.BAD_REQUEST), (500, K.TRANSIENT), (502, K.TRANSIENT), (429, K.RATE_LIMITED)]
)
def test_other_statuses_have_their_class(status: int, kind: OutcomeKind) -> None:
    assert ADAPTER.outcome(SET, answer(status, b"<html>")).kind is kind


def test_typing_calls_may_take_as_long_as_the_service_needs() -> None:
    assert 3_000 < SPEC.typing_deadline_ms < SPEC.keepalive_ms < SPEC.rules.typing_lifetime_ms
    assert (SPEC.needs_token, SPEC.required_options) == (False, ("number",))
