"""Budgets are never overrun, whoever calls and whenever, and are used as far as they go."""

from __future__ import annotations

import random

import pytest

from actors.presence.limits import routes
from actors.presence.pacing import Limit, Pacing
from actors.presence.terms import Op, Rank
from tests.presence.pacing_calls import call, fullest_window, spend_greedily


@pytest.mark.parametrize(
    "limit",
    [
        Limit(60_000, 20),
        Limit(60_000, 20, burst=1),
        Limit(60_000, 20, burst=20),
        Limit(1_000, 30),
        Limit(1_000, 1),
        Limit(3_000, 1),
        Limit(1_000, 7, burst=3),
        Limit(997, 13, burst=11),
        Limit(5_000, 8, burst=8),
        Limit(10, 3, burst=2),
    ],
)
@pytest.mark.parametrize("rank", [Rank.TERMINAL, Rank.TYPING])
def test_no_sliding_window_holds_more_starts_than_the_limit(limit: Limit, rank: Rank) -> None:
    starts = spend_greedily(Pacing({"account": limit}), 20 * limit.per_ms, rank)
    assert len(starts) >= 10
    assert fullest_window(starts, limit.per_ms) <= limit.count


@pytest.mark.parametrize("seed", range(20))
def test_no_sliding_window_is_overrun_by_callers_that_come_and_go(seed: int) -> None:
    dice = random.Random(seed)
    count = dice.randint(1, 40)
    limit = Limit(dice.randint(1, 60_000), count, dice.choice([None, dice.randint(1, count)]))
    pacing = Pacing({"account": limit}, reserve=dice.choice([0.0, 0.2, 0.5]))
    starts, now_ms = [], 0
    for _ in range(3_000):
        now_ms += dice.choice([0, 0, 0, 1, dice.randint(0, limit.per_ms)])
        rank = dice.choice(list(Rank))
        if not pacing.check(call(), rank, now_ms):
            pacing.spend(call(), now_ms)
            starts.append(now_ms)
    assert fullest_window(starts, limit.per_ms) <= limit.count


@pytest.mark.parametrize("scope", ["account", "conversation", "route"])
@pytest.mark.parametrize("seed", range(20))
def test_no_sliding_window_is_overrun_by_processes_that_die_and_come_back(seed: int, scope: str) -> None:
    dice = random.Random(seed)
    count = dice.randint(1, 40)
    limit = Limit(dice.randint(100, 60_000), count, dice.choice([None, dice.randint(1, count)]))
    starts: list[int] = []
    now_ms, lived = 0, 0
    for life in range(50):
        pacing = Pacing({scope: limit})
        if life:
            pacing.used_before("c", dice.randint(0, now_ms - starts[-1]), now_ms)
        until_ms = now_ms + dice.randint(1, 3 * limit.per_ms)
        more = spend_greedily(pacing, until_ms, from_ms=now_ms)
        lived += bool(more)
        starts += more
        now_ms = until_ms + dice.choice([0, 0, dice.randint(0, 3 * limit.per_ms)])
    assert lived > 25
    assert fullest_window(starts, limit.per_ms) <= limit.count


def test_a_budget_that_an_earlier_process_has_not_used_for_long_enough_is_full() -> None:
    pacing = Pacing({"account": Limit(1_000, 7, burst=3), "conversation": Limit(1_000, 1)})
    pacing.used_before("c", 1_000, 5_000)
    assert not len(pacing)
    pacing.used_before("c", 300, 5_000)
    pacing.used_before("c", 900, 5_000)  # an older one takes nothing back
    assert pacing.check(call(), Rank.TERMINAL, 5_000) == 5_700
    assert spend_greedily(pacing, 5_700, command=call(conversation="d"), from_ms=5_000) == [5_000]


def test_twenty_per_minute_delivers_sixty_calls_within_three_minutes() -> None:
    starts = spend_greedily(Pacing({"conversation": Limit(60_000, 20, burst=1)}), 181_000)
    assert len(starts) >= 60
    assert fullest_window(starts, 60_000) <= 20


def test_a_full_bucket_lets_the_burst_go_at_once_and_then_the_rate() -> None:
    starts = spend_greedily(Pacing({"account": Limit(1_000, 7, burst=3)}), 1_001)
    assert starts == [0, 0, 0, 200, 400, 600, 800, 1_000]


def test_the_default_burst_is_a_quarter_of_the_count_rounded_up() -> None:
    assert [Limit(1_000, count).depth for count in (1, 2, 4, 5, 20, 30)] == [1, 1, 1, 2, 5, 8]


def test_the_long_run_reaches_the_rate_that_the_burst_leaves() -> None:
    starts = spend_greedily(Pacing({"account": Limit(60_000, 20)}), 3_600_000)
    assert 16 * 60 <= len(starts) <= 16 * 60 + 5


def test_an_interval_that_is_no_whole_number_is_rounded_up() -> None:
    starts = spend_greedily(Pacing({"account": Limit(1_000, 3, burst=1)}), 10_000)
    assert starts[:4] == [0, 334, 668, 1_002]
    assert fullest_window(starts, 1_000) <= 3


def test_a_reserve_leaves_its_share_of_burst_and_rate_to_the_bot() -> None:
    limit = Limit(60_000, 40, burst=20)
    starts = spend_greedily(Pacing({"account": limit}, reserve=0.25), 3_600_000)
    assert starts.count(0) == 15
    assert fullest_window(starts, 60_000) <= 30
    assert 60 * 15 <= len(starts) <= 60 * 16


def test_a_reserve_never_takes_the_last_token() -> None:
    assert spend_greedily(Pacing({"account": Limit(1_000, 1)}, reserve=0.9), 10_001) == [0, 10_000]


