"""What a limit taught about one scope: it is blocked until a time, and then its calls keep a distance.

The end of the block only moves forward. The distance begins at twice the interval of the scope's own budget
(300 ms where it has none) and grows with every further limit up to 60 s (to the wait that the platform named, but at
least twice and at most four times what it was). A limit that names no time blocks for 5 s, then 20 s, 80 s and
5 min while limits keep coming (WhatsApp asks for 4^n s).

The way back is halving: every quiet spell (30 s, longer for long distances, counted from the end of the block)
halves the distance, until it says nothing that the budget does not say. The halving that comes back to a distance at
which a limit came is a trial. A trial that meets a limit makes the next one wait ten times as long: 30 s, 5 min,
50 min, then an hour; a limit that comes otherwise begins that anew, for it may have nothing to do with the distance.
So a limit that stays costs a trial an hour, and one that has passed slows its scope for an hour at most and some
halvings. How long trials wait is remembered for ten times as long after the distance has gone, an hour at most.
"""

from __future__ import annotations

from typing import Final, NamedTuple

SPACING_MS: Final = 300
"""First distance where the scope has no budget."""
MAX_SPACING_MS: Final = 60_000
NO_SPACING_MS: Final = 5
"""Below this a distance is nothing."""
QUIET_MS: Final = 30_000
QUIET_SPACINGS: Final = 4
"""A quiet spell holds at least so many distances."""
BLOCK_MS: Final = 5_000
MAX_BLOCK_MS: Final = 300_000
GROWTH: Final = 4
"""How fast a block without a time grows, and a distance at most."""
PATIENCE: Final = 10
"""How much longer a trial waits after one that met a limit, and for how many such times that is remembered."""
MAX_PATIENCE_MS: Final = 3_600_000
"""Longest wait of a trial, and longest memory."""
HALVINGS_MS: Final = 1_800_000
"""More than all halvings take that are no trials."""


class Learned(NamedTuple):
    """A lesson as the next process is told of it; times in ms, counted from the moment it was written down."""

    blocked_ms: int
    """So long nothing starts; 0: nothing is blocked."""
    spacing_ms: int
    """Least distance of two calls; 0: none."""
    since_ms: int
    """When the present quiet spell began; negative: before."""
    block_ms: int
    """How long the last block was that named no time."""
    patience_ms: int = QUIET_MS
    """How long a trial waits."""

    @property
    def kept_ms(self) -> int:
        """After so long it says nothing any more."""
        return self.blocked_ms + HALVINGS_MS + 2 * MAX_PATIENCE_MS


NOTHING: Final = Learned(0, 0, 0, BLOCK_MS, 0)
"""What says nothing."""


class Lesson:
    """State of one limited scope. ``usual_ms``: the interval of its tightest budget, 0 if it has none."""

    __slots__ = (
        "_block_ms", "_last_ms", "_learned_ms", "_limited_at_ms", "_on_trial", "_patience_ms", "_since_ms", "_spacing_ms",
        "_usual_ms", "until_ms",
    )  # fmt: skip

    def __init__(self, usual_ms: int) -> None:
        self._usual_ms = usual_ms
        self.until_ms = 0
        """Nothing starts before."""
        self._spacing_ms = 0
        self._since_ms = 0
        self._last_ms: int | None = None
        self._learned_ms: int | None = None
        self._block_ms = BLOCK_MS
        self._limited_at_ms = -1
        """The distance at which the last limit came: going back to it is a trial."""
        self._on_trial = False
        self._patience_ms = 0
        """How long a trial waits; 0: there was no limit that is remembered."""

    def limited(self, retry_after_ms: int | None, now_ms: int, begun_ms: int, guessed: bool = False) -> None:
        """A call that began at ``begun_ms`` was limited. One that began before the last lesson only moves
        the end. ``guessed``: perhaps it was another scope that was limited, so no trial has failed."""
        news = self._learned_ms is None or begun_ms > self._learned_ms
        if self.over(now_ms):
            self._on_trial, self._patience_ms = False, 0
        if retry_after_ms is None:
            if news:
                self._block_ms = min(GROWTH * self._block_ms, MAX_BLOCK_MS) if self.spacing_ms(now_ms) else BLOCK_MS
            retry_after_ms = self._block_ms
        spacing_ms = self.spacing_ms(now_ms)
        self.until_ms = max(self.until_ms, now_ms + retry_after_ms)
        if news:
            failed = self._on_trial and not guessed
            self._patience_ms = min(PATIENCE * self._patience_ms, MAX_PATIENCE_MS) if failed else QUIET_MS
            self._limited_at_ms, self._on_trial = spacing_ms, False
            self._learn(max(2 * spacing_ms, min(GROWTH * spacing_ms, retry_after_ms)), now_ms)

    def pause(self, until_ms: int) -> None:
        """Nothing starts before; that is no lesson."""
        self.until_ms = max(self.until_ms, until_ms)

    def slow(self, now_ms: int) -> None:
        """Keep a distance, without a block."""
        self._learn(self.spacing_ms(now_ms), now_ms)

    def learned(self, now_ms: int) -> Learned:
        """For an heir."""
        spacing_ms = self.spacing_ms(now_ms)
        blocked_ms, since_ms = max(0, self.until_ms - now_ms), self._since_ms - now_ms
        return Learned(blocked_ms, spacing_ms, since_ms, self._block_ms, self._patience_ms)

    def inherit(self, learned: Learned, age_ms: int, now_ms: int) -> None:
        """Take over what an earlier process has written down ``age_ms`` ago."""
        self.until_ms = now_ms + max(0, learned.blocked_ms - age_ms)
        self._spacing_ms = min(learned.spacing_ms, MAX_SPACING_MS)
        self._since_ms = now_ms - age_ms + learned.since_ms
        self._block_ms = learned.block_ms
        self._limited_at_ms = self._spacing_ms // 2
        self._on_trial = not self._spacing_ms
        self._patience_ms = learned.patience_ms

    def started(self, now_ms: int) -> None:
        """A call in this scope starts."""
        self._last_ms = now_ms

    def next_ms(self, now_ms: int) -> int:
        """When the next call may start, as far as this scope goes; may lie in the past."""
        if self._last_ms is None:
            return self.until_ms
        return max(self.until_ms, self._last_ms + self.spacing_ms(now_ms))

    def spacing_ms(self, now_ms: int) -> int:
        """The distance in force; 0: none."""
        while self._spacing_ms:
            less_ms = self._spacing_ms // 2
            if less_ms <= self._usual_ms or less_ms < NO_SPACING_MS:
                less_ms = 0
            spell_ms = max(QUIET_MS, QUIET_SPACINGS * self._spacing_ms)
            trial = less_ms <= self._limited_at_ms
            if trial:
                spell_ms = max(spell_ms, self._patience_ms)
            if now_ms - self._since_ms < spell_ms:
                break
            if trial:
                self._on_trial, self._limited_at_ms = True, -1
            self._since_ms += spell_ms
            self._spacing_ms = less_ms
        return self._spacing_ms

    def over(self, now_ms: int) -> bool:
        """Nothing is blocked and nothing is remembered."""
        if self.until_ms > now_ms or self.spacing_ms(now_ms):
            return False
        return now_ms - self._since_ms >= min(PATIENCE * self._patience_ms, MAX_PATIENCE_MS)

    def _learn(self, spacing_ms: int, now_ms: int) -> None:
        first_ms = 2 * self._usual_ms or SPACING_MS
        self._spacing_ms = min(max(spacing_ms, first_ms), MAX_SPACING_MS)
        self._since_ms = max(now_ms, self.until_ms)
        self._learned_ms = now_ms
