"""What a platform cannot show is found when the configuration is loaded: on every platform, in every place."""

from __future__ import annotations

from typing import Any

import pytest

from actors.config import reload
from actors.platforms.registry import PLATFORMS, adapter
from actors.presence.policy import STATES
from tests.config_trees import account_on, config

# What somebody may write: emojis in both forms, names, ids, and nonsense.
WRITTEN = [
    "👀", "✍", "✍\ufe0f", "⚡\ufe0f", "❤\ufe0f\u200d🔥", "🛠\ufe0f", "⏳", "🦑", "👍🏽", "🇩🇪", "1\ufe0f\u20e3", ":eyes:", "eyes", "+1",
    ":party-parrot:", "party-parrot", "livesign:417", "<:livesign:417>", "1f440_eyes", "👀👀", "a/b", "👨\u200d💻",
]  # fmt: skip
PLACES = {
    "top": lambda emoji: {"status": {"emoji": {"web": emoji}}},
    "account": lambda emoji: {"status": {"emoji": {"web": emoji}}},
    "match": lambda emoji: {"status": {"emoji": {"web": emoji}}},
    "tools": lambda emoji: {"tools": {"web": {"emoji": emoji}}},
}
ORIGINS = {
    "top": "status.emoji.web", "account": "accounts.a.status.emoji.web", "match": "match[0].status.emoji.web",
    "tools": "tools.web.emoji",
}  # fmt: skip


def tree(platform: str, place: str, settings: dict[str, Any]) -> dict[str, Any]:
    account = account_on(platform)
    if place == "account":
        return {"accounts": {"a": account | settings}}
    if place == "match":
        return {"accounts": {"a": account}, "match": [{"conversation": "c", **settings}]}
    return {"accounts": {"a": account}, **settings}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("platform", sorted(PLATFORMS))
def test_what_is_written_is_shown_or_replaced_with_a_warning(platform: str, place: str) -> None:
    made = adapter(platform)
    for written in WRITTEN:
        loaded = config(tree(platform, place, PLACES[place](written)))
        chain = loaded.policy("a", "c").status.emoji["web"]
        form = made.normalise(written)
        assert chain
        assert all(made.normalise(emoji) == emoji for emoji in chain)
        if form is None:
            origin = ORIGINS[place]
            assert loaded.warnings == (
                f"{origin}: {written} cannot be shown on {platform}; {chain[0]} is shown instead",
            )
        else:
            assert chain[0] == form
            assert loaded.warnings == ()


@pytest.mark.parametrize("platform", ["telegram", "slack", "discord", "zulip", "teams", "signal"])
def test_a_reload_judges_emojis_as_the_start_did(platform: str) -> None:
    old, new = (
        config(tree(platform, "account", {"status": {"emoji": {"web": written}}})) for written in ("👀", "🦑🦑")
    )
    change = reload(old, new)
    (warning,) = change.config.warnings
    assert warning.startswith(f"accounts.a.status.emoji.web: 🦑🦑 cannot be shown on {platform}; ")
    assert all(
        adapter(platform).normalise(emoji) == emoji for emoji in change.config.policy("a", "c").status.emoji["web"]
    )


@pytest.mark.parametrize("key", ["ack.emoji", *(f"status.emoji.{state}" for state in STATES)])
@pytest.mark.parametrize("platform", ["telegram", "slack", "discord", "zulip", "teams"])
def test_every_state_is_looked_at(platform: str, key: str) -> None:
    section, _, name = key.partition(".")
    value: Any = {"emoji": "🦑🦑"}
    if section == "status":
        value = {"emoji": {name.partition(".")[2]: "🦑🦑"}}
    loaded = config(tree(platform, "account", {section: value}))
    (warning,) = loaded.warnings
    assert warning.startswith(f"accounts.a.{key}: 🦑🦑 cannot be shown on {platform}; ")


def test_one_emoji_for_several_platforms_is_judged_on_each() -> None:
    accounts = {name: account_on(name) for name in sorted(PLATFORMS)}
    loaded = config({"accounts": accounts, "status": {"emoji": {"done": "✅"}}})
    shown = {name: loaded.policy(name, "c").status.emoji["done"][0] for name in accounts}
    assert shown == {
        "callback": "✅", "discord": "✅", "googlechat": "✅", "matrix": "✅\ufe0f", "mattermost": "white_check_mark",
        "remote": "✅", "sandbox": "✅", "signal": "✅", "slack": "white_check_mark", "teams": "2705_whiteheavycheckmark",
        "telegram": "👍", "whatsapp": "✅", "zulip": "check",
    }  # fmt: skip
    assert loaded.warnings == ("status.emoji.done: ✅ cannot be shown on telegram; 👍 is shown instead",)
