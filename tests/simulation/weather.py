"""What goes wrong: rules of the platform and steps of the world, as parts of a scenario.

Rules pick calls by number, so that removing one leaves the others as they are and a failing world can be shrunk. They all
end with the storm. Steps are what happens to the host, the process, its actors and its clients.
"""

from __future__ import annotations

import random
from typing import Any

from actors.scenario_controls import CRASH_ON
from tests.simulation.scripts import Row

Rule = dict[str, Any]
OUTCOMES = ("already_done", "gone", "forbidden", "invalid_reaction", "rate_limited", "transient", "bad_request", "hang")
SHOWN = ("👀", "🤔", "👍", "😱")
CRASHERS = ("reaction", "reaction", "typing", "typing", "conversation", "conversation", "platform_io", "router")


def rules(rng: random.Random, rows: list[Row], accounts: list[str], storm_ms: int, badness: float) -> list[Rule]:
    """Faults of the platforms' side, ``badness`` 0 to 1. ``rows`` say when something goes on that they can hit."""
    found: list[Rule] = []
    calls = max(40, 2 * len(rows) // len(accounts))
    for account in accounts:
        busy_ms = [row[0] for row in rows if row[1].get("account") == account and row[0] < storm_ms] or [0]
        base: Rule = {"account": account, "until_ms": storm_ms}
        found += _windows(rng, base, busy_ms, badness)
        found += _single(rng, base, calls, badness)
    rng.shuffle(found)
    return found


def _numbers(rng: random.Random, calls: int, share: float) -> list[int]:
    many = max(1, min(40, round(calls * share)))
    return sorted(rng.sample(range(calls), min(many, calls)))


def _single(rng: random.Random, base: Rule, calls: int, badness: float) -> list[Rule]:
    """Single calls: a heavy tail of latency, every outcome, answers that are lost although the call took effect."""
    found: list[Rule] = []
    share = 0.02 * badness
    for latency_ms in (150, 600, 2_500, 9_000, int(40 * rng.paretovariate(0.7))):
        found.append({**base, "nth": _numbers(rng, calls, share), "latency_ms": min(latency_ms, 60_000)})
    for outcome in OUTCOMES:
        rule: Rule = {**base, "nth": _numbers(rng, calls, share / 2), "outcome": outcome}
        rule["latency_ms"] = rng.choice((0, 80, 700))
        if outcome == "rate_limited":
            found.append({**rule, "nth": _numbers(rng, calls, share / 2)})
            rule["nth"] = _numbers(rng, calls, 1.2 * share)
            rule["retry_after_ms"] = rng.choice((0, 900, 5_000, 40_000))
            rule["scope"] = rng.choice(("account", "conversation", *("route",) * 4, None, None, None))
        if outcome == "hang":
            found.append({**rule, "nth": _numbers(rng, calls, share), "applied": True})
        elif outcome == "transient":  # a typing start that failed so is taken as not made, by decision
            for op in ("set", "remove", "clear", "typing_stop"):
                found.append({**rule, "op": op, "nth": _numbers(rng, calls // 3, share), "applied": True})
        found.append(rule)
    numbers = _numbers(rng, max(40, calls // 6), share)  # of one mark only: there are others instead
    found.append({**base, "op": "set", "emoji": rng.choice(SHOWN), "nth": numbers, "outcome": "invalid_reaction"})
    if rng.random() < 1.5 * badness:
        found.append({**base, "nth": [rng.randrange(calls // 3)], "outcome": "auth"})
    return found


def _windows(rng: random.Random, base: Rule, busy_ms: list[int], badness: float) -> list[Rule]:
    """Times in which all is bad: outages, slow times, a platform that counts for itself."""
    found: list[Rule] = []
    storm_ms = base["until_ms"]
    if rng.random() < badness:
        from_ms = rng.choice(busy_ms)
        until_ms = min(storm_ms, from_ms + rng.choice((3_000, 20_000, 120_000)))
        outcome = rng.choice(("transient", "hang", "transient"))
        rule = {**base, "from_ms": from_ms, "until_ms": until_ms, "outcome": outcome}
        found.append({**rule, "applied": True} if outcome == "hang" and rng.random() < 0.5 else rule)
    if rng.random() < 0.5 * badness:  # only typing fails, for long enough to be given up
        from_ms = rng.choice(busy_ms)
        until_ms = min(storm_ms, from_ms + rng.choice((20_000, 90_000)))
        found.append({**base, "op": "typing_start", "from_ms": from_ms, "until_ms": until_ms, "outcome": "transient"})
    if rng.random() < 0.8 * badness:  # a flood: answers that overlap name different times
        from_ms = rng.choice(busy_ms)
        flood = {**base, "from_ms": from_ms, "until_ms": min(storm_ms, from_ms + 4_000), "outcome": "rate_limited"}
        flood["scope"] = rng.choice(("account", "conversation"))
        found.append({**flood, "nth": [0, 3, 6], "latency_ms": 300, "retry_after_ms": 20_000})
        found.append({**flood, "latency_ms": 500, "retry_after_ms": 300})
    if rng.random() < 0.5 * badness:
        from_ms = rng.choice(busy_ms)
        found.append({**base, "from_ms": from_ms, "until_ms": from_ms + 30_000, "latency_ms": rng.choice((400, 4_000))})
    if rng.random() < 0.4 * badness:
        limit = {"per_ms": 1_000, "count": rng.choice((1, 3, 10)), "by": rng.choice(("account", "conversation"))}
        from_ms = rng.choice(busy_ms)
        found.append({**base, "from_ms": from_ms, "until_ms": min(storm_ms, from_ms + 60_000), "limit": limit})
    return found


def steps(
    rng: random.Random, rows: list[Row], clients: list[str], storm_ms: int, badness: float, spared: bool
) -> list[Row]:
    """Faults of our side and of the clients'. ``rows`` say when something goes on that they can hit; ``spared``: the
    platforms are well, so that our own side may fail all the more."""
    found: list[Row] = []
    busy = [row for row in rows if row[0] < storm_ms - 90_000 and "account" in row[1]]
    for _ in range(round(1 + len(rows) * (0.03 if spared else 0.006) * badness)):
        t_ms, event, _ = rng.choice(busy)
        found.append([t_ms + rng.choice((-100, 0, 0, 50, 1_500)), _crash(rng, event)])
    for _ in range(int(rng.random() * (1 + 2 * badness))):
        found += _relapse(rng, busy)
    for _ in range(int(rng.random() * (1 + 4.0 * badness))):
        found.append([rng.choice(busy)[0], {"type": "@crash", "actor": "ledger"}])
    for _ in range(round(rng.random() * 4 * badness * len(clients))):
        client = rng.choice(clients)
        lost_ms = rng.choice(busy)[0]
        found.append([lost_ms, "@client_lost", client])
        if rng.random() < 0.6:
            found.append([lost_ms + rng.choice((200, 8_000, 29_000, 60_000)), "@connect", client])
    posted = [row for row in busy if row[1]["type"] == "sent" and row[1].get("final")]
    for t_ms, _, client in rng.sample(posted, round(len(posted) * 0.5 * badness)):  # who has answered may well be gone
        found.append([t_ms + rng.choice((10, 1_000)), "@client_lost", client])
    for name, chance in (("kill", 3.4), ("suspend", 3.8), ("jump", 3.4), ("shutdown", 3.8), ("leave", 3.6)):
        for _ in range(int(rng.random() * (1 + chance * badness))):
            found += _host(rng, name, rng.choice(busy)[0])
    return [[max(0, min(row[0], storm_ms - 1)), *row[1:]] for row in found]


def _crash(rng: random.Random, event: dict[str, Any]) -> dict[str, Any]:
    crash: dict[str, Any] = {"type": "@crash", "actor": rng.choice(CRASHERS), "account": event["account"]}
    if crash["actor"] in ("reaction", "typing"):
        crash["conversation"] = event["conversation"]
        if rng.random() < 0.6:
            on = rng.choice((event["type"], "answer", "answer"))
            crash["on"] = on if on in CRASH_ON else "answer"  # not what no client may send
    elif rng.random() < 0.5:
        del crash["account"]  # any message, not only one that names an account
    crash["times"] = rng.choice((1, 1, 1, 1, 2, 2, 8)) if crash["actor"] != "conversation" else 1
    return crash


def _relapse(rng: random.Random, busy: list[Row]) -> list[Row]:
    """One actor of a conversation fails time and again while much is told to it: more often than it may."""
    row = rng.choice(busy)
    place = (row[1]["account"], row[1]["conversation"])
    soon = [each for each in busy if row[0] <= each[0] < row[0] + 4_000 and _place(each) == place]
    if len(soon) < 4:
        return []
    crash = {
        "type": "@crash",
        "actor": rng.choice(("reaction", "typing")),
        "account": place[0],
        "conversation": place[1],
    }
    return [[row[0], {**crash, "times": rng.choice((4, 8, 30))}]]


def _place(row: Row) -> tuple[str, str]:
    return row[1]["account"], row[1]["conversation"]


def _host(rng: random.Random, name: str, t_ms: int) -> list[Row]:
    match name:
        case "kill":
            return [[t_ms, {"type": "@kill_restart", "down_ms": rng.choice((0, 500, 5_000, 20_000))}]]
        case "suspend":
            return [[t_ms, {"type": "@suspend", "ms": rng.choice((2_000, 45_000, 3_600_000))}]]
        case "jump":
            return [[t_ms, {"type": "@clock_jump", "ms": rng.choice((-7_200_000, -900, 5_000, 86_400_000))}]]
        case "leave":
            return [[t_ms, {"type": "@shutdown", "leave": True}], [t_ms + rng.choice((0, 700, 4_000)), "@boot"]]
        case _:
            return [[t_ms, "@shutdown"], [t_ms + rng.choice((10, 3_000)), "@boot"], [t_ms + 12_000, "@boot"]]
