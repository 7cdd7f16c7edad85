"""The table of names: well formed, and never two emojis under one name but where that is meant."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from actors.platforms.emoji import bare, is_emoji
from actors.platforms.emoji_names import SHORT, TEAMS, ZULIP, named
from actors.platforms.registry import adapter
from actors.platforms.telegram import EMOJIS
from actors.presence.policy import DEFAULT_EMOJI

COLUMNS = {"slack": SHORT, "mattermost": SHORT, "zulip": ZULIP, "teams": TEAMS}
DEFAULTS = {emoji for chain in DEFAULT_EMOJI.values() for emoji in chain}
RICHER = set("🧠🛠💻🌐✅❌⏳⚠🗜🎧")


@pytest.mark.parametrize("column", [SHORT, ZULIP, TEAMS])
def test_the_rows_are_emojis_in_their_bare_form_with_all_that_states_show(column: Mapping[str, str]) -> None:
    assert all(is_emoji(emoji) and bare(emoji) == emoji for emoji in column)
    assert not (DEFAULTS | RICHER) - set(column)
    assert len(column) > 90


def test_only_the_two_hourglasses_of_teams_share_a_name() -> None:
    for column in (SHORT, ZULIP):
        assert len(set(column.values())) == len(column)
    assert len(set(TEAMS.values())) == len(TEAMS) - 1
    assert TEAMS["⏳"] == TEAMS["⌛"] == "holdon"


def test_the_hourglasses_are_told_apart_where_there_are_two() -> None:
    assert (SHORT["⌛"], SHORT["⏳"]) == ("hourglass", "hourglass_flowing_sand")
    assert (ZULIP["⌛"], ZULIP["⏳"]) == ("times_up", "time_ticking")


@pytest.mark.parametrize("platform", COLUMNS)
def test_every_name_is_one_that_its_platform_takes(platform: str) -> None:
    made = adapter(platform)
    for emoji, name in COLUMNS[platform].items():
        assert made.normalise(emoji) == made.normalise(name) == made.normalise(f":{name}:") == name


def test_a_name_is_found_in_every_form_of_its_emoji_and_anything_else_stays() -> None:
    assert named("⚡", SHORT) == named("⚡\ufe0f", SHORT) == "zap"
    assert named(":party-parrot:", SHORT) == named("party-parrot", SHORT) == "party-parrot"
    assert named("🦑", SHORT) == "🦑"


def test_most_of_what_telegram_shows_has_a_name_elsewhere() -> None:
    assert len({bare(emoji) for emoji in EMOJIS} & set(SHORT)) > 30
