"""Makes a failing world small: takes away steps, rules and single numbers of rules for as long as it still fails.

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


def kind_of(problem: str) -> str:
    """A problem's text without what differs from world to world."""
    return re.sub(r"'[^']*'|\(.*?\)|\[.*?\]|\d+|\S*[^\x00-\x7f]\S*", "·", problem.partition(": ")[2])[:60]


def shrink(world: World, problem: str, seconds: float = 120.0) -> World:
    """The smallest world found in that time that fails in the same way."""
    wanted = kind_of(problem)
    end_s = time.monotonic() + seconds
    frozen = [row for row in world.tree["events"] if _is_frozen(row, world)]
    loose = [row for row in world.tree["events"] if not _is_frozen(row, world)]

    def whole(tree: Tree) -> Tree:
        return {**tree, "events": sorted(tree["events"] + frozen, key=lambda row: row[0])}

    def fails(tree: Tree) -> bool:
        report = trial.run(replace(world, tree=whole(tree)))
        return any(kind_of(each) == wanted for each in report.problems)

    tree = {**world.tree, "events": loose}
    kept, frozen = frozen, [row for row in frozen if row[2:] != [CLIENT]]
    if "coda" in problem or not fails(tree):
        frozen = kept
    size = -1
    while size != _size(tree) and time.monotonic() < end_s:
        size = _size(tree)
        tree = _without_conversations(tree, fails)
        tree = _reduced(tree, "events", fails, end_s)
        tree = _reduced(tree, "rules", fails, end_s)
        tree = _without_numbers(tree, fails, end_s)
    return replace(world, tree=whole(tree))


def _is_frozen(row: list[Any], world: World) -> bool:
    """What the calm and the coda are made of: without it everything would look wrong."""
    return bool(row[0] >= world.storm_ms and row[2:] != ["echo"])


def _size(tree: Tree) -> int:
    rules = tree["platform"].get("rules", [])
    return len(tree["events"]) + len(rules) + sum(len(rule.get("nth", ())) for rule in rules)


def _with(tree: Tree, name: str, parts: Parts) -> Tree:
    if name == "events":
        return {**tree, "events": parts}
    return {**tree, "platform": {**tree["platform"], "rules": parts}}


def _parts(tree: Tree, name: str) -> Parts:
    return list(tree["events"] if name == "events" else tree["platform"].get("rules", []))


def _without_conversations(tree: Tree, fails: Callable[[Tree], bool]) -> Tree:
    """Most conversations have nothing to do with it: keep the events of one, if that does."""
    places = {_place(row) for row in tree["events"]} - {None}
    for place in sorted(places, key=str)[:400] if len(places) > 2 else ():
        smaller = _with(tree, "events", [row for row in tree["events"] if _place(row) in (None, place)])
        if fails(smaller):
            return smaller
    return tree


def _place(row: list[Any]) -> tuple[str, str] | None:
    event = row[1]
    if isinstance(event, dict) and "conversation" in event and not event["type"].startswith("@"):
        return event.get("account", ""), event["conversation"]
    return None


def _reduced(tree: Tree, name: str, fails: Callable[[Tree], bool], end_s: float) -> Tree:
    parts = _parts(tree, name)
    chunk = max(1, len(parts) // 2)
    while parts and time.monotonic() < end_s:
        start, found = 0, False
        while start < len(parts) and time.monotonic() < end_s:
            fewer = parts[:start] + parts[start + chunk :]
            if fails(_with(tree, name, fewer)):
                parts, found = fewer, True
            else:
                start += chunk
        if chunk == 1 and not found:
            break
        chunk = max(1, chunk // 2)
    return _with(tree, name, parts)


def _without_numbers(tree: Tree, fails: Callable[[Tree], bool], end_s: float) -> Tree:
    rules = _parts(tree, "rules")
    for index, rule in enumerate(rules):
        for number in rule.get("nth", ()):
            if time.monotonic() > end_s:
                return tree
            numbers = [each for each in rules[index]["nth"] if each != number]
            fewer = [*rules]
            fewer[index] = {**rule, "nth": numbers}
            if numbers and fails(_with(tree, "rules", fewer)):
                rules = fewer
    return _with(tree, "rules", rules)
