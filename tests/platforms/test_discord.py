"""The Discord adapter: golden requests for each operation, golden answers for each documented error."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from actors.platforms.discord import EDGE_WAIT_MS, SPEC, DiscordAdapter
from actors.platforms.spec import Credentials, Response
from actors.presence.policy import DEFAULT_EMOJI
from actors.presence.terms import Command, Op, Outcome, OutcomeKind
from tests.platforms import schemas
from tests.platforms.golden import answer, header, made, no_call

K = OutcomeKind
CREDENTIALS = Credentials(token="MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs")
ADAPTER = DiscordAdapter()

CHANNEL, THREAD, MESSAGE = "290926798629997250", "1005870300000000000", "862341998999699498"
SET = Command(Op.SET, CHANNEL, None, MESSAGE, "👀", idempotency_key="k1")
REMOVE = replace(SET, op=Op.REMOVE)
TYPING = Command(Op.TYPING_START, CHANNEL)
REACTIONS = f"/channels/{CHANNEL}/messages/{MESSAGE}/reactions"


def failure(status: int, code: int, message: str = "", **headers: str) -> Response:
    return answer(status, {"code": code, "message": message}, headers)


GOLDEN_REQUESTS = {
    "set": (SET, "PUT", f"{REACTIONS}/%F0%9F%91%80/@me"),
    "set a custom emoji": (replace(SET, emoji="livesign:41771983429993937"), "PUT",
                           f"{REACTIONS}/livesign%3A41771983429993937/@me"),
    "set a joined emoji": (replace(SET, emoji="👨\u200d💻"), "PUT",
                           f"{REACTIONS}/%F0%9F%91%A8%E2%80%8D%F0%9F%92%BB/@me"),
    "set an emoji that is text by default": (replace(SET, emoji="✍\ufe0f"), "PUT",
                                             f"{REACTIONS}/%E2%9C%8D%EF%B8%8F/@me"),
    "marks are where the message is, whatever the thread": (replace(SET, thread=THREAD), "PUT",
                                                            f"{REACTIONS}/%F0%9F%91%80/@me"),
    "remove": (REMOVE, "DELETE", f"{REACTIONS}/%F0%9F%91%80/@me"),
    "remove the form that was set": (replace(REMOVE, emoji="✍\ufe0f", handle="✍"), "DELETE",
                                     f"{REACTIONS}/%E2%9C%8D/@me"),
    "typing": (TYPING, "POST", f"/channels/{CHANNEL}/typing"),
    "typing in a thread": (replace(TYPING, thread=THREAD), "POST", f"/channels/{THREAD}/typing"),
}  # fmt: skip


@pytest.mark.parametrize(("command", "method", "path"), GOLDEN_REQUESTS.values(), ids=GOLDEN_REQUESTS.keys())
def test_each_operation_is_the_documented_request(command: Command, method: str, path: str) -> None:
    request = made(ADAPTER, command, CREDENTIALS)
    assert (request.method, request.path, request.body) == (method, path, b"")
    assert header(request, "Authorization") == f"Bot {CREDENTIALS.token}"
    assert header(request, "User-Agent").startswith("DiscordBot (")
    schemas.api("discord").check(request)


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (Command(Op.TYPING_STOP, CHANNEL), K.OK),
        (replace(SET, op=Op.CLEAR), K.BAD_REQUEST),
        (replace(SET, message=None), K.BAD_REQUEST),
        (replace(SET, message="$event"), K.BAD_REQUEST),
        (replace(SET, conversation="../guilds"), K.BAD_REQUEST),
        (replace(SET, conversation="٣"), K.BAD_REQUEST),
        (replace(TYPING, thread="general"), K.BAD_REQUEST),
        (replace(SET, emoji=":eyes:"), K.INVALID_REACTION),
        (replace(SET, emoji=None), K.INVALID_REACTION),
    ],
)
def test_what_cannot_be_called_has_its_outcome_at_once(command: Command, kind: OutcomeKind) -> None:
    assert no_call(ADAPTER, command, CREDENTIALS).kind is kind


@pytest.mark.parametrize(
    ("emoji", "form"),
    [
        ("👀", "👀"), ("⚡", "⚡"), ("⚡\ufe0f", "⚡"), ("✍", "✍\ufe0f"), ("👍", "👍"), ("⚠", "⚠\ufe0f"), ("🗜", "🗜\ufe0f"),
        ("❤\u200d🔥", "❤\ufe0f\u200d🔥"), ("👍🏽", "👍🏽"), ("livesign:41771983429993937", "livesign:41771983429993937"),
        ("<:livesign:417>", "livesign:417"), ("<a:dance:417>", "dance:417"), ("eyes", None), (":eyes:", None), ("", None),
        ("👀👀", None), ("livesign", None),
    ],
)  # fmt: skip
def test_emojis_are_sent_fully_qualified_and_custom_ones_as_name_and_id(emoji: str, form: str | None) -> None:
    assert ADAPTER.normalise(emoji) == form
    if form is not None:
        assert ADAPTER.normalise(form) == form


def test_every_default_emoji_can_be_set() -> None:
    assert all(ADAPTER.normalise(emoji) for chain in DEFAULT_EMOJI.values() for emoji in chain)


# --- answers ----------------------------------------------------------------------------

ERRORS = [
    (404, 10003, K.GONE, "conversation"),
    (404, 10004, K.GONE, "conversation"),
    (404, 10008, K.GONE, None),
    (400, 10014, K.INVALID_REACTION, None),
    (404, 10014, K.INVALID_REACTION, None),
    (400, 50151, K.INVALID_REACTION, None),
    (400, 30010, K.FORBIDDEN, "message"),
    (403, 30010, K.FORBIDDEN, "message"),
    (403, 90001, K.FORBIDDEN, "message"),
    (403, 90002, K.BAD_REQUEST, None),
    (403, 50001, K.FORBIDDEN, "conversation"),
    (403, 50013, K.FORBIDDEN, None),
    (403, 50007, K.FORBIDDEN, "conversation"),
    (403, 50278, K.FORBIDDEN, "conversation"),
    (400, 50083, K.FORBIDDEN, None),
    (403, 160005, K.FORBIDDEN, None),
    (400, 50024, K.FORBIDDEN, None),
    (400, 50008, K.FORBIDDEN, "conversation"),
    (403, 50021, K.FORBIDDEN, "message"),
    (400, 50035, K.BAD_REQUEST, None),
    (400, 50109, K.BAD_REQUEST, None),
    (400, 0, K.BAD_REQUEST, None),
    (404, 0, K.BAD_REQUEST, None),
    (400, 99_999_999, K.BAD_REQUEST, None),
    (403, 99_999_999, K.FORBIDDEN, None),
    (401, 0, K.AUTH, None),
    (401, 40001, K.AUTH, None),
    (403, 40002, K.AUTH, None),
    (403, 40333, K.AUTH, None),
    (401, 50014, K.AUTH, None),
    (400, 130000, K.TRANSIENT, None),
    (500, 0, K.TRANSIENT, None),
    (503, 10008, K.TRANSIENT, None),
]


@pytest.mark.parametrize(("status", "code", "kind", "scope"), ERRORS)
def test_each_documented_error_has_its_outcome(status: int, code: int, kind: OutcomeKind, scope: str | None) -> None:
    for command in (SET, TYPING):
        outcome = ADAPTER.outcome(command, failure(status, code, "what it says"))
        assert (outcome.kind, outcome.scope) == (kind, scope)
        assert "what it says" in outcome.detail


@pytest.mark.parametrize(("status", "code"), [(404, 10014), (400, 10014), (400, 50151)])
def test_removing_what_is_not_there_is_already_done(status: int, code: int) -> None:
    assert ADAPTER.outcome(REMOVE, failure(status, code)).kind is K.ALREADY_DONE


def test_a_thread_that_typing_followed_the_reply_into_is_gone_by_itself() -> None:
    outcome = ADAPTER.outcome(replace(TYPING, thread=THREAD), failure(404, 10003))
    assert (outcome.kind, outcome.scope) == (K.GONE, None)
    outcome = ADAPTER.outcome(replace(SET, thread=THREAD), failure(404, 10003))
    assert (outcome.kind, outcome.scope) == (K.GONE, "conversation")


@pytest.mark.parametrize("status", [502, 504, 524])
def test_the_edge_s_own_errors_are_transient(status: int) -> None:
    assert ADAPTER.outcome(SET, answer(status, b"<html>Bad Gateway</html>")).kind is K.TRANSIENT


def test_no_content_is_ok() -> None:
    for command in (SET, REMOVE, TYPING):
        assert ADAPTER.outcome(command, answer(204)) == Outcome(K.OK)
    assert ADAPTER.outcome(TYPING, answer(200, {"message_send_cooldown_ms": 0})) == Outcome(K.OK)


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"ok", b"\xff"])
def test_a_success_that_is_not_the_api_s_is_never_ok(body: bytes) -> None:
    for command in (SET, REMOVE, TYPING):
        assert ADAPTER.outcome(command, answer(200, body)).kind is K.UNKNOWN
    assert ADAPTER.outcome(SET, answer(200, {})).kind is K.UNKNOWN


# --- limits -----------------------------------------------------------------------------

LIMITED = {"message": "You are being rate limited.", "retry_after": 64.57, "global": False}
VIA = {"via": "1.1 google"}


@pytest.mark.parametrize(
    ("more", "headers", "scope"),
    [
        ({}, {"x-ratelimit-scope": "user", "retry-after": "65"}, "route"),
        ({}, {"x-ratelimit-scope": "shared", "retry-after": "65"}, "route"),
        ({"global": True}, {"x-ratelimit-scope": "global", "retry-after": "65"}, "account"),
        ({"global": True}, VIA, "account"),
        ({}, {"x-ratelimit-global": "true"}, "account"),
        ({}, VIA, None),
    ],
)
def test_a_limit_has_the_body_s_seconds_and_the_scope_that_is_told(
    more: dict[str, Any], headers: dict[str, str], scope: str | None
) -> None:
    response = answer(429, {**LIMITED, **more}, headers)
    outcome = ADAPTER.outcome(SET, response)
    assert (outcome.kind, outcome.retry_after_ms, outcome.scope) == (K.RATE_LIMITED, 64_570, scope)
    schemas.api("discord").calls["set"].check_answer(429, {**LIMITED, **more, "code": 20028})


@pytest.mark.parametrize("code", [[], {}, True, "0", 1.5, None])
def test_a_code_that_is_none_is_no_code(code: object) -> None:
    for status in (400, 429, 500):
        assert ADAPTER.outcome(SET, answer(status, {"message": "slow", "code": code})).kind is not OutcomeKind.OK


def test_the_header_counts_where_the_body_names_no_time() -> None:
    outcome = ADAPTER.outcome(SET, answer(429, {"message": "slow", "global": False}, {**VIA, "retry-after": "3"}))
    assert (outcome.kind, outcome.retry_after_ms) == (K.RATE_LIMITED, 3_000)


@pytest.mark.parametrize("code", [20028, 20029, 40062])
def test_codes_of_limits_count_under_any_status(code: int) -> None:
    response = answer(400, {"code": code, "message": "slow", "retry_after": 2.5}, {"x-ratelimit-scope": "user"})
    outcome = ADAPTER.outcome(SET, response)
    assert (outcome.kind, outcome.retry_after_ms, outcome.scope) == (K.RATE_LIMITED, 2_500, "route")


@pytest.mark.parametrize(
    ("headers", "wait_ms"),
    [({}, EDGE_WAIT_MS), ({"retry-after": "7"}, EDGE_WAIT_MS), ({"retry-after": "3600"}, 3_600_000)],
)
def test_a_limit_that_does_not_come_from_the_api_is_the_edge_s_and_stops_the_account_for_minutes(
    headers: dict[str, str], wait_ms: int
) -> None:
    for body, more in ((b"error code: 1015", VIA), (LIMITED, {})):
        response = answer(429, body, {**headers, **more})
        outcome = ADAPTER.outcome(SET, response)
        assert (outcome.kind, outcome.retry_after_ms, outcome.scope) == (K.RATE_LIMITED, wait_ms, "account")


def test_a_success_that_empties_its_bucket_says_when_it_is_full_again() -> None:
    headers = {"x-ratelimit-limit": "1", "x-ratelimit-remaining": "0", "x-ratelimit-reset-after": "0.25"}
    outcome = ADAPTER.outcome(SET, answer(204, b"", headers))
    assert (outcome.kind, outcome.retry_after_ms, outcome.scope) == (K.OK, 250, "route")
    assert ADAPTER.outcome(SET, answer(204, b"", {**headers, "x-ratelimit-remaining": "4"})) == Outcome(K.OK)
    assert ADAPTER.outcome(SET, answer(204, b"", {**headers, "x-ratelimit-reset-after": "soon"})).retry_after_ms is None


# --- what the answer says should have been asked ----------------------------------------


@pytest.mark.parametrize(("sent", "other"), [("✍\ufe0f", "✍"), ("⚡", "⚡\ufe0f"), ("❤\ufe0f\u200d🔥", "❤\u200d🔥")])
def test_an_unknown_emoji_is_tried_once_in_its_other_form(sent: str, other: str) -> None:
    unknown = failure(400, 10014, "Unknown Emoji")
    again = ADAPTER.follow_up(replace(SET, emoji=sent), CREDENTIALS, unknown)
    assert again == replace(SET, emoji=other)
    assert ADAPTER.follow_up(again, CREDENTIALS, unknown) is None
    assert ADAPTER.outcome(again, unknown).kind is K.INVALID_REACTION


def test_the_form_that_was_taken_is_the_handle_and_is_removed_as_such() -> None:
    outcome = ADAPTER.outcome(replace(SET, emoji="✍"), answer(204))
    assert outcome == Outcome(K.OK, handle="✍")
    request = made(ADAPTER, replace(REMOVE, emoji="✍\ufe0f", handle=outcome.handle), CREDENTIALS)
    assert request.path == f"{REACTIONS}/%E2%9C%8D/@me"


@pytest.mark.parametrize("emoji", ["👀", "livesign:417"])
def test_an_emoji_of_one_form_is_not_tried_again(emoji: str) -> None:
    assert ADAPTER.follow_up(replace(SET, emoji=emoji), CREDENTIALS, failure(400, 10014)) is None


STARTER = replace(SET, conversation=THREAD, message=THREAD)


def test_the_message_a_thread_was_made_of_is_looked_for_above_the_thread() -> None:
    asking = ADAPTER.follow_up(STARTER, CREDENTIALS, failure(404, 10008))
    assert asking is not None
    request = made(ADAPTER, asking, CREDENTIALS)
    assert (request.method, request.path) == ("GET", f"/channels/{THREAD}")
    above = ADAPTER.follow_up(asking, CREDENTIALS, answer(200, {"id": THREAD, "parent_id": CHANNEL}))
    assert above == replace(STARTER, conversation=CHANNEL)
    assert made(ADAPTER, above, CREDENTIALS).path == f"/channels/{CHANNEL}/messages/{THREAD}/reactions/%F0%9F%91%80/@me"
    assert ADAPTER.follow_up(above, CREDENTIALS, failure(404, 10008)) is None


def test_a_starter_without_a_channel_above_is_gone() -> None:
    asking = ADAPTER.follow_up(STARTER, CREDENTIALS, failure(404, 10008))
    assert asking is not None
    for response in (answer(200, {"id": THREAD}), failure(404, 10003)):
        assert ADAPTER.follow_up(asking, CREDENTIALS, response) is None
        assert ADAPTER.outcome(asking, response).kind is K.GONE


def test_other_answers_are_the_last_word() -> None:
    for command in (SET, REMOVE, TYPING):
        for response in (answer(204), failure(404, 10008), failure(404, 10003), failure(500, 0)):
            assert ADAPTER.follow_up(command, CREDENTIALS, response) is None
    assert ADAPTER.follow_up(REMOVE, CREDENTIALS, failure(400, 10014)) is None


def test_marks_keep_their_distance_in_each_channel() -> None:
    assert SPEC.limits["route.marks"].per_ms == 300
    assert SPEC.limits["account"].count < 50
