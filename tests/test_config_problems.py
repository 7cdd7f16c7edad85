"""How each mistake is told: the key, the reason, what is allowed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.config_trees import (
    nested,
    only_problem,
    problems,
    sandbox,
    telegram,
)

# --- single values ---


@pytest.mark.parametrize(
    ("name", "raw", "reason"),
    [
        ("status.debounce_ms", -5, "-5 is below 1"),
        ("status.debounce_ms", 10**12, "1000000000000 is above 86400000"),
        ("status.debounce_ms", 700.0, "must be a whole number, not a fraction"),
        ("status.debounce_ms", True, "must be a whole number, not true or false"),
        ("status.debounce_ms", "700", "must be a whole number, not text"),
        ("status.debounce_ms", None, "null is no value: leave the key out"),
        ("status.enabled", "yes", "must be true or false, not text"),
        ("status.enabled", 1, "must be true or false, not a whole number"),
        ("typing.mode", "sometimes", '"sometimes" is unknown (allowed: instant, thinking, message, never)'),
        ("typing.mode", True, "must be text, not true or false"),
        ("ack.scope", "everything", "is unknown (allowed: all, direct, group-all, group-mentions, off, "),
        ("ack.emoji", "a b", "is not one emoji"),
        ("ack.emoji", "\ufe0f", "shows nothing"),
        ("ack.emoji", "\u200d", "shows nothing"),
        ("status.emoji.done", "\u202e\u20e3", "shows nothing"),
        ("ack.emoji", 3, "must be text, not a whole number"),
        ("status.quiet_hours", "22:00", "is not a pair of times"),
        ("status.quiet_hours", "24:00-01:00", "is not a pair of times"),
        ("status.quiet_hours", "08:00-08:00", "begins and ends at the same time"),
        ("status.presentation", "most", '"most" is unknown'),
        ("status.presentation", {"done": True}, "must be a list of texts, not a table"),
        ("status.presentation", ["finished"], '"finished" is no state'),
        ("status.emoji", "👀", "must be a table, not text"),
        ("status", 3, "must be a table, not a whole number"),
        ("limits.account", {"count": 3}, "lacks per_ms"),
        ("limits.account", {"per_ms": 1, "count": 3, "burst": 4}, "burst must be between 1 and count"),
        ("limits.account", {"per_ms": 1, "count": 0}, "count: 0 is below 1"),
        ("limits.account", {"per_ms": 1, "count": 1, "x": 1}, 'has the unknown key "x"'),
        ("limits.account", 5, "must be a table, not a whole number"),
        ("limits.reserve", 1, "1 is not between 0 and 0.9"),
        ("limits.reserve", float("nan"), "nan is not between"),
        ("calls.concurrency", 0, "0 is below 1"),
        ("server.tcp", "7000", "is not host:port"),
        ("server.tcp", "localhost:70000", "has no port between"),
        ("server.tcp", "::1:7000", "is not host:port"),
        ("server.tokens", "secret", "must be a list of tables, not text"),
        ("server.tokens", ["secret"], "must be a table, not text"),
        ("server.tokens", [{"grants": ["send"]}], "has no token"),
        ("server.tokens", [{"token": "x", "grants": ["admin"]}], '"admin" is unknown (allowed: a list of'),
        ("server.tokens", [{"token": "x", "accounts": ["y"]}], 'there is no account "y" (allowed: sandbox)'),
        ("server.tls.key", "missing.pem", "there is no file"),
        ("server.unix", "/" + "x" * 200, "is longer than a Unix socket may be named"),
        ("match", {"direct": True}, "must be a list of tables, not a table"),
        ("match", [3], "match[0]: must be a table, not a whole number"),
        ("match", [{"account": "nobody"}], 'match[0].account: there is no account "nobody" (allowed: san'),
        ("match", [{"kind": "video"}], "match[0].kind: "),
        ("accounts", [], "accounts: must be a table of accounts, not a list"),
        ("accounts", {"a": 3}, "accounts.a: must be a table, not a whole number"),
        ("accounts", {"a/b": {"platform": "sandbox"}}, "is no account name"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_refused_with_its_key_the_reason_and_what_is_allowed(
    name: str, raw: object, reason: str
) -> None:
    found = problems(nested(name, raw))
    assert any(reason in problem and problem.startswith(name) for problem in found), found


def test_a_number_of_thousands_of_digits_is_refused_like_any_other() -> None:
    assert "status.debounce_ms: the value is above 86400000" in only_problem({"status": {"debounce_ms": 10**5_000}})


def test_a_configuration_that_is_no_table_is_refused() -> None:
    assert only_problem([1]) == "a configuration is a table, not a list"


# --- keys ---


@pytest.mark.parametrize(
    ("tree", "reason"),
    [
        ({"status": {"debounc_ms": 1}}, "is an unknown key; did you mean status.debounce_ms?"),
        ({"stauts": {}}, "stauts: is an unknown key; did you mean status?"),
        ({"debounce_ms": 1}, "debounce_ms: is an unknown key; did you mean status.debounce_ms?"),
        ({"status": {"emoji": {"dome": "👍"}}}, "did you mean status.emoji.done?"),
        ({"status": {"xyzzy": 1}}, "status.xyzzy: is an unknown key; known here: debounce_ms, done_hold_ms"),
        ({"status.debounce_ms": 1}, "write a dotted key as nested tables"),
        ({3: 1}, "3: keys must be text"),
        ({"token": "x"}, "token: can stand only under accounts.NAME"),
        ({"direct": True}, "direct: can stand only in [[match]]"),
        (sandbox({"server": {"tcp": "x"}}), "accounts.sb.server: can stand only at the top"),
        (sandbox({"supervision": {}}), "accounts.sb.supervision: can stand only at the top"),
        (sandbox({"tokn": "x"}), "accounts.sb.tokn: is an unknown key; did you mean accounts.sb.token?"),
        ({"match": [{"limits": {}}]}, "match[0].limits: can stand only at the top or under accounts.NAME"),
        ({"match": [{"typing": {"mod": 1}}]}, "is an unknown key; did you mean match[0].typing.mode?"),
        ({"server": {"tokens": [{"token": "x", "grant": []}]}}, "did you mean server.tokens[0].grants?"),
    ],
)  # fmt: skip
def test_a_key_that_is_unknown_or_in_the_wrong_place_is_refused_with_the_right_one(tree: Any, reason: str) -> None:
    assert reason in only_problem(tree)


def test_all_problems_are_told_together() -> None:
    tree = telegram(status={"debounce_ms": -1, "settle": "kep"}, typing={"mode": 3}, match=[{"kind": "x"}], nonsense=1)
    assert len(problems(tree)) == 5
