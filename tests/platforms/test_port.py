"""`HttpPlatform` without sockets: each call has one outcome, whatever adapter and transport do."""

from __future__ import annotations

import json
import logging
import time
from dataclasses import replace
from typing import Any

import gevent
import pytest

from actors.platforms import port
from actors.platforms.matrix import MatrixAdapter
from actors.platforms.port import HttpPlatform
from actors.platforms.spec import Credentials, Request, Response
from actors.platforms.telegram import TelegramAdapter
from actors.platforms.transport import NoAnswer, NotSent
from actors.presence.terms import OK, Command, Op, Outcome, OutcomeKind
from tests.platforms.fakes import FunctionTransport, outcome_of

pytestmark = pytest.mark.real

K = OutcomeKind
TOKEN = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"
GROUP = "-1001234567890"
SET = Command(Op.SET, GROUP, None, "42", "👀")
TYPING = Command(Op.TYPING_START, GROUP, "7")
DONE = Response(200, {}, b'{"ok":true,"result":true}')
NO_THREAD = Response(400, {}, b'{"ok":false,"error_code":400,"description":"Bad Request: message thread not found"}')


def telegram(answer: Any) -> tuple[HttpPlatform, FunctionTransport]:
    transport = FunctionTransport(answer if callable(answer) else lambda request: answer)
    return HttpPlatform(TelegramAdapter(), Credentials(token=TOKEN), transport), transport


def failing(error: BaseException) -> Any:
    def answer(request: Request) -> Response:
        raise error

    return answer


def test_a_call_is_one_request_and_one_outcome() -> None:
    platform, transport = telegram(DONE)
    assert outcome_of(platform, SET) == OK
    assert [request.path.rpartition("/")[2] for request in transport.seen] == ["setMessageReaction"]
    assert platform.calls == 0


@pytest.mark.parametrize(
    ("error", "kind", "detail"),
    [
        (NotSent("connect: ECONNREFUSED"), K.TRANSIENT, "connect: ECONNREFUSED"),
        (NoAnswer("deadline"), K.UNKNOWN, "deadline"),
        (ValueError(f"bad path /bot{TOKEN}/x"), K.BAD_REQUEST, "ValueError in answer"),
        (RecursionError(TOKEN), K.BAD_REQUEST, "RecursionError in answer"),
    ],
)
def test_each_way_to_fail_has_its_outcome(error: Exception, kind: OutcomeKind, detail: str) -> None:
    platform, _ = telegram(failing(error))
    outcome = outcome_of(platform, SET)
    assert (outcome.kind, outcome.detail) == (kind, detail)


def test_a_fault_of_ours_is_logged_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    platform, _ = telegram(failing(ValueError(f"bad path /bot{TOKEN}/x")))
    with caplog.at_level(logging.DEBUG):
        outcome_of(platform, SET)
    assert "telegram: a set call failed inside livesign: ValueError in answer" in caplog.text
    assert TOKEN not in caplog.text


def test_what_needs_no_request_is_answered_without_one() -> None:
    platform, transport = telegram(DONE)
    assert outcome_of(platform, replace(SET, message="no number")).kind is K.BAD_REQUEST
    assert transport.seen == []


def test_an_error_in_the_receiver_of_an_outcome_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    platform, _ = telegram(DONE)

    def done(outcome: Outcome) -> None:
        raise ValueError(TOKEN)

    platform.call(SET, 1_000, done)
    gevent.sleep(0.001)
    assert "could not be delivered: ValueError in done" in caplog.text
    assert TOKEN not in caplog.text
    assert outcome_of(platform, SET) == OK


# --- no token in any text ---------------------------------------------------------------


