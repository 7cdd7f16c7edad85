"""How livesign is configured in a case: presets of platforms, then what the case sets, in its own words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

from tests.cases.platforms import PRESETS
from tests.cases.words import DEFAULTS, WordError, setting

DEFAULT_ACCOUNT = "bot"
PROCESS = ("ledger", "metrics", "server", "shutdown", "supervision", "web")
"""Sections that stand at the top; all others are set under each account."""


class Settings:
    """Accounts and what is set for all of them. `with_words` gives a changed copy, for a reload."""

    def __init__(self, accounts: Mapping[str, str], options: Mapping[str, Any]) -> None:
        """``accounts``: name to preset; ``options`` are added to every preset."""
        self._accounts: dict[str, dict[str, Any]] = {}
        for name, preset in accounts.items():
            if preset not in PRESETS:
                raise WordError(f"there is no platform {preset!r}; there are {', '.join(PRESETS)}")
            self._accounts[name] = {**PRESETS[preset], **options}
        self._values: dict[str, Any] = dict(DEFAULTS)
        self._match: list[Any] = []

    @property
    def accounts(self) -> list[str]:
        return list(self._accounts)

    def with_words(self, words: Mapping[str, Any]) -> Settings:
        """The same, with these settings changed."""
        new = deepcopy(self)
        for name, value in words.items():
            for key, meant in setting(name, value).items():
                if key == "match":
                    new._match = list(meant)
                elif key == "accounts":
                    for account, own in meant.items():
                        new._accounts.setdefault(account, {}).update(own)
                else:
                    new._values[key] = meant
        return new

    def tree(self) -> dict[str, Any]:
        """The configuration as a scenario takes it."""
        top: dict[str, Any] = {}
        shared: dict[str, Any] = {}
        for key, value in self._values.items():
            _put(top if key.split(".")[0] in PROCESS else shared, key.split("."), value)
        top["accounts"] = {name: _merged(own, shared) for name, own in self._accounts.items()}
        if self._match:
            top["match"] = deepcopy(self._match)
        return top


def accounts_of(like: str | Mapping[str, str], named: Iterable[str]) -> dict[str, str]:
    """Name to preset: as the case lists them, or one account per name that its script uses."""
    if not isinstance(like, str):
        return dict(like)
    return dict.fromkeys(named or [DEFAULT_ACCOUNT], like)


def _put(tree: dict[str, Any], path: list[str], value: Any) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
        if not isinstance(tree, dict):
            raise WordError(f"{'.'.join(path)}: {name} has a value already")
    tree[path[-1]] = value


def _merged(low: Mapping[str, Any], high: Mapping[str, Any]) -> dict[str, Any]:
    merged: dict[str, Any] = deepcopy(dict(low))
    for name, value in high.items():
        mine = merged.get(name)
        merged[name] = _merged(mine, value) if isinstance(mine, dict) and isinstance(value, dict) else deepcopy(value)
    return merged
