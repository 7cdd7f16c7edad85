"""Makes a failing world small: takes away conversations, steps, rules, single numbers of rules and accounts for as long as
it still fails.

Delta debugging: halves first, then quarters and so on down to single parts. What counts as the same failure is the first
problem's text without its numbers and names.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.simulation import trial
from tests.simulation.coda import CLIENT
from tests.simulation.configs import Tree
from tests.simulation.worlds import World

Parts = list[Any]
Fails = Callable[[Tree], bool]

LATER_MS = 120_000
"""The failure may come so much later in a smaller world."""
SEEDS = 8
"""So many seeds are tried for one whose world has a ledger that commits at once."""


def kind_of(problem: str) -> str:
    """A problem's text without what differs from world to world."""
    return re.sub(r"'[^']*'|\(.*?\)|\[.*?\]|\d+|\S*[^\x00-\x7f]\S*", "·", problem.partition(": ")[2])[:60]


def shrink(world: World, problem: str, seconds: float = 240.0) -> World:
    """The smallest world found in that time that fails in the same way."""
    wanted, end_s = kind_of(problem), time.monotonic() + seconds
    at_ms = int(problem.partition(" ")[0])
    until_ms = at_ms + LATER_MS if at_ms < world.storm_ms else world.tree["until_ms"]

    def found(problems: list[str]) -> bool:
        return any(kind_of(each) == wanted for each in problems)

    def fails(tree: Tree) -> bool:
        if time.monotonic() > end_s:
            return False
        return found(trial.run(replace(world, tree=tree, seed=tree["seed"]), until_ms, found).problems)

    tree = world.tree
    for smaller in _at_once(world, at_ms):
        tree = next((each for each in (smaller(tree),) if fails(each)), tree)
    tree = _with_fast_ledger(tree, fails)
    size = -1
    while size != _size(tree) and time.monotonic() < end_s:
        size = _size(tree)
        for part in (_Conversations, _Events, _Rules, _Numbers, _Accounts):
            tree = _reduced(tree, part(world), fails)
    return replace(world, tree=tree, seed=tree["seed"])


def _at_once(world: World, at_ms: int) -> tuple[Callable[[Tree], Tree], ...]:
    """What is likely to have nothing to do with it."""

    def keep(condition: Callable[[list[Any]], bool]) -> Callable[[Tree], Tree]:
        return lambda tree: {**tree, "events": [row for row in tree["events"] if condition(row)]}

    return (
        keep(lambda row: row[2:] != [CLIENT]),
        keep(lambda row: bool(row[0] <= at_ms or _is_frozen(row, world))),
        keep(lambda row: not _is_frozen(row, world)),
    )


def _with_fast_ledger(tree: Tree, fails: Fails) -> Tree:
    """The same with a ledger that commits at once, as in ``livesign simulate``."""
    if not trial.is_slow(tree["seed"]):
        return tree
    fast = [seed for seed in range(SEEDS * 4) if not trial.is_slow(seed)]
    return next((each for seed in fast[:SEEDS] if fails(each := {**tree, "seed": seed})), tree)


def _is_frozen(row: list[Any], world: World) -> bool:
    """What the calm and the coda are made of: without it much would look wrong."""
    return bool(row[0] >= world.storm_ms and row[2:] != ["echo"])


def _size(tree: Tree) -> int:
    rules = _rules(tree)
    return len(tree["events"]) + len(rules) + sum(len(rule.get("nth", ())) for rule in rules)


def _rules(tree: Tree) -> Parts:
    return list(tree["platform"].get("rules", []))


def _with_rules(tree: Tree, rules: Parts) -> Tree:
    return {**tree, "platform": {**tree["platform"], "rules": rules}}


# --- what a world is made of -----------------------------------------------------------------------------------------


class _Events:
    """Single steps."""

    def __init__(self, world: World) -> None:
        self._world = world

    def parts(self, tree: Tree) -> Parts:
        return [row for row in tree["events"] if not _is_frozen(row, self._world)]

    def without(self, tree: Tree, gone: Parts) -> Tree:
        names = {id(row) for row in gone}
        return {**tree, "events": [row for row in tree["events"] if id(row) not in names]}


class _Conversations(_Events):
    """All that is said in a conversation."""

    def parts(self, tree: Tree) -> Parts:
        return sorted({place for row in tree["events"] if (place := _place(row)) is not None})

    def without(self, tree: Tree, gone: Parts) -> Tree:
        return {**tree, "events": [row for row in tree["events"] if _place(row) not in gone]}


class _Rules(_Events):
    """Rules of the platforms."""

    def parts(self, tree: Tree) -> Parts:
        return _rules(tree)

    def without(self, tree: Tree, gone: Parts) -> Tree:
        names = {id(rule) for rule in gone}
        return _with_rules(tree, [rule for rule in _rules(tree) if id(rule) not in names])


class _Numbers(_Events):
    """Numbers of the calls that a rule picks: of each rule one at least stays."""

    def parts(self, tree: Tree) -> Parts:
        return [(index, number) for index, rule in enumerate(_rules(tree)) for number in rule.get("nth", ())]

    def without(self, tree: Tree, gone: Parts) -> Tree:
        rules = _rules(tree)
        for index, rule in enumerate(rules):
            numbers = [number for number in rule.get("nth", ()) if (index, number) not in gone]
            if numbers:
                rules[index] = {**rule, "nth": numbers}
        return _with_rules(tree, rules)


class _Accounts(_Events):
    """Accounts of which nothing is said any more."""

    def parts(self, tree: Tree) -> Parts:
        named = {row[1].get("account") for row in tree["events"] if isinstance(row[1], dict)}
        named |= {rule.get("account") for rule in _rules(tree)}
        return sorted(set(tree["config"]["accounts"]) - named)

    def without(self, tree: Tree, gone: Parts) -> Tree:
        return {
            **tree,
            "config": _without_accounts(tree["config"], gone),
            "events": [_without_accounts_in(row, gone) for row in tree["events"]],
        }


def _without_accounts(config: Tree, gone: Parts) -> Tree:
    kept = {name: account for name, account in config["accounts"].items() if name not in gone}
    return {**config, "accounts": kept}


def _without_accounts_in(row: list[Any], gone: Parts) -> list[Any]:
    if isinstance(row[1], dict) and "config" in row[1]:
        return [row[0], {**row[1], "config": _without_accounts(row[1]["config"], gone)}, *row[2:]]
    return row


def _place(row: list[Any]) -> tuple[str, str] | None:
    event = row[1]
    if isinstance(event, dict) and "conversation" in event and not event["type"].startswith("@"):
        return event.get("account", ""), event["conversation"]
    return None


def _reduced(tree: Tree, kind: _Events, fails: Fails) -> Tree:
    chunk = max(1, len(kind.parts(tree)) // 2)
    while parts := kind.parts(tree):
        start, found = 0, False
        while start < len(parts):
            smaller = kind.without(tree, parts[start : start + chunk])
            if smaller != tree and fails(smaller):
                tree, found = smaller, True
                parts = parts[:start] + parts[start + chunk :]
            else:
                start += chunk
        if chunk == 1 and not found:
            break
        chunk = max(1, chunk // 2)
    return tree
