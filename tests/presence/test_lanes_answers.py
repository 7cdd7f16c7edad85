"""What an answer means for the calls to come: a stopped account, refused emojis, dead messages, outages."""

from __future__ import annotations

from itertools import pairwise

import pytest

from actors.presence.lanes import Begin
from actors.presence.terms import OK, MarkReport, Outcome, OutcomeKind, Rank, TypingReport
from tests.presence.lane_world import World, down_until, make_lanes, refusal

DAY_MS = 86_400_000


# --- answers -------------------------------------------------------------------------------------------------


def test_a_rejected_token_stops_the_account_at_once_and_only_once() -> None:
    world = World(make_lanes(), lambda begin, at_ms: refusal("auth"))
    for number in range(5):
        world.show(f"c{number}", "m", "👍")
    world.pump()
    world.run(100)
    for number in range(50):
        world.show(f"d{number}", "m", "👍")
    world.run(DAY_MS)
    assert len(world.calls) == 5
    assert world.lanes.stopped == "auth"
    assert world.lanes.wake_at_ms() is None
    assert world.lanes.idle
    assert world.lanes.counters["accounts_stopped"] == 1


def test_typing_of_a_stopped_account_is_refused_and_terminal_marks_wait_for_new_credentials() -> None:
    answers = [refusal("auth")]
    world = World(make_lanes(), lambda begin, at_ms: answers.pop() if answers else OK)
    world.show("c", "m", "👍")
    world.run(100)
    world.show("d", "m", "👍")
    assert world.lanes.type_start("c", None, 7, 100) == [
        TypingReport("c", None, 7, Outcome(OutcomeKind.AUTH), called=False)
    ]
    world.run(1_000)
    world.lanes.revive(1_000)
    assert not world.lanes.idle
    world.run(2_000)
    assert sorted(world.made()) == ["c/m 👍", "c/m 👍", "d/m 👍"]
    assert world.lanes.shown_marks() == {("c", "m"): {"👍": None}, ("d", "m"): {"👍": None}}


def test_a_second_rejection_after_new_credentials_stops_the_account_again() -> None:
    world = World(make_lanes(), lambda begin, at_ms: refusal("auth"))
    world.show("c", "m", "👍")
    world.run(100)
    world.lanes.revive(100)
    world.run(1_000)
    assert len(world.calls) == 2
    assert world.lanes.counters["accounts_stopped"] == 2


def test_a_refused_emoji_is_not_tried_again_in_its_conversation_for_a_day() -> None:
    def answer(begin: Begin, at_ms: int) -> Outcome:
        return refusal("invalid_reaction") if begin.command.emoji == "🦄" else OK

    world = World(make_lanes(), answer)
    world.show("c", "m", "🦄", "👍")
    world.run(1_000)
    world.show("c", "n", "🦄", "👍")
    world.show("d", "m", "🦄", "👍")
    world.run(2_000)
    assert world.made() == ["c/m 🦄", "c/m 👍", "c/n 👍", "d/m 🦄", "d/m 👍"]
    world.now_ms = DAY_MS + 100
    world.show("c", "o", "🦄", "👍")
    world.pump()
    assert world.made()[-1] == "c/o 🦄"


def test_an_emoji_that_one_message_has_no_room_for_is_still_tried_on_others() -> None:
    def answer(begin: Begin, at_ms: int) -> Outcome:
        full = begin.command.message == "m" and begin.command.emoji != "👍"
        return refusal("invalid_reaction", scope="message") if full else OK

    world = World(make_lanes(), answer)
    world.show("c", "m", "🔥", "👍")
    world.run(1_000)
    world.show("c", "m", "🔥", "⚡", "👍")
    world.show("c", "n", "🔥", "👍")
    world.run(2_000)
    assert sorted(world.made()) == ["c/m ⚡", "c/m 👍", "c/m 🔥", "c/n 🔥"]


def test_a_message_that_is_gone_is_never_called_again() -> None:
    world = World(make_lanes(), lambda begin, at_ms: refusal("gone"))
    world.show("c", "m", "👀")
    world.run(1_000)
    assert world.reports == [MarkReport("c", "m", "👀", OutcomeKind.GONE, ("👀",))]
    assert world.show("c", "m", "👍") == [MarkReport("c", "m", "👍", OutcomeKind.GONE, ("👍",))]
    assert world.show("c", "m") == [MarkReport("c", "m", None, None, ())]
    world.run(2_000)
    assert len(world.calls) == 1
    assert len(world.lanes) == 0


# --- outages -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["transient", "unknown"])
def test_an_outage_is_probed_by_one_call_at_a_time(kind: str) -> None:
    world = World(make_lanes(), down_until(600_000, kind))
    for number in range(200):
        world.show(f"c{number}", "m", "👍")
    world.run(100)
    during = len(world.calls)
    world.run(600_000)
    assert during == 200
    assert len(world.calls) - during <= 16
    world.run(3_600_000)
    assert len(world.lanes.shown_marks()) == 200
    assert world.lanes.counters["outages_ended"] == 1


