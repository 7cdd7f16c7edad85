"""The Discord adapter over HTTP: against a simulator of Discord that others wrote, and side by side with discord.py."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import pytest

from actors.platforms.port import HttpPlatform
from actors.platforms.registry import adapter
from actors.platforms.spec import Credentials
from actors.presence.terms import OK, Command, Op, OutcomeKind
from tests.platforms.discord_server import API, JSON, Discord
from tests.platforms.fakes import outcome_of
from tests.platforms.recorder import Answer, Recorded, Recorder
from tests.platforms.whole_tree import run_and_watch

pytestmark = pytest.mark.real

K = OutcomeKind
TOKEN = "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs"


def platform_at(url: str) -> HttpPlatform:
    return HttpPlatform(adapter("discord"), Credentials(token=TOKEN, base_url=url + API))


@pytest.fixture
def discord() -> Discord:
    return Discord()


@pytest.fixture
def platform(discord: Discord) -> Iterator[HttpPlatform]:
    with Recorder(discord.answer) as server:
        made = platform_at(server.url)
        yield made
        made.close()


def mark(discord: Discord, op: Op = Op.SET, emoji: str = "👀") -> Command:
    return Command(op, str(discord.channel.id), None, str(discord.message.id), emoji)


# --- the simulator ----------------------------------------------------------------------


def test_marks_are_set_swapped_and_taken_away(discord: Discord, platform: HttpPlatform) -> None:
    assert outcome_of(platform, mark(discord)) == OK
    assert outcome_of(platform, mark(discord)) == OK
    assert outcome_of(platform, mark(discord, emoji="👨\u200d💻")) == OK
    assert discord.marks() == ["👀", "👨\u200d💻"]
    assert outcome_of(platform, mark(discord, Op.REMOVE)) == OK
    assert discord.marks() == ["👨\u200d💻"]
    assert outcome_of(platform, mark(discord, Op.REMOVE, "👨\u200d💻")) == OK
    assert discord.marks() == []


def test_typing_goes_to_the_channel_or_the_thread(discord: Discord, platform: HttpPlatform) -> None:
    other = discord.backend.create_channel(discord.guild.id, "thread")
    channel = str(discord.channel.id)
    assert outcome_of(platform, Command(Op.TYPING_START, channel)) == OK
    assert outcome_of(platform, Command(Op.TYPING_START, channel, str(other.id))) == OK
    assert outcome_of(platform, Command(Op.TYPING_STOP, channel)) == OK
    assert discord.typed == [channel, str(other.id)]


def test_what_is_gone_is_gone(discord: Discord, platform: HttpPlatform) -> None:
    assert outcome_of(platform, replace(mark(discord), message="1")).kind is K.GONE
    assert outcome_of(platform, replace(mark(discord), conversation="1")).kind is K.GONE
    assert outcome_of(platform, Command(Op.TYPING_START, "1")).kind is K.GONE


def test_a_missing_permission_is_forbidden_there_and_only_for_marks(discord: Discord, platform: HttpPlatform) -> None:
    discord.forbid_marks()
    outcome = outcome_of(platform, mark(discord))
    assert (outcome.kind, outcome.scope) == (K.FORBIDDEN, None)
    assert outcome.detail.startswith("50013 ")
    assert outcome_of(platform, Command(Op.TYPING_START, str(discord.channel.id))) == OK


# --- the whole tree behind a limit ------------------------------------------------------


def test_a_run_ends_with_nothing_left_although_the_channel_is_limited(discord: Discord) -> None:
    discord.per_s = 2
    place = {"conversation": str(discord.channel.id), "message": str(discord.message.id)}
    with Recorder(discord.answer) as server:
        account = {"platform": "discord", "token": TOKEN, "base_url": server.url + API}
        seen = run_and_watch(account, place, discord.marks)
    assert ["👍"] in seen
    assert len(discord.typed) == 1
    assert discord.limited <= 2


# --- discord.py -------------------------------------------------------------------------

CHANNEL, MESSAGE = 290926798629997250, 862341998999699498
OPERATIONS = [
    Command(Op.SET, str(CHANNEL), None, str(MESSAGE), "👨\u200d💻"),
    Command(Op.SET, str(CHANNEL), None, str(MESSAGE), "✍\ufe0f"),
    Command(Op.SET, str(CHANNEL), None, str(MESSAGE), "livesign:41771983429993937"),
    Command(Op.REMOVE, str(CHANNEL), None, str(MESSAGE), "👨\u200d💻"),
    Command(Op.TYPING_START, str(CHANNEL)),
]


def yes(request: Recorded) -> Answer:
    if request.path == f"{API}/users/@me":
        me = {"id": "1", "username": "livesign", "discriminator": "0000", "avatar": None, "bot": True}
        return 200, JSON, json.dumps(me).encode()
    return 204, {"Via": "1.1 recorder"}, b""


async def by_discord_py(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same operations as discord.py makes them."""
    discord = pytest.importorskip("discord", reason="discord.py is in the extra sdk")
    monkeypatch.setattr(discord.http.Route, "BASE", url + API)
    client = discord.Client(intents=discord.Intents.none())
    await client._async_setup_hook()
    try:
        await client.http.static_login(TOKEN)
        for command in OPERATIONS:
            if command.op is Op.TYPING_START:
                await client.http.send_typing(CHANNEL)
            elif command.op is Op.SET:
                await client.http.add_reaction(CHANNEL, MESSAGE, command.emoji)
            else:
                await client.http.remove_own_reaction(CHANNEL, MESSAGE, command.emoji)
    finally:
        await client.http.close()


def meaning(requests: list[Recorded]) -> list[tuple[str, str, Any, str, str]]:
    """Without how a path is encoded: aiohttp writes a colon as it is."""
    return [
        (
            each.method,
            unquote(each.path),
            each.values,
            each.headers["authorization"],
            each.headers["user-agent"].split()[0],
        )
        for each in requests
    ]


def test_discord_py_means_what_we_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    with Recorder(yes) as server:
        asyncio.run(by_discord_py(server.url, monkeypatch))
        theirs = meaning(server.take()[1:])
        platform = platform_at(server.url)
        for command in OPERATIONS:
            assert outcome_of(platform, command) == OK
        platform.close()
        assert meaning(server.take()) == theirs
    assert len(theirs) == len(OPERATIONS)
