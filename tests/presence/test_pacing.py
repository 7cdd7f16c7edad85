"""Budgets never overrun, blocks bind exactly what they name, and nothing is kept longer than it means something."""

from __future__ import annotations

import random

import pytest

from actors.presence.pacing import ACCOUNT, Limit, Pacing, ScopeKey
from actors.presence.terms import Command, Op, Rank


def call(op: Op = Op.SET, conversation: str = "c", message: str | None = "m", thread: str | None = None) -> Command:
    return Command(op, conversation, thread, message)


def spend_greedily(
    pacing: Pacing, until_ms: int, rank: Rank = Rank.TERMINAL, command: Command | None = None, from_ms: int = 0
) -> list[int]:
    """Start a call whenever one is allowed, believing what ``check`` says about waiting."""
    command = command or call()
    starts, now_ms = [], from_ms
    while now_ms < until_ms:
        wait_ms = pacing.check(command, rank, now_ms)
        if wait_ms:
            assert wait_ms > now_ms
            now_ms = wait_ms
        else:
            pacing.spend(command, now_ms)
            starts.append(now_ms)
    return starts


def fullest_window(starts: list[int], window_ms: int) -> int:
    """Most starts in any half-open window of this length."""
    fullest = first = 0
    for last, at_ms in enumerate(starts):
        while starts[first] <= at_ms - window_ms:
            first += 1
        fullest = max(fullest, last - first + 1)
    return fullest


# --- budgets ---------------------------------------------------------------------------------------------------


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
    with pytest.raises(ValueError, match="at least 1|between 1 and"):
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


# --- blocks -----------------------------------------------------------------------------------------------------


def test_retry_after_blocks_the_whole_account_where_it_says_so() -> None:
    pacing = Pacing({})
    assert pacing.block(call(), "account", 2_000, 10) == ACCOUNT
    assert pacing.check(call(Op.TYPING_STOP, "d"), Rank.TERMINAL, 10) == 2_010
    assert pacing.check(call(Op.TYPING_STOP, "d"), Rank.TERMINAL, 2_010) == 0


def test_retry_after_blocks_one_conversation_and_all_kinds_of_calls_there() -> None:
    pacing = Pacing({})
    pacing.block(call(), "conversation", 2_000, 0)
    assert pacing.check(call(Op.TYPING_START), Rank.TYPING, 0) == 2_000
    assert pacing.check(call(conversation="d"), Rank.TYPING, 0) == 0


def test_retry_after_of_a_route_leaves_the_other_kind_and_other_conversations_alone() -> None:
    pacing = Pacing({})
    assert pacing.block(call(), "route", 2_000, 0) == ScopeKey("route", "marks", "c")
    assert pacing.check(call(Op.REMOVE), Rank.TERMINAL, 0) == 2_000
    assert pacing.check(call(Op.TYPING_START), Rank.TYPING, 0) == 0
    assert pacing.check(call(conversation="d"), Rank.TERMINAL, 0) == 0


def test_a_route_that_counts_per_account_is_blocked_per_account() -> None:
    pacing = Pacing({"account.remove": Limit(3_300, 1)})
    assert pacing.block(call(Op.REMOVE), "route", 9_000, 0) == ScopeKey("route", "remove")
    assert pacing.check(call(Op.REMOVE, "d"), Rank.TERMINAL, 0) == 9_000
    assert pacing.check(call(Op.SET), Rank.TERMINAL, 0) == 0


def test_retry_after_wins_over_a_budget_that_has_tokens_and_the_budget_over_a_short_one() -> None:
    pacing = Pacing({"account": Limit(10_000, 1)})
    pacing.spend(call(), 0)
    pacing.block(call(), "account", 1_000, 0)
    assert pacing.check(call(), Rank.TERMINAL, 0) == 10_000
    pacing.block(call(), "account", 60_000, 100)
    assert pacing.check(call(), Rank.TERMINAL, 50_000) == 60_100


def test_the_end_of_a_block_only_moves_forward() -> None:
    pacing = Pacing({})
    pacing.block(call(), "account", 25_000, 0)
    pacing.block(call(), "account", 1_000, 100)
    assert pacing.check(call(), Rank.TERMINAL, 2_000) == 25_000
    pacing.block(call(), "account", 37_000, 1_000)
    assert pacing.check(call(), Rank.TERMINAL, 25_000) == 38_000


def test_an_unsaid_scope_is_the_conversation_until_a_second_one_is_limited_within_ten_seconds() -> None:
    pacing = Pacing({})
    assert pacing.block(call(conversation="a"), None, 1_000, 0).conversation == "a"
    assert pacing.block(call(conversation="a"), None, 1_000, 5_000).conversation == "a"
    assert pacing.check(call(conversation="b"), Rank.TERMINAL, 5_000) == 0
    assert pacing.block(call(conversation="b"), None, 3_000, 15_000) == ACCOUNT
    assert pacing.check(call(conversation="z"), Rank.TERMINAL, 15_000) == 18_000


def test_two_conversations_limited_far_apart_are_two_conversations() -> None:
    pacing = Pacing({})
    pacing.block(call(conversation="a"), None, 1_000, 0)
    assert pacing.block(call(conversation="b"), None, 1_000, 10_001).conversation == "b"


def test_a_conversation_named_by_the_platform_does_not_make_it_the_account() -> None:
    pacing = Pacing({})
    pacing.block(call(conversation="a"), "conversation", 1_000, 0)
    assert pacing.block(call(conversation="b"), "conversation", 1_000, 1).conversation == "b"
    assert pacing.block(call(conversation="d"), None, 1_000, 2).conversation == "d"