@pytest.mark.parametrize("form", [TOKEN, TOKEN.replace(":", "%3A")])
def test_a_token_that_a_platform_repeats_is_taken_out(form: str) -> None:
    body = {"ok": False, "error_code": 404, "description": f"Not Found: /bot{form}/sendChatAction\r\nX"}
    platform, _ = telegram(Response(404, {}, json.dumps(body).encode()))
    outcome = outcome_of(platform, TYPING)
    assert outcome.kind is K.AUTH
    assert outcome.detail == "404 Not Found: /bot***/sendChatAction X"


def test_a_detail_is_short() -> None:
    body = {"ok": False, "error_code": 400, "description": "x" * 10_000}
    platform, _ = telegram(Response(400, {}, json.dumps(body).encode()))
    assert len(outcome_of(platform, SET).detail) == port.MAX_DETAIL


def test_a_token_at_the_end_of_a_detail_is_taken_out_before_it_is_cut() -> None:
    body = {"ok": False, "error_code": 400, "description": "x" * (port.MAX_DETAIL - 10) + TOKEN}
    platform, _ = telegram(Response(400, {}, json.dumps(body).encode()))
    assert TOKEN[:5] not in outcome_of(platform, SET).detail


# --- follow-ups -------------------------------------------------------------------------


def threadless(request: Request) -> Response:
    return NO_THREAD if b"message_thread_id" in request.body else DONE


def test_typing_in_a_refused_thread_goes_on_without_it() -> None:
    platform, transport = telegram(threadless)
    assert outcome_of(platform, TYPING) == OK
    assert [b"thread" in request.body for request in transport.seen] == [True, False]


def test_and_the_next_time_at_once() -> None:
    platform, transport = telegram(threadless)
    for _ in range(3):
        assert outcome_of(platform, TYPING) == OK
    assert [b"thread" in request.body for request in transport.seen] == [True, False, False, False]
    outcome_of(platform, replace(TYPING, thread="8"))
    assert b"thread" in transport.seen[-2].body


def test_marks_of_a_moved_target_are_not_moved() -> None:
    moved = {
        "ok": False,
        "error_code": 400,
        "description": "Bad Request: group chat was upgraded to a supergroup chat",
        "parameters": {"migrate_to_chat_id": -100999},
    }

    def answer(request: Request) -> Response:
        return DONE if b"-100999" in request.body else Response(400, {}, json.dumps(moved).encode())

    platform, transport = telegram(answer)
    typing = Command(Op.TYPING_START, "-5001")
    assert [outcome_of(platform, typing) for _ in range(2)] == [OK, OK]
    assert len(transport.seen) == 3
    assert outcome_of(platform, Command(Op.SET, "-5001", None, "1", "👀")).kind is K.GONE


def test_a_platform_that_moves_for_ever_is_not_followed_for_ever() -> None:
    ids = iter(range(-1, -100, -1))

    def answer(request: Request) -> Response:
        body = {"ok": False, "error_code": 400, "parameters": {"migrate_to_chat_id": next(ids)}}
        return Response(400, {}, json.dumps(body).encode())

    platform, transport = telegram(answer)
    assert outcome_of(platform, TYPING).kind is K.BAD_REQUEST
    assert len(transport.seen) == 1 + port.MAX_FOLLOW_UPS


def test_learned_targets_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port, "MAX_LEARNED", 2)
    platform, transport = telegram(threadless)
    for thread in ("7", "8", "9", "9", "7"):
        outcome_of(platform, replace(TYPING, thread=thread))
    assert len(transport.seen) == 2 + 2 + 2 + 1 + 2


# --- introduction -----------------------------------------------------------------------

ROOM = "!r:example.org"
MATRIX_TYPING = Command(Op.TYPING_START, ROOM, idempotency_key="k")
ME = Response(200, {}, b'{"user_id":"@bot:example.org"}')


