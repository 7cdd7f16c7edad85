"""The ack gate: whether an inbound message gets a mark at once, and whether it is too old for any mark.

Rules by scope: ``all`` always; ``direct`` in direct chats; ``group-all`` in groups; ``group-mentions`` (also
when no scope is given) in groups where the bot can be mentioned, where a mention is required and can be
seen, if the bot was mentioned or the mention may be bypassed; every other scope never. Messages written by a
bot are not marked where that is not wanted, whatever the scope.

WhatsApp: direct chats by a switch of their own; groups ``always``, ``never``, and for anything else if the
bot was mentioned or the group is activated. Without an emoji never.
"""

from __future__ import annotations

from actors.presence.policy import AckSettings
from protocol.events import Received

__all__ = ["gate_allows", "should_ack_reaction", "should_ack_whatsapp", "too_old"]

SECONDS_BELOW = 10**11
"""A Unix time below this is in seconds: as milliseconds it would be before 1973."""


def should_ack_reaction(
    scope: str | None,
    *,
    is_direct: bool,
    is_group: bool,
    is_mentionable_group: bool,
    require_mention: bool,
    can_detect_mention: bool,
    effective_was_mentioned: bool,
    should_bypass_mention: bool | None = None,
    is_bot_authored: bool | None = None,
    allow_bot_authored: bool | None = None,
) -> bool:
    """The gate. The flags are taken as they come: nobody checks that direct and group exclude each other."""
    if is_bot_authored and allow_bot_authored is False:
        return False
    match scope:
        case "all":
            return True
        case "direct":
            return is_direct
        case "group-all":
            return is_group
        case "group-mentions" | None:
            mentioned = effective_was_mentioned or should_bypass_mention is True
            return is_mentionable_group and require_mention and can_detect_mention and mentioned
        case _:
            return False


def should_ack_whatsapp(
    emoji: str,
    *,
    is_direct: bool,
    is_group: bool,
    direct_enabled: bool,
    group_mode: str,
    was_mentioned: bool,
    group_activated: bool,
) -> bool:
    """The gate of WhatsApp, which has its own switches."""
    if not emoji:
        return False
    if is_direct:
        return direct_enabled
    if not is_group or group_mode == "never":
        return False
    return group_mode == "always" or was_mentioned or group_activated


def gate_allows(event: Received, policy: AckSettings) -> bool:
    """Whether the message may get the ack. In groups a mention counts as required; age is not looked at."""
    if policy.variant == "whatsapp":
        if event.from_bot and not policy.from_bots:
            return False
        return policy.scope not in ("off", "none") and should_ack_whatsapp(
            "ack",
            is_direct=event.direct,
            is_group=not event.direct,
            direct_enabled=policy.whatsapp_direct,
            group_mode=policy.whatsapp_group,
            was_mentioned=event.mentioned,
            group_activated=event.bypass_mention is True,
        )
    return should_ack_reaction(
        policy.scope,
        is_direct=event.direct,
        is_group=not event.direct,
        is_mentionable_group=not event.direct if event.mentionable is None else event.mentionable,
        require_mention=True,
        can_detect_mention=event.can_detect_mention,
        effective_was_mentioned=event.mentioned,
        should_bypass_mention=event.bypass_mention,
        is_bot_authored=event.from_bot,
        allow_bot_authored=policy.from_bots,
    )


def too_old(sent_at_ms: int | None, wall_ms: int, max_age_ms: int) -> bool:
    """Whether a message sent at ``sent_at_ms`` (Unix time) is too old for marks at ``wall_ms``.

    A time that can only be meant in seconds is read as such; one in the future is now. Unknown is not old;
    ``max_age_ms`` 0 switches the check off.
    """
    if sent_at_ms is None or max_age_ms <= 0:
        return False
    if sent_at_ms < SECONDS_BELOW:
        sent_at_ms *= 1_000
    return wall_ms - sent_at_ms > max_age_ms
