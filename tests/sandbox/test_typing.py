"""Typing indicators: their lifetimes, ends and places."""

from __future__ import annotations

from actors.presence.terms import OutcomeKind
from tests.sandbox.stage import ALREADY, OK, Stage


def test_typing_ends_by_itself_exactly_when_its_lifetime_is_over() -> None:
    stage = Stage(typing_lifetime_ms=5_000)
    stage.type()
    stage.now_ms = 4_999
    assert stage.typing() == [("c", None, "bot", 1)]
    stage.now_ms = 5_000
    assert stage.typing() == []
    assert stage.chats.view(5_000).typing == 0


def test_a_refresh_gives_typing_its_whole_lifetime_again() -> None:
    stage = Stage(typing_lifetime_ms=5_000)
    stage.type("a")
    stage.type("b")
    stage.now_ms = 3_000
    assert stage.type("a") is OK
    stage.now_ms = 7_000
    assert stage.typing() == [("a", None, "bot", 1_000)]


def test_a_stop_ends_typing_and_the_next_one_finds_nothing_to_do() -> None:
    stage = Stage()
    stage.type()
    assert stage.stop() is OK
    assert stage.stop() is ALREADY
    assert stage.typing() == []


def test_a_stop_after_the_lifetime_finds_nothing_to_do() -> None:
    stage = Stage(typing_lifetime_ms=5_000)
    stage.type()
    stage.now_ms = 5_000
    assert stage.stop() is ALREADY


def test_a_platform_without_a_stop_refuses_it_and_typing_goes_on() -> None:
    stage = Stage(typing_stop=False)
    stage.type()
    assert stage.stop() is OutcomeKind.BAD_REQUEST
    assert len(stage.typing()) == 1


def test_lasting_typing_stays_until_it_is_stopped() -> None:
    stage = Stage(typing_lifetime_ms=0)
    assert stage.type() is OK
    assert stage.type() is ALREADY
    stage.now_ms = 10**9
    assert stage.typing() == [("c", None, "bot", None)]
    assert stage.stop() is OK


def test_threads_and_accounts_type_apart() -> None:
    stage = Stage()
    stage.type()
    stage.type(thread="7")
    stage.type(who="other")
    stage.stop(thread="7")
    assert {(thread, who) for _, thread, who, _ in stage.typing()} == {(None, "bot"), (None, "other")}


def test_the_bots_own_post_ends_its_typing_in_that_thread_only() -> None:
    stage = Stage()
    stage.type(thread="7")
    stage.type()
    stage.type(thread="7", who="other")
    stage.post(who="ana", thread="7")
    stage.post(who="bot", thread="7")  # a user who bears the same name
    assert len(stage.typing()) == 3
    stage.post(who="bot", thread="7", bot=True)
    assert {(thread, who) for _, thread, who, _ in stage.typing()} == {(None, "bot"), ("7", "other")}


def test_where_posts_do_not_end_typing_it_goes_on() -> None:
    stage = Stage(post_clears_typing=False)
    stage.type()
    stage.post(who="bot", bot=True)
    assert len(stage.typing()) == 1


def test_typing_for_direct_chats_only_is_refused_in_what_was_said_to_be_a_group() -> None:
    stage = Stage(typing_in="direct")
    stage.post(chat="group", direct=False)
    stage.post(chat="ana", direct=True)
    assert stage.type("group") is OutcomeKind.FORBIDDEN
    assert stage.type("ana") is OK
    assert stage.type("nobody said") is OK


def test_typing_in_an_unknown_chat_is_gone_only_where_the_service_is_strict() -> None:
    assert Stage(strict_messages=True).type() is OutcomeKind.GONE
    assert Stage().type() is OK
