"""The platforms that cases are about: our own row where it fits what cases assume, else the sandbox as their model.

Cases want every state at once and the refresh intervals that people named. Rows that say otherwise for good reasons of
their platform (WhatsApp's single shot, Signal's one call a second) would only hide what a case is about.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def _model(
    lifetime_ms: int, keepalive_ms: int, *, stop: bool, clears: bool = True, adds: bool = False
) -> Mapping[str, Any]:
    return {
        "platform": "sandbox",
        "typing_lifetime_ms": lifetime_ms,
        "typing_stop": stop,
        "post_clears_typing": clears,
        "typing": {"keepalive_ms": keepalive_ms},
        "reactions": "add_remove" if adds else "replace",
    }


PRESETS: Mapping[str, Mapping[str, Any]] = {
    "telegram": {"platform": "telegram"},
    "matrix": {"platform": "matrix"},
    "sandbox": {"platform": "sandbox"},
    "discord": {"platform": "discord"},
    "slack": {"platform": "slack", "status": {"presentation": "full", "min_change_ms": 0}},
    "mattermost": {"platform": "mattermost"},
    "zulip": {"platform": "zulip"},
    "teams": _model(4_000, 3_000, stop=False, adds=True),
    "googlechat": _model(0, 0, stop=True, adds=True),
    "feishu": _model(0, 0, stop=True, clears=False, adds=True),
    "whatsapp": _model(26_000, 25_000, stop=False),
    "signal": _model(15_000, 10_000, stop=True),
    "line": _model(60_000, 50_000, stop=False),
    "vk": _model(10_000, 8_000, stop=False),
    "imessage": _model(60_000, 10_000, stop=True),
    "web": _model(5_000, 3_000, stop=True),
}
"""Names of platforms as cases use them: the account's part of a configuration."""
