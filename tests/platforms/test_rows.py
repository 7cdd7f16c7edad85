"""The numbers of every row, as the fact sheets have them: a change here is a change of what all bots do."""

from __future__ import annotations

import pytest

from actors.platforms.registry import adapter

ROWS = {
    # keep-alive, lifetime, least change, concurrency, stop, threads, a post clears, ends only
    "telegram": (4_000, 5_000, 1_000, 8, False, True, True, False),
    "discord": (8_000, 10_000, 1_000, 4, False, True, True, False),
    "slack": (90_000, 120_000, 5_000, 2, True, True, True, True),
    "matrix": (20_000, 30_000, 5_000, 2, True, False, False, True),
    "whatsapp": (0, 25_000, 6_000, 8, False, False, True, True),
    "mattermost": (4_000, 5_000, 700, 4, False, True, True, False),
    "zulip": (20_000, 45_000, 1_000, 2, True, True, True, False),
    "signal": (10_000, 15_000, 3_000, 1, True, False, True, True),
    "teams": (2_500, 3_000, 2_000, 2, False, False, True, False),
}
LIMITS = {
    # calls, window, burst (None: a quarter)
    "discord": {"account": (40, 1_000, None), "route.marks": (1, 300, None)},
    "slack": {
        "account.set": (45, 60_000, None),
        "account.remove": (18, 60_000, None),
        "account.typing": (1, 1_000, None),
    },
    "whatsapp": {"account": (20, 1_000, None), "conversation": (10, 60_000, 5)},
    "mattermost": {"account": (8, 1_000, None)},
    "zulip": {"account": (60, 60_000, None)},
    "signal": {"account": (1, 1_000, None)},
    "teams": {"account.marks": (18, 10_000, 1), "conversation.typing": (24, 60_000, 1)},
    "googlechat": {"account": (8, 1_000, None), "conversation": (1, 2_000, None)},
}


@pytest.mark.parametrize("name", ROWS)
def test_a_row_says_how_typing_and_marks_are_paced(name: str) -> None:
    spec = adapter(name).spec
    rules = spec.rules
    assert rules.typing
    assert ROWS[name] == (
        spec.keepalive_ms,
        rules.typing_lifetime_ms,
        spec.min_change_ms,
        spec.concurrency,
        rules.typing_stop,
        rules.typing_in_threads,
        spec.post_clears_typing,
        spec.presentation == "ends",
    )


@pytest.mark.parametrize("name", LIMITS)
def test_a_row_says_how_often_its_platform_is_called(name: str) -> None:
    limits = adapter(name).spec.limits
    assert {scope: (limit.count, limit.per_ms, limit.burst) for scope, limit in limits.items()} == LIMITS[name]


@pytest.mark.parametrize("name", ["telegram", "whatsapp", "signal"])
def test_where_a_mark_replaces_the_one_before_a_swap_is_one_call(name: str) -> None:
    assert adapter(name).spec.rules.reactions == "replace"


@pytest.mark.parametrize("name", ["discord", "slack", "matrix", "mattermost", "zulip", "teams", "googlechat"])
def test_elsewhere_marks_stand_side_by_side(name: str) -> None:
    assert adapter(name).spec.rules.reactions == "add_remove"
    assert adapter(name).spec.rules.removal_needs_handle == (name in ("matrix", "googlechat"))
