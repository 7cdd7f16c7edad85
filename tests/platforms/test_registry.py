"""The registry and the rows in it."""

from __future__ import annotations

import pytest

from actors.platforms import answers, registry
from actors.platforms.spec import Credentials, Response
from actors.presence.limits import SCOPES
from actors.presence.pacing import Limit
from actors.presence.terms import Command, Op, Outcome, OutcomeKind


@pytest.mark.parametrize("name", sorted(registry.PLATFORMS))
def test_each_platform_has_a_row_that_makes_sense(name: str) -> None:
    spec = registry.adapter(name).spec
    assert spec.name == name
    assert spec.source
    assert spec.ids
    assert spec.rules.reactions in ("replace", "add_remove", "none")
    assert spec.concurrency >= 1
    assert spec.base_url is None or spec.base_url.startswith("https://")
    if spec.rules.typing and spec.rules.typing_lifetime_ms:
        assert 0 <= spec.keepalive_ms < spec.rules.typing_lifetime_ms
        assert 0 < spec.typing_deadline_ms <= max(3_000, spec.keepalive_ms)
    for scope, limit in spec.limits.items():
        assert scope.partition(".")[0] in SCOPES
        assert isinstance(limit, Limit)
    if spec.emoji_allowed is not None:
        assert all(registry.adapter(name).normalise(emoji) == emoji for emoji in spec.emoji_allowed)


@pytest.mark.parametrize("name", sorted(set(registry.PLATFORMS) - {"sandbox", "callback", "remote"}))
def test_each_chat_service_says_what_a_bot_needs_there_and_what_it_cannot_show(name: str) -> None:
    spec = registry.adapter(name).spec
    assert spec.needs
    assert spec.cannot


@pytest.mark.parametrize("name", sorted(registry.PLATFORMS))
@pytest.mark.parametrize("body", [b"", b"{", b"[" * 100_000, b"\xff\xfe", b'{"ok":true', b"null", b'"ok"'])
@pytest.mark.parametrize("status", [200, 204, 302, 400, 401, 403, 404, 408, 409, 418, 429, 500, 503, 599])
def test_no_answer_is_too_strange_for_an_outcome(name: str, body: bytes, status: int) -> None:
    adapter = registry.adapter(name)
    for op in Op:
        command = Command(op, "!c:d", "1", "$m", "👀", None, idempotency_key="k")
        response = Response(status, {"retry-after": "nan"}, body)
        assert isinstance(adapter.outcome(command, response), Outcome)
        assert adapter.follow_up(command, Credentials(), response) is None


def test_an_unknown_platform_is_named_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=rf"unknown platform 'icq'; known are {', '.join(sorted(registry.PLATFORMS))}"):
        registry.adapter("icq")


# --- what platforms have in common ------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (200, OutcomeKind.OK),
        (204, OutcomeKind.OK),
        (301, OutcomeKind.BAD_REQUEST),
        (400, OutcomeKind.BAD_REQUEST),
        (401, OutcomeKind.AUTH),
        (403, OutcomeKind.FORBIDDEN),
        (404, OutcomeKind.BAD_REQUEST),
        (408, OutcomeKind.TRANSIENT),
        (429, OutcomeKind.RATE_LIMITED),
        (500, OutcomeKind.TRANSIENT),
        (524, OutcomeKind.TRANSIENT),
    ],
)
def test_each_status_has_its_class(status: int, kind: OutcomeKind) -> None:
    assert answers.by_status(Response(status)).kind is kind


@pytest.mark.parametrize(
    ("value", "ms"),
    [(5, 5_000), (0, 0), (0.0001, 1), (1.5, 1_500), (-1, None), (True, None), ("5", None), (None, None),
     (float("nan"), None), (float("inf"), None), ([], None),
     (1e307, 604_800_000_000), (10**400, 604_800_000_000)],
)  # fmt: skip
def test_a_waiting_time_is_rounded_up_or_none(value: object, ms: int | None) -> None:
    assert answers.duration_ms(value, 1_000) == ms


@pytest.mark.parametrize(
    ("header", "ms"), [("5", 5_000), ("0.25", 250), (" 3 ", 3_000), ("", None), ("soon", None), ("inf", None)]
)
def test_the_retry_after_header_is_seconds(header: str, ms: int | None) -> None:
    assert answers.retry_after_ms({"retry-after": header}) == ms