def test_after_an_outage_the_backlog_comes_back_slowly() -> None:
    world = World(make_lanes(concurrency=4), down_until(600_000))
    for number in range(200):
        world.show(f"c{number}", "m", "👍")
    world.run(600_000)
    before = len(world.calls)
    world.run(3_600_000)
    back_ms = world.starts()[before]
    first_ten_seconds = [at_ms for at_ms in world.starts()[before:] if at_ms < back_ms + 10_000]
    assert len(first_ten_seconds) <= 50
    assert len(world.lanes.shown_marks()) == 200


def test_a_single_unreachable_conversation_is_no_outage() -> None:
    def answer(begin: Begin, at_ms: int) -> Outcome:
        return refusal("transient") if begin.command.conversation == "off" else OK

    world = World(make_lanes(), answer)
    world.show("off", "m", "👍")
    world.run(30_000)
    world.show("on", "m", "👍")
    world.run(30_100)
    assert world.starts("on") == [30_000]
    assert len(world.starts("off")) <= 8


def test_failures_between_successes_are_no_outage() -> None:
    world = World(make_lanes(), lambda begin, at_ms: refusal("transient") if begin.call_id % 4 else OK)
    for number in range(40):
        world.show(f"c{number}", "m", "👍")
        world.run(world.now_ms + 100)
    assert world.lanes.counters["outages_ended"] == 0
    world.run(3_600_000)
    assert len(world.lanes.shown_marks()) == 40


def test_retries_are_never_more_often_than_the_rules() -> None:
    world = World(make_lanes(), down_until(1 << 60))
    world.show("c", "m", "👍")
    world.run(600_000)
    gaps = [second - first for first, second in pairwise(world.starts())]
    assert gaps[:7] == [550, 1_050, 2_050, 4_050, 8_050, 16_050, 32_050]
    assert set(gaps[7:]) == {60_050}
    assert world.lanes.counters["retries"] == len(gaps)


def test_phases_give_up_after_three_tries_and_terminals_do_not() -> None:
    world = World(make_lanes(), down_until(60_000))
    world.show("c", "m", "🤔", rank=Rank.PHASE)
    world.run(30_000)
    assert len(world.calls) == 3
    world.show("c", "m", "👍")
    world.run(120_000)
    assert world.lanes.shown_marks() == {("c", "m"): {"👍": None}}


def test_during_an_outage_nobody_is_woken_before_the_next_probe() -> None:
    world = World(make_lanes(), down_until(60_000))
    for number in range(5):
        world.show(f"c{number}", "m", "👍")
    world.run(60)
    assert world.lanes.wake_at_ms() == 1_050
    world.run(1_049)
    assert len(world.calls) == 5
    world.run(1_060)
    assert len(world.calls) == 6


# --- whoever makes the calls comes back --------------------------------------------------------------------------


def away_until(until_ms: int, conversations: int, messages: int = 1, concurrency: int = 4) -> World:
    """Nobody makes the calls; every lane has backed off for long when somebody comes."""
    world = World(make_lanes(concurrency=concurrency), down_until(until_ms))
    for number in range(conversations * messages):
        world.show(f"c{number % conversations}", f"m{number}", "👍")
    world.run(until_ms)
    return world


@pytest.mark.parametrize("conversations", [1, 2, 3, 20])
def test_who_comes_back_is_given_a_call_at_once_whatever_the_lanes_had_to_wait(conversations: int) -> None:
    world = away_until(600_000, conversations)
    waited, before = world.lanes.wake_at_ms(), len(world.calls)
    assert waited is not None
    assert waited > 601_000
    world.lanes.reachable(600_000)
    world.run(600_000)
    assert world.starts()[before:], "a call begins at once"
    world.run(700_000)
    assert len(world.lanes.shown_marks()) == conversations


@pytest.mark.parametrize(("conversations", "messages"), [(200, 1), (1, 200), (2, 100)])
def test_what_waited_for_who_comes_back_is_no_thundering_herd(conversations: int, messages: int) -> None:
    world = away_until(600_000, conversations, messages)
    before = len(world.calls)
    world.lanes.reachable(600_000)
    world.run(600_000 + 3_600_000)
    starts = world.starts()[before:]
    assert max(sum(at_ms <= other < at_ms + 10_000 for other in starts[:50]) for at_ms in starts[:50]) <= 40
    assert len(world.lanes.shown_marks()) == 200


def test_somebody_who_comes_when_nothing_waits_changes_nothing() -> None:
    world = World(make_lanes())
    world.show("c", "m", "👍")
    world.run(1_000)
    assert world.lanes.reachable(1_000) == []
    world.show("d", "m", "👍")
    world.run(2_000)
    assert world.starts() == [0, 1_000]


def test_who_comes_and_leaves_without_a_call_made_costs_one_probe_each_time() -> None:
    world = away_until(600_000, 100)
    world.answer = down_until(1 << 60)
    before = len(world.calls)
    for number in range(20):
        world.lanes.reachable(world.now_ms)
        world.run(600_000 + 500 * (number + 1))
    assert len(world.calls) - before <= 20
