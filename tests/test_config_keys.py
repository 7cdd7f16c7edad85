"""The table of keys: its defaults are those of the types, and every key arrives where it belongs."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from actors.config import ServerSettings
from actors.config_keys import KEYS, Level
from actors.platforms.registry import PLATFORMS
from actors.platforms.spec import NO_OPTIONS
from actors.platforms.telegram import TelegramAdapter
from actors.presence.pacing import Limit
from actors.presence.policy import (
    AckSettings,
    LeaseSettings,
    Policy,
    StatusSettings,
    TypingSettings,
)
from actors.server_settings import ServerLimits
from tests.config_trees import (
    base_policy,
    config,
    nested,
    sandbox,
    telegram,
)

# --- the table ---


def defaults_of(cls: type) -> dict[str, object]:
    return {field.name: getattr(cls(), field.name) for field in dataclasses.fields(cls)}


RENAMED = {
    "quiet_hours": "quiet_minutes",
    "whatsapp.direct": "whatsapp_direct",
    "whatsapp.group": "whatsapp_group",
}


@pytest.mark.parametrize(
    ("section", "cls"),
    [("ack", AckSettings), ("status", StatusSettings), ("typing", TypingSettings), ("lease", LeaseSettings)],
)
def test_the_table_has_the_defaults_of_the_policy(section: str, cls: type) -> None:
    expected = defaults_of(cls)
    for key in KEYS:
        if key.name.startswith(f"{section}.") and "emoji" not in key.name and Level.TOP in key.levels:
            name = key.name.removeprefix(f"{section}.")
            default = expected[RENAMED.get(name, name)]
            assert key.default == default or (key.default is None and key.default_text), key.name


def test_the_table_has_the_defaults_of_the_server() -> None:
    for name, default in defaults_of(ServerLimits).items():
        assert next(key for key in KEYS if key.name == f"server.limits.{name}").default == default
    assert config({"server": {"unix": "off"}}).server == ServerSettings()


def test_a_policy_of_defaults_equals_the_policys_own_defaults() -> None:
    assert base_policy(sandbox()) == Policy()


def test_every_default_is_a_value_its_key_allows() -> None:
    for key in KEYS:
        if key.default is not None:
            raw = list(key.default) if isinstance(key.default, tuple) else key.default
            assert key.kind.convert(raw) == key.default


def test_every_key_says_what_it_means_what_is_allowed_and_what_holds_without_it() -> None:
    names = [(key.name, level) for key in KEYS for level in key.levels]
    assert len(names) == len(set(names))
    for key in KEYS:
        assert key.meaning, key.name
        assert key.kind.allowed, key.name
        if Level.TOP in key.levels and not key.name.startswith("server.tls"):
            assert key.default is not None or key.default_text, key.name


def test_every_option_a_platform_requires_is_in_the_table() -> None:
    options = {(key.name, key.platform) for key in KEYS if key.platform}
    for name, make in PLATFORMS.items():
        for option in make(NO_OPTIONS).spec.required_options:
            assert (option, name) in options


# --- every key arrives ---


ARRIVES: list[tuple[str, object, str, object]] = [
    ("ack.scope", "all", "ack.scope", "all"),
    ("ack.max_age_ms", 0, "ack.max_age_ms", 0),
    ("ack.from_bots", True, "ack.from_bots", True),
    ("ack.whatsapp.direct", False, "ack.whatsapp_direct", False),
    ("ack.whatsapp.group", "never", "ack.whatsapp_group", "never"),
    ("status.enabled", False, "status.enabled", False),
    ("status.gate", "none", "status.gate", "none"),
    ("status.presentation", "full", "status.presentation", None),
    (
        "status.presentation",
        "ends",
        "status.presentation",
        frozenset({"queued", "stall_soft", "stall_hard", "done", "error"}),
    ),
    ("status.presentation", ["tool", "done"], "status.presentation", frozenset({"tool", "done"})),
    ("status.min_change_ms", 250, "status.min_change_ms", 250),
    ("status.final_sent_ms", 5, "status.final_sent_ms", 5),
    ("status.quiet_hours", "22:30-07:00", "status.quiet_minutes", (1350, 420)),
    ("status.quiet_hours", "none", "status.quiet_minutes", None),
    ("status.debounce_ms", 0, "status.debounce_ms", 0),
    ("status.stall_soft_ms", 20_000, "status.stall_soft_ms", 20_000),
    ("status.stall_soft_ms", 0, "status.stall_soft_ms", 0),
    ("status.stall_hard_ms", 0, "status.stall_hard_ms", 0),
    ("status.done_hold_ms", 1, "status.done_hold_ms", 1),
    ("status.error_hold_ms", 2, "status.error_hold_ms", 2),
    ("status.settle", "restore", "status.settle", "restore"),
    ("status.wait_max_ms", 600_000, "status.wait_max_ms", 600_000),
    ("status.start_delay_ms", 500, "status.start_delay_ms", 500),
    ("tools.span_max_ms", 1_000, "status.span_max_ms", 1_000),
    ("typing.mode", "never", "typing.mode", "never"),
    ("typing.keepalive_ms", 4_999, "typing.keepalive_ms", 4_999),
    ("typing.ttl_ms", 90_000, "typing.ttl_ms", 90_000),
    ("typing.ttl_ms", 0, "typing.ttl_ms", 0),
    ("typing.start_failures", 5, "typing.start_failures", 5),
    ("typing.probe_ms", 0, "typing.probe_ms", 0),
    ("typing.start_delay_ms", 300, "typing.start_delay_ms", 300),
    ("typing.quiet_max_ms", 1_000, "typing.quiet_max_ms", 1_000),
    ("typing.sending_max_ms", 1_000, "typing.sending_max_ms", 1_000),
    ("lease.ms", 5_000, "lease.ms", 5_000),
    ("lease.run_max_ms", 0, "lease.run_max_ms", 0),
    ("lease.adopt_ms", 0, "lease.adopt_ms", 0),
    ("lease.child_max_ms", 1_000, "lease.child_max_ms", 1_000),
    ("recovery.marks", "error", "recovery_marks", "error"),
]


def attribute(policy: Policy, path: str) -> object:
    found: object = policy
    for name in path.split("."):
        found = getattr(found, name)
    return found


@pytest.mark.parametrize(("name", "raw", "path", "expected"), ARRIVES)
def test_a_run_setting_arrives_from_the_top_the_account_and_a_match_block(
    name: str, raw: object, path: str, expected: object
) -> None:
    setting = nested(name, raw)
    for tree in (sandbox(**setting), sandbox(setting), sandbox(match=[setting])):
        loaded = config(tree)
        assert attribute(loaded.policy("sb", "c"), path) == expected


def test_the_arriving_keys_are_all_plain_run_settings() -> None:
    plain = {
        key.name for key in KEYS if Level.MATCH in key.levels and "emoji" not in key.name and "NAME" not in key.name
    }
    assert {name for name, *_ in ARRIVES} == plain


def test_account_settings_arrive_from_the_top_and_the_account() -> None:
    limit = {"per_ms": 1_000, "count": 5, "burst": 2}
    setting: dict[str, Any] = {
        "limits": {"account": limit, "reserve": 0.25},
        "calls": {"deadline_ms": 1_000, "typing_deadline_ms": 500, "concurrency": 3},
        "conversation": {"idle_ms": 10},
    }
    for tree in (sandbox(**setting), sandbox(setting)):
        account = config(tree).accounts["sb"]
        assert account.limits["account"] == Limit(1_000, 5, 2)
        assert account.reserve == 0.25
        assert (account.calls.deadline_ms, account.calls.typing_deadline_ms, account.calls.concurrency) == (
            1_000,
            500,
            3,
        )
        assert account.idle_ms == 10


def test_a_limit_takes_the_place_of_the_row_of_its_scope_and_leaves_the_others() -> None:
    row = TelegramAdapter().spec.limits
    limits = config(telegram(limits={"conversation": {"per_ms": 9, "count": 9}})).accounts["tg"].limits
    assert limits == {**row, "conversation": Limit(9, 9)}


def test_a_limit_counts_the_calls_that_the_row_counts() -> None:
    matrix = {"platform": "matrix", "token": "t", "base_url": "http://localhost"}
    limits = config({"accounts": {"m": {**matrix, "limits": {"account": {"per_ms": 9, "count": 9}}}}})
    assert limits.accounts["m"].limits == {"account.marks": Limit(9, 9)}


def test_process_settings_arrive(tmp_path: Path) -> None:
    files = ("cert", "key", "client_ca")
    for name in files:
        (tmp_path / name).write_text("x")
    loaded = config({
        "supervision": {"intensity": 0, "period_ms": 1},
        "shutdown": {"budget_ms": 3},
        "ledger": {"path": ":memory:"},
        "metrics": {"listen": "127.0.0.1:9000"},
        "web": {"listen": "[::1]:0"},
        "server": {
            "unix": str(tmp_path / "s"),
            "tcp": "0.0.0.0:7000",
            "tls": {name: str(tmp_path / name) for name in files},
            "tokens": [
                {"token": "t", "accounts": ["sandbox"], "grants": ["send", "execute"]},
                {"token": "u"},
            ],
            "limits": {"event_bytes": 2_048, "connections": 2, "open_runs": 3, "idle_ms": 4},
        },
    })  # fmt: skip
    assert (loaded.supervision.intensity, loaded.supervision.period_ms, loaded.shutdown_budget_ms) == (
        0,
        1,
        3,
    )
    assert (loaded.ledger_path, loaded.metrics_listen, loaded.web_listen) == (
        ":memory:",
        "127.0.0.1:9000",
        "[::1]:0",
    )
    server = loaded.server
    assert (server.unix, server.tcp) == (str(tmp_path / "s"), "0.0.0.0:7000")
    assert server.tls_client_ca == str(tmp_path / "client_ca")
    assert server.limits == ServerLimits(2_048, 2, 3, 4)
    first, second = server.tokens
    assert (first.accounts, first.grants) == (frozenset({"sandbox"}), frozenset({"send", "execute"}))
    assert (second.accounts, second.grants) == (None, frozenset({"send"}))
    assert [warning.partition(":")[0] for warning in loaded.warnings] == ["web.listen"]
