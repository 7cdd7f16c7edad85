"""Random configurations: accounts on several platforms, and every setting that changes what is shown or when."""

from __future__ import annotations

import copy
import random
from typing import Any

Tree = dict[str, Any]

REAL = (
    "telegram", "telegram", "discord", "discord", "matrix", "matrix", "slack", "mattermost", "whatsapp", "zulip", "signal",
    "teams", "googlechat", "googlechat", "callback",
)  # fmt: skip
FEW = {
    "slack": 6,
    "matrix": 12,
    "mattermost": 25,
    "whatsapp": 40,
    "zulip": 8,
    "signal": 4,
    "teams": 8,
    "googlechat": 12,
}
"""Platforms whose limits would keep a crowd waiting for hours: so many conversations at most, and one in the coda."""
STATES = (
    "queued", "waiting", "waiting_user", "thinking", "tool", "coding", "web", "compacting", "stall_soft", "stall_hard",
    "done", "error",
)  # fmt: skip


def make(rng: random.Random, calm: bool) -> Tree:
    """A whole configuration."""
    accounts: dict[str, Tree] = {"s0": _sandbox(rng, calm)}
    for index in range(rng.choice((0, 1, 1, 2))):
        accounts[f"s{index + 1}"] = _sandbox(rng, calm)
    for platform in set(rng.sample(REAL, rng.choice((0, 1, 1, 2, 3)))):
        accounts[platform] = {"platform": platform, "token": "x"}
    accounts = dict(sorted(accounts.items()))
    for account in accounts.values():
        account |= settings(rng)
        if account["platform"] in FEW:  # its limits are too tight for every phase
            _forget(account, "presentation", "min_change_ms")
        if account.get("limits"):
            _forget(account, "start_delay_ms")
    config: Tree = {"accounts": accounts, "conversation": {"idle_ms": rng.choice((5_000, 60_000))}}
    if rng.random() < 0.2:
        config["recovery"] = {"marks": rng.choice(("error", "leave"))}
    if rng.random() < 0.25:
        config["match"] = [_match(rng) for _ in range(rng.choice((1, 2)))]
    if rng.random() < 0.2:
        config["supervision"] = {"intensity": rng.choice((1, 5)), "period_ms": rng.choice((2_000, 20_000))}
    return config


def other(rng: random.Random, config: Tree, number: int) -> Tree:
    """The same accounts with other credentials, and perhaps other settings or limits, or one of them gone."""
    tree = copy.deepcopy(config)
    for name, account in tree["accounts"].items():
        account["token"] = f"token{number}"
        if rng.random() < 0.3 and account["platform"] not in FEW:
            account["status"] = status(rng)
        if rng.random() < 0.2 and account["platform"] == "sandbox":
            account["limits"] = limits(rng)
        if rng.random() < 0.1 and name == "s0":
            account["platform"] = "telegram"  # an account does not change its platform: refused
    if rng.random() < 0.2 and len(tree["accounts"]) > 1:
        del tree["accounts"][rng.choice([name for name in tree["accounts"] if name != "s0"])]
    return tree


def _sandbox(rng: random.Random, calm: bool) -> Tree:
    account: Tree = {
        "platform": "sandbox",
        "reactions": rng.choice(("replace",) * 6 + ("add_remove",) * 12 + ("none",)),
        "typing_stop": rng.random() < 0.8,
        "post_clears_typing": rng.random() < 0.6,
    }
    account["typing_lifetime_ms"] = rng.choice((0, 5_000, 20_000)) if account["typing_stop"] else 5_000
    if rng.random() < 0.05:
        account["typing_in"] = "direct"
    if rng.random() < (0.2 if calm else 0.5):
        account["limits"] = limits(rng)
    if rng.random() < 0.2:
        account["calls"] = {"concurrency": rng.choice((1, 2, 3))}
    return account


def limits(rng: random.Random) -> Tree:
    """Limits of an account's calls, and the share of them that is the bot's own."""
    found: Tree = {}
    if rng.random() < 0.7:
        found["account"] = rng.choice(({"per_ms": 1_000, "count": 20}, {"per_ms": 5_000, "count": 60, "burst": 30}))
    if rng.random() < 0.5:
        found["conversation"] = rng.choice(({"per_ms": 1_000, "count": 3}, {"per_ms": 10_000, "count": 12}))
    if rng.random() < 0.3:
        found["route"] = {"per_ms": 400, "count": 1}
    if rng.random() < 0.3:
        found["message"] = {"per_ms": 1_000, "count": 2}
    if found and rng.random() < 0.4:
        found["reserve"] = rng.choice((0.1, 0.5))
    return found


