"""The Zulip adapter: golden requests for each operation, golden answers for each documented error."""

from __future__ import annotations

from base64 import b64decode
from dataclasses import replace
from typing import Any

import pytest

from actors.platforms.spec import Credentials, Response
from actors.platforms.zulip import SPEC, ZulipAdapter
from actors.presence.policy import DEFAULT_EMOJI
from actors.presence.terms import Command, Op, Outcome, OutcomeKind
from tests.platforms.golden import answer, form_of, header, made, no_call

K = OutcomeKind
CREDENTIALS = Credentials(
    token="gjA04ZYcqXKalvYMA8OeXSfzUOLrtbZv",
    base_url="https://chat.example.org",
    options={"email": "live-bot@chat.example.org"},
)
ADAPTER = ZulipAdapter()

SET = Command(Op.SET, "7", "topic", "1234", "eyes", idempotency_key="k1")
REMOVE = replace(SET, op=Op.REMOVE)
TYPING = Command(Op.TYPING_START, "7", "new ideas & more")
DIRECT = Command(Op.TYPING_START, "dm:9,10")
EYES = {"emoji_name": "eyes", "emoji_code": "1f440", "reaction_type": "unicode_emoji"}
REACTIONS = "/api/v1/messages/1234/reactions"
CHANNEL = {"type": "stream", "stream_id": "7", "topic": "new ideas & more"}

GOLDEN_REQUESTS = {
    "set": (SET, "POST", REACTIONS, EYES),
    "set by the emoji itself": (
        replace(SET, emoji="👨\u200d💻"),
        "POST",
        REACTIONS,
        {"emoji_name": "man_technologist", "emoji_code": "1f468-200d-1f4bb", "reaction_type": "unicode_emoji"},
    ),
    "set a custom emoji": (replace(SET, emoji="squid_game"), "POST", REACTIONS, {"emoji_name": "squid_game"}),
    "remove": (REMOVE, "DELETE", REACTIONS, EYES),
    "remove a custom emoji": (
        replace(REMOVE, emoji="squid_game"),
        "DELETE",
        REACTIONS,
        {"emoji_name": "squid_game", "reaction_type": "realm_emoji"},
    ),
    "typing in a channel": (TYPING, "POST", "/api/v1/typing", {"op": "start", **CHANNEL}),
    "stop in a channel": (replace(TYPING, op=Op.TYPING_STOP), "POST", "/api/v1/typing", {"op": "stop", **CHANNEL}),
    "typing to users": (DIRECT, "POST", "/api/v1/typing", {"op": "start", "type": "direct", "to": "[9,10]"}),
    "stop to a user": (
        Command(Op.TYPING_STOP, "dm:9"),
        "POST",
        "/api/v1/typing",
        {"op": "stop", "type": "direct", "to": "[9]"},
    ),
}


@pytest.mark.parametrize(("command", "method", "path", "fields"), GOLDEN_REQUESTS.values(), ids=GOLDEN_REQUESTS.keys())
def test_each_operation_is_the_documented_request(
    command: Command, method: str, path: str, fields: dict[str, str]
) -> None:
    request = made(ADAPTER, command, CREDENTIALS)
    assert (request.method, request.path, form_of(request)) == (method, path, fields)
    scheme, _, pair = header(request, "Authorization").partition(" ")
    assert (scheme, b64decode(pair).decode()) == ("Basic", f"live-bot@chat.example.org:{CREDENTIALS.token}")


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (replace(SET, op=Op.CLEAR), K.BAD_REQUEST),
        (replace(SET, message=None), K.BAD_REQUEST),
        (replace(SET, message="12/../9"), K.BAD_REQUEST),
        (replace(SET, emoji="🦑"), K.INVALID_REACTION),
        (replace(SET, emoji=None), K.INVALID_REACTION),
        (replace(TYPING, thread=None), K.BAD_REQUEST),
        (replace(TYPING, conversation="general"), K.BAD_REQUEST),
        (replace(TYPING, conversation="9,10"), K.BAD_REQUEST),
        (Command(Op.TYPING_START, "dm:"), K.BAD_REQUEST),
        (Command(Op.TYPING_START, "dm:ann"), K.BAD_REQUEST),
    ],
)
def test_what_cannot_be_called_has_its_outcome_at_once(command: Command, kind: OutcomeKind) -> None:
    assert no_call(ADAPTER, command, CREDENTIALS).kind is kind


