"""What single platforms need in a configuration, and what their rows decide there."""

from __future__ import annotations

from typing import Any

import pytest

from actors.platforms.registry import PLATFORMS
from actors.platforms.spec import NO_OPTIONS
from actors.presence.pacing import Limit
from tests.config_trees import account_on, config, only_problem, problems

OPTIONS = {
    "whatsapp": "phone_number_id",
    "zulip": "email",
    "signal": "number",
    "teams": "app_id",
}


def test_each_platform_loads_with_what_it_needs_and_without_a_warning() -> None:
    for name in PLATFORMS:
        loaded = config({"accounts": {"a": account_on(name)}})
        assert loaded.warnings == ()
        assert loaded.accounts["a"].platform == name


@pytest.mark.parametrize(("platform", "option"), OPTIONS.items())
def test_an_option_that_a_platform_needs_is_asked_for(platform: str, option: str) -> None:
    account = {key: value for key, value in account_on(platform).items() if key != option}
    assert only_problem({"accounts": {"a": account}}) == f"accounts.a.{option}: {platform} needs it"


def test_no_other_platform_needs_an_option() -> None:
    needing = {name: make(NO_OPTIONS).spec.required_options for name, make in PLATFORMS.items()}
    assert {name: options for name, options in needing.items() if options} == {
        name: (option,) for name, option in OPTIONS.items()
    }


def test_servers_of_one_s_own_need_an_address_and_signal_no_token() -> None:
    for platform in ("mattermost", "zulip", "signal"):
        account = {key: value for key, value in account_on(platform).items() if key != "base_url"}
        assert "needs the address of a server" in only_problem({"accounts": {"a": account}})
    signal = {key: value for key, value in account_on("signal").items() if key != "token"}
    assert config({"accounts": {"a": signal}}).accounts["a"].credentials.token == ""
    for platform in ("discord", "slack", "whatsapp", "teams", "googlechat"):
        account = {key: value for key, value in account_on(platform).items() if key not in ("token", "base_url")}
        assert "needs a token" in only_problem({"accounts": {"a": account}})


def test_options_are_their_platform_s_own() -> None:
    account = {**account_on("slack"), "phone_number_id": "1", "bot_id": "28:x"}
    assert problems({"accounts": {"a": account}}) == [
        "accounts.a.phone_number_id: is for whatsapp accounts only",
        "accounts.a.bot_id: is for teams accounts only",
    ]


def test_slack_s_status_is_chosen_by_option() -> None:
    account = {**account_on("slack"), "thread_status": "session"}
    assert not config({"accounts": {"a": account}}).accounts["a"].spec.post_clears_typing
    off = {**account_on("slack"), "thread_status": "off", "typing": {"mode": "thinking"}}
    assert config({"accounts": {"a": off}}).warnings == (
        "accounts.a: slack has no typing indicator: typing does nothing here",
    )


def test_a_call_for_typing_may_take_longer_where_the_platform_is_slow() -> None:
    tree: dict[str, Any] = {"accounts": {"s": account_on("signal"), "d": account_on("discord")}}
    deadlines = {name: account.calls.typing_deadline_ms for name, account in config(tree).accounts.items()}
    assert deadlines == {"s": 9_750, "d": 3_000}
    tree["calls"] = {"typing_deadline_ms": 1_234}
    assert {account.calls.typing_deadline_ms for account in config(tree).accounts.values()} == {1_234}


@pytest.mark.parametrize("keepalive_ms", [0, 25_001, 26_000])
def test_typing_of_one_shot_is_refreshed_only_after_its_end(keepalive_ms: int) -> None:
    tree = {"accounts": {"w": {**account_on("whatsapp"), "typing": {"keepalive_ms": keepalive_ms}}}}
    assert config(tree).accounts["w"].policy.typing.keepalive_ms == keepalive_ms


def test_a_refresh_that_would_do_nothing_is_refused() -> None:
    tree = {"accounts": {"w": {**account_on("whatsapp"), "typing": {"keepalive_ms": 4_000}}}}
    assert only_problem(tree) == (
        "accounts.w.typing.keepalive_ms: 4000 is within the 25000 ms in which a refresh does nothing on whatsapp "
        "(allowed: 0, or above 25000 ms)"
    )


def test_the_pair_limit_can_be_set_without_losing_the_number_s() -> None:
    pair = {"per_ms": 6_000, "count": 1}
    account = {**account_on("whatsapp"), "limits": {"conversation": pair}}
    limits = config({"accounts": {"w": account}}).accounts["w"].limits
    assert limits == {"account": Limit(1_000, 20), "conversation": Limit(6_000, 1)}


@pytest.mark.parametrize(
    ("platform", "emoji", "shown"),
    [
        ("slack", "🦑", "eyes"),
        ("slack", ":party-parrot:", "party-parrot"),
        ("zulip", "⏳", "time_ticking"),
        ("teams", "⏳", "holdon"),
        ("mattermost", "⏳", "hourglass_flowing_sand"),
        ("discord", "<a:dance:417>", "dance:417"),
        ("discord", ":eyes:", "👀"),
        ("whatsapp", "⚠", "⚠\ufe0f"),
        ("signal", "eyes", "👀"),
        ("googlechat", "👨\u200d💻", "👨\u200d💻"),
    ],
)
def test_what_a_platform_cannot_show_is_mapped_when_the_configuration_is_loaded(
    platform: str, emoji: str, shown: str
) -> None:
    tree = {"accounts": {"a": account_on(platform)}, "ack": {"emoji": emoji}}
    loaded = config(tree)
    assert loaded.policy("a", "c").status.emoji["queued"][0] == shown
    fallback = shown in ("eyes", "👀")
    assert len(loaded.warnings) == fallback


def test_where_few_changes_are_affordable_only_the_ends_are_shown() -> None:
    least_ms = {
        "telegram": 1_000, "discord": 1_000, "slack": 5_000, "matrix": 5_000, "whatsapp": 6_000, "mattermost": 700,
        "zulip": 1_000, "signal": 3_000, "teams": 2_000, "googlechat": 3_000, "sandbox": 0,
    }  # fmt: skip
    shown = {name: config({"accounts": {"a": account_on(name)}}).policy("a", "c").status for name in least_ms}
    assert {name for name, status in shown.items() if status.presentation is not None} == {
        "slack", "matrix", "whatsapp", "signal", "googlechat",
    }  # fmt: skip
    assert {name: status.min_change_ms for name, status in shown.items()} == least_ms
