"""The table follows the traffic down, at the same cost for every write, and never grows over its size."""

from __future__ import annotations

from actors.presence.expiring import Expiring


def table(capacity: int | None = None) -> Expiring[str, int]:
    """Values are the times until which they mean something."""
    return Expiring(lambda until_ms, now_ms: until_ms <= now_ms, capacity)


def test_a_write_drops_at_most_two_meaningless_entries() -> None:
    entries = table()
    for name in "abcde":
        entries.put(name, 10, 0)
    entries.put("new", 1_000, 10)
    assert len(entries) == 4
    entries.put("new", 1_000, 10)
    assert len(entries) == 2


def test_meaningful_entries_do_not_hide_meaningless_ones() -> None:
    entries = table()
    for name in "abcd":
        entries.put(name, 1_000, 0)
    for name in "efgh":
        entries.put(name, 10, 0)
    for _ in range(4):
        entries.put("a", 1_000, 20)
    assert sorted(name for name, _ in entries.meaningful(0)) == ["a", "b", "c", "d"]


def test_over_its_capacity_the_entry_looked_at_longest_ago_goes() -> None:
    entries = table(capacity=3)
    for name in "abcdefgh":
        entries.put(name, 1_000, 0)
    assert len(entries) == 3
    assert entries.get("h") == 1_000


def test_dropping_and_sweeping_leave_what_still_means_something() -> None:
    entries = table()
    entries.put("short", 10, 0)
    entries.put("long", 1_000, 0)
    entries.put("gone", 1_000, 0)
    entries.drop("gone")
    entries.drop("never there")
    entries.sweep(10)
    assert [name for name, _ in entries.meaningful(10)] == ["long"]