class Homeserver:
    """Counts introductions; ``whoami`` is its answer, or raises."""

    def __init__(self, whoami: Any = ME) -> None:
        self.whoami = whoami
        self.asked = 0
        self.transport = FunctionTransport(self.answer)
        credentials = Credentials(token="syt_secret", base_url="http://hs")
        self.platform = HttpPlatform(MatrixAdapter(), credentials, self.transport)

    def answer(self, request: Request) -> Response:
        if request.path.endswith("/whoami"):
            self.asked += 1
            gevent.sleep(0)
            if isinstance(self.whoami, Exception):
                raise self.whoami
            assert isinstance(self.whoami, Response)
            return self.whoami
        return Response(200, {}, b"{}")


def test_the_account_is_introduced_once_before_its_first_calls() -> None:
    home = Homeserver()
    outcomes: list[Outcome] = []
    for _ in range(5):
        home.platform.call(MATRIX_TYPING, 1_000, outcomes.append)
    gevent.sleep(0.01)
    assert outcomes == [OK] * 5
    assert home.asked == 1
    assert all("/typing/%40bot%3Aexample.org" in request.path for request in home.transport.seen[1:])


@pytest.mark.parametrize(
    ("whoami", "kind"),
    [
        (Response(401, {}, b'{"errcode":"M_UNKNOWN_TOKEN"}'), K.AUTH),
        (Response(502), K.TRANSIENT),
        (NotSent("connect: deadline"), K.TRANSIENT),
        (NoAnswer("deadline"), K.TRANSIENT),
    ],
)
def test_without_an_introduction_the_call_is_not_made_and_the_next_one_tries_again(
    whoami: Any, kind: OutcomeKind
) -> None:
    home = Homeserver(whoami)
    assert outcome_of(home.platform, MATRIX_TYPING).kind is kind
    assert len(home.transport.seen) == 1
    home.whoami = ME
    assert outcome_of(home.platform, MATRIX_TYPING) == OK


def test_waiting_for_another_call_s_introduction_ends_at_the_own_deadline() -> None:
    home = Homeserver()
    release = gevent.event.Event()

    def slow(request: Request) -> Response:
        release.wait(2)
        return home.answer(request)

    home.transport.answer = slow
    outcomes: list[Outcome] = []
    home.platform.call(MATRIX_TYPING, 2_000, outcomes.append)
    gevent.sleep(0)
    assert outcome_of(home.platform, MATRIX_TYPING, deadline_ms=20).kind is K.TRANSIENT
    release.set()
    gevent.sleep(0.01)
    assert outcomes == [OK]


def test_a_call_s_deadline_runs_from_the_moment_it_is_asked_for() -> None:
    platform, transport = telegram(DONE)
    outcomes: list[Outcome] = []
    platform.call(SET, 10, outcomes.append)
    time.sleep(0.02)  # the hub is busy with something else
    gevent.sleep(0.001)
    assert [(outcome.kind, outcome.detail) for outcome in outcomes] == [(K.TRANSIENT, "deadline")]
    assert transport.seen == []


# --- end --------------------------------------------------------------------------------


def test_closing_ends_every_call_with_an_unknown_outcome() -> None:
    def hang(request: Request) -> Response:
        gevent.sleep(60)
        return DONE

    platform, transport = telegram(hang)
    outcomes: list[Outcome] = []
    for _ in range(3):
        platform.call(SET, 60_000, outcomes.append)
    gevent.sleep(0.001)
    platform.call(SET, 60_000, outcomes.append)  # has not had its first step
    assert platform.calls == 4
    platform.close()
    assert outcomes == []
    gevent.sleep(0.001)
    assert [outcome.kind for outcome in outcomes] == [K.UNKNOWN] * 4
    assert (platform.calls, transport.closed, len(transport.seen)) == (0, True, 3)


def test_a_closed_platform_makes_no_call() -> None:
    platform, transport = telegram(DONE)
    platform.close()
    platform.close()
    assert outcome_of(platform, SET).kind is K.TRANSIENT
    assert transport.seen == []


def test_a_platform_without_a_base_url_needs_one() -> None:
    with pytest.raises(ValueError, match="needs a base_url"):
        HttpPlatform(MatrixAdapter(), Credentials(token="t"))
