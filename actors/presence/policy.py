"""The settings a run opens with and keeps until its end, already merged and checked by the configuration loader.

Machines take any integers; 0 is off where it says so. Emoji values are chains: the wanted emoji first, then what to
try when the platform refuses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

Chain = tuple[str, ...]

STATES = (
    "queued", "waiting", "waiting_user", "thinking", "tool", "coding", "web", "compacting", "stall_soft", "stall_hard",
    "done", "error",
)  # fmt: skip

DEFAULT_EMOJI: Mapping[str, Chain] = MappingProxyType({
    "queued": ("👀", "👍"),
    "waiting": ("👀", "👍"),
    "waiting_user": ("👀", "👍"),
    "thinking": ("🤔", "👀"),
    "tool": ("🔥", "⚡", "👀"),
    "coding": ("👨\u200d💻", "🔥", "👀"),
    "web": ("⚡", "🔥", "👀"),
    "compacting": ("✍", "🤔", "👀"),
    "stall_soft": ("🥱", "🤔"),
    "stall_hard": ("😨", "🤔"),
    "done": ("👍", "👌", "🔥"),
    "error": ("😱", "👎", "😢"),
})  # fmt: skip
"""Default emoji of each state (design §5) with its fallbacks (platforms §15). done and error share none."""


@dataclass(frozen=True, slots=True)
class AckSettings:
    scope: str = "group-mentions"
    """all, direct, group-all, group-mentions, off, none."""
    max_age_ms: int = 300_000
    """Older messages get neither ack nor status; 0 is off."""
    from_bots: bool = False
    whatsapp_direct: bool = True
    whatsapp_group: Literal["always", "mentions", "never"] = "mentions"
    variant: Literal["default", "whatsapp"] = "default"
    """Which gate decides: the platform's row says."""


@dataclass(frozen=True, slots=True)
class ToolCategory:
    """A category of tools: shown with its own emoji, matched by exact name first, then by token."""

    name: str
    tokens: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StatusSettings:
    enabled: bool = True
    gate: Literal["ack", "none"] = "ack"
    presentation: frozenset[str] | None = None
    """The states that are shown; None: all. (``ends``: queued or ack, stalls, done, error.)"""
    min_change_ms: int = 0
    """Least time between two changes of one message; done, error and removals are exempt."""
    final_sent_ms: int = 30_000
    quiet_minutes: tuple[int, int] | None = None
    """Quiet hours as minutes of the local day (from, until); no marks but done and error."""
    debounce_ms: int = 700
    stall_soft_ms: int = 10_000
    stall_hard_ms: int = 30_000
    done_hold_ms: int = 1_500
    error_hold_ms: int = 2_500
    settle: Literal["clear", "keep", "restore"] = "clear"
    wait_max_ms: int = 0
    start_delay_ms: int = 0
    emoji: Mapping[str, Chain] = field(default_factory=lambda: DEFAULT_EMOJI)
    """Chain by state; tool categories of the user's own are states too. The ack shows ``queued``."""
    tools: tuple[ToolCategory, ...] | None = None
    """Categories in order of precedence; None: `actors.presence.tools.DEFAULT_CATEGORIES`."""
    span_max_ms: int = 1_800_000


@dataclass(frozen=True, slots=True)
class TypingSettings:
    mode: Literal["instant", "thinking", "message", "never"] = "instant"
    keepalive_ms: int = 3_000
    """Refresh interval; 0: never refreshed (the indicator lasts)."""
    ttl_ms: int = 60_000
    start_failures: int = 2
    probe_ms: int = 30_000
    """After a trip, try once again after so long; 0: only an explicit start does."""
    start_delay_ms: int = 0
    quiet_max_ms: int = 600_000
    sending_max_ms: int = 10_000
    post_clears: bool = True
    """Whether the bot's own post ends the indicator on this platform."""
    in_threads: bool = True
    """Whether the target is the thread (else the conversation)."""


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    ms: int = 30_000
    run_max_ms: int = 21_600_000
    adopt_ms: int = 15_000
    child_max_ms: int = 600_000


@dataclass(frozen=True, slots=True)
class Policy:
    """Everything that decides how one run is shown."""

    ack: AckSettings = AckSettings()
    status: StatusSettings = StatusSettings()
    typing: TypingSettings = TypingSettings()
    lease: LeaseSettings = LeaseSettings()
    recovery_marks: Literal["clear", "error", "leave"] = "clear"
