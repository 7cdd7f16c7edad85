"""What the platforms' own documents allow, counted by plain sliding windows that share nothing with livesign's pacing.

Where a platform publishes no number the safe side is taken.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

SETS, REMOVES, MARKS = frozenset({"set"}), frozenset({"remove", "clear"}), frozenset({"set", "remove", "clear"})
TYPING = frozenset({"typing_start", "typing_stop"})
ALL = MARKS | TYPING


@dataclass(frozen=True)
class Window:
    """``count`` calls in any ``per_ms``; or, with ``burst``, a bucket of so many that refills at that rate."""

    per_ms: int
    count: int
    ops: frozenset[str] = ALL
    by: str = "account"
    """account, conversation, group or private (Telegram: ids below 0 are groups)."""
    scope: str | None = None
    """What the platform's refusal names."""
    burst: int | None = None

    @property
    def name(self) -> str:
        ops = {SETS: "set", REMOVES: "remove", MARKS: "marks", TYPING: "typing"}.get(self.ops)
        return f"{self.by}{f'.{ops}' if ops else ''} {self.count}/{self.per_ms / 1000:g}s"

    def key(self, conversation: str) -> str | None:
        """What is counted together; None: not covered."""
        if self.by == "account":
            return ""
        if self.by != "conversation" and (self.by == "group") != conversation.startswith("-"):
            return None
        return conversation


LIMITS: Mapping[str, tuple[Window, ...]] = {
    "telegram": (
        Window(1_000, 30),
        Window(60_000, 20, MARKS, "group"),
        Window(60_000, 20, TYPING, "group"),
        Window(1_000, 1, ALL, "private", burst=5),
    ),
    "discord": (Window(1_000, 50, scope="account"), Window(250, 1, MARKS, "conversation", "route")),
    "slack": (
        Window(60_000, 50, SETS, scope="route"),
        Window(60_000, 20, REMOVES, scope="route"),
        Window(1_000, 1, TYPING, scope="route"),
    ),
    "matrix": (Window(5_000, 1, MARKS, scope="account", burst=10),),
    "whatsapp": (Window(1_000, 20, scope="account"), Window(60_000, 10, ALL, "conversation", "conversation")),
    "mattermost": (Window(1_000, 10, scope="account"),),
    "zulip": (Window(60_000, 200, scope="account"),),
    "signal": (Window(1_000, 1, scope="account"),),
    "teams": (
        Window(1_000, 2, MARKS, scope="route"),
        Window(1_000, 7, TYPING, "conversation", "route"),
        Window(2_000, 8, TYPING, "conversation", "route"),
        Window(30_000, 60, TYPING, "conversation", "route"),
        Window(3_600_000, 1_800, TYPING, "conversation", "route"),
    ),
    "googlechat": (Window(60_000, 600, scope="account"), Window(60_000, 60, ALL, "conversation", "conversation")),
    "sandbox": (),
}  # fmt: skip
"""Signal publishes no limit and is held to a call a second; the built-in service has none."""


CHANGE_MS: Mapping[str, int] = {
    "telegram": 1_000, "discord": 1_000, "slack": 5_000, "matrix": 5_000, "whatsapp": 6_000, "mattermost": 700,
    "zulip": 1_000, "signal": 3_000, "teams": 2_000, "googlechat": 3_000,
}  # fmt: skip
"""No platform says how often one message's marks may change; faster than this nobody can follow, and all are calls."""
ENDS = frozenset({"👍", "👍️", "😱", "+1", "scream", "like", "screamingfear"})
"""The platforms' marks of done and error, which may come at any time."""


@dataclass
class Counter:
    """One limit of one account; ``peak`` is the largest share of it that was ever in use."""

    window: Window
    share: float = 1.0
    peak: float = 0.0
    refused: int = 0
    _starts: dict[str, deque[int]] = field(default_factory=dict)
    _levels: dict[str, tuple[float, int]] = field(default_factory=dict)

    def wait_ms(self, op: str, conversation: str, now_ms: int) -> int:
        """0: the call is within the limit; else how long until it would be."""
        key = self.window.key(conversation)
        if key is None or op not in self.window.ops:
            return 0
        if self.window.burst is not None:
            drop_ms = self.window.per_ms / self.window.count / self.share
            level = self._level(key, now_ms, drop_ms)
            return max(0, -int(-(level + 1 - self._most) * drop_ms // 1))
        starts = self._starts.setdefault(key, deque())
        while starts and starts[0] <= now_ms - self.window.per_ms / self._stretch:
            starts.popleft()
        if len(starts) < self._most:
            return 0
        return max(1, int(starts[0] + self.window.per_ms / self._stretch - now_ms))

    def take(self, op: str, conversation: str, now_ms: int) -> None:
        """The call was let pass."""
        key = self.window.key(conversation)
        if key is None or op not in self.window.ops:
            return
        if self.window.burst is not None:
            used = self._level(key, now_ms, self.window.per_ms / self.window.count / self.share) + 1
            self._levels[key] = (used, now_ms)
        else:
            self._starts[key].append(now_ms)
            used = len(self._starts[key])
        self.peak = max(self.peak, used / self._most)

    @property
    def _most(self) -> int:
        return max(1, int((self.window.burst or self.window.count) * self.share))

    @property
    def _stretch(self) -> float:
        """A limit of one call cannot be halved: its window is longer instead."""
        return self.window.count * self.share if self.window.count * self.share < 1 else 1.0

    def _level(self, key: str, now_ms: int, drop_ms: float) -> float:
        level, at_ms = self._levels.get(key, (0.0, now_ms))
        return max(0.0, level - (now_ms - at_ms) / drop_ms)


class Limiter:
    """All limits of one account."""

    def __init__(self, platform: str, share: float = 1.0) -> None:
        self.counters = [Counter(window, share) for window in LIMITS[platform]]

    def ask(self, op: str, conversation: str, now_ms: int) -> tuple[int, Window | None]:
        """(0, None): passed and counted. Otherwise the wait and the limit that refused it; then nothing is counted."""
        waits = [(counter.wait_ms(op, conversation, now_ms), counter) for counter in self.counters]
        wait_ms, worst = max(waits, key=lambda wait: wait[0], default=(0, None))
        if wait_ms and worst is not None:
            worst.refused += 1
            return wait_ms, worst.window
        for counter in self.counters:
            counter.take(op, conversation, now_ms)
        return 0, None
