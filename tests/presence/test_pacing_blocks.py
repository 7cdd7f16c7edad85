"""Blocks bind exactly what they name, a limit teaches for a while, and nothing is kept that means nothing."""

from __future__ import annotations

import pytest

from actors.presence.pacing import ACCOUNT, Limit, Pacing, ScopeKey
from actors.presence.terms import Op, Rank
from tests.presence.pacing_calls import call, fullest_window, spend_greedily

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


def test_of_several_limits_the_narrowest_names_the_route() -> None:
    pacing = Pacing({"account.marks": Limit(1_000, 2), "account.set": Limit(1_000, 1)})
    assert pacing.block(call(Op.SET), "route", 9_000, 0) == ScopeKey("route", "set")
    assert pacing.block(call(Op.REMOVE), "route", 9_000, 0) == ScopeKey("route", "marks")


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
    for expected_ms in (5_000, 20_000, 80_000, 300_000, 300_000):
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
    starts = spend_greedily(pacing, 5_000)
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
    assert pacing.spacings(120_000) == {}


@pytest.mark.parametrize(
    ("wait_ms", "growth"), [(100, [300, 600, 1_200]), (1_000, [300, 1_000, 2_000]), (9_000, [300, 1_200, 4_800])]
)
def test_each_further_limit_lengthens_the_distance_as_it_says_up_to_a_minute(wait_ms: int, growth: list[int]) -> None:
    pacing = Pacing({})
    distances = []
    now_ms = 0
    for _ in range(12):
        pacing.block(call(), "account", wait_ms, now_ms)
        distances.append(pacing.spacings(now_ms)[ACCOUNT])
        now_ms += wait_ms
    assert distances[:3] == growth
    assert distances[-1] == 60_000


def test_a_wait_without_end_ends_in_a_week() -> None:
    pacing = Pacing({})
    pacing.block(call(), "account", 10**30, 0)
    assert pacing.check(call(), Rank.TERMINAL, 0) == 7 * 86_400_000
    pacing = Pacing({})
    pacing.pause(call(), "account", 10**30, 0)
    assert pacing.check(call(), Rank.TERMINAL, 0) == 7 * 86_400_000


def test_answers_to_calls_already_under_way_are_no_second_lesson() -> None:
    pacing = Pacing({})
    for at_ms in (1_000, 1_001, 1_002):
        pacing.block(call(), "account", 600, at_ms, begun_ms=900)
    assert pacing.spacings(1_002) == {ACCOUNT: 300}
    assert pacing.check(call(), Rank.TERMINAL, 1_002) == 1_602
    pacing.block(call(), "account", 600, 2_200, begun_ms=2_100)
    assert pacing.spacings(2_200) == {ACCOUNT: 600}


def heir(old: Pacing, written_ms: int, age_ms: int, now_ms: int, limits: dict[str, Limit] | None = None) -> Pacing:
    """A process that begins at ``now_ms`` of its own clock, ``age_ms`` after the old one wrote down what it knew."""
    new = Pacing(limits or {})
    for key, learned in old.take_learned(written_ms).items():
        new.learn(key, learned, age_ms, now_ms)
    return new


def test_what_was_learned_can_be_taken_over_by_a_new_process() -> None:
    old = Pacing({})
    old.block(call(), None, 1_000, 0)
    new = heir(old, 0, 2_000, 7_000)
    assert spend_greedily(new, 8_000, from_ms=7_000) == [7_000, 7_300, 7_600, 7_900]
    assert new.check(call(conversation="d"), Rank.TERMINAL, 7_900) == 0


@pytest.mark.parametrize("scope", ["account", "conversation", "route"])
def test_a_block_goes_on_in_a_new_process_for_what_is_left_of_it(scope: str) -> None:
    old = Pacing({})
    old.block(call(), scope, 30_000, 100)
    new = heir(old, 100, 12_000, 5)
    assert new.check(call(), Rank.TERMINAL, 5) == 18_005
    assert spend_greedily(new, 19_000, from_ms=5) == [18_005, 18_305, 18_605, 18_905]


def test_the_time_between_two_processes_is_quiet_time() -> None:
    old = Pacing({})
    for at_ms in (0, 1_000, 2_000):
        old.block(call(), "account", 100, at_ms)
    assert old.spacings(2_000) == {ACCOUNT: 1_200}
    assert {age_ms: heir_spacing(old, age_ms) for age_ms in (0, 31_000, 61_000, 400_000)} == {
        0: 1_200,
        31_000: 600,
        61_000: 300,
        400_000: 0,
    }
    assert len(heir(old, 2_000, 400_000, 0)) == 0


def heir_spacing(old: Pacing, age_ms: int) -> int:
    old._news.add(ACCOUNT)
    return heir(old, 2_000, age_ms, 50).spacings(50).get(ACCOUNT, 0)


def test_a_limit_without_a_time_blocks_longer_also_when_the_process_is_another() -> None:
    old = Pacing({})
    old.block(call(), "account", None, 0)
    new = heir(old, 0, 6_000, 0)
    new.block(call(), "account", None, 1_000)
    assert new.check(call(), Rank.TERMINAL, 1_000) == 21_000


def test_a_route_is_taken_over_with_the_budget_of_its_own_calls() -> None:
    limits = {"account.typing": Limit(1_000, 1), "account.marks": Limit(60_000, 1)}
    old = Pacing(limits)
    old.block(call(Op.TYPING_START), "route", 100, 0)
    assert old.spacings(0) == heir(old, 0, 0, 0, limits).spacings(0) == {ScopeKey("route", "typing"): 2_000}


def test_only_what_is_new_is_written_down_and_no_pause_that_is_over_at_once() -> None:
    pacing = Pacing({})
    pacing.pause(call(), "route", 999, 0)
    assert pacing.take_learned(0) == {}
    pacing.pause(call(), "route", 5_000, 0)
    pacing.slow(0)
    assert set(pacing.take_learned(0)) == {ScopeKey("route", "marks", "c"), ACCOUNT}
    assert pacing.take_learned(1) == {}


def test_an_account_that_comes_back_is_slowed_without_a_block() -> None:
    pacing = Pacing({})
    pacing.slow(1_000)
    assert spend_greedily(pacing, 2_000, from_ms=1_000) == [1_000, 1_300, 1_600, 1_900]
    pacing.slow(2_000)
    assert pacing.spacings(2_000) == {ACCOUNT: 300}


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


def test_a_success_that_used_up_a_budget_pauses_its_route_and_teaches_nothing() -> None:
    pacing = Pacing({"route.marks": Limit(300, 1)})
    pacing.pause(call(), "route", 900, 100)
    assert pacing.check(call(Op.REMOVE), Rank.TERMINAL, 500) == 1_000
    assert pacing.check(call(Op.TYPING_START), Rank.TYPING, 500) == 0
    assert pacing.check(call(conversation="d"), Rank.TERMINAL, 500) == 0
    assert pacing.spacings(1_000) == {}
    pacing.sweep(1_000)
    assert len(pacing) == 0


def test_a_pause_never_shortens_a_block() -> None:
    pacing = Pacing({})
    pacing.block(call(), "route", 5_000, 0)
    pacing.pause(call(), "route", 100, 10)
    assert pacing.check(call(), Rank.TERMINAL, 1_000) == 5_000
