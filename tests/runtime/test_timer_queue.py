"""The queue of deadlines alone, against a plain list that does everything the slow way."""

from __future__ import annotations

import random
from typing import Any

import pytest

from actors.runtime.timers import OWN, Timer, TimerQueue

SECOND = 1_000_000_000


def armed(queue: TimerQueue, due_ns: int, name: Any = None) -> Timer:
    timer = Timer(OWN, name, name, due_ns)
    queue.arm(timer)
    return timer


def pop(queue: TimerQueue, now_ns: int) -> list[Any]:
    return [timer.key for timer in queue.pop_due(now_ns, 1 << 30)]


def contents(queue: TimerQueue) -> int:
    return len(queue._near) + sum(len(shelf) for shelf in queue._shelves.values())


def test_timers_fire_in_the_order_of_their_deadlines_and_never_early() -> None:
    queue = TimerQueue()
    for name in (5, 3, 9, 1):
        armed(queue, name * SECOND, name)
    assert pop(queue, SECOND - 1) == []
    assert pop(queue, SECOND) == [1]
    assert pop(queue, 8 * SECOND) == [3, 5]
    assert pop(queue, 99 * SECOND) == [9]
    assert queue.armed == 0


@pytest.mark.parametrize("due_ns", [10, 40 * SECOND])
def test_equal_deadlines_fire_in_the_order_of_arming(due_ns: int) -> None:
    queue = TimerQueue()
    for name in range(50):
        armed(queue, due_ns, name)
    assert pop(queue, due_ns) == list(range(50))


def test_a_timer_moved_later_waits_at_its_old_place_and_fires_at_its_new_time() -> None:
    queue = TimerQueue()
    timer = armed(queue, 10 * SECOND, "moved")
    armed(queue, 15 * SECOND, "other")
    timer.due_ns = 20 * SECOND
    assert pop(queue, 19 * SECOND) == ["other"]
    assert pop(queue, 20 * SECOND) == ["moved"]


def test_at_most_the_limit_is_taken_at_once() -> None:
    queue = TimerQueue()
    for name in range(10):
        armed(queue, name, name)
    assert len(queue.pop_due(SECOND, 4)) == 4
    assert queue.armed == 6


@pytest.mark.parametrize("spread_s", [0, 1, 3_600, 30 * 86_400])
def test_cancelled_timers_are_reclaimed_without_waiting_for_their_time(spread_s: int) -> None:
    queue = TimerQueue()
    for each in range(20_000):
        queue.cancel(armed(queue, 5 * SECOND + each * spread_s * SECOND // 20_000, each))
    assert queue.armed == 0
    assert contents(queue) <= 64
    assert len(queue._order) <= 64 + 2 * len(queue._shelves) + 1


def test_steady_arming_and_cancelling_far_ahead_piles_up_nothing() -> None:
    queue = TimerQueue()
    live: list[Timer] = []
    for now_ns in range(0, 600 * SECOND, SECOND // 50):
        live.append(armed(queue, now_ns + 6 * 3600 * SECOND))
        if len(live) > 10:
            queue.cancel(live.pop(0))
        queue.pop_due(now_ns, 100)
    assert queue.armed == 10
    assert contents(queue) <= 100
    assert len(queue._order) <= 200


@pytest.mark.parametrize("seed", range(20))
def test_it_does_the_same_as_a_plain_list(seed: int) -> None:
    chance = random.Random(seed)
    queue = TimerQueue()
    model: dict[Any, Timer] = {}
    now_ns = 0
    name = 0
    for _ in range(2_000):
        choice = chance.random()
        if choice < 0.5:
            name += 1
            model[name] = armed(queue, now_ns + int(chance.expovariate(1 / (3 * SECOND))), name)
        elif choice < 0.65 and model:
            queue.cancel(model.pop(chance.choice(list(model))))
        elif choice < 0.8 and model:
            timer = chance.choice(list(model.values()))
            timer.due_ns = max(timer.due_ns, timer.floor_ns) + chance.randrange(5 * SECOND)
        else:
            now_ns += chance.choice((1, SECOND // 100, SECOND, 7 * SECOND))
            next_ns = queue.next_ns()
            expected = sorted((timer.due_ns, key) for key, timer in model.items() if timer.due_ns <= now_ns)
            if expected:
                assert next_ns is not None
                assert next_ns <= expected[0][0]
            fired = queue.pop_due(now_ns, 1 << 30)
            assert [timer.due_ns for timer in fired] == [due_ns for due_ns, _ in expected]
            assert {timer.key for timer in fired} == {key for _, key in expected}
            for timer in fired:
                model.pop(timer.key)
        assert queue.armed == len(model)


def test_looking_ahead_is_exact_within_a_shelf_and_never_late() -> None:
    queue = TimerQueue()
    assert queue.next_ns() is None
    timer = armed(queue, 100 * SECOND)
    first = queue.next_ns()
    assert first is not None
    assert 99 * SECOND <= first <= 100 * SECOND
    queue.pop_due(first, 10)
    assert queue.next_ns() == 100 * SECOND
    queue.cancel(timer)
    assert queue.next_ns() is None