def settings(rng: random.Random) -> Tree:
    """The settings of one account."""
    found: Tree = {"ack": _ack(rng)}
    if rng.random() < 0.6:
        found["status"] = status(rng)
    if rng.random() < 0.6:
        found["typing"] = _typing(rng)
    if rng.random() < 0.4:
        found["lease"] = {"ms": rng.choice((5_000, 20_000, 45_000)), "run_max_ms": rng.choice((60_000, 21_600_000))}
        if rng.random() < 0.3:
            found["lease"]["child_max_ms"] = rng.choice((5_000, 60_000))
        if rng.random() < 0.3:
            found["lease"]["adopt_ms"] = rng.choice((0, 2_000, 40_000))
    if rng.random() < 0.15:
        found["tools"] = {"span_max_ms": rng.choice((5_000, 60_000)), "office": {"tokens": ["calendar", "mail"]}}
    return found


def _ack(rng: random.Random) -> Tree:
    found: Tree = {"scope": rng.choice(("all",) * 6 + ("group-mentions",) * 3 + ("group-all", "direct", "off"))}
    if rng.random() < 0.2:
        found["max_age_ms"] = rng.choice((0, 5_000))
    if rng.random() < 0.2:
        found["from_bots"] = True
    if rng.random() < 0.2:
        found["whatsapp"] = {"direct": rng.random() < 0.5, "group": rng.choice(("always", "mentions", "never"))}
    return found


def _typing(rng: random.Random) -> Tree:
    found: Tree = {
        "mode": rng.choice(("instant", "instant", "thinking", "message", "never")),
        "ttl_ms": rng.choice((8_000, 30_000, 60_000)),
        "start_delay_ms": rng.choice((0, 0, 500)),
    }
    if rng.random() < 0.2:
        found["start_failures"] = rng.choice((1, 3))
    if rng.random() < 0.2:
        found["probe_ms"] = rng.choice((0, 5_000))
    if rng.random() < 0.2:
        found["quiet_max_ms"] = rng.choice((3_000, 20_000))
    if rng.random() < 0.2:
        found["sending_max_ms"] = rng.choice((1_000, 30_000))
    return found


def status(rng: random.Random) -> Tree:
    """The settings of status marks."""
    found: Tree = {
        "gate": rng.choice(("ack", "none")),
        "debounce_ms": rng.choice((200, 700)),
        "settle": rng.choice(("clear", "clear", "clear", "keep", "restore")),
        "done_hold_ms": rng.choice((0, 1_500, 4_000)),
        "wait_max_ms": rng.choice((0, 0, 20_000)),
        "final_sent_ms": rng.choice((5_000, 30_000)),
    }
    if rng.random() < 0.2:
        found["presentation"] = rng.choice(
            ("ends", "full", [state for state in STATES if rng.random() < 0.7] or ["done"])
        )
    if rng.random() < 0.15:
        found["start_delay_ms"] = rng.choice((300, 1_000))
    if rng.random() < 0.15:
        found["min_change_ms"] = rng.choice((500, 3_000))
    if rng.random() < 0.15:
        found["stall_soft_ms"], found["stall_hard_ms"] = rng.choice(((3_000, 30_000), (0, 11_000), (10_000, 0), (0, 0)))
    if rng.random() < 0.05:
        found["quiet_hours"] = rng.choice(("22:20-22:40", "22:00-06:00"))
    if rng.random() < 0.05:
        found["enabled"] = False
    return found


def _forget(tree: Tree, *names: str) -> None:
    """Leave these settings of status marks to the platform."""
    for name in names:
        tree.get("status", {}).pop(name, None)


def _match(rng: random.Random) -> Tree:
    block: Tree = rng.choice(
        (
            {"conversation": rng.choice(("v1*", "*3", "fresh"))},
            {"direct": rng.random() < 0.5},
            {"mentioned": rng.random() < 0.5},
            {"kind": "command"},
        )
    )
    chosen = rng.choice(("status", "ack", "lease", "typing"))
    if chosen == "status":
        block["status"] = status(rng)
        _forget(block, "presentation", "min_change_ms", "start_delay_ms", "stall_soft_ms", "stall_hard_ms")
    elif chosen == "ack":
        block["ack"] = _ack(rng)
    elif chosen == "lease":
        block["lease"] = {"ms": rng.choice((8_000, 60_000))}
    else:
        block["typing"] = {"mode": rng.choice(("instant", "thinking", "message", "never"))}
    return block
