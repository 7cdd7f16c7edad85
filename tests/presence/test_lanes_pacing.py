"""A lane that may not be called stands aside: what is blocked waits, and everything else goes on."""

from __future__ import annotations

from itertools import pairwise

from actors.presence.breaker import Refusals
from actors.presence.lanes import Begin
from actors.presence.pacing import Limit
from actors.presence.terms import OK, Outcome, OutcomeKind, Rank, TypingReport
from tests.presence.lane_world import World, make_lanes, refusal

DAY_MS = 86_400_000


# --- pacing --------------------------------------------------------------------------------------------------


def test_no_call_is_made_into_a_blocked_conversation_and_the_others_go_on() -> None:
    def answer(begin: Begin, at_ms: int) -> Outcome:
        limited = begin.command.conversation == "limited" and at_ms < 1_000
        return refusal("rate_limited", retry_after_ms=25_000, scope="conversation") if limited else OK

    world = World(make_lanes(), answer)
    world.show("limited", "m", "👍")
    world.run(100)
    for number in range(20):
        world.show("limited", f"n{number}", "👍")
        world.show(f"c{number}", "m", "👍")
    world.run(1_000)
    assert sum(begin.command.conversation != "limited" for _, begin in world.calls) == 20
    assert world.starts("limited") == [0]
    world.run(60_000)
    assert world.starts("limited")[1:4] == [25_050, 25_350, 25_650]
    assert len(world.starts("limited")) == 22
    assert world.lanes.counters["rate_limited"] == 1


def test_a_success_that_used_up_its_budget_holds_back_the_next_call_and_is_no_refusal() -> None:
    def answer(begin: Begin, at_ms: int) -> Outcome:
        return Outcome(OutcomeKind.OK, retry_after_ms=2_000, scope="route")

    world = World(make_lanes(), answer)
    for message in ("m", "n", "o"):
        world.show("c", message, "👍")
    world.show("d", "m", "👍")
    world.run(100)
    assert (len(world.starts("c")), len(world.starts("d"))) == (3, 1)
    world.show("c", "p", "👍")
    world.run(10_000)
    assert world.starts("c")[3:] == [2_050]
    assert world.lanes.counters["rate_limited"] == 0


def test_a_blocked_route_holds_back_marks_and_not_typing() -> None:
    def answer(begin: Begin, at_ms: int) -> Outcome:
        return refusal("rate_limited", retry_after_ms=9_000, scope="route") if begin.command.emoji else OK

    world = World(make_lanes(), answer)
    world.show("c", "m", "👍")
    world.run(100)
    world.lanes.type_start("c", None, 1, 100)
    world.run(1_000)
    assert world.made() == ["c/m 👍", "c/- typing_start"]
    world.run(9_100)
    assert world.starts()[2] == 9_050


def test_a_blocked_account_wakes_once_and_its_backlog_is_spread() -> None:
    def answer(begin: Begin, at_ms: int) -> Outcome:
        return refusal("rate_limited", retry_after_ms=14_000, scope="account") if at_ms < 1_000 else OK

    world = World(make_lanes(), answer)
    world.show("first", "m", "👍")
    world.run(100)
    for number in range(30):
        world.show(f"c{number}", "m", "👍")
    assert world.pump() == []
    assert world.lanes.wake_at_ms() == 14_050
    world.run(60_000)
    later = world.starts()[1:]
    assert later[0] == 14_050
    assert all(second - first >= 150 for first, second in pairwise(later))
    assert len(later) == 31


def test_typing_asked_for_in_a_block_goes_out_once_and_only_while_it_is_wanted() -> None:
    def answer(begin: Begin, at_ms: int) -> Outcome:
        return refusal("rate_limited", retry_after_ms=21_000) if at_ms < 8_000 else OK

    world = World(make_lanes(), answer)
    world.lanes.type_start("t", None, 1, 0)
    world.run(4_000)
    for token, at_ms in enumerate((4_000, 8_000), start=2):
        world.now_ms = at_ms
        world.lanes.type_start("t", None, token, at_ms)
    assert world.lanes.type_stop("t", None, 9_050)[0] == TypingReport("t", None, 3, OK, called=False)
    world.run(60_000)
    assert world.starts() == [0]


def test_a_conversation_budget_parks_its_lanes_without_holding_up_others() -> None:
    world = World(make_lanes({"conversation": Limit(3_000, 1)}))
    for number in range(3):
        world.show("group", f"m{number}", "👍")
    world.show("other", "m", "👍")
    world.run(10_000)
    assert world.starts("group") == [0, 3_000, 6_000]
    assert world.starts("other") == [0]


def test_a_message_budget_parks_one_lane_only() -> None:
    world = World(make_lanes({"message": Limit(5_000, 1)}))
    world.show("c", "m", "👀")
    world.run(100)
    world.show("c", "m", "👍")
    world.show("c", "n", "👍")
    world.run(10_000)
    assert world.made() == ["c/m 👀", "c/n 👍", "c/m 👍"]
    assert world.starts()[2] == 5_000


def test_a_terminal_takes_the_token_that_phases_have_left() -> None:
    world = World(make_lanes({"account": Limit(60_000, 4, burst=4)}))
    for number in range(10):
        world.show(f"c{number}", "m", "🤔", rank=Rank.PHASE)
    world.pump()
    assert len(world.calls) == 3
    world.show("end", "m", "👍")
    world.pump()
    assert world.made()[-1] == "end/m 👍"


def test_other_limits_hold_at_once() -> None:
    world = World(make_lanes({"account": Limit(60_000, 1)}))
    for number in range(3):
        world.show(f"c{number}", "m", "👍")
    world.run(1_000)
    assert len(world.calls) == 1
    world.lanes.change({"account.set": Limit(1_000, 1)}, 0.0, 8, 1_000)
    world.run(3_500)
    assert world.starts() == [0, 1_000, 2_000]


# --- refused calls -------------------------------------------------------------------------------------------


def test_half_of_the_refusals_that_a_host_survives_stop_typing_and_phases_and_most_stop_everything() -> None:
    def answer(begin: Begin, at_ms: int) -> Outcome:
        return refusal("rate_limited", retry_after_ms=1, scope="route")

    world = World(make_lanes(refusals=Refusals(100)), answer, latency_ms=1)
    for number in range(60):
        world.lanes.type_start(f"c{number}", None, number, 0)
    world.run(100)
    assert len(world.calls) == 60
    world.lanes.type_start("late", None, 1, 100)
    assert world.pump() == []
    for number in range(30):
        world.show(f"c{number}", "m", "👍")
    world.run(500_000)
    assert 80 <= len(world.calls) <= 90
    world.answer = lambda begin, at_ms: OK
    world.run(700_000)
    assert world.starts()[-1] >= 610_000
    assert world.lanes.idle


def test_a_flood_of_limits_is_one_lesson() -> None:
    def answer(begin: Begin, at_ms: int) -> Outcome:
        return refusal("rate_limited", retry_after_ms=5_000, scope="account") if at_ms < 1_000 else OK

    world = World(make_lanes(), answer)
    for number in range(20):
        world.show(f"c{number}", "m", "👍")
        world.now_ms = number
        world.pump()
    world.run(8_000)
    assert world.starts()[20:23] == [5_069, 5_369, 5_669]
