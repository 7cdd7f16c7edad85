"""The table of limited room."""

from __future__ import annotations

import pytest

from actors.sandbox.shelf import Shelf, ShelfFullError, Shelved


class Item(Shelved):
    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


def filled(*names: str, room: int = 3) -> Shelf[Item]:
    shelf: Shelf[Item] = Shelf(room)
    for name in names:
        shelf.add(name, Item(name))
    return shelf


def names(shelf: Shelf[Item]) -> set[str]:
    return {item.name for item in shelf}


def test_room_is_made_by_forgetting_what_was_longest_unused() -> None:
    shelf = filled("a", "b", "c")
    shelf.use("a")
    shelf.add("d", Item("d"))
    assert names(shelf) == {"a", "c", "d"}


def test_what_is_held_is_not_forgotten_however_long_unused() -> None:
    shelf = filled("a", "b", "c")
    shelf.hold("a")
    for name in "defg":
        shelf.add(name, Item(name))
    assert names(shelf) == {"a", "f", "g"}


def test_an_item_held_twice_takes_two_releases() -> None:
    shelf = filled("a", "b", "c")
    shelf.hold("a")
    shelf.hold("a")
    shelf.release("a")
    for name in "def":
        shelf.add(name, Item(name))
    assert "a" in names(shelf)
    shelf.release("a")
    for name in "ghi":
        shelf.add(name, Item(name))
    assert names(shelf) == {"g", "h", "i"}


def test_a_shelf_on_which_all_is_held_takes_nothing_more() -> None:
    shelf = filled("a", "b", room=2)
    shelf.hold("a")
    shelf.hold("b")
    with pytest.raises(ShelfFullError):
        shelf.add("c", Item("c"))
    assert names(shelf) == {"a", "b"}


def test_the_newest_are_found_among_held_and_free_alike() -> None:
    shelf = filled("a", "b", "c", "d", "e", room=9)
    shelf.hold("b")
    shelf.use("a")
    shelf.hold("d")
    assert [item.name for item in shelf.newest(3)] == ["d", "a", "b"]
    shelf.release("b")
    assert [item.name for item in shelf.newest(9)] == ["b", "d", "a", "e", "c"]
    assert shelf.newest(0) == []
