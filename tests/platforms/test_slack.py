"""The Slack adapter: golden requests for each operation, golden answers for each documented error."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from actors.platforms.slack import ERRORS, SPEC, SlackAdapter
from actors.platforms.spec import Credentials
from actors.presence.policy import DEFAULT_EMOJI
from actors.presence.terms import Command, Op, Outcome, OutcomeKind
from tests.platforms import schemas
from tests.platforms.golden import answer, header, json_of, made, no_call

K = OutcomeKind
CREDENTIALS = Credentials(token="xoxb-0123456789-abcdef")
ADAPTER = SlackAdapter()

CHANNEL, TS, THREAD = "C0123456789", "1700000000.000100", "1699999999.123400"
SET = Command(Op.SET, CHANNEL, None, TS, "eyes", idempotency_key="k1")
REMOVE = replace(SET, op=Op.REMOVE)
TYPING = Command(Op.TYPING_START, CHANNEL, THREAD)
STOP = replace(TYPING, op=Op.TYPING_STOP)
MARK = {"channel": CHANNEL, "timestamp": TS}
STATUS = {"channel_id": CHANNEL, "thread_ts": THREAD}

GOLDEN_REQUESTS: dict[str, tuple[Command, str, dict[str, Any]]] = {
    "set": (SET, "/reactions.add", {**MARK, "name": "eyes"}),
    "set by the emoji itself": (replace(SET, emoji="⏳"), "/reactions.add", {**MARK, "name": "hourglass_flowing_sand"}),
    "set with a skin tone": (
        replace(SET, emoji="+1::skin-tone-4"),
        "/reactions.add",
        {**MARK, "name": "+1::skin-tone-4"},
    ),
    "remove": (REMOVE, "/reactions.remove", {**MARK, "name": "eyes"}),
    "status": (
        TYPING,
        "/assistant.threads.setStatus",
        {**STATUS, "status": "is thinking...", "loading_messages": ["is thinking..."]},
    ),
    "stop": (STOP, "/assistant.threads.setStatus", {**STATUS, "status": ""}),
}


@pytest.mark.parametrize(("command", "path", "body"), GOLDEN_REQUESTS.values(), ids=GOLDEN_REQUESTS.keys())
def test_each_operation_is_the_documented_request(command: Command, path: str, body: dict[str, Any]) -> None:
    request = made(ADAPTER, command, CREDENTIALS)
    assert (request.method, request.path, json_of(request)) == ("POST", path, body)
    assert header(request, "Authorization") == f"Bearer {CREDENTIALS.token}"
    assert header(request, "Content-Type") == "application/json; charset=utf-8"
    schemas.api("slack").check(request)


def test_without_a_thread_there_is_no_status_and_no_call() -> None:
    for command in (replace(TYPING, thread=None), replace(STOP, thread=None)):
        assert no_call(ADAPTER, command, CREDENTIALS) == Outcome(K.OK)


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (replace(SET, op=Op.CLEAR), K.BAD_REQUEST),
        (replace(SET, message=None), K.BAD_REQUEST),
        (replace(SET, message="1700000000"), K.BAD_REQUEST),
        (replace(SET, message="p1700000000000100"), K.BAD_REQUEST),
        (replace(TYPING, thread="T1"), K.BAD_REQUEST),
        (replace(SET, emoji="🦑"), K.INVALID_REACTION),
        (replace(SET, emoji=None), K.INVALID_REACTION),
    ],
)
def test_what_cannot_be_called_has_its_outcome_at_once(command: Command, kind: OutcomeKind) -> None:
    assert no_call(ADAPTER, command, CREDENTIALS).kind is kind


# --- names ------------------------------------------------------------------------------

NAMES = {
    "👀": "eyes", "🤔": "thinking_face", "🔥": "fire", "👨\u200d💻": "male-technologist", "⚡": "zap", "✍": "writing_hand",
    "👍": "+1", "😱": "scream", "🥱": "yawning_face", "😨": "fearful", "🧠": "brain", "🛠": "hammer_and_wrench",
    "💻": "computer", "🌐": "globe_with_meridians", "✅": "white_check_mark", "❌": "x", "⏳": "hourglass_flowing_sand",
    "⚠": "warning", "🗜": "compression", "🎧": "headphones", "⌛": "hourglass", "👌": "ok_hand", "👎": "-1", "😢": "cry",
}  # fmt: skip


@pytest.mark.parametrize(("emoji", "name"), NAMES.items())
def test_emojis_have_the_names_that_slack_gives_them(emoji: str, name: str) -> None:
    assert ADAPTER.normalise(emoji) == ADAPTER.normalise(emoji + "\ufe0f") == name
    assert ADAPTER.normalise(name) == ADAPTER.normalise(f":{name}:") == name


@pytest.mark.parametrize("emoji", ["", "🦑", "Eyes", "a b", "+1::skin-tone-7", "eyes/../x", "::"])
def test_what_is_no_name_is_refused(emoji: str) -> None:
    assert ADAPTER.normalise(emoji) is None


def test_a_custom_emoji_goes_by_its_name() -> None:
    assert ADAPTER.normalise(":party-parrot:") == "party-parrot"


def test_every_default_emoji_can_be_set() -> None:
    assert all(ADAPTER.normalise(emoji) for chain in DEFAULT_EMOJI.values() for emoji in chain)


# --- answers ----------------------------------------------------------------------------

DOCUMENTED = {
    (K.ALREADY_DONE, None): "already_reacted no_reaction",
    (K.GONE, None): "message_not_found file_not_found",
    (K.FORBIDDEN, "conversation"): "channel_not_found is_archived not_in_channel no_access external_channel_migrating "
    "ekm_access_denied enterprise_is_restricted",
    (K.FORBIDDEN, "message"): "thread_locked not_reactable invalid_thread_ts too_many_emoji too_many_reactions",
    (
        K.FORBIDDEN,
        "account",
    ): "missing_scope no_permission not_allowed_token_type team_access_not_granted access_denied",
    (K.INVALID_REACTION, None): "invalid_name",
    (K.RATE_LIMITED, "route"): "ratelimited rate_limited",
    (K.TRANSIENT, None): "internal_error fatal_error service_unavailable request_timeout team_added_to_org "
    "org_login_required",
    (K.AUTH, None): "not_authed invalid_auth account_inactive token_revoked token_expired two_factor_setup_required "
    "accesslimited",
    (K.BAD_REQUEST, None): "bad_timestamp no_item_specified invalid_arg_name invalid_arguments invalid_array_arg "
    "invalid_charset invalid_form_data invalid_post_type missing_post_type invalid_json json_not_object "
    "method_deprecated deprecated_endpoint reserved_username something_nobody_has_seen_before",
}
ROWS = [(error, kind, scope) for (kind, scope), errors in DOCUMENTED.items() for error in errors.split()]


@pytest.mark.parametrize(("error", "kind", "scope"), ROWS)
def test_each_documented_error_has_its_outcome(error: str, kind: OutcomeKind, scope: str | None) -> None:
    for command in (SET, REMOVE, TYPING):
        outcome = ADAPTER.outcome(command, answer(200, {"ok": False, "error": error}))
        assert (outcome.kind, outcome.scope) == (kind, scope)
        assert error in outcome.detail


@pytest.mark.parametrize("call", ["set", "remove"])
def test_every_published_error_is_known(call: str) -> None:
    errors = schemas.api("slack").calls[call].errors()
    assert len(errors) > 20
    assert not set(errors) - set(ERRORS)


def test_a_success_is_ok() -> None:
    schemas.api("slack").calls["set"].check_answer(200, {"ok": True})
    for command in (SET, REMOVE, TYPING, STOP):
        assert ADAPTER.outcome(command, answer(200, {"ok": True})) == Outcome(K.OK)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"ok":1}', b'{"ok":"true"}', b"{}", b"\xff"])
def test_a_success_status_without_a_success_is_never_ok(body: bytes) -> None:
    assert ADAPTER.outcome(SET, answer(200, body)).kind is K.UNKNOWN


def test_a_missing_scope_says_which_one_is_needed() -> None:
    body = {"ok": False, "error": "missing_scope", "needed": "reactions:write", "provided": "chat:write"}
    assert (
        ADAPTER.outcome(SET, answer(200, body)).detail == "missing_scope needed: reactions:write; provided: chat:write"
    )


@pytest.mark.parametrize("body", [{"ok": False, "error": "ratelimited"}, b"", b"<html>"])
def test_a_limit_is_the_method_s_and_has_the_header_s_seconds(body: Any) -> None:
    outcome = ADAPTER.outcome(SET, answer(429, body, {"retry-after": "30"}))
    assert (outcome.kind, outcome.retry_after_ms, outcome.scope) == (K.RATE_LIMITED, 30_000, "route")


@pytest.mark.parametrize(
    ("status", "kind"), [(500, K.TRANSIENT), (503, K.TRANSIENT), (403, K.FORBIDDEN), (404, K.BAD_REQUEST)]
)
def test_an_answer_that_is_not_json_has_the_class_of_its_status(status: int, kind: OutcomeKind) -> None:
    assert ADAPTER.outcome(SET, answer(status, b"<html>")).kind is kind


# --- the status of a thread -------------------------------------------------------------


def test_the_text_of_the_status_can_be_chosen() -> None:
    credentials = replace(CREDENTIALS, options={"thread_status_text": "is working, really"})
    body = json_of(made(ADAPTER, TYPING, credentials))
    assert (body["status"], body["loading_messages"]) == ("is working, really", ["is working, really"])


def test_sessions_have_states_in_place_of_a_text_and_outlast_posts() -> None:
    adapter = SlackAdapter({"thread_status": "session"})
    for command, status in ((TYPING, "processing"), (STOP, "active")):
        request = made(adapter, command, CREDENTIALS)
        assert (request.path, json_of(request)) == ("/agents.sessions.setStatus", {**STATUS, "status": status})
    assert not adapter.spec.post_clears_typing
    assert adapter.spec.rules.typing_lifetime_ms == 3_600_000
    assert ADAPTER.spec.post_clears_typing


def test_the_status_can_be_off() -> None:
    assert not SlackAdapter({"thread_status": "off"}).spec.rules.typing
    with pytest.raises(ValueError, match="thread_status must be one of assistant, session, off, not 'rtm'"):
        SlackAdapter({"thread_status": "rtm"})


def test_the_methods_have_budgets_of_their_own_under_their_tiers() -> None:
    assert {name: (limit.count, limit.per_ms) for name, limit in SPEC.limits.items()} == {
        "account.set": (45, 60_000),
        "account.remove": (18, 60_000),
        "account.typing": (1, 1_000),
    }
