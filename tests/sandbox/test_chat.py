"""Marks and messages, and what is forgotten when room gets scarce."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest

from actors.presence.terms import Op, OutcomeKind
from actors.sandbox.chat import MAX_MARKS
from actors.sandbox.shelf import ShelfFullError
from tests.sandbox.stage import ALREADY, OK, Stage

# --- marks ---


def test_where_marks_replace_a_second_one_takes_the_first_ones_place() -> None:
    stage = Stage(reactions="replace")
    assert stage.set("👀") is OK
    assert stage.set("🤔") is OK
    assert stage.marks() == [("bot", "🤔")]


def test_where_marks_are_added_both_stay_in_the_order_of_setting() -> None:
    stage = Stage(reactions="add_remove")
    stage.set("👀")
    stage.set("🤔")
    assert stage.marks() == [("bot", "👀"), ("bot", "🤔")]
    assert stage.remove("👀") is OK
    assert stage.marks() == [("bot", "🤔")]


@pytest.mark.parametrize("reactions", ["replace", "add_remove"])
def test_the_marks_of_others_are_not_touched(reactions: str) -> None:
    stage = Stage(reactions=reactions)
    stage.set("👀", who="other")
    stage.set("👀")
    stage.set("🤔")
    assert stage.clear() is OK
    assert stage.marks() == [("other", "👀")]
    assert stage.remove("👀") is ALREADY
    assert stage.marks() == [("other", "👀")]


@pytest.mark.parametrize("reactions", ["replace", "add_remove"])
def test_a_call_whose_target_holds_already_says_so(reactions: str) -> None:
    stage = Stage(reactions=reactions)
    assert stage.clear() is ALREADY
    stage.set("👀")
    assert stage.set("👀") is ALREADY
    assert stage.remove("🤔") is ALREADY
    assert stage.marks() == [("bot", "👀")]
    assert stage.remove("👀") is OK
    assert stage.remove("👀") is ALREADY


def test_a_platform_without_marks_refuses_them() -> None:
    stage = Stage(reactions="none")
    assert {stage.set("👀"), stage.remove("👀"), stage.clear()} == {OutcomeKind.BAD_REQUEST}


def test_a_message_takes_so_many_marks_and_replacing_needs_no_room() -> None:
    stage = Stage(reactions="replace")
    for number in range(MAX_MARKS):
        assert stage.set("👀", who=f"bot{number}") is OK
    assert stage.set("👀", who="one more") is OutcomeKind.FORBIDDEN
    assert stage.set("👍", who="bot0") is OK
    assert len(stage.marks()) == MAX_MARKS


def test_a_mark_on_an_unknown_message_makes_it_unless_the_service_is_strict() -> None:
    assert Stage().set("👀") is OK
    strict = Stage(strict_messages=True)
    assert strict.set("👀") is OutcomeKind.GONE
    assert strict.set("👀", message=strict.post()) is OK
    assert strict.set("👀", message="other") is OutcomeKind.GONE


def test_looking_for_a_mark_on_an_unknown_message_does_not_make_it() -> None:
    stage = Stage()
    assert stage.clear() is ALREADY
    assert stage.remove("👀") is ALREADY
    assert stage.chats.view(0).chat_count == 0


def test_a_deleted_message_takes_its_marks_along_and_stays_deleted() -> None:
    stage = Stage()
    message = stage.post()
    stage.set("👀", message)
    assert stage.chats.delete("c", message, 0) is True
    assert stage.chats.view(0).marks == 0
    assert stage.set("👀", message) is OutcomeKind.GONE
    assert stage.clear(message) is OutcomeKind.GONE
    assert stage.chats.delete("c", message, 0) is False
    assert stage.chats.view(0).chats[0].messages == []


def test_the_total_of_marks_is_what_is_really_there() -> None:
    stage = Stage(reactions="add_remove")
    for message in ("m", "n"):
        for emoji in ("👀", "🤔", "🔥"):
            stage.set(emoji, message)
    stage.remove("🤔", "m")
    stage.clear("n")
    assert stage.chats.view(0).marks == len(stage.marks("m")) + len(stage.marks("n")) == 2


# --- messages and room ---


def test_messages_are_shown_in_the_order_of_posting_whatever_was_marked_last() -> None:
    stage = Stage()
    first, second = stage.post("one"), stage.post("two")
    stage.set("👀", first)
    assert [m.id for m in stage.chats.view(0).chats[0].messages] == [first, second]


def test_a_posted_message_never_takes_the_name_of_one_that_a_mark_made() -> None:
    stage = Stage()
    for name in ("1", "2", "4"):
        stage.set("👀", name)
    posted = [stage.post() for _ in range(3)]
    assert len({*posted, "1", "2", "4"}) == 6
    assert all(stage.marks(name) == [] for name in posted)


def test_the_chat_with_the_latest_activity_comes_first() -> None:
    stage = Stage()
    for chat in ("a", "b", "c"):
        stage.post(chat=chat)
    stage.set("👀", chat="a")
    stage.type("b")
    assert [chat.id for chat in stage.chats.view(0, recent=2).chats] == ["b", "a"]
    assert stage.chats.view(0, recent=0).chat_count == 3


def test_old_chats_are_forgotten_but_none_with_a_mark_or_typing() -> None:
    stage = Stage(max_chats=10, typing_lifetime_ms=5_000)
    stage.set("👀", chat="marked")
    stage.type("typing")
    for number in range(100):
        stage.post(chat=str(number))
    state = stage.chats.view(0)
    assert state.chat_count == 10
    assert {"marked", "typing", "99"} <= {chat.id for chat in state.chats}
    assert (state.marks, state.typing) == (1, 1)
    stage.clear(chat="marked")
    stage.now_ms = 5_000
    for number in range(100, 200):
        stage.post(chat=str(number))
    assert not {"marked", "typing"} & {chat.id for chat in stage.chats.view(stage.now_ms).chats}


def test_old_messages_are_forgotten_but_none_with_a_mark() -> None:
    stage = Stage(max_messages=5)
    marked = stage.post()
    stage.set("👀", marked)
    for _ in range(50):
        last = stage.post()
    messages = stage.chats.view(0).chats[0].messages
    assert [messages[0].id, messages[-1].id, len(messages)] == [marked, last, 5]


def test_a_message_rid_of_all_its_marks_at_once_can_be_forgotten() -> None:
    stage = Stage(reactions="add_remove", max_messages=1)
    stage.set("👀")
    stage.set("🤔")
    assert stage.set("👀", message="n") is OutcomeKind.TRANSIENT
    stage.clear()
    assert stage.set("👀", message="n") is OK


@pytest.mark.parametrize("reactions", ["replace", "add_remove"])
@pytest.mark.parametrize("seed", range(5))
def test_totals_stay_true_and_room_bounded_whatever_happens(reactions: str, seed: int) -> None:
    stage = Stage(reactions=reactions, max_chats=6, max_messages=3, typing_lifetime_ms=50)
    random = Random(seed)
    for _ in range(2_000):
        stage.now_ms += random.randrange(20)
        chat, message, who = random.choice("abcdefgh"), random.choice("1234"), random.choice(("bot", "other"))
        emoji, op = random.choice("👀🤔🔥"), random.choice([*Op, "post", "delete"])
        if op == "delete":
            stage.chats.delete(chat, message, stage.now_ms)
        elif isinstance(op, Op):
            stage.do(op, chat, None, message, None if op is Op.CLEAR else emoji, who)
        else:
            with suppress(ShelfFullError):
                stage.post(who=who, chat=chat, bot=True)
        state = stage.chats.view(stage.now_ms)
        assert state.marks == sum(len(m.marks) for c in state.chats for m in c.messages)
        assert state.typing == sum(len(c.typing) for c in state.chats)
        assert len(state.chats) == state.chat_count <= 6
        assert all(len(c.messages) <= 3 for c in state.chats)
    for chat in "abcdefgh":  # nothing is held for ever
        for message in "1234":
            for who in ("bot", "other"):
                stage.clear(message, who, chat)
    stage.now_ms += 50
    for number in range(6):
        stage.post(chat=f"new{number}")
    assert {c.id for c in stage.chats.view(stage.now_ms).chats} == {f"new{number}" for number in range(6)}


def test_without_any_room_a_call_fails_for_now_and_nothing_is_lost() -> None:
    stage = Stage(max_chats=2, max_messages=1)
    assert stage.set("👀", chat="a") is OK
    assert stage.type("b") is OK
    assert stage.set("👀", chat="c") is OutcomeKind.TRANSIENT
    assert stage.set("👀", message="n", chat="a") is OutcomeKind.TRANSIENT
    with pytest.raises(ShelfFullError):
        stage.post(chat="c")
    assert stage.chats.view(0).marks == 1
    assert stage.stop("b") is OK
    assert stage.set("👀", chat="c") is OK
