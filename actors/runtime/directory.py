"""The directory: which actors are alive, by key, in O(1) whatever their number.

An actor without a key of its own is entered under its own ref, so that the directory holds every live actor once.
Entering is one atomic dict operation and may come from any thread.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Any

from actors.runtime.errors import DuplicateKeyError

if TYPE_CHECKING:
    from actors.runtime.mailbox import Mailbox

__all__ = ["Directory"]


class Directory:
    """Live actors by key, in the order of their start."""

    __slots__ = ("_refs",)

    def __init__(self) -> None:
        self._refs: dict[Hashable, Any] = {}

    def __len__(self) -> int:
        return len(self._refs)

    def __iter__(self) -> Iterator[Any]:
        """Live actors, first started first; a copy."""
        return iter(list(self._refs.values()))

    def enter(self, mailbox: Mailbox) -> None:
        """DuplicateKeyError if the key is taken."""
        key = mailbox if mailbox.key is None else mailbox.key
        if self._refs.setdefault(key, mailbox) is not mailbox:
            raise DuplicateKeyError(f"an actor with key {key!r} is alive")

    def remove(self, mailbox: Mailbox) -> None:
        """Free the key, if it is this actor's."""
        key = mailbox if mailbox.key is None else mailbox.key
        if self._refs.get(key) is mailbox:
            del self._refs[key]

    def get(self, key: Hashable) -> Any:
        """The actor of this key, or None."""
        return self._refs.get(key)
