"""The Teams adapter: golden requests for each operation and for the login, golden answers for each documented
error."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from actors.platforms.spec import Credentials, Response
from actors.platforms.teams import SPEC, TeamsAdapter
from actors.presence.policy import DEFAULT_EMOJI
from actors.presence.terms import Command, Op, Outcome, OutcomeKind
from tests.platforms.golden import answer, form_of, header, json_of, made, no_call

K = OutcomeKind
APP = "00000000-1111-2222-3333-444444444444"
LOGGED_OUT = Credentials(token="client~secret.0123456789", options={"app_id": APP})
CREDENTIALS = replace(LOGGED_OUT, access="eyJ0eXAi.access")
ADAPTER = TeamsAdapter()

CHAT = "a:1pL6i0oY3C0K8oAj8K9xY"
GROUP = "19:5e2b@thread.v2"
CHANNEL = "19:253b1f341670408fb6fe51050b6e5ceb@thread.tacv2;messageid=1485983194839"
SET = Command(Op.SET, CHAT, None, "1485983408511", "1f440_eyes", idempotency_key="k1")
REMOVE = replace(SET, op=Op.REMOVE)
TYPING = Command(Op.TYPING_START, CHAT)
ACTIVITIES = "/v3/conversations/a%3A1pL6i0oY3C0K8oAj8K9xY/activities"
CHANNEL_PATH = (
    "/v3/conversations/19%3A253b1f341670408fb6fe51050b6e5ceb%40thread.tacv2%3Bmessageid%3D1485983194839/activities"
)


def typing_in(conversation: str, bot: str = f"28:{APP}") -> dict[str, Any]:
    return {"type": "typing", "from": {"id": bot}, "conversation": {"id": conversation}}


GOLDEN_REQUESTS: dict[str, tuple[Command, str, str, Any]] = {
    "set": (SET, "PUT", f"{ACTIVITIES}/1485983408511/reactions/1f440_eyes", None),
    "set by the emoji itself": (replace(SET, emoji="👍"), "PUT", f"{ACTIVITIES}/1485983408511/reactions/like", None),
    "set in a channel": (
        replace(SET, conversation=CHANNEL),
        "PUT",
        f"{CHANNEL_PATH}/1485983408511/reactions/1f440_eyes",
        None,
    ),
    "remove": (REMOVE, "DELETE", f"{ACTIVITIES}/1485983408511/reactions/1f440_eyes", None),
    "typing": (TYPING, "POST", ACTIVITIES, typing_in(CHAT)),
    "typing in a group": (
        replace(TYPING, conversation=GROUP),
        "POST",
        "/v3/conversations/19%3A5e2b%40thread.v2/activities",
        typing_in(GROUP),
    ),
}


@pytest.mark.parametrize(("command", "method", "path", "body"), GOLDEN_REQUESTS.values(), ids=GOLDEN_REQUESTS.keys())
def test_each_operation_is_the_documented_request(command: Command, method: str, path: str, body: Any) -> None:
    request = made(ADAPTER, command, CREDENTIALS)
    assert (request.method, request.path, json_of(request)) == (method, path, body)
    assert header(request, "Authorization") == "Bearer eyJ0eXAi.access"
    assert CREDENTIALS.access not in f"{request!r} {CREDENTIALS!r}"


def test_the_bot_s_own_id_can_be_told() -> None:
    credentials = replace(CREDENTIALS, options={"app_id": APP, "bot_id": "28:other"})
    assert json_of(made(ADAPTER, TYPING, credentials)) == typing_in(CHAT, "28:other")


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (Command(Op.TYPING_STOP, CHAT), K.OK),
        (replace(TYPING, conversation=CHANNEL), K.FORBIDDEN),
        (replace(TYPING, conversation="19:abc@thread.tacv2"), K.FORBIDDEN),
        (replace(TYPING, conversation="19:abc@thread.skype"), K.FORBIDDEN),
        (replace(SET, op=Op.CLEAR), K.BAD_REQUEST),
        (replace(SET, message=None), K.BAD_REQUEST),
        (replace(SET, emoji="🦑"), K.INVALID_REACTION),
        (replace(SET, emoji=None), K.INVALID_REACTION),
    ],
)
def test_what_cannot_be_called_has_its_outcome_at_once(command: Command, kind: OutcomeKind) -> None:
    assert no_call(ADAPTER, command, CREDENTIALS).kind is kind


IDS = {
    "👀": "1f440_eyes", "🤔": "think", "🔥": "fire", "👨\u200d💻": "mantechie", "⚡": "26a1_highvoltagesign",
    "✍": "270d_writinghand", "👍": "like", "😱": "screamingfear", "🥱": "1f971_yawningface", "😨": "fearful",
    "🧠": "1f9e0_brain", "🛠": "1f6e0_hammerandwrench", "💻": "computer", "🌐": "1f310_globewithmeridians",
    "✅": "2705_whiteheavycheckmark", "❌": "274c_crossmark", "⏳": "holdon", "⚠": "26a0_warningsign",
    "🗜": "1f5dc_compression", "🎧": "headphone", "👌": "ok", "👎": "no", "😢": "cry",
}  # fmt: skip


@pytest.mark.parametrize(("emoji", "name"), IDS.items())
def test_emojis_have_the_ids_that_teams_gives_them(emoji: str, name: str) -> None:
    assert ADAPTER.normalise(emoji) == ADAPTER.normalise(emoji + "\ufe0f") == ADAPTER.normalise(name) == name


def test_skin_tones_and_the_tenant_s_own_emojis_go_by_their_ids() -> None:
    for name in ("1f44b_wavinghand-tone3", "hajimi_run;0-ea-d11-abc"):
        assert ADAPTER.normalise(name) == name
    for name in ("", "a b", "../x", "🦑"):
        assert ADAPTER.normalise(name) is None


def test_every_default_emoji_can_be_set() -> None:
    assert all(ADAPTER.normalise(emoji) for chain in DEFAULT_EMOJI.values() for emoji in chain)


# --- the login --------------------------------------------------------------------------


def test_an_access_token_is_fetched_from_the_login_service() -> None:
    request = ADAPTER.introduce(LOGGED_OUT)
    assert request is not None
    assert (request.method, request.server) == ("POST", "https://login.microsoftonline.com")
    assert request.path == "/botframework.com/oauth2/v2.0/token"
    assert form_of(request) == {
        "grant_type": "client_credentials",
        "client_id": APP,
        "client_secret": LOGGED_OUT.token,
        "scope": "https://api.botframework.com/.default",
    }
    got = {"token_type": "Bearer", "expires_in": 3599, "access_token": "eyJ0eXAi.access"}
    assert ADAPTER.introduced(LOGGED_OUT, answer(200, got)) == CREDENTIALS
    assert ADAPTER.introduce(CREDENTIALS) is None


def test_the_tenant_and_the_cloud_can_be_chosen() -> None:
    options = {"app_id": APP, "tenant": "contoso/x", "login_url": "https://login.microsoftonline.us"}
    request = ADAPTER.introduce(replace(LOGGED_OUT, options=options))
    assert request is not None
    assert (request.server, request.path) == ("https://login.microsoftonline.us", "/contoso%2Fx/oauth2/v2.0/token")


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        (answer(401, {"error": "invalid_client", "error_description": "AADSTS7000215"}), K.AUTH),
        (answer(400, {"error": "unauthorized_client"}), K.AUTH),
        (answer(429, b"", {"retry-after": "17"}), K.RATE_LIMITED),
        (answer(503, b"<html>"), K.TRANSIENT),
        (answer(503, {"error": "temporarily_unavailable"}), K.TRANSIENT),
        (answer(401, b"<html>"), K.AUTH),
        (answer(403, b"<html>"), K.FORBIDDEN),
        (answer(200, b"<html>"), K.TRANSIENT),
        (answer(200, {"access_token": ""}), K.TRANSIENT),
        (answer(404, b"<html>"), K.BAD_REQUEST),
    ],
)
def test_a_failed_login_is_an_outcome(response: Response, kind: OutcomeKind) -> None:
    outcome = ADAPTER.introduced(LOGGED_OUT, response)
    assert isinstance(outcome, Outcome)
    assert outcome.kind is kind


def test_a_refused_access_token_has_expired() -> None:
    assert ADAPTER.expired(answer(401, {"error": {"code": "AuthorizationFailed"}}))
    assert not ADAPTER.expired(answer(403, {}))


# --- answers ----------------------------------------------------------------------------


def failure(status: int, code: str) -> Response:
    return answer(status, {"error": {"code": code, "message": "what it says"}})


@pytest.mark.parametrize(("status", "body"), [(200, {}), (201, {"id": "1"}), (202, b""), (204, b"")])
def test_successes_are_ok(status: int, body: Any) -> None:
    for command in (SET, REMOVE, TYPING):
        assert ADAPTER.outcome(command, answer(status, body)) == Outcome(K.OK)


def test_a_success_that_is_not_the_connector_s_is_never_ok() -> None:
    assert ADAPTER.outcome(SET, answer(200, b"<html>")).kind is K.UNKNOWN


ERRORS = [
    (404, "ConversationNotFound", K.GONE, "conversation"),
    (403, "BotNotInConversationRoster", K.FORBIDDEN, "conversation"),
    (403, "ConversationBlockedByUser", K.FORBIDDEN, "conversation"),
    (403, "BotDisabledByAdmin", K.FORBIDDEN, "conversation"),
    (403, "MessageWritesBlocked", K.FORBIDDEN, "conversation"),
    (403, "Forbidden", K.FORBIDDEN, None),
    (401, "AuthorizationFailed", K.AUTH, None),
    (403, "BotNotRegistered", K.AUTH, None),
    (412, "PreconditionFailed", K.TRANSIENT, None),
    (412, "", K.TRANSIENT, None),
    (500, "ServiceError", K.TRANSIENT, None),
    (502, "", K.TRANSIENT, None),
    (503, "ServiceUnavailable", K.TRANSIENT, None),
    (504, "GatewayTimeout", K.TRANSIENT, None),
    (413, "RequestEntityTooLarge", K.BAD_REQUEST, None),
    (404, "ActivityNotFound", K.GONE, None),
]


@pytest.mark.parametrize(("status", "code", "kind", "scope"), ERRORS)
def test_each_documented_error_has_its_outcome(status: int, code: str, kind: OutcomeKind, scope: str | None) -> None:
    for command in (SET, REMOVE, TYPING):
        outcome = ADAPTER.outcome(command, failure(status, code))
        assert (outcome.kind, outcome.scope) == (kind, scope)
        assert "what it says" in outcome.detail


def test_a_refused_reaction_is_taken_for_one_that_there_is_not() -> None:
    assert ADAPTER.outcome(SET, failure(400, "BadArgument")).kind is K.INVALID_REACTION
    for command in (REMOVE, TYPING):
        assert ADAPTER.outcome(command, failure(400, "BadArgument")).kind is K.BAD_REQUEST


@pytest.mark.parametrize("status", [429, 400])
def test_a_limit_is_that_of_the_kind_of_call(status: int) -> None:
    response = answer(status, {"error": {"code": "Throttled", "message": "slow"}}, {"retry-after": "6"})
    outcome = ADAPTER.outcome(SET, response)
    assert (outcome.kind, outcome.retry_after_ms, outcome.scope) == (K.RATE_LIMITED, 6_000, "route")


def test_marks_stay_under_two_a_second_over_all_conversations() -> None:
    limit = SPEC.limits["account.marks"]
    assert limit.count * 1_000 / limit.per_ms < 2
    assert SPEC.limits["conversation.typing"].count * 60 <= 1_800