NAMES = {
    "👀": "eyes", "🤔": "thinking", "⚡": "high_voltage", "✍": "writing", "👍": "+1", "😨": "fear", "🛠": "working_on_it",
    "🌐": "www", "✅": "check", "❌": "cross_mark", "⏳": "time_ticking", "⌛": "times_up", "👎": "-1", "👌": "ok", "😢": "cry",
}  # fmt: skip


@pytest.mark.parametrize(("emoji", "name"), NAMES.items())
def test_emojis_have_the_names_that_zulip_gives_them(emoji: str, name: str) -> None:
    assert ADAPTER.normalise(emoji) == ADAPTER.normalise(emoji + "\ufe0f") == ADAPTER.normalise(f":{name}:") == name


def test_every_default_emoji_can_be_set_with_its_code() -> None:
    for chain in DEFAULT_EMOJI.values():
        for emoji in chain:
            fields = form_of(made(ADAPTER, replace(SET, emoji=emoji), CREDENTIALS))
            assert fields["emoji_code"] == "-".join(f"{ord(point):x}" for point in emoji)


# --- answers ----------------------------------------------------------------------------


def failure(status: int, code: str, text: str = "", **more: Any) -> Response:
    return answer(status, {"result": "error", "code": code, "msg": text, **more})


def test_a_success_is_ok() -> None:
    for command in (SET, REMOVE, TYPING, DIRECT):
        assert ADAPTER.outcome(command, answer(200, {"result": "success", "msg": ""})) == Outcome(K.OK)


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b'{"result":"error"}', b"[]"])
def test_a_success_status_without_a_success_is_never_ok(body: bytes) -> None:
    assert ADAPTER.outcome(SET, answer(200, body)).kind is K.UNKNOWN


ERRORS = [
    (400, "REACTION_ALREADY_EXISTS", "Reaction already exists.", K.ALREADY_DONE, None),
    (400, "REACTION_DOES_NOT_EXIST", "Reaction doesn't exist.", K.ALREADY_DONE, None),
    (400, "BAD_REQUEST", "Invalid message(s)", K.GONE, None),
    (400, "BAD_REQUEST", "Emoji 'eyez' does not exist", K.INVALID_REACTION, None),
    (400, "BAD_REQUEST", "Invalid emoji code.", K.INVALID_REACTION, None),
    (400, "BAD_REQUEST", "Invalid emoji name.", K.INVALID_REACTION, None),
    (400, "BAD_REQUEST", "Invalid emoji type.", K.INVALID_REACTION, None),
    (400, "BAD_REQUEST", "Invalid custom emoji.", K.INVALID_REACTION, None),
    (400, "BAD_REQUEST", "User has disabled typing notifications for channel messages", K.FORBIDDEN, None),
    (400, "BAD_REQUEST", "something nobody has seen before", K.BAD_REQUEST, None),
    (400, "STREAM_DOES_NOT_EXIST", "Channel 'x' does not exist", K.FORBIDDEN, "conversation"),
    (403, "UNAUTHORIZED_PRINCIPAL", "no", K.FORBIDDEN, "conversation"),
    (403, "SOMETHING", "no", K.FORBIDDEN, None),
    (400, "REQUEST_VARIABLE_MISSING", "Missing 'emoji_name' argument", K.BAD_REQUEST, None),
    (400, "REQUEST_VARIABLE_INVALID", "Bad value", K.BAD_REQUEST, None),
    (400, "INVALID_JSON", "Malformed JSON", K.BAD_REQUEST, None),
    (401, "INVALID_API_KEY", "Invalid API key", K.AUTH, None),
    (403, "INVALID_API_KEY", "Invalid API key", K.AUTH, None),
    (401, "UNAUTHORIZED", "Not logged in", K.AUTH, None),
    (403, "USER_DEACTIVATED", "Account is deactivated", K.AUTH, None),
    (403, "REALM_DEACTIVATED", "This organization has been deactivated", K.AUTH, None),
    (500, "INTERNAL_SERVER_ERROR", "oops", K.TRANSIENT, None),
    (500, "SERVER_NOT_READY", "Server is starting", K.TRANSIENT, None),
]


