"""The queues under the order of calls: tickets, turns, and alarms that do not pile up."""

from __future__ import annotations

from actors.presence.ready import Alarms, Ready, Sleeper, Waiting
from actors.presence.terms import Rank


def take_all(ready: Ready, groups: int = 1) -> list[Waiting]:
    taken = []
    while (item := ready.first(Rank.PHASE, [True] * groups, lambda waiting: False)) is not None:
        ready.take(item)
        taken.append(item)
    return taken


def test_of_several_groups_the_one_that_waits_longest_goes_first() -> None:
    ready = Ready(groups=3)
    items = [Waiting(name) for name in "abcd"]
    for item, group in zip(items, (2, 0, 1, 0), strict=True):
        ready.put(item, Rank.PHASE, group)
    assert take_all(ready, 3) == items


def test_a_turn_in_one_group_is_a_turn_in_all_groups_of_the_class() -> None:
    ready = Ready(groups=2)
    first, second, third, other = Waiting("a"), Waiting("a"), Waiting("a"), Waiting("b")
    ready.put(first, Rank.PHASE, 0)
    ready.put(second, Rank.PHASE, 1)
    ready.put(third, Rank.PHASE, 0)
    ready.put(other, Rank.PHASE, 0)
    assert take_all(ready, 2)[:2] == [first, other]


def test_a_closed_group_is_passed_over() -> None:
    ready = Ready(groups=2)
    closed, free = Waiting("a"), Waiting("b")
    ready.put(closed, Rank.PHASE, 0)
    ready.put(free, Rank.PHASE, 1)
    assert ready.first(Rank.PHASE, [False, True], lambda waiting: False) is free


def test_a_bin_that_empties_while_it_is_held_leaves_nothing() -> None:
    for aside in (True, False):
        ready = Ready(groups=1)
        item = Waiting("a")
        ready.put(item, Rank.PHASE, 0)
        found = item.bin
        assert found is not None
        if aside:
            ready.set_aside(found, "cause")
        else:
            ready.hold(found, 100)
        ready.remove(item)
        assert not ready.waiting
        ready.release("cause")
        assert ready.woken(1_000) == []
        assert take_all(ready) == []


def test_a_lane_that_is_parked_comes_back_at_its_time_and_not_if_it_was_placed_meanwhile() -> None:
    ready = Ready(groups=1)
    parked, placed = Waiting("a"), Waiting("b")
    ready.park(parked, 100)
    ready.park(placed, 100)
    ready.put(placed, Rank.PHASE, 0)
    assert ready.next_ms() == 100
    assert ready.woken(99) == []
    assert ready.woken(100) == [parked]
    assert ready.next_ms() is None


def test_alarms_that_are_set_again_and_again_do_not_pile_up() -> None:
    alarms, sleepers = Alarms(), [Sleeper() for _ in range(10)]
    for at_ms in range(10_000):
        for sleeper in sleepers:
            alarms.set(sleeper, 1_000_000 + at_ms)
    assert alarms.armed == 10
    assert len(alarms._heap) <= 2 * 10 + 64 + 1
    assert alarms.next_ms() == 1_000_000 + 9_999
