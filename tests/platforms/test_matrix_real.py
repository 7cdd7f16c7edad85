"""The Matrix adapter through `HttpPlatform` against a real homeserver; a second user tells what is to be
seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import pytest

from actors.platforms import matrix
from actors.platforms.port import HttpPlatform
from actors.platforms.registry import adapter
from actors.platforms.spec import Credentials
from actors.presence.terms import OK, Command, Op, OutcomeKind
from tests.end_to_end.synapse import Eyes, Synapse, User, limited, running
from tests.platforms.fakes import outcome_of

pytestmark = pytest.mark.real

K = OutcomeKind


@dataclass
class Scene:
    """The bot's platform, a room with a message in it, and a user who watches the room."""

    bot: User
    alice: User
    room: str
    message: str
    platform: HttpPlatform
    eyes: Eyes
    keys: Iterator[int]

    def command(self, op: Op, **fields: Any) -> Command:
        mark = {"message": self.message} if op in (Op.SET, Op.REMOVE) else {}
        return Command(op, self.room, idempotency_key=f"livesign-{next(self.keys)}", **{**mark, **fields})


def scene_on(server: Synapse) -> Scene:
    bot, alice = server.register(), server.register()
    room = alice.create_room(bot)
    message = alice.say(room, "please work on this")
    platform = HttpPlatform(adapter("matrix"), Credentials(token=bot.token, base_url=server.base_url))
    return Scene(bot, alice, room, message, platform, Eyes(alice, room), count(1))


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = scene_on(running())
    yield made
    made.platform.close()


def test_a_mark_is_seen_replaced_and_taken_away(scene: Scene) -> None:
    first = outcome_of(scene.platform, scene.command(Op.SET, emoji="👀"))
    assert first.kind is K.OK
    assert first.handle is not None
    scene.eyes.until(lambda eyes: eyes.marks == [(scene.bot.user_id, scene.message, "👀")])
    second = outcome_of(scene.platform, scene.command(Op.SET, emoji="👍"))
    gone = outcome_of(scene.platform, scene.command(Op.REMOVE, emoji="👀", handle=first.handle))
    assert (second.kind, gone.kind) == (K.OK, K.OK)
    scene.eyes.until(lambda eyes: eyes.marks == [(scene.bot.user_id, scene.message, "👍\ufe0f")])
    last = outcome_of(scene.platform, scene.command(Op.REMOVE, emoji="👍", handle=second.handle))
    assert last.kind is K.OK
    scene.eyes.until(lambda eyes: eyes.marks == [])


def test_typing_is_seen_to_begin_and_to_end(scene: Scene) -> None:
    assert outcome_of(scene.platform, scene.command(Op.TYPING_START)) == OK
    scene.eyes.until(lambda eyes: eyes.typing == [[scene.bot.user_id]])
    assert outcome_of(scene.platform, scene.command(Op.TYPING_START)) == OK
    assert outcome_of(scene.platform, scene.command(Op.TYPING_STOP)) == OK
    scene.eyes.until(lambda eyes: eyes.typing == [[scene.bot.user_id], []])


def test_a_repeat_under_the_same_key_is_the_same_mark(scene: Scene) -> None:
    command = scene.command(Op.SET, emoji="👀")
    first, second = (outcome_of(scene.platform, command) for _ in range(2))
    assert first == second
    assert first.kind is K.OK
    scene.eyes.until(lambda eyes: len(eyes.marks) == 1).look(200)
    assert len(scene.eyes.marks) == 1


