"""Platform rows as defaults, and what must fit together."""

from __future__ import annotations

import pytest

from actors.platforms.registry import PLATFORMS
from actors.platforms.telegram import TelegramAdapter
from tests.config_trees import (
    TELEGRAM,
    base_policy,
    config,
    only_problem,
    sandbox,
    telegram,
)

# --- platform rows ---


def test_what_is_not_set_comes_from_the_platforms_row() -> None:
    spec = TelegramAdapter().spec
    account = config(telegram()).accounts["tg"]
    assert account.policy.typing.keepalive_ms == spec.keepalive_ms == 4_000
    assert account.policy.status.min_change_ms == spec.min_change_ms
    assert account.policy.ack.variant == spec.ack_variant
    assert account.limits == spec.limits
    assert account.calls.concurrency == spec.concurrency


def test_matrix_shows_the_ends_only_unless_told_otherwise() -> None:
    matrix = {"platform": "matrix", "token": "t", "base_url": "https://example.org/"}
    accounts = {"m": matrix, "n": {**matrix, "status": {"presentation": "full"}}}
    loaded = config({"accounts": accounts})
    shown = loaded.policy("m", "c").status.presentation
    assert shown is not None
    assert "done" in shown
    assert "thinking" not in shown
    assert loaded.policy("n", "c").status.presentation is None
    assert loaded.accounts["m"].credentials.base_url == "https://example.org"


def test_options_of_a_sandbox_account_choose_its_model() -> None:
    options = {
        "reactions": "add_remove",
        "typing_stop": False,
        "typing_lifetime_ms": 0,
        "post_clears_typing": False,
        "typing_in": "direct",
    }
    account = config(sandbox(options)).accounts["sb"]
    rules = account.spec.rules
    assert (rules.reactions, rules.typing_stop, rules.typing_lifetime_ms) == ("add_remove", False, 0)
    assert not account.policy.typing.post_clears
    assert account.policy.typing.keepalive_ms == 0


def test_where_only_direct_chats_show_typing_others_do_not_ask_for_it() -> None:
    loaded = config(sandbox({"typing_in": "direct"}))
    assert loaded.policy("sb", "c", direct=False).typing.mode == "never"
    assert loaded.policy("sb", "c", direct=True).typing.mode == "instant"
    assert loaded.policy("sb", "c").typing.mode == "instant"


def test_options_of_one_platform_are_refused_on_another() -> None:
    assert "accounts.tg.reactions: is for sandbox, callback, remote accounts only" in only_problem(
        {"accounts": {"tg": {**TELEGRAM, "reactions": "none"}}}
    )


def test_an_unknown_platform_is_told_with_the_known_ones() -> None:
    found = only_problem({"accounts": {"a": {"platform": "telegrm"}}})
    known = ", ".join(sorted(PLATFORMS))
    assert found == f'accounts.a.platform: "telegrm" is unknown (allowed: {known})'
    assert "accounts.a.platform: is missing" in only_problem({"accounts": {"a": {}}})


def test_asking_a_platform_for_what_it_lacks_warns_once() -> None:
    asked = {"reactions": "none", "ack": {"scope": "all"}, "status": {"enabled": True}}
    assert config(sandbox(asked)).warnings == (
        "accounts.sb: sandbox has no reactions: ack, status and tools do nothing here",
    )
    assert config(sandbox({"reactions": "none"}, ack={"scope": "all"})).warnings == ()


# --- what must fit together ---


@pytest.mark.parametrize(
    ("status", "key", "allowed"),
    [
        (
            {"debounce_ms": 10_000},
            "status.debounce_ms: 10000 must be below status.stall_soft_ms",
            "0 to 9999",
        ),
        ({"stall_soft_ms": 500}, "status.stall_soft_ms: 500 must be above status.debounce_ms", "above 700"),
        (
            {"stall_soft_ms": 30_000},
            "status.stall_soft_ms: 30000 must be below status.stall_hard_ms",
            "0 to 29999",
        ),
        (
            {"stall_hard_ms": 9_000},
            "status.stall_hard_ms: 9000 must be above status.stall_soft_ms",
            "above 10000",
        ),
        (
            {"stall_soft_ms": 0, "stall_hard_ms": 600},
            "status.stall_hard_ms: 600 must be above status.debounce_ms",
            "above 700",
        ),
    ],
)
def test_debounce_and_stalls_must_be_in_order(status: dict[str, int], key: str, allowed: str) -> None:
    found = only_problem(sandbox(status=status))
    assert found.startswith(key)
    assert allowed in found


def test_stalls_that_are_off_need_no_order() -> None:
    base_policy(sandbox(status={"stall_soft_ms": 0, "stall_hard_ms": 0, "debounce_ms": 60_000}))
    base_policy(sandbox(status={"stall_soft_ms": 50_000, "stall_hard_ms": 0}))


def test_a_keepalive_must_be_under_the_life_of_the_indicator() -> None:
    found = only_problem(telegram(typing={"keepalive_ms": 150_000, "ttl_ms": 120_000}))
    assert found == (
        "typing.keepalive_ms: 150000 is not under the 5000 ms that typing lasts on telegram "
        "(allowed: 1 to 4999 ms on telegram)"
    )
    assert "-1 is below 1" in only_problem(telegram(typing={"keepalive_ms": -1}))
    assert "would let typing end" in only_problem(telegram(typing={"keepalive_ms": 0}))


def test_an_indicator_that_lasts_needs_no_keepalive() -> None:
    lasting = {"typing_lifetime_ms": 0, "typing": {"keepalive_ms": 0}}
    assert config(sandbox(lasting)).accounts["sb"].policy.typing.keepalive_ms == 0


def test_a_ttl_under_two_keepalives_is_raised_with_a_warning() -> None:
    loaded = config(telegram(typing={"ttl_ms": 5_000}))
    assert loaded.policy("tg", "c").typing.ttl_ms == 8_000
    assert loaded.warnings == ("typing.ttl_ms: 5000 is less than two keepalives of 4000; raised to 8000",)


def test_a_run_must_be_able_to_end() -> None:
    assert "lease.ms: must not be off while" in only_problem(sandbox(lease={"ms": 0, "run_max_ms": 0}))


def test_a_block_is_checked_together_with_what_it_goes_over() -> None:
    found = only_problem(sandbox(match=[{"direct": True, "status": {"stall_soft_ms": 40_000}}]))
    assert found.startswith("match[0].status.stall_soft_ms: 40000 must be below status.stall_hard_ms (30000)")


def test_of_two_values_that_do_not_fit_the_one_of_the_later_layer_is_to_blame() -> None:
    account = {"status": {"stall_soft_ms": 20_000}}
    found = only_problem(sandbox(account, match=[{"direct": True, "status": {"stall_hard_ms": 15_000}}]))
    assert found.startswith(
        "match[0].status.stall_hard_ms: 15000 must be above accounts.sb.status.stall_soft_ms (20000)"
    )
