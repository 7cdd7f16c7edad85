"""A scenario: a configuration, what clients send and when, and how the platform behaves.

Reading one checks all of it before anything runs; an error names the place (``events[3][1].type``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from actors.config import Config, ConfigError, load
from actors.sandbox.faults import FaultPlan
from protocol.codec import DecodeError, normalise
from protocol.events import Event

DEFAULT_CLIENT = "c1"
DEFAULT_UNTIL_MS = 120_000
STEPS_MAX = 1_000_000

CONTROLS: Mapping[str, frozenset[str]] = {
    "@connect": frozenset(),
    "@client_lost": frozenset(),
    "@crash": frozenset({"actor", "account", "conversation", "on", "times"}),
    "@kill_restart": frozenset({"down_ms"}),
    "@shutdown": frozenset({"leave"}),
    "@boot": frozenset(),
    "@reload": frozenset({"config"}),
    "@suspend": frozenset({"ms"}),
    "@clock_jump": frozenset({"ms"}),
    "@repeat": frozenset({"count", "every_ms", "events"}),
}
CRASHABLE = ("reaction", "typing", "conversation", "platform_io", "router", "ledger")


class ScenarioError(ValueError):
    """The scenario does not fit. ``where`` is the place, the text says why. Nothing was run."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}" if where else reason)
        self.where = where
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Control:
    """A step that is no event."""

    name: str
    args: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    t_ms: int
    client: str
    what: Event | DecodeError | Control
    """An event that no client could send is kept as its error: it is answered, as on the socket."""


@dataclass(frozen=True, slots=True)
class Scenario:
    config: Config
    steps: tuple[Step, ...]
    platform: FaultPlan
    until_ms: int
    seed: int