@pytest.mark.parametrize(("status", "code", "text", "kind", "scope"), ERRORS)
def test_each_documented_error_has_its_outcome(
    status: int, code: str, text: str, kind: OutcomeKind, scope: str | None
) -> None:
    for command in (SET, REMOVE, TYPING):
        outcome = ADAPTER.outcome(command, failure(status, code, text))
        assert (outcome.kind, outcome.scope) == (kind, scope)
        assert code in outcome.detail
        assert text in outcome.detail


@pytest.mark.parametrize(
    ("body", "headers", "wait_ms"),
    [
        ({"retry-after": 28.706807374954224}, {"retry-after": "29"}, 28_707),
        ({}, {"retry-after": "3.5"}, 3_500),
        ({}, {}, None),
    ],
)
def test_a_limit_is_the_account_s_and_the_body_s_time_counts_first(
    body: dict[str, Any], headers: dict[str, str], wait_ms: int | None
) -> None:
    limited = {"result": "error", "code": "RATE_LIMIT_HIT", "msg": "API usage exceeded rate limit", **body}
    outcome = ADAPTER.outcome(SET, answer(429, limited, headers))
    assert (outcome.kind, outcome.retry_after_ms, outcome.scope) == (K.RATE_LIMITED, wait_ms, "account")


@pytest.mark.parametrize(
    ("status", "kind"), [(401, K.AUTH), (403, K.FORBIDDEN), (429, K.RATE_LIMITED), (502, K.TRANSIENT)]
)
def test_an_answer_that_is_not_json_has_the_class_of_its_status(status: int, kind: OutcomeKind) -> None:
    assert ADAPTER.outcome(SET, answer(status, b"<html>")).kind is kind


# --- names without a row ----------------------------------------------------------------

MISSING = failure(400, "REACTION_DOES_NOT_EXIST", "Reaction doesn't exist.")


def test_a_removal_that_finds_no_custom_emoji_looks_among_unicode_s_once() -> None:
    command = replace(REMOVE, emoji="octopus")
    again = ADAPTER.follow_up(command, CREDENTIALS, MISSING)
    assert again is not None
    assert form_of(made(ADAPTER, again, CREDENTIALS)) == {"emoji_name": "octopus", "reaction_type": "unicode_emoji"}
    assert ADAPTER.follow_up(again, CREDENTIALS, MISSING) is None


def test_other_answers_are_the_last_word() -> None:
    for command in (SET, REMOVE, TYPING, replace(SET, emoji="octopus")):
        assert ADAPTER.follow_up(command, CREDENTIALS, MISSING) is None
    ok = answer(200, {"result": "success"})
    assert ADAPTER.follow_up(replace(REMOVE, emoji="octopus"), CREDENTIALS, ok) is None


def test_how_long_typing_lives_is_the_server_s_and_renewing_follows_it() -> None:
    for lifetime_ms, keepalive_ms in (("45000", 20_000), ("15000", 10_000), ("90000", 20_000)):
        spec = ZulipAdapter({"typing_lifetime_ms": lifetime_ms}).spec
        assert (spec.rules.typing_lifetime_ms, spec.keepalive_ms) == (int(lifetime_ms), keepalive_ms)
    for wrong in ("0", "999", "-1", "long"):
        with pytest.raises(ValueError, match="typing_lifetime_ms"):
            ZulipAdapter({"typing_lifetime_ms": wrong})


def test_indicators_take_less_than_a_third_of_the_account_s_calls() -> None:
    assert (SPEC.limits["account"].count, SPEC.limits["account"].per_ms) == (60, 60_000)
    assert SPEC.required_options == ("email",)
