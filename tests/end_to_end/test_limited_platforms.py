"""`livesign serve` before platforms that limit it: others' servers of Slack, Discord and Matrix, behind a proxy that counts
by itself. Everything arrives, nothing stays, and no call comes before the time that the platform named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.limiting_proxy import Allowance, LimitingProxy, forwarder
from tests.end_to_end.processes import eventually
from tests.end_to_end.served import Served, served
from tests.end_to_end.synapse import Eyes, limited
from tests.platforms.discord_server import API, JSON, Discord
from tests.platforms.recorder import Answer, Recorded
from tests.platforms.slack_emulator import CHANNEL, TOKEN, emulator

pytestmark = pytest.mark.real

FAST = "limits.account = { per_ms = 1000, count = 20 }"
"""Budgets far above what the platforms allow here, so that their own limits are met."""


def play(server: Served, places: list[dict[str, str]], marks: Any, wanted: set[str]) -> list[str]:
    """One run at each place, all at once; ``marks`` looks at one of them. What was seen there, until nothing is left."""
    for place in places:
        server.tell("received", place, direct=True)
        server.tell("thinking", place)
    eventually(lambda: bool(marks(places[-1])), "a mark")
    for place in places:
        server.tell("done", place)
    seen: list[str] = []

    def look() -> bool:
        seen.extend(emoji for place in places for emoji in marks(place) if emoji not in seen)
        return wanted <= set(seen) and not any(marks(place) for place in places)

    eventually(look, f"{wanted} and then nothing: {seen}")
    server.drained(len(places))
    return seen


def told(proxy: LimitingProxy, server: Served) -> None:
    """The figures, and that livesign counted the same."""
    assert server.counters().get("rate_limited", 0) == proxy.statuses[429]
    assert proxy.early == []
    print(f"{sum(proxy.statuses.values())} calls, {proxy.statuses[429]} limited, none early")  # pytest -rP shows it


# --- Slack ------------------------------------------------------------------------------


def slack_refusal(wait_s: float) -> Answer:
    """Slack names whole seconds."""
    headers = {"Content-Type": "application/json", "Retry-After": str(int(wait_s) + 1)}
    return 429, headers, b'{"ok":false,"error":"ratelimited"}'


def test_slack_s_methods_are_limited_each_by_itself(tmp_path: Path) -> None:
    def method(name: str) -> Any:
        return lambda request: name if request.path.endswith(name) else None

    with emulator(tmp_path) as slack:
        proxy = LimitingProxy(
            forwarder(slack.url.removesuffix("/api")),
            [
                Allowance("adds", 5, 1, method("/reactions.add"), slack_refusal),
                Allowance("removals", 3, 1, method("/reactions.remove"), slack_refusal),
            ],
            waits_s=lambda answer: float(answer[1]["Retry-After"]),
            scope=lambda request: request.path,
        )
        places = [{"conversation": CHANNEL, "message": slack.say(f"please work on this {n}")} for n in range(4)]
        with (
            proxy.server as recorder,
            served(tmp_path, TOKEN, 'platform = "slack"', f'base_url = "{recorder.url}/api"', FAST) as server,
        ):
            play(server, places, lambda place: slack.marks(place["message"]), {"eyes", "+1"})
            told(proxy, server)
    assert proxy.statuses[429] >= 1


# --- Discord ----------------------------------------------------------------------------


def discord_refusal(wait_s: float) -> Answer:
    """Discord names parts of a second in the body, whole ones in the header."""
    body = {
        "message": "You are being rate limited.",
        "retry_after": round(wait_s, 3) + 0.001,
        "global": False,
        "code": 0,
    }
    headers = {**JSON, "Retry-After": str(int(wait_s) + 1), "X-RateLimit-Scope": "user"}
    return 429, headers, json.dumps(body).encode()


@contextmanager
def limited_discord(marks_per_s: float) -> Iterator[tuple[Discord, LimitingProxy]]:
    discord = Discord()

    def channel(request: Recorded) -> str | None:
        return request.path.split("/")[4] if "/reactions/" in request.path else None

    yield (
        discord,
        LimitingProxy(
            discord.answer,
            [
                Allowance("marks", 1, 1 / marks_per_s, channel, discord_refusal),
                Allowance("all", 50, 1, lambda request: "all", discord_refusal),
            ],
            waits_s=lambda answer: float(json.loads(answer[2])["retry_after"]),
            scope=channel,
        ),
    )


@pytest.mark.parametrize(("marks_per_s", "runs"), [(4, 4), (1.25, 2)], ids=["as observed", "stricter"])
def test_discord_s_marks_are_limited_in_each_channel(tmp_path: Path, marks_per_s: float, runs: int) -> None:
    with limited_discord(marks_per_s) as (discord, proxy):
        channels = [discord.channel, discord.backend.create_channel(discord.guild.id, "other")]
        places = [
            {
                "conversation": str(channel.id),
                "message": str(discord.backend.create_message(channel.id, discord.person.id, "please").id),
            }
            for channel in channels
            for _ in range(runs // 2)
        ]

        def marks(place: dict[str, str]) -> list[str]:
            return discord.marks_on(int(place["conversation"]), int(place["message"]))

        with proxy.server as recorder:
            account = ('platform = "discord"', f'base_url = "{recorder.url}{API}"')
            with served(tmp_path, "MTk4NjIy.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs", *account) as server:
                play(server, places, marks, {"👀", "👍"})
                told(proxy, server)
    if marks_per_s == 4:
        assert proxy.statuses[429] == 0  # the row keeps its distance by itself
    else:
        assert proxy.statuses[429] >= 1
    assert set(discord.typed) == {place["conversation"] for place in places}


# --- Matrix -----------------------------------------------------------------------------


def test_a_homeserver_s_own_limit_is_met_and_kept(tmp_path: Path) -> None:
    homeserver = limited()
    bot, alice = homeserver.register(), homeserver.register()
    room = alice.create_room(bot)
    places = [{"conversation": room, "message": alice.say(room, f"please work on this {n}")} for n in range(2)]
    eyes = Eyes(alice, room)
    proxy = LimitingProxy(
        forwarder(homeserver.base_url),
        [],
        waits_s=lambda answer: float(json.loads(answer[2])["retry_after_ms"]) / 1_000,
        scope=lambda request: None if request.path.endswith("/typing") else "marks",
    )

    def marks(place: dict[str, str]) -> list[str]:
        return [key for sender, target, key in eyes.look().marks if (sender, target) == (bot.user_id, place["message"])]

    with (
        proxy.server as recorder,
        served(tmp_path, bot.token, 'platform = "matrix"', f'base_url = "{recorder.url}"', FAST) as server,
    ):
        play(server, places, marks, {"👀", "👍\ufe0f"})
        told(proxy, server)
    assert proxy.statuses[429] >= 1
    for _, headers, body in proxy.refusals:
        answer = json.loads(body)
        assert (answer["errcode"], answer["error"]) == ("M_LIMIT_EXCEEDED", "Too Many Requests")
        assert answer["retry_after_ms"] <= 1_000 * int(headers["Retry-After"])
    assert eyes.typing[-1] == []
