"""Answers that no platform gives: none raises in an adapter, none counts as a success."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from actors.platforms.registry import PLATFORMS, adapter
from actors.platforms.spec import Credentials, HttpAdapter, Response
from actors.presence.pacing import MAX_WAIT_MS
from actors.presence.terms import Command, Op, Outcome, OutcomeKind

WITHOUT_HTTP = {"callback", "remote"}
OVER_HTTP = sorted(set(PLATFORMS) - WITHOUT_HTTP)
IDS: dict[str, tuple[str, str | None, str]] = {
    "telegram": ("-100", "7", "42"), "discord": ("1", "2", "3"), "slack": ("C1", "1.2", "1.3"),
    "matrix": ("!room:hs", None, "$event"), "googlechat": ("spaces/s", None, "spaces/s/messages/m"),
    "zulip": ("7", "topic", "42"), "signal": ("+49301", None, "+49302:1700"),
}  # fmt: skip
FOREIGN = [
    b"<html>Sign in to the guest network</html>",
    b"[]",
    b"null",
    b"1",
    b'"ok"',
    b"{",
    b'{"ok"',
    b"\xff",
    b"\x1f\x8b\x08",
]
VALUES: list[Any] = [
    None, True, False, 0, -1, 10**30, 1.5, 1e300, "", "x", "10014", [], [1], [None], [{}], {}, {"code": 1}, "\x00", "\ud800",
]  # fmt: skip
KEYS = [
    "ok", "error_code", "description", "parameters", "retry_after", "migrate_to_chat_id", "code", "message", "error", "errcode",
    "retry_after_ms", "event_id", "chunk", "content", "sender", "next_batch", "messages", "success", "error_data", "details",
    "id", "emoji_name", "status", "result", "msg", "retry-after", "name", "reactions", "access_token", "expires_in", "user_id",
    "parent_id", "global",
]  # fmt: skip
STATUSES = [100, 200, 204, 206, 301, 304, 400, 401, 403, 404, 408, 409, 412, 421, 429, 500, 503, 999]
NUMBERS = ["", "x", "-1", "0", "3", "1e999", "nan", "inf", "9" * 400, "Wed, 21 Oct 2026 07:28:00 GMT"]


def commands(made: HttpAdapter) -> list[Command]:
    conversation, thread, message = IDS.get(made.spec.name, ("c", "t", "m"))
    return [
        Command(op, conversation, thread, message, made.normalise("👀"), handle, "key")
        for op in Op
        for handle in (None, "handle", "parent", "page:1", "unicode_emoji")
    ]


def credentials(made: HttpAdapter) -> Credentials:
    return Credentials(token="secret:and-another", options={option.name: "1" for option in made.spec.options})


@pytest.mark.parametrize("body", FOREIGN)
@pytest.mark.parametrize("name", OVER_HTTP)
def test_a_success_that_is_not_the_platform_s_confirms_nothing(name: str, body: bytes) -> None:
    made = adapter(name)
    for command in commands(made):
        assert made.outcome(command, Response(200, {}, body)).kind is OutcomeKind.UNKNOWN, command


@pytest.mark.parametrize("name", OVER_HTTP)
def test_whatever_an_answer_holds_it_has_an_outcome(name: str) -> None:
    made = adapter(name)
    own = credentials(made)
    chance = random.Random(name)
    for _ in range(1_000):
        response = Response(chance.choice(STATUSES), headers(chance), body(chance))
        command = chance.choice(commands(made))
        outcome = made.outcome(command, response)
        assert isinstance(outcome, Outcome)
        assert isinstance(outcome.detail, str)
        assert outcome.retry_after_ms is None or 0 <= outcome.retry_after_ms <= MAX_WAIT_MS * 1_000
        following = made.follow_up(command, own, response)
        if following is not None:
            made.request(following, own)
        made.expired(response)
        if made.introduce(own) is not None:
            made.introduced(own, response)


def headers(chance: random.Random) -> dict[str, str]:
    names = ("retry-after", "x-ratelimit-reset-after", "x-ratelimit-remaining", "x-ratelimit-scope", "via")
    return {name: chance.choice(NUMBERS) for name in names if chance.random() < 0.5}


def body(chance: random.Random) -> bytes:
    def some(depth: int) -> dict[str, Any]:
        return {
            chance.choice(KEYS): some(depth - 1) if depth and chance.random() < 0.4 else chance.choice(VALUES)
            for _ in "123"
        }

    return json.dumps(some(2)).encode()