def test_phases_and_typing_leave_the_last_tokens_to_terminals_and_acks() -> None:
    for low in (Rank.PHASE, Rank.TYPING):
        pacing = Pacing({"account": Limit(60_000, 8, burst=8)})
        assert spend_greedily(pacing, 1, low) == [0] * 6
        assert pacing.check(call(), Rank.ACK, 0) == 0
        assert spend_greedily(pacing, 1, Rank.TERMINAL) == [0] * 2


def test_phases_go_where_a_burst_of_one_leaves_nothing_to_keep() -> None:
    assert spend_greedily(Pacing({"account": Limit(1_000, 1)}), 1, Rank.PHASE) == [0]


def test_threads_of_a_conversation_share_its_budget() -> None:
    pacing = Pacing({"conversation": Limit(1_000, 1)})
    pacing.spend(call(Op.TYPING_START, thread="1", message=None), 0)
    assert pacing.check(call(Op.TYPING_START, thread="2", message=None), Rank.TYPING, 0) == 1_000
    assert pacing.check(call(Op.TYPING_START, "d", message=None), Rank.TYPING, 0) == 0


def test_scopes_nest_and_the_strictest_decides() -> None:
    pacing = Pacing({
        "account": Limit(100, 1), "conversation": Limit(1_000, 1), "message": Limit(5_000, 1),
    })  # fmt: skip
    pacing.spend(call(), 0)
    assert pacing.check(call(message="m"), Rank.TERMINAL, 0) == 5_000
    assert pacing.check(call(message="n"), Rank.TERMINAL, 0) == 1_000
    assert pacing.check(call(conversation="d"), Rank.TERMINAL, 0) == 100


def test_a_message_budget_does_not_touch_typing() -> None:
    pacing = Pacing({"message": Limit(5_000, 1)})
    typing = call(Op.TYPING_START, message=None)
    pacing.spend(typing, 0)
    assert pacing.check(typing, Rank.TYPING, 0) == 0


def test_a_route_counts_marks_and_typing_of_a_conversation_apart() -> None:
    pacing = Pacing({"route": Limit(1_000, 1)})
    pacing.spend(call(Op.SET), 0)
    assert pacing.check(call(Op.REMOVE), Rank.TERMINAL, 0) == 1_000
    assert pacing.check(call(Op.TYPING_START), Rank.TYPING, 0) == 0
    assert pacing.check(call(Op.SET, "d"), Rank.TERMINAL, 0) == 0


def test_discord_paces_all_reactions_of_a_channel_together() -> None:
    pacing = Pacing({"route.marks": Limit(300, 1)})
    pacing.spend(call(Op.SET), 0)
    assert pacing.check(call(Op.REMOVE), Rank.TERMINAL, 0) == 300
    assert pacing.check(call(Op.REMOVE, "d"), Rank.TERMINAL, 0) == 0
    assert pacing.groups[Op.SET] == pacing.groups[Op.REMOVE] != pacing.groups[Op.TYPING_START]


def test_slack_paces_each_method_by_workspace() -> None:
    pacing = Pacing({"account.set": Limit(1_300, 1), "account.remove": Limit(3_300, 1)})
    pacing.spend(call(Op.SET), 0)
    pacing.spend(call(Op.REMOVE), 0)
    assert pacing.check(call(Op.SET, "d"), Rank.TERMINAL, 0) == 1_300
    assert pacing.check(call(Op.REMOVE, "d"), Rank.TERMINAL, 0) == 3_300
    assert pacing.check(call(Op.TYPING_START, "d"), Rank.TYPING, 0) == 0


@pytest.mark.parametrize("name", ["chat", "account.posts", "", "account.", ".set"])
def test_an_unknown_limit_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no limit is called"):
        Pacing({name: Limit(1_000, 1)})


@pytest.mark.parametrize(("per_ms", "count", "burst"), [(0, 1, None), (1, 0, None), (1, 3, 4), (1, 3, 0)])
def test_a_limit_that_makes_no_sense_is_refused(per_ms: int, count: int, burst: int | None) -> None:
    with pytest.raises(ValueError, match=r"at least 1|between 1 and"):
        Limit(per_ms, count, burst)


@pytest.mark.parametrize("reserve", [-0.1, 1.0])
def test_a_reserve_outside_its_range_is_refused(reserve: float) -> None:
    with pytest.raises(ValueError, match="reserve"):
        Pacing({}, reserve)


def test_other_limits_keep_what_was_spent_and_blocked() -> None:
    pacing = Pacing({"account": Limit(1_000, 1)})
    pacing.spend(call(), 0)
    pacing.block(call(conversation="d"), "conversation", 9_000, 0)
    pacing.change({"account": Limit(500, 1)}, 0.0)
    assert pacing.check(call(), Rank.TERMINAL, 0) == 1_000
    assert pacing.check(call(conversation="d"), Rank.TERMINAL, 0) == 9_000
    pacing.spend(call(), 1_000)
    assert pacing.check(call(), Rank.TERMINAL, 1_000) == 1_500


@pytest.mark.parametrize(("limit", "interval_us"), [
    (Limit(1, 7, burst=1), 143), (Limit(1_000, 3, burst=1), 333_334), (Limit(1_000, 4, burst=1), 250_000),
    (Limit(60_000, 20, burst=5), 3_750_000),
])  # fmt: skip
def test_intervals_are_whole_microseconds_rounded_up(limit: Limit, interval_us: int) -> None:
    assert routes({"account": limit}, 0.0)[Op.SET].account[0].interval_us == interval_us
