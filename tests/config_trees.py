"""Small configurations for the tests, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import pytest

from actors.config import Config, ConfigError, load
from actors.platforms.registry import PLATFORMS
from actors.platforms.spec import NO_OPTIONS
from actors.presence.policy import (
    Policy,
)

ENVIRON = {"XDG_RUNTIME_DIR": "/run/user/1", "XDG_STATE_HOME": "/var/lib/someone"}
TELEGRAM = {"platform": "telegram", "token": "1:secret"}


def config(tree: Mapping[str, Any] | None = None, **keywords: Any) -> Config:
    return load(tree, environ=ENVIRON, **keywords)


def telegram(**sections: Any) -> dict[str, Any]:
    return {"accounts": {"tg": TELEGRAM}, **sections}


def sandbox(options: Mapping[str, Any] = NO_OPTIONS, **sections: Any) -> dict[str, Any]:
    return {"accounts": {"sb": {"platform": "sandbox", **options}}, **sections}


def account_on(platform: str) -> dict[str, Any]:
    """An account with all that its platform needs."""
    needed = PLATFORMS[platform](NO_OPTIONS).spec.required_options
    return {"platform": platform, "token": "t", "base_url": "http://localhost", **dict.fromkeys(needed, "1")}


def problems(tree: Any, **keywords: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        config(tree, **keywords)
    return [str(problem) for problem in caught.value.problems]


def only_problem(tree: Any, **keywords: Any) -> str:
    found = problems(tree, **keywords)
    assert len(found) == 1, found
    return found[0]


def base_policy(tree: Mapping[str, Any] | None = None) -> Policy:
    loaded = config(tree)
    return loaded.policy(next(iter(loaded.accounts)), "c")


def placed(values: Mapping[str, Any], tree: Mapping[str, Any] = NO_OPTIONS) -> dict[str, Any]:
    """``tree`` with values set by dotted key; a value in the way of a longer key gives way."""
    whole = deepcopy(dict(tree))
    for name, value in values.items():
        *sections, last = name.split(".")
        node = whole
        for section in sections:
            if not isinstance(node.get(section), dict):
                node[section] = {}
            node = node[section]
        node[last] = value
    return whole


def nested(name: str, value: object) -> dict[str, Any]:
    return placed({name: value})
