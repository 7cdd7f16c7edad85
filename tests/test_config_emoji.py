"""Emojis and tool categories of a configuration, checked against the platform."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pytest

from actors.platforms.registry import PLATFORMS, Maker
from actors.platforms.spec import Credentials, HttpAdapter, PlatformSpec, Request, Response
from actors.presence.policy import (
    DEFAULT_EMOJI,
    STATES,
)
from actors.presence.terms import OK, Command, LaneRules, Outcome
from actors.presence.tools import DEFAULT_CATEGORIES
from tests.config_trees import (
    account_on,
    base_policy,
    config,
    only_problem,
    sandbox,
    telegram,
)

# --- emojis ---


class Numbered(HttpAdapter):
    """A platform with three reactions and forms of its own."""

    spec = PlatformSpec(
        name="numbered",
        ids="",
        rules=LaneRules(),
        base_url="http://localhost",
        needs_token=False,
        emoji_allowed=frozenset({"1", "2", "3"}),
    )
    forms: Mapping[str, str] = MappingProxyType({"👀": "1", "🔥": "2", "👍": "3", "🤔": "1", "👎": "2"})

    def normalise(self, emoji: str) -> str | None:
        return self.forms.get(emoji, emoji)

    def request(self, command: Command, credentials: Credentials) -> Request | Outcome:
        return OK

    def outcome(self, command: Command, response: Response) -> Outcome:
        return OK


NUMBERED: Mapping[str, Maker] = {"numbered": lambda options: Numbered()}


def test_an_own_emoji_heads_the_chain_before_the_defaults() -> None:
    emoji = base_policy(sandbox(status={"emoji": {"thinking": "🧠"}})).status.emoji
    assert emoji["thinking"] == ("🧠", *DEFAULT_EMOJI["thinking"])
    assert emoji["tool"] == DEFAULT_EMOJI["tool"]


def test_the_ack_emoji_is_also_that_of_queued_and_waiting() -> None:
    emoji = base_policy(sandbox(ack={"emoji": "🙏"})).status.emoji
    assert {emoji[state] for state in ("queued", "waiting", "waiting_user")} == {("🙏", *DEFAULT_EMOJI["queued"])}
    emoji = base_policy(sandbox(ack={"emoji": "🙏"}, status={"emoji": {"waiting_user": "🙋"}})).status.emoji
    assert (emoji["waiting"][0], emoji["waiting_user"][0]) == ("🙏", "🙋")


def test_a_queued_emoji_goes_over_the_ack_emoji_which_stays_that_of_the_ack() -> None:
    emoji = base_policy(sandbox(ack={"emoji": "🙏"}, status={"emoji": {"queued": "⏳"}})).status.emoji
    assert (emoji["queued"][0], emoji["waiting"][0], emoji["ack"][0]) == ("⏳", "⏳", "🙏")


def test_an_emoji_the_platform_cannot_show_is_replaced_with_one_warning() -> None:
    loaded = config(telegram(ack={"emoji": "🦀"}, status={"emoji": {"done": "✅"}}))
    assert loaded.policy("tg", "c").status.emoji["done"][0] == "👍"
    assert loaded.policy("tg", "c").status.emoji["queued"][0] == "👀"
    assert loaded.warnings == (
        "ack.emoji: 🦀 cannot be shown on telegram; 👀 is shown instead",
        "status.emoji.done: ✅ cannot be shown on telegram; 👍 is shown instead",
    )


def test_emojis_take_the_form_the_platform_is_sent() -> None:
    tree = telegram(status={"emoji": {"thinking": "❤️"}})
    loaded = config(tree)
    assert loaded.policy("tg", "c").status.emoji["thinking"][0] == "❤"
    assert loaded.warnings == ()


def test_every_chain_holds_only_what_the_platform_shows() -> None:
    for name in PLATFORMS:
        account = account_on(name)
        loaded = config({"accounts": {"a": account}})
        adapter = loaded.accounts["a"].adapter
        for state in STATES:
            chain = loaded.policy("a", "c").status.emoji[state]
            assert chain
            assert chain == tuple(adapter.normalise(emoji) for emoji in chain)


def test_states_may_share_a_mark_where_the_platform_has_few() -> None:
    status = {"emoji": {"error": "👎", "stall_hard": "👀", "compacting": "👀", "coding": "🔥"}}
    loaded = config({"accounts": {"v": {"platform": "numbered"}}, "status": status}, platforms=NUMBERED)
    emoji = loaded.policy("v", "c").status.emoji
    assert (emoji["queued"][0], emoji["thinking"][0], emoji["tool"][0], emoji["done"], emoji["error"]) == (
        "1",
        "1",
        "2",
        ("3",),
        ("2",),
    )


def test_an_emoji_without_any_fallback_left_is_an_error() -> None:
    class Bare(Numbered):
        forms = MappingProxyType({"👀": "1", "🔥": "2", "👍": "3", "🤔": "1"})

    bare: Mapping[str, Maker] = {"numbered": lambda options: Bare()}
    tree = {"accounts": {"v": {"platform": "numbered"}}}
    assert only_problem(tree, platforms=bare).startswith("status.emoji.error: none of the defaults can be shown")
    tree["status"] = {"emoji": {"error": "🦀"}}
    assert only_problem(tree, platforms=bare).startswith("status.emoji.error: 🦀 cannot be shown on numbered, nor")


@pytest.mark.parametrize("state", ["queued", "done", "error"])
def test_an_empty_emoji_is_refused_and_the_way_out_is_told(state: str) -> None:
    found = only_problem(sandbox(status={"emoji": {state: ""}}))
    assert found.startswith(f"status.emoji.{state}: must not be empty")
    assert "status.presentation" in found


@pytest.mark.parametrize(
    ("emoji", "done", "error"),
    [
        ({}, "👍", "😱"),
        ({"done": "😱"}, "😱", "👎"),
        ({"error": "👍"}, "👌", "👍"),
        ({"done": "👎"}, "👎", "😱"),
        ({"error": "🔥"}, "👍", "🔥"),
    ],
)
def test_done_and_error_never_share_an_emoji(emoji: dict[str, str], done: str, error: str) -> None:
    chains = base_policy(sandbox(status={"emoji": emoji})).status.emoji
    assert (chains["done"][0], chains["error"][0]) == (done, error)
    assert not set(chains["done"]) & set(chains["error"])


def test_the_same_emoji_for_done_and_error_is_refused() -> None:
    found = only_problem(sandbox({"status": {"emoji": {"error": "🎉"}}}, status={"emoji": {"done": "🎉"}}))
    assert found == "accounts.sb.status.emoji.error: done and error must differ: status.emoji.done shows 🎉 too"


# --- tools ---


BUILT_IN = [category.name for category in DEFAULT_CATEGORIES]


def test_own_categories_come_first_in_the_order_they_are_written() -> None:
    tools = {"shop": {"names": ["Cart"]}, "deploy": {"tokens": ["Deploy", "release"], "emoji": "🚀"}}
    status = base_policy(sandbox(tools=tools)).status
    assert status.tools is not None
    assert [category.name for category in status.tools] == ["shop", "deploy", *BUILT_IN]
    assert status.tools[1].tokens == ("deploy", "release")
    assert status.emoji["deploy"] == ("🚀", *DEFAULT_EMOJI["tool"])
    assert status.emoji["shop"] == DEFAULT_EMOJI["tool"]


def test_a_built_in_category_is_replaced_field_by_field() -> None:
    status = base_policy(sandbox(tools={"web": {"tokens": ["surf"], "emoji": "🌐"}})).status
    assert status.tools is not None
    web = next(category for category in status.tools if category.name == "web")
    assert web.tokens == ("surf",)
    assert web.names
    assert status.emoji["web"][0] == "🌐"


def test_a_category_that_matches_nothing_is_refused() -> None:
    found = only_problem(sandbox(tools={"deploy": {"emoji": "🚀"}}))
    assert found.startswith("tools.deploy.emoji: the tool category deploy matches nothing")


def test_a_category_cannot_be_named_like_a_state() -> None:
    assert "is no name for a tool category" in only_problem(sandbox(tools={"tool": {"tokens": ["x"]}}))
    assert "is no name for a tool category" in only_problem(sandbox(tools={"My Tools": {"tokens": ["x"]}}))


def test_an_emoji_said_twice_in_one_place_is_refused() -> None:
    tree = sandbox(tools={"web": {"emoji": "🌐"}}, status={"emoji": {"web": "⚡"}})
    assert only_problem(tree) == "tools.web.emoji: status.emoji.web says the same: keep one of them"


def test_a_category_can_be_among_the_states_that_are_shown() -> None:
    tools = {"deploy": {"tokens": ["deploy"]}}
    shown = base_policy(sandbox(tools=tools, status={"presentation": ["deploy"]})).status.presentation
    assert shown == frozenset({"deploy"})
    assert '"deploy" is no state' in only_problem(sandbox(status={"presentation": ["deploy"]}))
