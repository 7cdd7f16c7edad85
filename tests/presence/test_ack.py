"""The ack gate, its WhatsApp variant, and the age of messages. The full tables are in tests/conformance."""

from __future__ import annotations

from typing import Any

import pytest

from actors.presence.ack import gate_allows, should_ack_reaction, should_ack_whatsapp, too_old
from actors.presence.policy import AckSettings
from protocol.events import Received


def received(*, direct: bool = False, **fields: Any) -> Received:
    return Received(conversation="chat", message="m", direct=direct, **fields)


@pytest.mark.parametrize(
    ("scope", "event", "allowed"),
    [
        ("all", received(), True),
        ("all", received(direct=True), True),
        ("direct", received(), False),
        ("direct", received(direct=True), True),
        ("group-all", received(), True),
        ("group-all", received(direct=True), False),
        ("group-mentions", received(), False),
        ("group-mentions", received(mentioned=True), True),
        ("group-mentions", received(bypass_mention=True), True),
        ("group-mentions", received(bypass_mention=False), False),
        ("group-mentions", received(mentioned=True, can_detect_mention=False), False),
        ("group-mentions", received(mentioned=True, mentionable=False), False),
        ("group-mentions", received(direct=True, mentioned=True), False),
        ("group-mentions", received(direct=True, mentioned=True, mentionable=True), True),
        ("off", received(mentioned=True), False),
        ("none", received(mentioned=True), False),
        ("anything", received(mentioned=True), False),
    ],
)
def test_the_gate_by_scope(scope: str, event: Received, allowed: bool) -> None:
    assert gate_allows(event, AckSettings(scope=scope)) is allowed


def test_mentions_in_groups_are_the_default() -> None:
    assert gate_allows(received(mentioned=True), AckSettings())
    assert not gate_allows(received(direct=True), AckSettings())


@pytest.mark.parametrize("variant", ["default", "whatsapp"])
def test_bots_are_acked_only_where_configured(variant: Any) -> None:
    event = received(mentioned=True, from_bot=True)
    assert not gate_allows(event, AckSettings(variant=variant))
    assert gate_allows(event, AckSettings(variant=variant, from_bots=True))


@pytest.mark.parametrize(
    ("settings", "event", "allowed"),
    [
        ({}, received(direct=True), True),
        ({"whatsapp_direct": False}, received(direct=True), False),
        ({}, received(), False),
        ({}, received(mentioned=True), True),
        ({}, received(bypass_mention=True), True),
        ({"whatsapp_group": "always"}, received(), True),
        ({"whatsapp_group": "never"}, received(mentioned=True), False),
        ({"scope": "off"}, received(direct=True), False),
        ({"scope": "none"}, received(mentioned=True), False),
    ],
)
def test_the_gate_of_whatsapp(settings: dict[str, Any], event: Received, allowed: bool) -> None:
    assert gate_allows(event, AckSettings(variant="whatsapp", **settings)) is allowed


def test_no_group_where_no_mention_is_required_is_acked_for_a_mention() -> None:
    flags = {
        "is_direct": False,
        "is_group": True,
        "is_mentionable_group": True,
        "can_detect_mention": True,
        "effective_was_mentioned": True,
    }
    assert should_ack_reaction(None, require_mention=True, **flags)
    assert not should_ack_reaction(None, require_mention=False, **flags)


def test_whatsapp_without_an_emoji_is_never_acked() -> None:
    flags = {
        "is_direct": True,
        "is_group": False,
        "direct_enabled": True,
        "was_mentioned": True,
        "group_activated": True,
    }
    assert should_ack_whatsapp("👀", group_mode="always", **flags)
    assert not should_ack_whatsapp("", group_mode="always", **flags)


NOW_MS = 1_790_000_000_000


@pytest.mark.parametrize(
    ("sent_at_ms", "max_age_ms", "old"),
    [
        (NOW_MS - 300_000, 300_000, False),
        (NOW_MS - 300_001, 300_000, True),
        (NOW_MS + 900_000, 300_000, False),
        (NOW_MS // 1_000 - 300, 300_000, False),
        (NOW_MS // 1_000 - 301, 300_000, True),
        (10**11 - 1, 300_000, False),
        (10**11, 300_000, True),
        (0, 0, False),
        (None, 300_000, False),
    ],
)
def test_the_age_of_a_message(sent_at_ms: int | None, max_age_ms: int, old: bool) -> None:
    assert too_old(sent_at_ms, NOW_MS, max_age_ms) is old
