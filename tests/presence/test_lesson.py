"""What a limit teaches is tried out ever more seldom while the limit stays, and forgotten once it has passed."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from actors.presence.lesson import Learned, Lesson
from actors.presence.pacing import ACCOUNT, Limit, Pacing, ScopeKey
from actors.presence.terms import Rank
from tests.presence.pacing_calls import call

HOUR_MS = 3_600_000
SECOND_MS = 1_000


def busy(lesson: Lesson, usual_ms: int, granted_ms: int, from_ms: int, until_ms: int) -> list[int]:
    """Calls as close as the lesson and a budget of one call per ``usual_ms`` allow, before a platform that refuses
    what comes within ``granted_ms`` of the call before. When it refused."""
    refused, passed_ms, now_ms = [], from_ms - granted_ms, from_ms
    while now_ms < until_ms:
        if now_ms - passed_ms < granted_ms:
            refused.append(now_ms)
            lesson.limited(granted_ms - (now_ms - passed_ms), now_ms, now_ms)
        else:
            passed_ms = now_ms
        lesson.started(now_ms)
        now_ms = max(now_ms + usual_ms, lesson.next_ms(now_ms + usual_ms))
    return refused


def test_a_limit_that_stays_is_tried_after_half_a_minute_five_minutes_fifty_and_then_every_hour() -> None:
    refused = busy(Lesson(1_000), 1_000, 2_000, 0, 4 * HOUR_MS)
    waits_s = [round((second - first) / SECOND_MS) for first, second in pairwise(refused)]
    expected = (30, 300, 3_000, 3_600, 3_600, 3_600)
    assert len(waits_s) == len(expected)
    assert all(wait_s - 5 <= wanted_s <= wait_s for wait_s, wanted_s in zip(waits_s, expected, strict=True))


@pytest.mark.parametrize("granted_ms", [1_500, 2_000, 3_900, 9_000, 40_000])
@pytest.mark.parametrize("seed", range(3))
def test_after_a_limit_has_passed_full_speed_is_back_within_an_hour_and_twenty_minutes(
    granted_ms: int, seed: int
) -> None:
    lesson, limited_ms = Lesson(1_000), random.Random(seed).randrange(60_000, 4 * HOUR_MS)
    assert busy(lesson, 1_000, granted_ms, 0, limited_ms)
    assert lesson.spacing_ms(limited_ms + HOUR_MS + 20 * 60 * SECOND_MS) == 0


def test_one_limit_slows_for_half_a_minute() -> None:
    lesson = Lesson(1_000)
    lesson.limited(500, 0, 0)
    assert [lesson.spacing_ms(now_ms) for now_ms in (500, 30_499, 30_500)] == [2_000, 2_000, 0]


@pytest.mark.parametrize(("later_ms", "spell_ms"), [(330_499, 300_000), (330_501, 30_000)])
def test_a_limit_soon_after_the_way_back_is_a_failed_trial_and_a_late_one_is_the_first_again(
    later_ms: int, spell_ms: int
) -> None:
    lesson = Lesson(1_000)
    lesson.limited(500, 0, 0)
    assert lesson.spacing_ms(30_500) == 0
    lesson.limited(0, later_ms, later_ms)
    assert lesson.spacing_ms(later_ms + spell_ms - 1) == 2_000
    assert lesson.spacing_ms(later_ms + spell_ms) == 0


@pytest.mark.parametrize(("later_ms", "slow"), [(HOUR_MS - 1, True), (HOUR_MS + 1, False)])
def test_no_trial_is_remembered_for_more_than_an_hour(later_ms: int, slow: bool) -> None:
    lesson, now_ms = Lesson(1_000), 0
    for spell_ms in (30_000, 300_000, 3_000_000):
        lesson.limited(0, now_ms, now_ms)
        now_ms += spell_ms
        assert lesson.spacing_ms(now_ms - 1) == 2_000
        assert lesson.spacing_ms(now_ms) == 0
        now_ms += 1
    now_ms += later_ms - 1
    lesson.limited(0, now_ms, now_ms)
    assert bool(lesson.spacing_ms(now_ms + 30_000)) is slow


def test_limits_on_the_way_to_the_right_distance_are_no_failed_trials() -> None:
    lesson = Lesson(0)
    for at_ms in (0, 1_000, 2_000, 3_000):
        lesson.limited(100, at_ms, at_ms)
    assert lesson.spacing_ms(3_100) == 2_400
    assert lesson.spacing_ms(3_100 + 30_000) == 1_200


def test_only_the_halving_that_goes_back_to_where_a_limit_came_waits() -> None:
    lesson = Lesson(1_000)
    for at_ms in (0, 1, 2):
        lesson.limited(0, at_ms, at_ms)
    assert lesson.spacing_ms(31_999 + 3) == 4_000
    lesson.limited(16_000, 33_000, 33_000)  # the trial has failed; two halvings lead back to it
    spells = [(now_ms, lesson.spacing_ms(now_ms)) for now_ms in (112_999, 113_000, 412_999, 413_000, 443_000)]
    assert spells == [(112_999, 16_000), (113_000, 8_000), (412_999, 8_000), (413_000, 4_000), (443_000, 2_000)]


@pytest.mark.parametrize("seed", range(5))
def test_limits_that_have_nothing_to_do_with_the_distance_slow_no_scope_for_long(seed: int) -> None:
    dice, lesson, now_ms, calls = random.Random(seed), Lesson(100), 0, 0
    while now_ms < 4 * HOUR_MS:
        calls += 1
        if dice.random() < 0.01:
            lesson.limited(1_000, now_ms, now_ms)
        lesson.started(now_ms)
        now_ms = max(now_ms + 100, lesson.next_ms(now_ms + 100))
    assert calls > 4 * HOUR_MS / 1_500


def test_the_patience_of_trials_lives_on_in_the_next_process() -> None:
    for age_ms, spell_ms in ((0, 300_000), (200_000, 100_000)):
        old, new = Lesson(1_000), Lesson(1_000)
        old.limited(0, 0, 0)
        assert old.spacing_ms(30_000) == 0
        old.limited(0, 40_000, 40_000)
        new.inherit(old.learned(40_000), age_ms, 7)
        assert new.spacing_ms(7 + spell_ms - 1) == 2_000
        assert new.spacing_ms(7 + spell_ms) == 0
        new.limited(0, spell_ms + 10, spell_ms + 10)
        assert new.spacing_ms(spell_ms + 10 + 2_999_999) == 2_000


def test_what_was_written_down_before_there_was_patience_is_read_as_a_first_limit() -> None:
    lesson = Lesson(1_000)
    lesson.inherit(Learned(0, 2_000, 0, 5_000), 0, 0)
    assert [lesson.spacing_ms(now_ms) for now_ms in (29_999, 30_000)] == [2_000, 0]


@pytest.mark.parametrize("seed", range(20))
def test_what_is_kept_for_the_next_process_is_kept_for_as_long_as_it_says_something(seed: int) -> None:
    dice, lesson, now_ms = random.Random(seed), Lesson(50), 0
    for _ in range(60):
        lesson.limited(dice.choice((None, 0, dice.randrange(100_000))), now_ms, now_ms)
        now_ms += dice.choice((100, 10_000, 200_000, HOUR_MS))
    learned, heir = lesson.learned(now_ms), Lesson(0)
    heir.inherit(learned, learned.kept_ms, 0)
    assert heir.over(0)


def test_a_limit_taken_for_the_account_s_teaches_its_conversation_too_and_no_patience_to_the_account() -> None:
    pacing = Pacing({"account": Limit(1_000, 1), "conversation": Limit(4_000, 1)})
    for at_ms in (0, 60_000, 120_000, 180_000):
        pacing.block(call(conversation="a"), None, 100, at_ms)
        assert pacing.block(call(conversation="b"), None, 100, at_ms) == ACCOUNT
    spacings = pacing.spacings(180_100)
    assert spacings == {ACCOUNT: 2_000} | {ScopeKey("conversation", "", name): 32_000 for name in "ab"}
    assert pacing.check(call(conversation="z"), Rank.TERMINAL, 180_000) == 180_100
    assert pacing.spacings(210_100).keys() == {ScopeKey("conversation", "", name) for name in "ab"}