def test_a_limit_without_a_time_blocks_longer_each_time_and_is_forgiven_in_the_end() -> None:
    pacing = Pacing({})
    now_ms = 0
    for expected_ms in (5_000, 10_000, 20_000, 40_000):
        pacing.block(call(), "account", None, now_ms)
        assert pacing.check(call(), Rank.TERMINAL, now_ms) == now_ms + expected_ms
        now_ms += expected_ms
    for _ in range(20):
        pacing.block(call(), "account", None, now_ms)
        now_ms = pacing.check(call(), Rank.TERMINAL, now_ms)
    pacing.block(call(), "account", None, now_ms)
    assert pacing.check(call(), Rank.TERMINAL, now_ms) == now_ms + 300_000
    now_ms += 86_400_000
    pacing.block(call(), "account", None, now_ms)
    assert pacing.check(call(), Rank.TERMINAL, now_ms) == now_ms + 5_000


# --- what a limit teaches ---------------------------------------------------------------------------------------


def test_after_a_block_the_backlog_leaves_one_by_one() -> None:
    pacing = Pacing({})
    pacing.block(call(), "account", 2_000, 0)
    starts = [at_ms for at_ms in spend_greedily(pacing, 5_000)]
    assert starts[:4] == [2_000, 2_300, 2_600, 2_900]


def test_after_a_block_no_burst_comes_out_of_a_bucket_that_filled_meanwhile() -> None:
    pacing = Pacing({"account": Limit(10_000, 20, burst=10)})
    pacing.block(call(), "account", 60_000, 0)
    starts = spend_greedily(pacing, 70_000)
    assert starts[0] == 60_000
    assert fullest_window(starts, 1_000) == 1


def test_a_limited_scope_is_slower_for_a_while_and_recovers() -> None:
    limit = Limit(10_000, 10, burst=1)
    pacing = Pacing({"account": limit})
    pacing.block(call(), "account", 1_000, 0)
    starts = spend_greedily(pacing, 120_000)
    assert len([at_ms for at_ms in starts if at_ms < 31_000]) == 15
    assert len([at_ms for at_ms in starts if 60_000 <= at_ms < 90_000]) == 30
    assert pacing.learned(120_000) == {}


def test_each_further_limit_doubles_the_distance_up_to_a_minute() -> None:
    pacing = Pacing({})
    distances = []
    now_ms = 0
    for _ in range(10):
        pacing.block(call(), "account", 1_000, now_ms)
        distances.append(pacing.learned(now_ms)[ACCOUNT])
        now_ms += 1_000
    assert distances[:4] == [300, 600, 1_200, 2_400]
    assert distances[-1] == 60_000


def test_answers_to_calls_already_under_way_are_no_second_lesson() -> None:
    pacing = Pacing({})
    for at_ms in (1_000, 1_001, 1_002):
        pacing.block(call(), "account", 1_000, at_ms, begun_ms=900)
    assert pacing.learned(1_002) == {ACCOUNT: 300}
    assert pacing.check(call(), Rank.TERMINAL, 1_002) == 2_002
    pacing.block(call(), "account", 1_000, 2_200, begun_ms=2_100)
    assert pacing.learned(2_200) == {ACCOUNT: 600}


def test_what_was_learned_can_be_taken_over_by_a_new_process() -> None:
    old, new = Pacing({}), Pacing({})
    old.block(call(), None, 1_000, 0)
    new.learn(old.learned(500), 7_000)
    assert spend_greedily(new, 8_000, from_ms=7_000) == [7_000, 7_300, 7_600, 7_900]
    assert new.check(call(conversation="d"), Rank.TERMINAL, 7_900) == 0


def test_an_account_that_comes_back_is_slowed_without_a_block() -> None:
    pacing = Pacing({})
    pacing.slow(1_000)
    assert spend_greedily(pacing, 2_000, from_ms=1_000) == [1_000, 1_300, 1_600, 1_900]
    pacing.slow(2_000)
    assert pacing.learned(2_000) == {ACCOUNT: 300}


def test_blocks_are_listed_while_they_last() -> None:
    pacing = Pacing({})
    pacing.block(call(), "conversation", 2_000, 0)
    assert pacing.blocks(1_999) == {ScopeKey("conversation", "", "c"): 2_000}
    assert pacing.blocks(2_000) == {}


# --- memory -----------------------------------------------------------------------------------------------------


def test_budgets_of_quiet_conversations_are_forgotten_as_others_are_used() -> None:
    pacing = Pacing({"conversation": Limit(1_000, 1), "message": Limit(1_000, 1)})
    most = 0
    for number in range(50_000):
        pacing.spend(call(conversation=f"c{number}", message=f"m{number}"), number)
        most = max(most, len(pacing))
    assert most < 6_000
    for number in range(6_000):
        pacing.spend(call(conversation="c", message="m"), 60_000 + number)
    assert len(pacing) < 10


def test_blocks_that_are_over_and_forgotten_leave_nothing() -> None:
    pacing = Pacing({})
    for number in range(1_000):
        pacing.block(call(conversation=f"c{number}"), "conversation", 1_000, 0)
    pacing.sweep(1_000)
    assert len(pacing) == 1_000
    pacing.sweep(3_600_000)
    assert len(pacing) == 0
