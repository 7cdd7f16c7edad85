"""The steps of a scenario that are no events: what each takes, and what is wrong with one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from actors.spelling import meant
from protocol.convert import EVENT_KINDS

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
CRASH_ON = frozenset({*EVENT_KINDS, "set", "clear", "answer"})
"""Events, and between actors: what is asked of the platform, and its answer."""
_NEEDED = {
    "@crash": ("actor",),
    "@reload": ("config",),
    "@suspend": ("ms",),
    "@clock_jump": ("ms",),
    "@repeat": ("count", "every_ms", "events"),
}


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


def check_control(control: Control, where: str) -> None:
    """Raises `ScenarioError`."""
    name, args = control.name, control.args
    if name not in CONTROLS:
        raise ScenarioError(where, f"there is no step {name!r}; {meant(name, CONTROLS)}")
    for key in args:
        if key not in CONTROLS[name]:
            raise ScenarioError(f"{where}.{key}", f"{name} does not take this; {meant(key, CONTROLS[name])}")
    for key in _NEEDED.get(name, ()):
        if key not in args:
            raise ScenarioError(f"{where}.{key}", f"is missing: {name} needs it")
    for key, value in args.items():
        _check_value(name, key, value, f"{where}.{key}")


def _check_value(name: str, key: str, value: Any, where: str) -> None:
    match key:
        case "ms" | "down_ms" | "every_ms" | "count":
            whole(value, where, least=-(2**53) if name == "@clock_jump" else 0)
        case "times":
            whole(value, where, least=1)
        case "leave" if not isinstance(value, bool):
            raise ScenarioError(where, f"must be true or false, not {value!r}")
        case "account" | "conversation" if not isinstance(value, str):
            raise ScenarioError(where, f"must be a text, not {value!r}")
        case "actor" if value not in CRASHABLE:
            raise ScenarioError(where, f"there is no actor {value!r}; {meant(value, CRASHABLE)}")
        case "on" if value not in CRASH_ON:
            raise ScenarioError(where, f"no actor handles {value!r}; {meant(value, CRASH_ON)}")


def whole(value: Any, where: str, least: int = 0) -> int:
    """The value, if it is a whole number that is large enough. Raises `ScenarioError`."""
    if type(value) is not int or value < least:
        raise ScenarioError(where, f"must be a whole number of at least {least}")
    return value
