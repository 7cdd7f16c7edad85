"""The configuration as a whole: layers, scenarios, reloads, and any tree at all."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from actors.config import ConfigError, load, reload
from actors.config_keys import KEYS, Key, Level
from actors.presence.policy import (
    STATES,
)
from tests.config_trees import (
    ENVIRON,
    TELEGRAM,
    base_policy,
    config,
    placed,
    sandbox,
    telegram,
)

# --- nothing at all ---


def test_no_configuration_is_one_sandbox_account() -> None:
    loaded = config()
    assert list(loaded.accounts) == ["sandbox"]
    assert loaded.accounts["sandbox"].platform == "sandbox"
    assert loaded.server.unix == "/run/user/1/livesign/livesign.sock"
    assert loaded.server.tcp is None
    assert loaded.ledger_path == "/var/lib/someone/livesign"
    assert (loaded.metrics_listen, loaded.web_listen, loaded.warnings) == (None, None, ())


def test_without_xdg_directories_the_socket_is_in_a_directory_of_the_user() -> None:
    loaded = load(environ={})
    assert loaded.server.unix is not None
    assert Path(loaded.server.unix).parent.name.startswith("livesign-")
    assert loaded.ledger_path.endswith("/.local/state/livesign")


def test_a_loaded_configuration_is_taken_as_it_is() -> None:
    loaded = config()
    assert load(loaded) is loaded


def test_settings_without_accounts_apply_to_the_sandbox_account() -> None:
    assert base_policy({"status": {"debounce_ms": 100}}).status.debounce_ms == 100


# --- layers ---


def test_a_match_block_goes_over_the_account_and_the_account_over_the_top() -> None:
    loaded = config({
        "typing": {"mode": "thinking", "probe_ms": 1},
        "accounts": {
            "a": {"platform": "sandbox", "typing": {"mode": "message"}},
            "b": {"platform": "sandbox"},
        },
        "match": [{"account": "a", "direct": True, "typing": {"mode": "never"}}],
    })  # fmt: skip
    assert loaded.policy("a", "c", direct=True).typing.mode == "never"
    assert loaded.policy("a", "c", direct=False).typing.mode == "message"
    assert loaded.policy("b", "c", direct=True).typing.mode == "thinking"
    assert loaded.policy("a", "c", direct=True).typing.probe_ms == 1


def test_a_later_block_goes_over_an_earlier_one() -> None:
    loaded = config(
        sandbox(
            match=[
                {"conversation": "x", "typing": {"mode": "never"}},
                {"conversation": "x*", "typing": {"mode": "message"}, "status": {"settle": "keep"}},
                {"conversation": "x", "status": {"settle": "restore"}},
            ]
        )
    )
    policy = loaded.policy("sb", "x")
    assert (policy.typing.mode, policy.status.settle) == ("message", "restore")
    policy = loaded.policy("sb", "xy")
    assert (policy.typing.mode, policy.status.settle) == ("message", "keep")


def test_every_condition_of_a_block_must_hold() -> None:
    block = {"conversation": "-100*", "direct": False, "mentioned": True, "kind": "scheduled"}
    loaded = config(sandbox(match=[{**block, "typing": {"mode": "never"}}]))
    assert loaded.policy("sb", "-1001", False, True, "scheduled").typing.mode == "never"
    for other in (
        ("-1001", True, True, "scheduled"),
        ("-1001", False, False, "scheduled"),
        ("-1001", False, True, "text"),
        ("1001", False, True, "scheduled"),
        ("-1001", None, True, "scheduled"),
        ("-1001", False, None, "scheduled"),
        ("-1001", False, True, None),
    ):
        assert loaded.policy("sb", *other).typing.mode == "instant"


def test_scheduled_runs_can_be_without_typing() -> None:
    loaded = config(sandbox(match=[{"kind": "scheduled", "typing": {"mode": "never"}}]))
    assert loaded.policy("sb", "c", True, False, "scheduled").typing.mode == "never"
    assert loaded.policy("sb", "c", True, False, "text").typing.mode == "instant"


def test_a_number_as_conversation_is_its_decimal_text() -> None:
    loaded = config(sandbox(match=[{"conversation": -100123, "ack": {"scope": "off"}}]))
    assert loaded.policy("sb", "-100123").ack.scope == "off"


def test_the_same_blocks_give_the_same_policy_object() -> None:
    loaded = config(sandbox(match=[{"direct": True, "ack": {"scope": "off"}}]))
    assert loaded.policy("sb", "a", direct=True) is loaded.policy("sb", "b", direct=True)
    assert loaded.policy("sb", "a") is loaded.policy("sb", "b", direct=False)


def test_an_unknown_account_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        config().policy("nobody", "c")


def test_blocks_that_only_meet_at_run_time_still_give_a_policy_that_works() -> None:
    loaded = config(
        sandbox(
            match=[
                {"conversation": "a*", "status": {"debounce_ms": 9_000}},
                {"conversation": "*z", "status": {"stall_soft_ms": 5_000}},
            ]
        )
    )
    status = loaded.policy("sb", "az").status
    assert status.debounce_ms < status.stall_soft_ms == 5_000


@pytest.mark.real
def test_finding_a_policy_costs_microseconds() -> None:
    blocks = [{"conversation": f"c{n}", "ack": {"scope": "off"}} for n in range(1_000)]
    blocks += [{"conversation": f"*{n}", "direct": True, "typing": {"mode": "never"}} for n in range(10)]  # type: ignore[dict-item]
    loaded = config(sandbox(match=blocks))
    loaded.policy("sb", "c7", True, False, "text")
    began = time.perf_counter()
    for _ in range(10_000):
        loaded.policy("sb", "c7", True, False, "text")
    assert time.perf_counter() - began < 1.0  # 100 µs each: ten times what a slow machine needs


# --- scenarios ---


def test_a_scenario_needs_no_token_no_address_and_no_file() -> None:
    accounts = {
        "tg": {"platform": "telegram"},
        "mx": {"platform": "matrix", "token_env": "NOT_SET", "ca_file": "/nowhere"},
        "sb": {"platform": "sandbox", "token_file": "/nowhere"},
    }
    server = {"tcp": "127.0.0.1:1", "tls": {"cert": "/nowhere", "key": "/nowhere"}}
    assert list(config({"accounts": accounts, "server": server}, scenario=True).accounts) == [
        "tg",
        "mx",
        "sb",
    ]


# --- reload ---


def test_a_reload_tells_what_is_new_gone_and_changed() -> None:
    old = config({"accounts": {"a": TELEGRAM, "b": TELEGRAM, "c": TELEGRAM, "d": TELEGRAM}})
    new = config({
        "accounts": {
            "a": {**TELEGRAM, "token": "2:new"},
            "b": {**TELEGRAM, "limits": {"account": {"per_ms": 1, "count": 1}}},
            "c": {**TELEGRAM, "status": {"debounce_ms": 1}},
            "e": TELEGRAM,
        },
        "server": {"unix": "/elsewhere"},
        "shutdown": {"budget_ms": 1},
        "ledger": {"path": "/elsewhere"},
    })  # fmt: skip
    change = reload(old, new)
    assert (change.added, change.removed, change.changed) == (("e",), ("d",), ("a", "b"))
    assert change.ignored == ("server", "ledger")
    assert change.config.server == old.server
    assert change.config.shutdown_budget_ms == 1
    assert change.config.policy("c", "x").status.debounce_ms == 1
    assert old.policy("c", "x").status.debounce_ms == 700


def test_a_reload_that_makes_an_account_another_platform_is_refused() -> None:
    old = config(sandbox())
    for tree in ({"accounts": {"sb": TELEGRAM}}, sandbox({"reactions": "add_remove"})):
        with pytest.raises(ConfigError, match=r"accounts\.sb: a running account cannot change its platform"):
            reload(old, config(tree))


def test_a_reload_of_the_same_configuration_changes_nothing() -> None:
    change = reload(config(telegram()), config(telegram()))
    assert (change.added, change.removed, change.changed, change.ignored) == ((), (), (), ())


# --- anything ---


WORDS = sorted(
    {part for key in KEYS for part in key.name.split(".")} | {"accounts", "match", "sb", "telegram", "sandbox"}
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(WORDS),
    st.builds(pow, st.just(10), st.just(5_000)),
)
NAMES = st.one_of(st.sampled_from(WORDS), st.text(max_size=6))
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=25,
)


def told(tree: Any, scenario: bool) -> str:
    """What loading a tree says; it must say something and raise nothing else."""
    try:
        return str(load(tree, scenario=scenario, environ=ENVIRON).describe())
    except ConfigError as error:
        return str(error)


@given(TREES.filter(lambda tree: not isinstance(tree, str)), st.booleans())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_tree_gives_a_configuration_or_a_configuration_error(tree: Any, scenario: bool) -> None:
    assert told(tree, scenario)


PLACES = ["", "accounts.tg.", "accounts.NAME."]
SOME = {"accounts": {"tg": TELEGRAM}}


@given(
    st.dictionaries(st.tuples(st.sampled_from(PLACES), st.sampled_from(KEYS)), TREES, max_size=6),
    st.dictionaries(st.sampled_from(KEYS), TREES, max_size=4),
    st.booleans(),
)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_value_of_a_key_gives_a_configuration_or_a_configuration_error(
    values: dict[tuple[str, Key], Any], block: dict[Key, Any], scenario: bool
) -> None:
    tree = placed({f"{place}{key.name}": value for (place, key), value in values.items()}, SOME)
    blocks = {"match": [placed({key.name: value for key, value in block.items()})]}
    assert told({**tree, **blocks}, scenario)


RUN_KEYS = [key for key in KEYS if Level.MATCH in key.levels and "NAME" not in key.name]


@given(
    st.dictionaries(
        st.sampled_from([key.name for key in RUN_KEYS]),
        st.integers(-1, 200_000) | st.sampled_from(["👍", "😱", "🦀", "🔥"]),
        max_size=8,
    ),
    st.sampled_from(["telegram", "sandbox"]),
)
@settings(max_examples=300, deadline=None)
def test_a_policy_that_was_loaded_always_fits_together(values: dict[str, Any], platform: str) -> None:
    tree = placed(values, {"accounts": {"a": {"platform": platform}}})
    try:
        loaded = config(tree, scenario=True)
    except ConfigError:
        return
    policy, lifetime_ms = loaded.policy("a", "c"), loaded.accounts["a"].spec.rules.typing_lifetime_ms
    status, typing = policy.status, policy.typing
    assert not status.stall_hard_ms or max(status.debounce_ms, status.stall_soft_ms) < status.stall_hard_ms
    assert not status.stall_soft_ms or status.debounce_ms < status.stall_soft_ms
    assert 0 < typing.keepalive_ms < lifetime_ms
    assert not typing.ttl_ms or typing.ttl_ms >= 2 * typing.keepalive_ms
    assert not set(status.emoji["done"]) & set(status.emoji["error"])
    assert all(status.emoji[state] for state in STATES)
