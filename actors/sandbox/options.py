"""How a sandbox behaves: what it resembles, whom it lets in, how much it keeps, how fast it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from actors.sandbox.faults import FaultPlan

Reactions = Literal["replace", "add_remove", "none"]
TypingIn = Literal["all", "direct"]


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    """Everything that can be chosen. The defaults are a friendly platform without limits or faults.

    Raises:
        ValueError: a value makes no sense; the text names the option.
    """

    reactions: Reactions = "replace"
    """replace: an account has one mark on a message; add_remove: any number; none: there are no marks."""
    typing_stop: bool = True
    """Whether there is a call that ends typing."""
    typing_lifetime_ms: int = 5_000
    """How long an indicator shows after its last start; 0: until it is stopped."""
    post_clears_typing: bool = True
    """Whether an account's own message ends its indicator in the same chat and thread."""
    typing_in: TypingIn = "all"
    """direct: typing is forbidden in chats that were said to be groups."""
    strict_messages: bool = False
    """Whether a mark needs a posted message, and typing a chat that exists. Otherwise they are made."""
    tokens: Mapping[str, str] | None = field(default=None, repr=False)
    """Token to account name. None: every token is let in and is the account (none at all: ``bot``)."""
    max_chats: int = 20_000
    """Beyond it the chats longest without activity are forgotten, those with marks or typing never."""
    max_messages: int = 500
    """The same for the messages of one chat."""
    time_scale: float = 1.0
    """Speed of the service's time: lifetimes, delays and limits run this many times faster than the wall."""
    plan: FaultPlan = field(default_factory=FaultPlan)
    """Delays, failures and limits from the start on; see `actors.sandbox.faults`."""

    def __post_init__(self) -> None:
        _one_of("reactions", self.reactions, get_args(Reactions))
        _one_of("typing_in", self.typing_in, get_args(TypingIn))
        if self.typing_lifetime_ms < 0:
            raise ValueError(f"typing_lifetime_ms must not be negative: {self.typing_lifetime_ms}")
        if self.typing_lifetime_ms == 0 and not self.typing_stop:
            raise ValueError("typing_lifetime_ms is 0 (lasting), so typing_stop must be true")
        if self.max_chats < 1 or self.max_messages < 1:
            raise ValueError("max_chats and max_messages must be at least 1")
        if not self.time_scale > 0:
            raise ValueError(f"time_scale must be above 0: {self.time_scale}")


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, not {value!r}")
