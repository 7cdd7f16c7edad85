"""What is wanted of one message's marks, and how far the attempts to get it have come."""

from __future__ import annotations

from collections.abc import Callable

from actors.presence.terms import Op, OutcomeKind, Rank

__all__ = ["Call", "Wish"]

CHAIN_CALLS_MAX = 3

Call = tuple[Op, str | None]
"""What a call does: operation and emoji."""


class Wish:
    """One wish: the first mark of ``chain`` that can be had; the empty chain wants no mark."""

    __slots__ = (
        "attempts", "called", "chain", "rank", "refusal", "repeat", "reported", "skipped", "target", "tries",
        "unremovable",
    )  # fmt: skip

    def __init__(self, chain: tuple[str, ...], rank: Rank) -> None:
        self.chain = chain
        self.rank = rank
        self.target: str | None = None
        """The mark that is tried now; None: no mark is wanted, or none can be had."""
        self.refusal: OutcomeKind | None = None
        """Why the wish will not be met."""
        self.unremovable: OutcomeKind | None = None
        """Why a mark cannot be removed."""
        self.attempts = 0
        """Calls that were refused."""
        self.tries = 0
        """Failures in a row of the call that is tried now."""
        self.repeat: Call | None = None
        """The call that is repeated because nobody knows how it ended."""
        self.skipped: set[str] = set()
        """Marks whose removal is put off until the next wish."""
        self.called = False
        """Whether a call was begun for it."""
        self.reported = False

    @property
    def open(self) -> bool:
        """Whether it may still be met."""
        return self.refusal is None

    def is_target(self, emoji: str | None) -> bool:
        """Whether this very mark is wanted."""
        return emoji is not None and self.refusal is None and emoji == self.target

    def pick(self, why_not: Callable[[str], OutcomeKind | None]) -> None:
        """Choose the first mark of the chain that nobody refused. ``why_not`` tells for an emoji."""
        self.target = None
        if not self.chain:
            return
        if self.attempts < CHAIN_CALLS_MAX:
            for emoji in self.chain:
                reason = why_not(emoji)
                if reason is None:
                    self.target = emoji
                    return
                if reason is OutcomeKind.BAD_REQUEST:
                    self.refusal = reason
                    return
        self.refusal = OutcomeKind.INVALID_REACTION

    def settle_call(self) -> None:
        """The call that was tried has an answer: the next one starts counting anew."""
        self.tries = 0
        self.repeat = None
