"""The WhatsApp Cloud adapter: golden requests for each operation, golden answers for each documented error."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from actors.platforms.spec import Credentials, Response
from actors.platforms.whatsapp import LONG_WAIT_MS, SPEC, WhatsappAdapter
from actors.presence.policy import DEFAULT_EMOJI
from actors.presence.terms import Command, Op, Outcome, OutcomeKind
from tests.platforms.golden import answer, header, json_of, made, no_call

K = OutcomeKind
CREDENTIALS = Credentials(token="EAAJB_system_user_token", options={"phone_number_id": "106540352242922"})
ADAPTER = WhatsappAdapter()

USER, WAMID = "16505551234", "wamid.HBgLMTY0NjcwNDM1OTUVAgASGBQzQTdCNTg5RjY1MEMyRjlGMjRGNgA="
SET = Command(Op.SET, USER, None, WAMID, "👀", idempotency_key="k1")
CLEAR = replace(SET, op=Op.CLEAR, emoji=None)
TYPING = Command(Op.TYPING_START, USER, inbound=WAMID)


def mark(emoji: str) -> dict[str, Any]:
    return {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": USER,
        "type": "reaction",
        "reaction": {"message_id": WAMID, "emoji": emoji},
    }


GOLDEN_REQUESTS = {
    "set": (SET, mark("👀")),
    "set an emoji that is text by default": (replace(SET, emoji="⚠"), mark("⚠\ufe0f")),
    "clear": (CLEAR, mark("")),
    "remove": (replace(SET, op=Op.REMOVE), mark("")),
    "typing": (
        TYPING,
        {
            "messaging_product": "whatsapp",
            "status": "read",
            "message_id": WAMID,
            "typing_indicator": {"type": "text"},
        },
    ),
}


@pytest.mark.parametrize(("command", "body"), GOLDEN_REQUESTS.values(), ids=GOLDEN_REQUESTS.keys())
def test_each_operation_is_the_documented_request(command: Command, body: dict[str, Any]) -> None:
    request = made(ADAPTER, command, CREDENTIALS)
    assert (request.method, request.path) == ("POST", "/106540352242922/messages")
    assert json_of(request) == body
    assert header(request, "Authorization") == f"Bearer {CREDENTIALS.token}"


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (Command(Op.TYPING_STOP, USER), K.OK),
        (Command(Op.TYPING_START, USER), K.OK),
        (replace(SET, message=None), K.BAD_REQUEST),
        (replace(SET, emoji="ok"), K.INVALID_REACTION),
        (replace(SET, emoji=None), K.INVALID_REACTION),
    ],
)
def test_what_needs_or_allows_no_call_has_its_outcome_at_once(command: Command, kind: OutcomeKind) -> None:
    assert no_call(ADAPTER, command, CREDENTIALS).kind is kind


def test_typing_is_one_shot_and_gates_are_whatsapp_s() -> None:
    assert (SPEC.keepalive_ms, SPEC.rules.typing_lifetime_ms, SPEC.rules.typing_stop) == (0, 25_000, False)
    assert SPEC.ack_variant == "whatsapp"
    assert SPEC.required_options == ("phone_number_id",)


def test_every_default_emoji_can_be_set() -> None:
    assert all(ADAPTER.normalise(emoji) for chain in DEFAULT_EMOJI.values() for emoji in chain)
    assert ADAPTER.normalise(":eyes:") is None


# --- answers ----------------------------------------------------------------------------


def failure(status: int, code: int, message: str = "(#1) no", details: str = "") -> Response:
    error: dict[str, Any] = {"message": message, "type": "OAuthException", "code": code, "fbtrace_id": "Az8or2yhqkZfEZ"}
    if details:
        error["error_data"] = {"messaging_product": "whatsapp", "details": details}
    return answer(status, {"error": error})


def test_successes_are_ok() -> None:
    sent = {
        "messaging_product": "whatsapp",
        "contacts": [{"input": USER, "wa_id": USER}],
        "messages": [{"id": "wamid.X"}],
    }
    assert ADAPTER.outcome(SET, answer(200, sent)) == Outcome(K.OK)
    assert ADAPTER.outcome(TYPING, answer(200, {"success": True})) == Outcome(K.OK)


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b'{"success":false}', b'{"messages":[]}', b'{"messages":{}}'])
def test_a_success_status_without_a_success_is_never_ok(body: bytes) -> None:
    assert ADAPTER.outcome(SET, answer(200, body)).kind is K.UNKNOWN


AUTH_CODES = (0, 190, 3, 10, 200, 219, 299, 131005, 368, 131031, 131042, 131045, 131037, 33)
ERRORS: list[tuple[int, OutcomeKind, str | None, int | None]] = [
    (131056, K.RATE_LIMITED, "conversation", None),
    (130429, K.RATE_LIMITED, "account", None),
    (4, K.RATE_LIMITED, "account", None),
    (80007, K.RATE_LIMITED, "account", None),
    (131048, K.RATE_LIMITED, "account", LONG_WAIT_MS),
    (131049, K.RATE_LIMITED, "conversation", LONG_WAIT_MS),
    (131064, K.RATE_LIMITED, "account", LONG_WAIT_MS),
    (131047, K.FORBIDDEN, "message", None),
    *((code, K.FORBIDDEN, "conversation", None) for code in (131026, 131030, 131021, 130497, 130472, 131050)),
    *((code, K.AUTH, None, None) for code in AUTH_CODES),
    *((code, K.TRANSIENT, None, None) for code in (131000, 131016, 131057, 1, 2)),
    *((code, K.BAD_REQUEST, None, None) for code in (100, 131008, 131051)),
]


@pytest.mark.parametrize(("code", "kind", "scope", "wait_ms"), ERRORS)
def test_each_documented_error_has_its_outcome_whatever_the_status(
    code: int, kind: OutcomeKind, scope: str | None, wait_ms: int | None
) -> None:
    for status in (400, 401, 500, 200):
        for command in (SET, CLEAR, TYPING):
            outcome = ADAPTER.outcome(command, failure(status, code, "what it says"))
            assert (outcome.kind, outcome.scope, outcome.retry_after_ms) == (kind, scope, wait_ms)
            assert "what it says" in outcome.detail


def test_a_bad_value_is_the_emoji_only_where_the_details_say_so() -> None:
    emoji = failure(400, 131009, "(#131009) Parameter value is not valid", "Emoji is not supported")
    old = failure(400, 131009, "(#131009) Parameter value is not valid", "Message is older than 30 days")
    assert ADAPTER.outcome(SET, emoji).kind is K.INVALID_REACTION
    assert ADAPTER.outcome(SET, old).kind is K.BAD_REQUEST
    assert ADAPTER.outcome(TYPING, old).kind is K.BAD_REQUEST
    assert ADAPTER.outcome(CLEAR, emoji).kind is K.BAD_REQUEST


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, K.AUTH), (403, K.FORBIDDEN), (404, K.BAD_REQUEST), (429, K.RATE_LIMITED), (500, K.TRANSIENT)],
)
def test_an_unknown_code_has_the_class_of_its_status(status: int, kind: OutcomeKind) -> None:
    assert ADAPTER.outcome(SET, failure(status, 999_999)).kind is kind
    assert ADAPTER.outcome(SET, answer(status, b"<html>")).kind is kind
