"""A scenario: a configuration, what clients send and when, and how the platform behaves.

Reading one checks all of it before anything runs; an error names the place (``events[3][1].type``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, get_args, get_type_hints

import msgspec

from actors.config import Config, ConfigError, load
from actors.sandbox.faults import FaultPlan, RawAnswer, Rule, Window
from actors.scenario_controls import CONTROLS, Control, ScenarioError, check_control, whole
from actors.spelling import meant, unknown_field, unknown_fields, unknown_type
from actors.text_file import read_text
from protocol.codec import DecodeError, normalise
from protocol.events import Event

__all__ = ["CONTROLS", "Control", "Scenario", "ScenarioError", "Step", "read"]

DEFAULT_CLIENT = "c1"
DEFAULT_UNTIL_MS = 120_000
STEPS_MAX = 1_000_000
_RULE_PARTS: Final = (Rule, Window)


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
    warnings: tuple[str, ...] = ()
    """What was probably meant otherwise: of the configuration, and of events that no server would understand so."""


def read(source: str | Path | Mapping[str, Any]) -> Scenario:
    """The scenario of a JSON file or of a tree. Raises `ScenarioError`."""
    if isinstance(source, Mapping):
        return _read(source)
    try:
        tree = json.loads(read_text(source))
    except OSError as error:
        raise ScenarioError("", f"cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ScenarioError("", f"is not JSON: {error}") from error
    if not isinstance(tree, dict):
        raise ScenarioError("", "a scenario is an object with config, events, platform, until_ms and seed")
    return _read(tree)


@dataclass(slots=True)
class _Reading:
    """What is found out while the steps are read."""

    warnings: dict[str, str] = field(default_factory=dict)
    rows: int = 0
    """Those of repeats each time."""
    named: list[tuple[str, str | None]] = field(default_factory=list)
    """Where which account is named."""
    reloaded: set[str] = field(default_factory=set)
    """Accounts that a reload may bring."""

    def count(self, where: str) -> None:
        self.rows += 1
        if self.rows > STEPS_MAX:
            raise ScenarioError(where, f"more than {STEPS_MAX} steps")

    def see(self, control: Control, where: str) -> None:
        self.named.append((f"{where}.account", control.args.get("account")))
        tree = control.args.get("config")
        accounts = tree.get("accounts") if isinstance(tree, Mapping) else None
        self.reloaded |= set(accounts) if isinstance(accounts, Mapping) else set()

    def check_accounts(self, config: Config) -> None:
        known = {*config.accounts, *self.reloaded}
        for where, name in self.named:
            if name is not None and name not in known:
                raise ScenarioError(where, f"there is no account {name!r}; {meant(name, known)}")


def _read(tree: Mapping[str, Any]) -> Scenario:
    known = {"config", "events", "platform", "until_ms", "seed"}
    for name in tree:
        if name not in known:
            raise ScenarioError(str(name), f"a scenario has no such key; {meant(name, known)}")
    until_ms = whole(tree.get("until_ms", DEFAULT_UNTIL_MS), "until_ms")
    seed = whole(tree.get("seed", 0), "seed", least=-(2**62))
    config = _config(tree.get("config", {}), "config")
    platform = _platform(tree.get("platform", {}))
    rows = tree.get("events", [])
    if not isinstance(rows, list):
        raise ScenarioError("events", "must be a list of [t_ms, event] or [t_ms, event, client]")
    reading = _Reading()
    steps = list(_steps(rows, "events", 0, reading))
    steps.sort(key=lambda step: step.t_ms)
    reading.named += [(f"platform.rules[{number}].account", rule.account) for number, rule in enumerate(platform.rules)]
    reading.check_accounts(config)
    told = [f"{place}: {text}" for place, text in reading.warnings.items()]
    return Scenario(config, tuple(steps), platform, until_ms, seed, (*config.warnings, *told))


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
        where = f"platform{place.rstrip('`')}"
        raise ScenarioError(where, f"{reason}{_meant_by_rule(reason, where)}") from error


def _meant_by_rule(reason: str, where: str) -> str:
    """The nearest name of a field, or value of a choice, to the one that a rule does not know."""
    wrong = reason.replace("`", "'").split("'")[1] if "unknown field" in reason or "enum value" in reason else None
    if wrong is None:
        return ""
    if "enum value" in reason:
        name = where.rpartition(".")[2]
        choices = [hint for each in _RULE_PARTS for key, hint in get_type_hints(each).items() if key == name]
        return f"; {meant(wrong, _choices(choices))}"
    part = {"platform": FaultPlan, "limit": Window, "response": RawAnswer}.get(where.rpartition(".")[2], Rule)
    return f"; {meant(wrong, part.__struct_fields__)}"


def _choices(hints: list[Any]) -> list[str]:
    """The texts in these types."""
    found: list[str] = []
    for hint in hints:
        found += [hint] if isinstance(hint, str) else _choices(list(get_args(hint)))
    return found


def _steps(rows: list[Any], where: str, base_ms: int, reading: _Reading, times: int = 1) -> Iterator[Step]:
    for index, row in enumerate(rows):
        place = f"{where}[{index}]"
        reading.count(place)
        if not isinstance(row, list | tuple) or not 2 <= len(row) <= 4:
            raise ScenarioError(place, "must be [t_ms, event] or [t_ms, event, client]")
        t_ms = base_ms + whole(row[0], f"{place}[0]")
        control, client = _control(row, place)
        if control is None:
            yield Step(t_ms, client, _event(row[1], f"{place}[1]", reading.warnings))
        elif control.name == "@repeat":
            yield from _repeated(control, place, t_ms, client, reading, times)
        else:
            reading.see(control, f"{place}[1]")
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
    control = Control(name, args)
    check_control(control, f"{place}[1]")
    return control, client


def _repeated(control: Control, place: str, t_ms: int, client: str, reading: _Reading, times: int) -> Iterator[Step]:
    """``times``: of the repeats around it."""
    rows = control.args["events"]
    if not isinstance(rows, list):
        raise ScenarioError(f"{place}[1].events", "must be a list")
    times *= control.args["count"]
    if times * max(1, len(rows)) > STEPS_MAX:
        raise ScenarioError(f"{place}[1].count", f"more than {STEPS_MAX} steps")
    for number in range(control.args["count"] if rows else 0):
        numbered = [_row(_numbered(row, number), client) for row in rows]
        yield from _steps(numbered, f"{place}[1].events", t_ms + number * control.args["every_ms"], reading, times)


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


def _event(raw: Any, where: str, warnings: dict[str, str]) -> Event | DecodeError:
    if not isinstance(raw, Mapping):
        raise ScenarioError(where, "must be an event (an object with a type) or a step (@…)")
    for name in unknown_fields(raw):
        if f"{where}.{name}" not in warnings:
            warnings[f"{where}.{name}"] = f"is ignored: {unknown_field(raw, name)}"
    try:
        return normalise(raw)
    except DecodeError as error:
        if where not in warnings:
            reason = unknown_type(raw["type"]) if error.code == "unknown_type" else str(error)
            warnings[where] = f"is rejected: {reason}"
        return error
