"""Sessions: several connections, reconnects, and the memory of event ids."""

from __future__ import annotations

import pytest

from actors import sessions as module
from actors.messages import SessionDown, SessionUp
from actors.sessions import REMEMBERED_IDS, REMEMBERED_S, Session, Sessions
from tests.server.world import Router


class Clock:
    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def router() -> Router:
    return Router()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sessions(router: Router, clock: Clock) -> Sessions:
    return Sessions(router, clock)


def test_the_router_hears_of_the_first_connection_and_of_the_loss_of_the_last(
    sessions: Sessions, router: Router
) -> None:
    first = sessions.join("u", "bot", told=True)
    second = sessions.join("u", "bot", told=True)
    assert first is second
    sessions.leave(first)
    assert router.sessions == [SessionUp("u/bot")]
    sessions.leave(second)
    assert router.sessions == [SessionUp("u/bot"), SessionDown("u/bot")]
    assert len(sessions) == 0


def test_a_session_goes_on_over_a_reconnect(sessions: Sessions) -> None:
    session = sessions.join("u", "bot", told=True)
    assert not session.is_repeat("e1")
    sessions.leave(session)
    again = sessions.join("u", "bot", told=True)
    assert again is session
    assert again.is_repeat("e1")
    assert not again.is_repeat("e2")


def test_the_same_name_of_another_principal_is_another_session(sessions: Sessions) -> None:
    one = sessions.join("token-1", "bot", told=True)
    other = sessions.join("token-2", "bot", told=True)
    one.is_repeat("e1")
    assert not other.is_repeat("e1")
    assert (one.name, other.name) == ("bot", "bot")


def test_ids_are_remembered_for_ten_minutes_after_the_end(sessions: Sessions, clock: Clock) -> None:
    for late_s, known in ((REMEMBERED_S - 1, True), (REMEMBERED_S + 1, False)):
        session = sessions.join("u", "bot", told=True)
        session.is_repeat("e1")
        sessions.leave(session)
        clock.now_s += late_s
        again = sessions.join("u", "bot", told=True)
        assert again.is_repeat("e1") is known
        sessions.leave(again)


def test_only_the_last_ids_are_remembered() -> None:
    session = Session("u/bot", "bot")
    for number in range(REMEMBERED_IDS + 1):
        assert not session.is_repeat(str(number))
    assert session.is_repeat("1")
    assert session.is_repeat(str(REMEMBERED_IDS))
    assert not session.is_repeat("0")


def test_sessions_that_nobody_can_resume_leave_nothing(sessions: Sessions) -> None:
    anonymous = sessions.join("u", None, told=False)
    anonymous.is_repeat("e1")
    sessions.leave(anonymous)
    sessions.leave(sessions.join("u", "no ids", told=True))
    assert sessions.remembered == 0


def test_a_session_whose_name_was_given_out_can_be_resumed(sessions: Sessions) -> None:
    session = sessions.join("u", None, told=True)
    session.is_repeat("e1")
    sessions.leave(session)
    assert sessions.join("u", session.name, told=True).is_repeat("e1")


def test_the_memory_of_ended_sessions_is_bounded(
    sessions: Sessions, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REMEMBERED_SESSIONS", 3)
    for number in range(5):
        session = sessions.join("u", str(number), told=True)
        session.is_repeat("e1")
        sessions.leave(session)
        clock.now_s += 1
    assert sessions.remembered == 3
    assert not sessions.join("u", "1", told=True).is_repeat("e1")
    assert sessions.join("u", "4", told=True).is_repeat("e1")


def test_ids_that_an_earlier_process_has_seen_are_known_for_ten_minutes(sessions: Sessions, clock: Clock) -> None:
    sessions.remember({"u/bot": {"e1": None}, "u/idle": {"e2": None}})
    session = sessions.join("u", "bot", told=True)
    assert session.is_repeat("e1")
    assert not session.is_repeat("e2")
    clock.now_s += REMEMBERED_S + 1
    sessions.leave(session)
    assert not sessions.join("u", "idle", told=True).is_repeat("e2")
