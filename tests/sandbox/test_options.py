"""Options that make no sense are refused, and the refusal names them."""

from __future__ import annotations

from typing import Any

import pytest

from actors.sandbox import SandboxOptions


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"reactions": "swap"}, "reactions must be one of replace, add_remove, none"),
        ({"typing_in": "groups"}, "typing_in must be one of all, direct"),
        ({"typing_lifetime_ms": -1}, "typing_lifetime_ms"),
        ({"typing_lifetime_ms": 0, "typing_stop": False}, "typing_stop must be true"),
        ({"max_chats": 0}, "max_chats"),
        ({"time_scale": 0.0}, "time_scale"),
        ({"time_scale": float("nan")}, "time_scale"),
    ],
)
def test_a_senseless_option_is_refused_by_name(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        SandboxOptions(**options)


def test_the_tokens_are_not_shown() -> None:
    assert "secret" not in repr(SandboxOptions(tokens={"secret": "support"}))