def read(source: str | Path | Mapping[str, Any]) -> Scenario:
    """The scenario of a JSON file or of a tree. Raises `ScenarioError`."""
    if isinstance(source, Mapping):
        return _read(source)
    try:
        tree = json.loads(Path(source).read_text("utf-8"))
    except OSError as error:
        raise ScenarioError("", f"{source} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ScenarioError("", f"{source} is not JSON: {error}") from error
    if not isinstance(tree, dict):
        raise ScenarioError("", "a scenario is an object with config, events, platform, until_ms and seed")
    return _read(tree)


def _read(tree: Mapping[str, Any]) -> Scenario:
    known = {"config", "events", "platform", "until_ms", "seed"}
    for name in tree:
        if name not in known:
            raise ScenarioError(str(name), f"unknown key; allowed are {', '.join(sorted(known))}")
    until_ms = _whole(tree.get("until_ms", DEFAULT_UNTIL_MS), "until_ms")
    seed = _whole(tree.get("seed", 0), "seed", least=-(2**62))
    config = _config(tree.get("config", {}), "config")
    platform = _platform(tree.get("platform", {}))
    rows = tree.get("events", [])
    if not isinstance(rows, list):
        raise ScenarioError("events", "must be a list of [t_ms, event] or [t_ms, event, client]")
    steps = list(_steps(rows, "events", 0))
    steps.sort(key=lambda step: step.t_ms)
    return Scenario(config, tuple(steps), platform, until_ms, seed)


def _config(tree: Any, where: str) -> Config:
    try:
        return load(tree, scenario=True)
    except ConfigError as error:
        raise ScenarioError(where, "; ".join(str(problem) for problem in error.problems)) from error


def _platform(tree: Any) -> FaultPlan:
    try:
        return msgspec.convert(tree, FaultPlan)
    except msgspec.ValidationError as error:
        reason, _, place = str(error).partition(" - at `$")
        raise ScenarioError(f"platform{place.rstrip('`')}", reason) from error


def _steps(rows: list[Any], where: str, base_ms: int) -> Iterator[Step]:
    for index, row in enumerate(rows):
        place = f"{where}[{index}]"
        if not isinstance(row, list | tuple) or not 2 <= len(row) <= 4:
            raise ScenarioError(place, "must be [t_ms, event] or [t_ms, event, client]")
        t_ms = base_ms + _whole(row[0], f"{place}[0]")
        control, client = _control(row, place)
        if control is None:
            yield Step(t_ms, client, _event(row[1], f"{place}[1]"))
        elif control.name == "@repeat":
            yield from _repeated(control, place, t_ms, client)
        else:
            yield Step(t_ms, client, control)


def _control(row: Sequence[Any], place: str) -> tuple[Control | None, str]:
    """A control step is written as ``"@name"`` or ``{"type": "@name", …}`` or ``{"@name": {…}}``."""
    what = row[1]
    rest = list(row[2:])
    args: dict[str, Any] = {}
    name = None
    if isinstance(what, str):
        name = what
    elif isinstance(what, Mapping):
        kind = what.get("type")
        if isinstance(kind, str) and kind.startswith("@"):
            name, args = kind, {key: value for key, value in what.items() if key != "type"}
        elif len(what) == 1 and str(next(iter(what))).startswith("@"):
            name, inner = next(iter(what.items()))
            args = dict(inner) if isinstance(inner, Mapping) else {}
    if name is not None and rest and isinstance(rest[0], Mapping):
        args = {**args, **rest.pop(0)}
    client = rest[0] if rest else args.pop("client", DEFAULT_CLIENT) if name else DEFAULT_CLIENT
    if not isinstance(client, str) or not client:
        raise ScenarioError(place, "the client must be a name")
    if name is None:
        return None, client
    if name not in CONTROLS:
        raise ScenarioError(f"{place}[1]", f"unknown step {name!r}; allowed are {', '.join(CONTROLS)}")
    for key in args:
        if key not in CONTROLS[name]:
            allowed = ", ".join(sorted(CONTROLS[name])) or "nothing"
            raise ScenarioError(f"{place}[1].{key}", f"{name} takes {allowed}")
    return _checked(Control(name, args), place), client


def _checked(control: Control, place: str) -> Control:
    for key in ("ms", "down_ms", "every_ms", "count", "times"):
        if key in control.args:
            least = -(2**53) if control.name == "@clock_jump" else 0
            _whole(control.args[key], f"{place}[1].{key}", least=least)
    if control.name == "@crash" and control.args.get("actor") not in CRASHABLE:
        raise ScenarioError(f"{place}[1].actor", f"must be one of {', '.join(CRASHABLE)}")
    if control.name == "@repeat":
        for key in ("count", "every_ms", "events"):
            if key not in control.args:
                raise ScenarioError(f"{place}[1].{key}", "is missing")
    for key in ("ms",):
        if control.name in ("@suspend", "@clock_jump") and key not in control.args:
            raise ScenarioError(f"{place}[1].{key}", "is missing")
    return control


def _repeated(control: Control, place: str, t_ms: int, client: str) -> Iterator[Step]:
    rows = control.args["events"]
    if not isinstance(rows, list):
        raise ScenarioError(f"{place}[1].events", "must be a list")
    if control.args["count"] * max(1, len(rows)) > STEPS_MAX:
        raise ScenarioError(f"{place}[1].count", f"more than {STEPS_MAX} steps")
    for number in range(control.args["count"]):
        numbered = [_row(_numbered(row, number), client) for row in rows]
        yield from _steps(numbered, f"{place}[1].events", t_ms + number * control.args["every_ms"])


def _row(row: Any, client: str) -> Any:
    """A row of a repeat: a bare event is sent at once, and by the client of the repeat."""
    if isinstance(row, Mapping | str):
        row = [0, row]
    return [*row, client] if isinstance(row, list) and len(row) == 2 else row


def _numbered(value: Any, number: int) -> Any:
    if isinstance(value, str):
        return value.replace("{n}", str(number))
    if isinstance(value, list):
        return [_numbered(item, number) for item in value]
    if isinstance(value, dict):
        return {key: _numbered(item, number) for key, item in value.items()}
    return value


def _event(raw: Any, where: str) -> Event | DecodeError:
    if not isinstance(raw, Mapping):
        raise ScenarioError(where, "must be an event (an object with a type) or a step (@…)")
    try:
        return normalise(raw)
    except DecodeError as error:
        return error


def _whole(value: Any, where: str, least: int = 0) -> int:
    if type(value) is not int or value < least:
        raise ScenarioError(where, f"must be a whole number of at least {least}")
    return value