def test_a_duplicate_is_already_done_and_can_be_removed_without_its_id(scene: Scene) -> None:
    scene.alice.call(
        "PUT",
        f"/_matrix/client/v3/rooms/{scene.room}/send/m.reaction/alice-1",
        {"m.relates_to": {"rel_type": "m.annotation", "event_id": scene.message, "key": "👀"}},
    )
    outcome_of(scene.platform, scene.command(Op.SET, emoji="👀"))
    again = outcome_of(scene.platform, scene.command(Op.SET, emoji="👀"))
    assert (again.kind, again.handle) == (K.ALREADY_DONE, None)
    removed = outcome_of(scene.platform, scene.command(Op.REMOVE, emoji="👀"))
    assert removed.kind is K.OK
    scene.eyes.until(lambda eyes: eyes.marks == [(scene.alice.user_id, scene.message, "👀")])
    nothing = outcome_of(scene.platform, scene.command(Op.REMOVE, emoji="👀"))
    assert nothing.kind is K.ALREADY_DONE


def test_our_mark_is_found_behind_many_others(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "PAGE", 2)
    outcome_of(scene.platform, scene.command(Op.SET, emoji="👀"))
    for key in "abcde":
        outcome_of(scene.platform, scene.command(Op.SET, emoji=key))
    assert outcome_of(scene.platform, scene.command(Op.REMOVE, emoji="👀")).kind is K.OK
    scene.eyes.until(lambda eyes: [key for _, _, key in eyes.marks] == list("abcde"))


def test_a_redaction_that_is_repeated_harms_nothing(scene: Scene) -> None:
    handle = outcome_of(scene.platform, scene.command(Op.SET, emoji="👀")).handle
    for _ in range(2):
        assert outcome_of(scene.platform, scene.command(Op.REMOVE, emoji="👀", handle=handle)).happened
    scene.eyes.until(lambda eyes: any(each["type"] == "m.room.redaction" for each in eyes.events))
    assert scene.eyes.marks == []


def test_each_refusal_of_a_real_server_has_its_outcome(scene: Scene) -> None:
    def kind(command: Command) -> OutcomeKind:
        return outcome_of(scene.platform, command).kind

    mark = scene.command(Op.SET, emoji="👀")
    elsewhere = scene.alice.say(scene.alice.create_room(), "another room")
    assert kind(replace(mark, message="$unknown_event_id")) is K.GONE
    assert kind(replace(mark, message=elsewhere, idempotency_key="other-room")) in (K.GONE, K.FORBIDDEN)
    assert kind(replace(mark, emoji="x" * 500, idempotency_key="long")) is K.OK
    assert kind(replace(mark, conversation="!nowhere:localhost", idempotency_key="nowhere")) is K.FORBIDDEN
    assert kind(replace(scene.command(Op.TYPING_START), conversation="!nowhere:localhost")) is K.FORBIDDEN
    unknown = scene.command(Op.REMOVE, emoji="👀", handle="$unknown_event_id")
    assert kind(unknown) is K.ALREADY_DONE


def test_typing_for_somebody_else_is_a_wrong_configuration(scene: Scene) -> None:
    server = running()
    credentials = Credentials(token=scene.bot.token, base_url=server.base_url, options={"user_id": scene.alice.user_id})
    platform = HttpPlatform(adapter("matrix"), credentials)
    assert outcome_of(platform, scene.command(Op.TYPING_START)).kind is K.BAD_REQUEST
    platform.close()


def test_a_bad_token_is_auth(scene: Scene) -> None:
    for options in ({}, {"user_id": scene.bot.user_id}):
        credentials = Credentials(token="syt_wrong", base_url=running().base_url, options=options)
        platform = HttpPlatform(adapter("matrix"), credentials)
        assert outcome_of(platform, scene.command(Op.TYPING_START)).kind is K.AUTH
        platform.close()


def test_a_real_limit_carries_the_body_s_time() -> None:
    scene = scene_on(limited())
    outcomes = [outcome_of(scene.platform, scene.command(Op.SET, emoji=key)) for key in "abcde"]
    refused = [each for each in outcomes if each.kind is K.RATE_LIMITED]
    assert refused
    assert all(each.scope == "account" and 0 < (each.retry_after_ms or 0) <= 500 for each in refused)
    assert {each.detail for each in refused} == {"M_LIMIT_EXCEEDED Too Many Requests"}
    assert outcome_of(scene.platform, scene.command(Op.TYPING_START)) == OK
    scene.platform.close()
