"""Which call brings one message's marks nearer to what is wanted. The rules stand in
`actors.presence.mark_lane`."""

from __future__ import annotations

from actors.presence.marks import MarkSet
from actors.presence.terms import LaneRules, Op, Rank
from actors.presence.wish import Wish

__all__ = ["MarkPlan", "Plan"]

Plan = tuple[Op, str | None, Rank]
"""Operation, emoji (None: all marks) and the rank of the call."""


class MarkPlan:
    """What decides the next call: the wish, the marks, and what an earlier swap has still to remove."""

    __slots__ = ("full", "marks", "owed", "owed_rank", "rules", "wish")

    def __init__(self, rules: LaneRules) -> None:
        self.rules = rules
        self.marks = MarkSet()
        self.wish: Wish | None = None
        self.owed: list[str] = []
        """Marks that a swap begun for an earlier wish has still to remove."""
        self.owed_rank = Rank.PHASE
        self.full = False
        """The message takes no further mark: ours makes room for the next one."""

    def next(self) -> Plan | None:
        """The next call; None: nothing is left to do."""
        wish = self.wish
        if wish is None or self.rules.reactions == "none":
            return None
        if self.rules.reactions == "replace":
            if not wish.open or self.is_met(wish):
                return None
            return (Op.SET if wish.target is not None else Op.CLEAR), wish.target, wish.rank
        owed = self._first_owed(wish)
        if not wish.open:
            return None if owed is None else self._removal(owed, self.owed_rank)
        adding = wish.target is not None and not self.marks.is_certain(wish.target)
        if adding and self.full and (left := self.leftovers(wish)):
            return self._removal(left[0], wish.rank)
        if adding and (owed is None or self._goes_ahead(wish)):
            return Op.SET, wish.target, wish.rank
        if owed is not None:
            return self._removal(owed, min(wish.rank, self.owed_rank))
        left = self.leftovers(wish)
        return self._removal(left[0], wish.rank) if left else None

    def leftovers(self, wish: Wish) -> list[str]:
        """The marks that have to go for the wish, oldest first."""
        return [emoji for emoji in self.marks if emoji != wish.target and emoji not in wish.skipped]

    def is_met(self, wish: Wish) -> bool:
        """Whether the mark is confirmed (where sets replace: as the only one); for none: nothing is left."""
        if wish.target is None:
            return not self.marks
        if self.rules.reactions == "replace" and len(self.marks) > 1:
            return False
        return self.marks.is_certain(wish.target)

    def change_from(self, old: Wish, new: Wish) -> None:
        """Another wish: what the old one had begun is still owed, but for a mark that is wanted again."""
        if old.target is not None and self.marks.is_certain(old.target):
            self.owe(self.leftovers(old), old.rank)
        self.owed = [emoji for emoji in self.owed if emoji != new.target]

    def owe(self, emojis: list[str], rank: Rank) -> None:
        """A swap of ``rank`` has begun; these marks it has still to remove, whatever is wanted meanwhile."""
        self.owed = emojis
        self.owed_rank = rank

    def forget(self, emoji: str) -> None:
        """The mark is not on the message."""
        self.marks.forget(emoji)
        if emoji in self.owed:
            self.owed.remove(emoji)

    def forget_all(self) -> None:
        """No mark is on the message."""
        self.marks.forget_all()
        self.owed = []

    def _removal(self, emoji: str, rank: Rank) -> Plan:
        certain, handle = self.marks.is_certain(emoji), self.marks.handle(emoji)
        if self.rules.removal_needs_handle and handle is None and not certain:
            return Op.SET, emoji, rank
        return Op.REMOVE, emoji, rank

    def _first_owed(self, wish: Wish) -> str | None:
        for emoji in self.owed:
            wanted = emoji == wish.target and self._goes_ahead(wish)
            if emoji in self.marks and emoji not in wish.skipped and not wanted:
                return emoji
        return None

    def _goes_ahead(self, wish: Wish) -> bool:
        return wish.rank is Rank.TERMINAL and self.owed_rank is not Rank.TERMINAL
