"""The whole Telegram path over real HTTP, against the stub: what users see, and every way for a call to go
wrong."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

import gevent
import pytest

from actors.platforms.port import HttpPlatform
from actors.platforms.registry import adapter
from actors.platforms.spec import Credentials
from actors.presence.terms import OK, Command, Op, Outcome, OutcomeKind
from tests.platforms.fakes import outcome_of
from tests.telegram_stub import TOKEN, Answer, TelegramStub, refusal

pytestmark = pytest.mark.real

K = OutcomeKind
GROUP = "-1001234567890"
CHAT = int(GROUP)
SET = Command(Op.SET, GROUP, None, "42", "👀")
CLEAR = Command(Op.CLEAR, GROUP, None, "42")
TYPING = Command(Op.TYPING_START, GROUP)


@pytest.fixture
def stub() -> Iterator[TelegramStub]:
    with TelegramStub() as running:
        yield running


def platform_for(stub: TelegramStub, token: str = TOKEN) -> HttpPlatform:
    return HttpPlatform(adapter("telegram"), Credentials(token=token, base_url=stub.url))


@pytest.fixture
def platform(stub: TelegramStub) -> Iterator[HttpPlatform]:
    made = platform_for(stub)
    yield made
    made.close()


def test_a_run_shows_its_marks_and_typing_on_one_connection(stub: TelegramStub, platform: HttpPlatform) -> None:
    for emoji in ("👀", "🤔", "👨\u200d💻", "⚡\ufe0f"):
        assert outcome_of(platform, Command(Op.SET, GROUP, None, "42", emoji)) == OK
    assert stub.reactions == {(CHAT, 42): ["⚡"]}
    assert outcome_of(platform, TYPING) == OK
    assert outcome_of(platform, CLEAR) == OK
    assert stub.reactions == {(CHAT, 42): []}
    assert stub.typing == [(CHAT, None)]
    assert stub.connections == 1


def test_the_general_topic_and_the_others_are_told_apart(stub: TelegramStub, platform: HttpPlatform) -> None:
    stub.topics[CHAT] = {1, 7}
    for thread in (None, "7", "1"):
        assert outcome_of(platform, Command(Op.TYPING_START, GROUP, thread, forum=True)) == OK
    assert stub.typing == [(CHAT, 1), (CHAT, 7), (CHAT, 1)]


def test_a_deleted_topic_is_gone_and_typing_shows_nowhere_else(stub: TelegramStub, platform: HttpPlatform) -> None:
    stub.topics[CHAT] = {1, 8}
    assert outcome_of(platform, Command(Op.TYPING_START, GROUP, "7", forum=True)).kind is K.GONE
    assert (stub.typing, len(stub.calls)) == ([], 1)


def test_a_thread_in_a_chat_without_topics_is_left_out(stub: TelegramStub, platform: HttpPlatform) -> None:
    private = Command(Op.TYPING_START, "817", "5")
    assert [outcome_of(platform, private) for _ in range(2)] == [OK, OK]
    assert stub.typing == [(817, None), (817, None)]
    assert len(stub.calls) == 3


def test_an_upgraded_group_is_followed_by_typing_only(stub: TelegramStub, platform: HttpPlatform) -> None:
    stub.upgraded[-5001] = CHAT
    assert outcome_of(platform, Command(Op.TYPING_START, "-5001")) == OK
    assert stub.typing == [(CHAT, None)]
    assert outcome_of(platform, Command(Op.SET, "-5001", None, "42", "👀")).kind is K.GONE
    assert stub.reactions == {}


def test_a_deleted_message_is_gone(stub: TelegramStub, platform: HttpPlatform) -> None:
    stub.deleted.add((CHAT, 42))
    assert outcome_of(platform, SET).kind is K.GONE


def test_a_wrong_token_is_auth_whatever_its_form(stub: TelegramStub) -> None:
    for token in ("424242:AAwrong", "nonsense"):
        platform = platform_for(stub, token)
        assert outcome_of(platform, SET).kind is K.AUTH
        platform.close()


def test_a_flood_limit_carries_its_seconds(stub: TelegramStub, platform: HttpPlatform) -> None:
    stub.script.append(refusal(429, "Too Many Requests: retry after 14", retry_after=14))
    outcome = outcome_of(platform, SET)
    assert (outcome.kind, outcome.retry_after_ms, outcome.scope) == (K.RATE_LIMITED, 14_000, None)
    assert outcome_of(platform, SET) == OK


def test_a_server_error_is_transient_and_leaves_the_connection_usable(
    stub: TelegramStub, platform: HttpPlatform
) -> None:
    stub.script.append(Answer(502, b"<html>Bad Gateway</html>"))
    assert outcome_of(platform, SET).kind is K.TRANSIENT
    assert outcome_of(platform, SET) == OK
    assert stub.connections == 1


def test_a_slow_answer_within_the_deadline_counts(stub: TelegramStub, platform: HttpPlatform) -> None:
    stub.script.append(Answer(delay_s=0.05))
    assert outcome_of(platform, SET, deadline_ms=2_000) == OK


@pytest.mark.parametrize("trouble", [Answer(hang=True), Answer(delay_s=0.3)], ids=["hanging", "too slow"])
def test_a_call_without_an_answer_in_time_is_unknown(
    stub: TelegramStub, platform: HttpPlatform, trouble: Answer
) -> None:
    stub.script.append(trouble)
    before = time.monotonic()
    outcome = outcome_of(platform, SET, deadline_ms=80)
    assert (outcome.kind, outcome.detail) == (K.UNKNOWN, "deadline")
    assert time.monotonic() - before < 0.3
    assert outcome_of(platform, SET) == OK
    assert len(stub.calls) == 2


@pytest.mark.parametrize("cut", [0, 10, 60, 100], ids=["at once", "in the status", "in the head", "in the body"])
def test_a_connection_that_closes_mid_way_is_unknown_and_nothing_is_sent_twice(
    stub: TelegramStub, platform: HttpPlatform, cut: int
) -> None:
    stub.script.append(Answer(cut=cut))
    assert outcome_of(platform, SET).kind is K.UNKNOWN
    assert len(stub.calls) == 1
    assert outcome_of(platform, SET) == OK


def test_a_server_that_is_down_is_transient() -> None:
    with TelegramStub() as stopped:
        platform = platform_for(stopped)
        assert outcome_of(platform, SET) == OK
    outcome = outcome_of(platform, SET)
    assert (outcome.kind, outcome.detail) == (K.TRANSIENT, "connect: ECONNREFUSED")
    platform.close()


def test_many_calls_at_once_all_end(stub: TelegramStub, platform: HttpPlatform) -> None:
    outcomes: list[Outcome] = []
    for number in range(100):
        platform.call(Command(Op.SET, GROUP, None, str(number), "👀"), 5_000, outcomes.append)
    with gevent.Timeout(10):
        while platform.calls:
            gevent.sleep(0.002)
    assert outcomes == [OK] * 100
    assert len(stub.reactions) == 100
    assert stub.connections <= 8


def test_the_token_is_in_no_text_after_every_kind_of_failure(
    stub: TelegramStub,
    platform: HttpPlatform,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    path = f"/bot{TOKEN}/setMessageReaction"
    troubles = [
        refusal(401, f"Unauthorized {path}"),
        refusal(404, f"Not Found: {path}"),
        refusal(400, f"Bad Request: {path}"),
        refusal(429, f"Too Many Requests {path}", retry_after=1),
        Answer(500, f"<html>{path}</html>".encode()),
        Answer(302, b"", (("Location", path),)),
        Answer(200, f"<html>{path}</html>".encode()),
        Answer(cut=20),
        Answer(hang=True),
    ]
    texts: list[str] = []
    with caplog.at_level(logging.DEBUG):
        for command in (SET, CLEAR, TYPING):
            stub.script.extend(troubles)
            texts += [repr(outcome_of(platform, command, deadline_ms=150)) for _ in troubles]
        broken = HttpPlatform(adapter("telegram"), Credentials(token=f"{TOKEN}", base_url="http://127.0.0.1:9"))
        texts.append(repr(outcome_of(broken, SET)))
        texts.append(repr(vars(broken)))
        platform.call(SET, 5_000, lambda outcome: texts.append(repr(outcome)))
        stub.script.append(Answer(hang=True))
        gevent.sleep(0.02)
        platform.close()
        gevent.sleep(0.02)
    streams = capfd.readouterr()
    texts += [caplog.text, streams.out, streams.err]
    assert len(texts) == 3 * len(troubles) + 6
    assert not [text for text in texts if TOKEN in text or TOKEN.partition(":")[2] in text]
