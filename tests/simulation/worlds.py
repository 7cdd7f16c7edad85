"""Worlds: a whole scenario from one seed, in the form that ``livesign simulate`` takes.

Every world has three parts. In the *storm*, conversations of several accounts and clients go through random scripts
while platform, host, process, actors and clients fail. Then all clients leave, and in the *calm*, a day long, everything
has to come to rest; an *echo* of short runs goes through it, at a time when refusals are remembered and may be doubted. In
the *coda* the same accounts get plain runs again, which have to look as on the first day.
"""

from __future__ import annotations

import copy
import random
from dataclasses import dataclass
from typing import Any

from tests.simulation import coda, configs, weather
from tests.simulation.configs import FEW, Tree
from tests.simulation.scripts import Row, Talk

DAY_MS = 86_400_000
CALM_MS = DAY_MS + 3_600_000
ECHO_MS = 640_000
ECHO = ("echo1", "echo2")
ECHOES = 40
CODAS = 4
RELOAD_MS = 3_600_000
LOOK_MS = 4_000
LOOKER = "looker"


@dataclass(frozen=True, slots=True)
class World:
    """A scenario's tree, and when its parts begin."""

    seed: int
    tree: Tree
    storm_ms: int
    """When the storm is over."""
    coda_ms: int
    calm: bool
    """Nothing fails: everything has to be on time."""
    places: tuple[tuple[str, str], ...] = ()
    """Account and conversation of everything that is in the coda."""


def make(seed: int) -> World:
    """The world of this seed."""
    rng = random.Random(seed)
    calm = rng.random() < 0.2
    badness = 0.0 if calm else rng.choice((0.15, 0.5, 1.0))
    size = rng.choices((4, 12, 60, 200, 1_200), (10, 45, 35, 9, 1))[0]
    config = configs.make(rng, calm)
    accounts = list(config["accounts"])
    clients = [f"c{n}" for n in range(rng.choice((1, 2, 3, 8)))]
    length_ms = rng.choice((60_000, 240_000, 900_000)) + size * 200
    rows = _talks(rng, config, clients, size, length_ms)
    storm_ms = max(row[0] for row in rows) + 100_000
    faults: list[Row] = []
    platform: Tree = {"latency_ms": rng.choice((0, 30, 120))}
    if not calm:
        spared = rng.random() < 0.25  # what users see is watched all the more closely where the platforms are well
        faults = weather.steps(rng, rows, clients, storm_ms, badness, spared) + _reloads(rng, config, storm_ms)
        slept_ms = sum(row[1]["ms"] for row in faults if isinstance(row[1], dict) and row[1]["type"] == "@suspend")
        storm_ms += slept_ms
        if not spared:
            platform["rules"] = weather.rules(rng, rows, accounts, storm_ms, badness)
        rows = _disorder(rng, rows)
    number(rows)
    coda_ms = storm_ms + CALM_MS
    used = [row[1] for row in rows if "account" in row[1] and row[1]["account"] not in FEW]
    places = [(event["account"], event["conversation"]) for event in rng.sample(used, min(CODAS, len(used)))]
    places = [(name, "fresh") for name in accounts] + list(dict.fromkeys(places))
    events = rows + faults + _calm(config, clients, storm_ms) + _echo(rng, rows, storm_ms) + coda.rows(places, coda_ms)
    until_ms = coda_ms + coda.LENGTH_MS
    tree = {"config": config, "events": events, "platform": platform, "until_ms": until_ms, "seed": seed}
    return World(seed, tree, storm_ms, coda_ms, calm, tuple(places))


