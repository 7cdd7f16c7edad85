"""What the exceptions and answers of the usual clients mean: by names alone, and with the real classes where they are there."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from actors.presence.terms import Outcome, OutcomeKind
from actors.sdk import sdk_outcome, to_call_outcome, to_outcome
from protocol.client.execution import Callbacks, CallOutcome, plain_outcome
from protocol.events import Call

SET = Call(call_id="1", account="a", conversation="5", message="7", emoji="👍", op="set", deadline_ms=1_000)


def kind(thing: object) -> tuple[str, int | None] | None:
    found = sdk_outcome(SET, thing)
    return None if found is None else (found.outcome, found.retry_after_ms)


def fake(module: str, name: str, base: type = Exception, **attributes: Any) -> Any:
    """An instance of a class with this name, in this module."""
    made = type(name, (base,), {"__module__": module})()
    for key, value in attributes.items():
        setattr(made, key, value)
    return made


class Http:
    def __init__(self, status: int, data: Any = None, **headers: str) -> None:
        self.status = self.status_code = status
        self.data = data
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


@pytest.mark.parametrize(
    ("thing", "meaning"),
    [
        (fake("telegram.error", "RetryAfter", _retry_after=timedelta(seconds=3)), ("rate_limited", 3_000)),
        (fake("telegram.error", "BadRequest", message="Reaction_invalid"), ("invalid_reaction", None)),
        (fake("telegram.error", "BadRequest", message="Message to react not found"), ("gone", None)),
        (fake("telegram.error", "Forbidden", message="Forbidden: bot was kicked"), ("forbidden", None)),
        (fake("telegram.error", "ChatMigrated", new_chat_id=1), ("gone", None)),
        (fake("telegram.error", "TimedOut"), ("unknown", None)),
        (fake("telegram.error", "InvalidToken"), ("auth", None)),
        (fake("telegram.error", "NetworkError"), ("transient", None)),
        (fake("aiogram.exceptions", "TelegramRetryAfter", retry_after=5), ("rate_limited", 5_000)),
        (fake("aiogram.exceptions", "TelegramBadRequest", message="Bad Request: REACTION_INVALID"), ("invalid_reaction", None)),
        (fake("aiogram.exceptions", "TelegramUnauthorizedError", message="Unauthorized"), ("auth", None)),
        (fake("aiogram.exceptions", "TelegramServerError", message="Bad Gateway"), ("transient", None)),
        (fake("aiogram.exceptions", "TelegramNetworkError", message="timeout"), ("unknown", None)),
        (
            fake("discord.errors", "HTTPException", status=403, code=50013, text="Missing Permissions", response=Http(403)),
            ("forbidden", None),
        ),
        (
            fake("discord.errors", "HTTPException", status=400, code=10014, text="Unknown Emoji", response=Http(400)),
            ("invalid_reaction", None),
        ),
        (
            fake("discord.errors", "HTTPException", status=429, code=0, text="", response=Http(429, Retry_After="1.5", Via="1.1 x")),
            ("rate_limited", 1_500),
        ),
        (  # not from the API itself: the edge has closed the door
            fake("discord.errors", "HTTPException", status=429, code=0, text="", response=Http(429, Retry_After="1.5")),
            ("rate_limited", 300_000),
        ),
        (fake("discord.errors", "RateLimited", retry_after=2.5), ("rate_limited", 2_500)),
        (fake("slack_sdk.errors", "SlackApiError", response=Http(200, {"ok": False, "error": "already_reacted"})), ("already_done", None)),
        (
            fake("slack_sdk.errors", "SlackApiError", response=Http(429, {"error": "ratelimited"}, Retry_After="30")),
            ("rate_limited", 30_000),
        ),
        (fake("slack_sdk.errors", "SlackApiError", response={"ok": False, "error": "invalid_auth"}), ("auth", None)),
        (
            fake("nio.responses", "ErrorResponse", object, status_code="M_LIMIT_EXCEEDED", message="", retry_after_ms=700),
            ("rate_limited", 700),
        ),
        (fake("nio.responses", "ErrorResponse", object, status_code="M_FORBIDDEN", message="", retry_after_ms=None), ("forbidden", None)),
        (fake("nio.responses", "ErrorResponse", object, status_code=None, message="", retry_after_ms=None), ("bad_request", None)),
        (fake("nio.exceptions", "LocalProtocolError"), ("bad_request", None)),
        (fake("httpx", "ConnectError"), ("transient", None)),
        (fake("aiohttp.client_exceptions", "ClientError"), ("unknown", None)),
        (fake("somewhere", "Error"), None),
        (None, None),
        (ValueError(), None),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, tuple) else "",
)  # fmt: skip
def test_a_refusal_means_what_the_platform_would_have_meant(
    thing: object, meaning: tuple[str, int | None] | None
) -> None:
    assert kind(thing) == meaning


def test_what_never_left_may_be_tried_again() -> None:
    error = fake("telegram.error", "TimedOut")
    error.__cause__ = fake("httpx", "ConnectTimeout")
    assert kind(error) == ("transient", None)


def test_a_subclass_of_a_known_class_is_known() -> None:
    class NotFound(type(fake("discord.errors", "HTTPException"))):  # type: ignore[misc]
        status, code, text, response = 404, 10008, "Unknown Message", Http(404)

    assert kind(NotFound()) == ("gone", None)


def test_a_sent_matrix_event_is_the_marks_handle() -> None:
    assert sdk_outcome(SET, fake("nio.responses", "Response", object, event_id="$1")) == CallOutcome(handle="$1")
    assert sdk_outcome(SET, fake("nio.responses", "Response", object)) == CallOutcome()


def test_no_text_of_a_client_is_passed_on() -> None:
    error = fake("telegram.error", "InvalidToken", message="The token `1:SECRET` was rejected")
    found = sdk_outcome(SET, error)
    assert found is not None
    assert "SECRET" not in found.detail
    assert "SECRET" not in plain_outcome(ConnectionError("https://x/botSECRET")).detail


def test_the_words_of_clients_and_ours_are_the_same() -> None:
    for each in OutcomeKind:
        outcome = Outcome(each, "h", 5, "route", "why")
        assert to_outcome(to_call_outcome(outcome)) == outcome


# --- without a known client --------------------------------------------------------------------------------------


class StatusError(Exception):
    def __init__(self, status: int) -> None:
        self.status = status


@pytest.mark.parametrize(
    ("thing", "outcome"),
    [
        (None, "ok"),
        (True, "ok"),
        (object(), "ok"),
        (False, "bad_request"),
        (StatusError(401), "auth"),
        (StatusError(403), "forbidden"),
        (StatusError(404), "gone"),
        (StatusError(408), "transient"),
        (StatusError(429), "rate_limited"),
        (StatusError(400), "bad_request"),
        (StatusError(503), "transient"),
        (TimeoutError(), "unknown"),
        (ConnectionResetError(), "transient"),
        (KeyError("mine"), "bad_request"),
    ],
    ids=str,
)
def test_what_a_value_or_an_exception_means_by_itself(thing: object, outcome: str) -> None:
    assert plain_outcome(thing).outcome == outcome


def test_how_long_to_wait_is_found_in_any_of_its_forms() -> None:
    def error(**attributes: Any) -> Exception:
        made = Exception()
        for name, value in attributes.items():
            setattr(made, name, value)
        return made

    forms: list[dict[str, Any]] = [
        {"retry_after": 2}, {"retry_after": 2.0}, {"retry_after": timedelta(seconds=2)}, {"retry_after_ms": 2_000},
    ]  # fmt: skip
    assert {plain_outcome(error(**form)).retry_after_ms for form in forms} == {2_000}
    assert plain_outcome(error(retry_after="soon")).outcome == "bad_request"
    assert plain_outcome(error(response=Http(403))).outcome == "forbidden"


def test_text_is_the_handle_and_an_outcome_is_itself() -> None:
    callbacks = Callbacks(lambda call: None)
    assert callbacks.judge(SET, "$1") == CallOutcome(handle="$1")
    assert callbacks.judge(SET, CallOutcome("gone")) == CallOutcome("gone")
    broken = Callbacks(outcome_of=lambda call, thing: 1 / 0)  # type: ignore[arg-type,return-value]
    assert broken.judge(SET, None).outcome == "bad_request"
    with pytest.raises(ValueError, match="'splendid' is no outcome"):
        CallOutcome("splendid")


# --- with the real classes ---------------------------------------------------------------------------------------


def real(module: str, make: Callable[[Any], object]) -> object:
    return make(pytest.importorskip(module, reason="in the extra sdk"))


@pytest.mark.parametrize(
    ("module", "make", "meaning"),
    [
        ("telegram.error", lambda m: m.BadRequest("Reaction_invalid"), ("invalid_reaction", None)),
        ("telegram.error", lambda m: m.InvalidToken(), ("auth", None)),
        ("telegram.error", lambda m: m.TimedOut(), ("unknown", None)),
        ("aiogram.exceptions", lambda m: m.TelegramRetryAfter(None, "x", 5), ("rate_limited", 5_000)),
        ("aiogram.exceptions", lambda m: m.TelegramForbiddenError(None, "Forbidden: bot was kicked"), ("forbidden", None)),
        ("discord.errors", lambda m: m.NotFound(Http(404), {"code": 10008, "message": "Unknown Message"}), ("gone", None)),
        ("discord.errors", lambda m: m.RateLimited(2.5), ("rate_limited", 2_500)),
        ("nio", lambda m: m.RoomSendError("no", "M_FORBIDDEN"), ("forbidden", None)),
        ("nio", lambda m: m.RoomSendResponse("$1", "!r"), ("ok", None)),
        ("slack_sdk.errors", lambda m: m.SlackApiError("x", {"ok": False, "error": "invalid_name"}), ("invalid_reaction", None)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_real_classes_are_known(
    module: str, make: Callable[[Any], object], meaning: tuple[str, int | None]
) -> None:
    Http.reason = "reason"  # type: ignore[attr-defined]
    assert kind(real(module, make)) == meaning


def test_python_telegram_bots_flood_limit_is_read_without_its_warning(recwarn: pytest.WarningsRecorder) -> None:
    errors = pytest.importorskip("telegram.error", reason="in the extra sdk")
    with pytest.warns(DeprecationWarning, match="retry_after"):
        error = errors.RetryAfter(3)
    recwarn.clear()
    assert kind(error) == ("rate_limited", 3_000)
    assert not [each for each in recwarn if "retry_after" in str(each.message)]
