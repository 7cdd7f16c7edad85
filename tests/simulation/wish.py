"""What was told to an account's actor last about one lane."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from actors.presence.terms import Rank


@dataclass(slots=True)
class Wish:
    """A chain of marks, or a word about typing."""

    what: tuple[str, ...] | str
    rank: Rank
    told_ms: int
    failures: int = 0
    """Calls for its mark that failed, one after the other."""
    owed: frozenset[str] = frozenset()
    """Marks that a change begun for an earlier wish has still to remove, whatever is wanted meanwhile."""

    def follow(self, before: Wish, shown: Iterable[str]) -> None:
        """It takes the place of ``before``, while these marks show."""
        wanted, marks = set(before.what[:1]), frozenset(shown)
        owed = marks - wanted if wanted & marks else before.owed
        self.owed = owed - set(self.what[:1])
