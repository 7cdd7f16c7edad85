"""The platforms that cases are about: real ones where livesign has an adapter, else the sandbox with their model.

``typing_lifetime_ms`` is how long an indicator lasts there, the refresh interval is the one that cases name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ADDS = {"reactions": "add_remove"}


def _model(lifetime_ms: int, keepalive_ms: int, *, stop: bool, clears: bool = True, **more: Any) -> Mapping[str, Any]:
    return {
        "platform": "sandbox",
        "typing_lifetime_ms": lifetime_ms,
        "typing_stop": stop,
        "post_clears_typing": clears,
        "typing": {"keepalive_ms": keepalive_ms},
        **more,
    }


PRESETS: Mapping[str, Mapping[str, Any]] = {
    "telegram": {"platform": "telegram"},
    "matrix": {"platform": "matrix"},
    "sandbox": {"platform": "sandbox"},
    "discord": _model(10_000, 8_000, stop=False, **_ADDS),
    "slack": _model(120_000, 90_000, stop=True, **_ADDS),
    "mattermost": _model(5_000, 4_000, stop=False, **_ADDS),
    "zulip": _model(45_000, 30_000, stop=True, clears=False, **_ADDS),
    "teams": _model(4_000, 3_000, stop=False, **_ADDS),
    "googlechat": _model(0, 0, stop=True, **_ADDS),
    "feishu": _model(0, 0, stop=True, clears=False, **_ADDS),
    "whatsapp": _model(26_000, 25_000, stop=False),
    "signal": _model(15_000, 10_000, stop=True),
    "line": _model(60_000, 50_000, stop=False),
    "vk": _model(10_000, 8_000, stop=False),
    "imessage": _model(60_000, 10_000, stop=True),
    "web": _model(5_000, 3_000, stop=True),
}
"""Names of platforms as cases use them: the account's part of a configuration."""
