"""The marks that are, or may be, on one message, oldest first, with the platform's handles.

A mark is *certain* once an answer confirmed it and *in doubt* while a call about it is under way or ended
without an answer that tells.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator
from typing import NamedTuple

__all__ = ["Mark", "MarkSet"]


class Mark(NamedTuple):
    """What the next process has to know of a mark that is, or may be, on a message."""

    handle: str | None = None
    """The platform's own id of it, if it gave one."""
    certain: bool = True
    """Whether it is there; else a call about it has no answer yet that tells."""
    key: str | None = None
    """The idempotency key of that call, if it was to put the mark there."""


_ABSENT: tuple[str | None, bool] = (None, False)


class MarkSet:
    """The marks of one message; iterates in the order in which they came."""

    __slots__ = ("_marks", "_saved")

    def __init__(self) -> None:
        self._marks: dict[str, tuple[str | None, bool]] = {}
        """Emoji: handle, certain."""
        self._saved: dict[str, tuple[str | None, bool]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._marks)

    def __len__(self) -> int:
        return len(self._marks)

    def __contains__(self, emoji: object) -> bool:
        return emoji in self._marks

    def items(self) -> ItemsView[str, tuple[str | None, bool]]:
        """Emojis with handle and whether the mark is known to be there."""
        return self._marks.items()

    def is_certain(self, emoji: str) -> bool:
        """Whether the mark is known to be on the message."""
        return self._marks.get(emoji, _ABSENT)[1]

    def handle(self, emoji: str) -> str | None:
        """The platform's handle of the mark, if it gave one."""
        return self._marks.get(emoji, _ABSENT)[0]

    def shown(self) -> dict[str, str | None]:
        """The certain marks with their handles."""
        return {emoji: handle for emoji, (handle, certain) in self._marks.items() if certain}

    def confirm(self, emoji: str, handle: str | None) -> None:
        """The mark is there. An answer without a handle leaves the known one."""
        self._marks[emoji] = (handle or self.handle(emoji), True)

    def doubt(self, emoji: str) -> None:
        """Something is done about the mark, or its fate is unknown."""
        self._marks[emoji] = (self.handle(emoji), False)

    def doubt_all(self) -> None:
        """As `doubt`, for every mark."""
        for emoji in self._marks:
            self.doubt(emoji)

    def forget(self, emoji: str) -> None:
        """The mark is not there."""
        self._marks.pop(emoji, None)

    def forget_all(self) -> None:
        """No mark is there."""
        self._marks.clear()

    def save(self) -> None:
        """Remember the present marks for `undo`."""
        self._saved = dict(self._marks)

    def was_there(self, emoji: str) -> bool:
        """Whether the mark was, or may have been, there when the marks were saved."""
        return emoji in self._saved

    def undo(self) -> None:
        """Back to what was saved: the call since then had no effect."""
        self._marks = self._saved
