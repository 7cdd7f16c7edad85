"""From a raw tree (TOML, JSON) to layers: checked values by dotted key, each with the place it came from.

A layer is one of the top, an account and a ``[[match]]`` block. Later layers go over earlier ones key by key.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from actors.config_keys import DEFAULTS, KEYS, Key, Level
from actors.config_problems import Report
from actors.config_values import is_name, quoted, type_name
from actors.presence.policy import STATES


class Setting(NamedTuple):
    """A checked value and the full key it was set by."""

    value: Any
    origin: str


Layer: TypeAlias = dict[str, Setting]
Trie: TypeAlias = "dict[str, Trie | Key]"
_WILD = "NAME"
CONDITIONS = tuple(key.name for key in KEYS if Level.CONDITION in key.levels)
_RESERVED = frozenset(STATES) - {"coding", "web"} | {"ack"}


def value_of(layer: Mapping[str, Setting], name: str) -> Any:
    """The value of ``name`` in a merged layer, else its default."""
    setting = layer.get(name)
    return DEFAULTS[name] if setting is None else setting.value


def _trie(*levels: Level) -> Trie:
    root: Trie = {}
    for key in KEYS:
        if key.levels.isdisjoint(levels):
            continue
        *sections, last = key.name.split(".")
        node = root
        for section in sections:
            child = node.setdefault(section, {})
            assert isinstance(child, dict)
            node = child
        node[last] = key
    return root


_TRIES = {
    Level.TOP: _trie(Level.TOP),
    Level.ACCOUNT: _trie(Level.ACCOUNT, Level.OWN),
    Level.MATCH: _trie(Level.MATCH, Level.CONDITION),
    Level.TOKEN: _trie(Level.TOKEN),
}
_PLACES = {
    Level.TOP: "at the top",
    Level.ACCOUNT: "under accounts.NAME",
    Level.OWN: "under accounts.NAME",
    Level.MATCH: "in [[match]]",
    Level.CONDITION: "in [[match]]",
}


@dataclass(frozen=True, slots=True)
class Block:
    """One ``[[match]]`` block: its conditions and its settings."""

    conditions: Layer
    settings: Layer


@dataclass(slots=True)
class Tree:
    """A configuration in layers."""

    top: Layer = field(default_factory=dict)
    accounts: dict[str, Layer] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)
    tokens: list[Layer] = field(default_factory=list)


def read_tree(raw: object, report: Report) -> Tree:
    """Check the shape and every single value of a raw tree; what is wrong is reported and left out."""
    tree = Tree()
    if not isinstance(raw, Mapping):
        report.problem("", f"a configuration is a table, not {type_name(raw)}")
        return tree
    rest = {key: value for key, value in raw.items() if key not in ("accounts", "match")}
    server = rest.get("server")
    if isinstance(server, Mapping) and "tokens" in server:
        rest["server"] = {key: value for key, value in server.items() if key != "tokens"}
        for origin, entry in _entries(server["tokens"], "server.tokens", report):
            tree.tokens.append(_read(entry, Level.TOKEN, origin, report))
    tree.top = _read(rest, Level.TOP, "", report)
    accounts = raw.get("accounts", {})
    if isinstance(accounts, Mapping):
        for name, section in accounts.items():
            _read_account(name, section, tree, report)
    else:
        report.problem("accounts", f"must be a table of accounts, not {type_name(accounts)}")
    for origin, entry in _entries(raw.get("match", []), "match", report):
        layer = _read(entry, Level.MATCH, origin, report)
        conditions = {name: layer.pop(name) for name in CONDITIONS if name in layer}
        tree.blocks.append(Block(conditions, layer))
    return tree


def _read_account(name: object, section: object, tree: Tree, report: Report) -> None:
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name.encode()) <= 255 or "/" in name:
        report.problem(f"accounts.{quoted(name)}", "is no account name", "1 to 255 bytes of printable text without /")
    elif not isinstance(section, Mapping):
        report.problem(f"accounts.{name}", f"must be a table, not {type_name(section)}")
    else:
        tree.accounts[name] = _read(section, Level.ACCOUNT, f"accounts.{name}", report)


def _entries(raw: object, name: str, report: Report) -> Iterator[tuple[str, Mapping[Any, Any]]]:
    if not isinstance(raw, list | tuple):
        report.problem(name, f"must be a list of tables, not {type_name(raw)}")
        return
    for index, entry in enumerate(raw):
        if isinstance(entry, Mapping):
            yield f"{name}[{index}]", entry
        else:
            report.problem(f"{name}[{index}]", f"must be a table, not {type_name(entry)}")


def _read(table: Mapping[Any, Any], level: Level, origin: str, report: Report) -> Layer:
    layer: Layer = {}
    _walk(table, _TRIES[level], "", layer, _Place(level, f"{origin}." if origin else "", report))
    for name in [name for name in layer if name.startswith("tools.") and name.endswith(".emoji")]:
        state = f"status.emoji.{name.split('.')[1]}"
        if state in layer:
            report.problem(layer[name].origin, f"{layer[state].origin} says the same: keep one of them")
        layer[state] = layer.pop(name)
    return layer


class _Place(NamedTuple):
    level: Level
    prefix: str
    report: Report


def _walk(table: Mapping[Any, Any], node: Trie, path: str, layer: Layer, place: _Place) -> None:
    for raw_name, value in table.items():
        name = f"{path}{raw_name}" if isinstance(raw_name, str) and raw_name.isprintable() else quoted(raw_name)
        origin = place.prefix + name
        child = node.get(raw_name) if isinstance(raw_name, str) and raw_name != _WILD else None
        if child is None and _WILD in node:
            child = node[_WILD] if isinstance(value, Mapping) else None
            if not isinstance(raw_name, str) or not is_name(raw_name) or raw_name in _RESERVED:
                place.report.problem(
                    origin,
                    "is no name for a tool category",
                    "a-z, 0-9 and _, at most 32, beginning with a letter, not the name of a state",
                )
                continue
        if child is None:
            place.report.problem(origin, _unknown(raw_name, node, path, place))
        elif isinstance(child, Key):
            try:
                layer[name] = Setting(child.kind.convert(value), origin)
            except ValueError as error:
                place.report.problem(origin, str(error), child.kind.allowed)
        elif isinstance(value, Mapping):
            _walk(value, child, f"{name}.", layer, place)
        else:
            place.report.problem(origin, f"must be a table, not {type_name(value)}", ", ".join(child))


def _unknown(raw_name: object, node: Trie, path: str, place: _Place) -> str:
    """Why a key is not known here, with the nearest one that is."""
    if not isinstance(raw_name, str):
        return "keys must be text"
    if "." in raw_name:
        return "is an unknown key: write a dotted key as nested tables"
    name = path + raw_name
    elsewhere = _levels_of(name)
    if elsewhere:
        places = list(dict.fromkeys(_PLACES[level] for level in Level if level in elsewhere and level in _PLACES))
        return f"can stand only {' or '.join(places)}"
    known = [key for key in _names(_TRIES[place.level]) if _WILD not in key]
    near = difflib.get_close_matches(raw_name[:64], set(node) - {_WILD}, 1, 0.6)
    if near:
        return f"is an unknown key; did you mean {place.prefix}{path}{near[0]}?"
    last = {key.rpartition(".")[2]: key for key in reversed(known)}
    far = difflib.get_close_matches(raw_name[:64], last, 1, 0.8)
    if far:
        return f"is an unknown key; did you mean {place.prefix}{last[far[0]]}?"
    return f"is an unknown key; known here: {', '.join(sorted(node))}"


def _names(node: Trie, path: str = "") -> Iterator[str]:
    for name, child in node.items():
        if isinstance(child, Key):
            yield path + name
        else:
            yield from _names(child, f"{path}{name}.")


def _levels_of(name: str) -> set[Level]:
    """The levels at which a key or section of this name may stand."""
    return {
        level
        for key in KEYS
        if key.name == name or key.name.startswith(f"{name}.")
        for level in key.levels
        if level is not Level.TOKEN
    }
