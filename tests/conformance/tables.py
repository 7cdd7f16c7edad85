"""Checks the recorded tables row by row: both ack gates, the recorded tool rule, removal after the reply."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from actors.presence.ack import should_ack_reaction, should_ack_whatsapp
from tests.conformance.ack_removal import replay_removal
from tests.conformance.recorded_rule import recorded_category

__all__ = ["replay_table"]

Row = tuple[str, list[str]]

REACTION = {
    "scope": "scope", "isDirect": "is_direct", "isGroup": "is_group",
    "isMentionableGroup": "is_mentionable_group", "requireMention": "require_mention",
    "canDetectMention": "can_detect_mention",
    "effectiveWasMentioned": "effective_was_mentioned", "shouldBypassMention": "should_bypass_mention",
    "isBotAuthoredMessage": "is_bot_authored", "allowBotAuthoredMessage": "allow_bot_authored",
}  # fmt: skip
WHATSAPP = {
    "emoji": "emoji", "isDirect": "is_direct", "isGroup": "is_group", "directEnabled": "direct_enabled",
    "groupMode": "group_mode", "wasMentioned": "was_mentioned", "groupActivated": "group_activated",
}  # fmt: skip


def replay_table(table: Any) -> Iterator[Row]:
    """Name and problems of each row. ``ValueError`` if it is no table that is known."""
    if isinstance(table, list):
        for number, row in enumerate(table):
            yield f"removal-{number}", replay_removal(row)
    elif table.get("function") == "should_ack_reaction":
        yield from _gate(table, should_ack_reaction, REACTION)
    elif table.get("function") == "should_ack_reaction_whatsapp":
        yield from _gate(table, should_ack_whatsapp, WHATSAPP)
    elif "tools" in table:
        for tool in table["tools"]:
            ours = recorded_category(tool["name"])
            yield (
                f"tool {tool['name']!r}",
                [] if ours == tool["category"] else [f"{ours}, not {tool['category']}"],
            )
    else:
        raise ValueError("no table that is known")


def _gate(table: Any, gate: Any, names: dict[str, str]) -> Iterator[Row]:
    arguments = [names[dimension["name"]] for dimension in table["dims"]]
    rows = product(*(dimension["values"] for dimension in table["dims"]))
    for values, result in zip(rows, table["results"], strict=True):
        given = dict(zip(arguments, values, strict=True))
        positional = [given.pop(arguments[0])]
        ours = gate(*positional, **given)
        yield f"{table['function']}{values}", [] if ours == (result == "1") else [f"{ours} at {values}"]
