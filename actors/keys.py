"""The directory keys of the application's actors: an actor is addressed by what it is, never by an object kept."""

from __future__ import annotations

from collections.abc import Hashable

ROUTER = "router"
CONVERSATIONS = "conversations"


def io_key(account: str) -> Hashable:
    return ("io", account)


def conversation_key(account: str, conversation: str) -> Hashable:
    return ("conversation", account, conversation)


def reaction_key(account: str, conversation: str) -> Hashable:
    return ("reaction", account, conversation)


def typing_key(account: str, conversation: str) -> Hashable:
    return ("typing", account, conversation)


def is_conversations(key: Hashable) -> bool:
    """Whether an actor with this key belongs to a conversation."""
    return isinstance(key, tuple) and key[0] in ("conversation", "reaction", "typing")