def with_looks(world: World, until_ms: int | None = None) -> Tree:
    """The world's tree (or its beginning) with a moment every few seconds at which the watcher looks."""
    tree = world.tree
    until_ms = min(until_ms or tree["until_ms"], tree["until_ms"])
    times = (
        range(0, world.storm_ms + 60_000, LOOK_MS),
        range(world.storm_ms + ECHO_MS, world.storm_ms + ECHO_MS + 120_000, LOOK_MS),
        (world.storm_ms + RELOAD_MS - 5_000,),
        range(world.coda_ms, world.tree["until_ms"], LOOK_MS),
    )
    looks: list[Row] = [[t_ms, "@connect", LOOKER] for part in times for t_ms in part]
    looks += [[world.coda_ms + t_ms, "@connect", LOOKER] for t_ms in coda.MOMENTS]
    rows = [row for row in tree["events"] + looks if row[0] <= until_ms]
    return {**tree, "events": sorted(rows, key=lambda row: row[0]), "until_ms": until_ms}


def number(rows: list[Row]) -> None:
    """Give every event an id, so that it is acknowledged; repeats share the event, and with it the id."""
    for index, row in enumerate(rows):
        row[1].setdefault("id", str(index))


# --- parts ---------------------------------------------------------------------------------------------------------


def _talks(rng: random.Random, config: Tree, clients: list[str], size: int, length_ms: int) -> list[Row]:
    accounts = config["accounts"]
    room = {name: FEW.get(account["platform"], size) for name, account in accounts.items()}
    rows: list[Row] = []
    for index in range(size):
        account = rng.choice([name for name in accounts if room[name] > 0] or list(accounts))
        room[account] -= 1
        talk = Talk(rng, account, f"-{index}" if index % 5 == 3 else f"v{index}", clients, rng.randrange(length_ms))
        rows += talk.write(rng.choice((1, 1, 2, 4)))
    rows.sort(key=lambda row: row[0])
    return rows


def _disorder(rng: random.Random, rows: list[Row]) -> list[Row]:
    """Some events come twice, or after the next one."""
    found: list[Row] = []
    for row in rows:
        found.append(row)
        kind = rng.random()
        if kind < 0.02:
            row[0] += rng.choice((1, 300, 2_500))
        elif kind < 0.05:
            found.append([row[0] + rng.choice((0, 40, 3_000, 30_000)), row[1], row[2]])
    found.sort(key=lambda row: row[0])
    return found


def _calm(config: Tree, clients: list[str], storm_ms: int) -> list[Row]:
    """The clients leave; new credentials bring back, after the echo, an account that was stopped."""
    fresh = copy.deepcopy(config)
    for account in fresh["accounts"].values():
        account["token"] = "another"
    rows: list[Row] = [[storm_ms, "@boot"], [storm_ms + 60_000, "@boot"]]
    rows += [[storm_ms, "@client_lost", client] for client in clients]
    return [*rows, [storm_ms + RELOAD_MS, {"type": "@reload", "config": fresh}]]


def _echo(rng: random.Random, rows: list[Row], storm_ms: int) -> list[Row]:
    """Two plain runs, one after the other, in conversations of the storm."""
    used = list(dict.fromkeys((row[1]["account"], row[1]["conversation"]) for row in rows if "account" in row[1]))
    found: list[Row] = []
    for account, conversation in rng.sample(used, min(ECHOES, len(used))):
        for start_ms, message in zip((ECHO_MS, ECHO_MS + 60_000), ECHO, strict=True):
            fields: dict[str, dict[str, Any]] = {
                "received": {"direct": False, "mentioned": True},
                "thinking": {},
                "done": {},
            }
            for index, (kind, more) in enumerate(fields.items()):
                event = {"type": kind, "account": account, "conversation": conversation, "message": message, **more}
                event["id"] = f"{account}/{conversation}/{message}/{kind}"
                found.append([storm_ms + start_ms + index * 3_000, event, "echo"])
    return [*found, [storm_ms + ECHO_MS + 120_000, "@client_lost", "echo"]]


def _reloads(rng: random.Random, config: Tree, storm_ms: int) -> list[Row]:
    numbers = range(rng.choice((0, 1, 1, 2, 3)))
    return [
        [rng.randrange(storm_ms), {"type": "@reload", "config": configs.other(rng, config, number)}]
        for number in numbers
    ]
