"""What goes first, what stands aside, what an answer stops, and that nothing is forgotten or kept too long."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from actors.presence.lanes import Begin
from actors.presence.pacing import Limit
from actors.presence.terms import OK, MarkReport, Op, Outcome, OutcomeKind, Rank, RetryRules, TypingReport
from tests.presence.lane_world import ADD_REMOVE, World, make_lanes, refusal

DAY_MS = 86_400_000


# --- order -----------------------------------------------------------------------------------------------------


def test_terminal_goes_before_ack_before_phase_before_typing() -> None:
    world = World(make_lanes())
    world.lanes.type_start("c", None, 1, 0)
    world.show("c", "phase", "🤔", rank=Rank.PHASE)
    world.show("c", "ack", "👀", rank=Rank.ACK)
    world.show("c", "end", "👍", rank=Rank.TERMINAL)
    world.pump()
    assert world.made() == ["c/end 👍", "c/ack 👀", "c/phase 🤔", "c/- typing_start"]


def test_conversations_take_turns_and_inside_one_the_oldest_goes_first() -> None:
    world = World(make_lanes())
    for number in range(4):
        world.show("busy", f"m{number}", "👍")
    world.show("quiet", "m", "👍")
    world.show("other", "m", "👍")
    world.pump()
    assert [name.split()[0] for name in world.made()] == [
        "busy/m0", "quiet/m", "other/m", "busy/m1", "busy/m2", "busy/m3",
    ]  # fmt: skip


def test_turns_hold_over_the_groups_of_a_class_that_are_paced_apart() -> None:
    lanes = make_lanes({"account.set": Limit(1, 1), "account.remove": Limit(1, 1)}, rules=ADD_REMOVE)
    world = World(lanes)
    for number in range(6):
        world.show("busy", f"old{number}", "👀")
    world.run(1_000)
    world.calls.clear()
    for number in range(6):
        world.show("busy", f"old{number}")
        world.show("busy", f"new{number}", "👍")
    world.show("quiet", "m", "👍")
    world.run(1_003)
    assert "quiet/m 👍" in world.made()[:4]


def test_a_flood_of_one_conversation_does_not_hold_up_another() -> None:
    world = World(make_lanes({"account": Limit(1_000, 10)}))
    for number in range(500):
        world.show("flood", f"m{number}", "👍")
    world.run(5_000)
    world.show("quiet", "m", "👍")
    world.run(5_500)
    assert world.starts("quiet")
    assert world.starts("flood")[-1] > 5_000 or len(world.starts("flood")) < 500


def test_a_superseded_mark_is_never_called() -> None:
    world = World(make_lanes({"account": Limit(10_000, 1)}))
    world.show("d", "m", "👍")
    world.pump()
    for emoji in ("👀", "🤔", "🔥"):
        world.show("c", "m", emoji, rank=Rank.PHASE)
    world.show("c", "m", "👍")
    world.run(30_000)
    assert world.made() == ["d/m 👍", "c/m 👍"]
    assert world.lanes.counters["calls_saved"] == 3


def test_what_shows_already_makes_no_call_and_reports_at_once() -> None:
    world = World(make_lanes())
    world.show("c", "m", "👍")
    world.run(1_000)
    assert world.show("c", "m", "👍", rank=Rank.PHASE) == [MarkReport("c", "m", "👍", None, ("👍",))]
    assert len(world.calls) == 1
    assert world.lanes.counters["calls_saved"] == 1


def test_clearing_a_message_without_marks_makes_no_lane_and_no_call() -> None:
    world = World(make_lanes())
    assert world.show("c", "m") == [MarkReport("c", "m", None, None, ())]
    assert len(world.lanes) == 0


def test_a_lane_never_has_two_calls_under_way() -> None:
    world = World(make_lanes(), latency_ms=1_000)
    world.show("c", "m", "👀")
    world.pump()
    world.show("c", "m", "👍")
    assert world.pump() == []
    world.run(3_000)
    assert world.starts() == [0, 1_000]


# --- connections -----------------------------------------------------------------------------------------------


def test_typing_and_phases_use_at_most_half_of_the_connections() -> None:
    world = World(make_lanes(concurrency=8), latency_ms=8_000)
    for number in range(100):
        world.lanes.type_start(f"c{number}", None, number, 0)
        world.show(f"c{number}", "m", "🤔", rank=Rank.PHASE)
    world.pump()
    assert len(world.under_way) == 4
    for number in range(100):
        world.show(f"c{number}", "end", "👍")
    world.pump()
    assert len(world.under_way) == 8


def test_one_connection_is_enough_for_everything() -> None:
    world = World(make_lanes(concurrency=1))
    world.lanes.type_start("c", None, 1, 0)
    world.show("c", "m", "🤔", rank=Rank.PHASE)
    world.run(1_000)
    assert world.most_under_way == 1
    assert world.made() == ["c/m 🤔", "c/- typing_start"]


def test_hung_calls_of_one_conversation_leave_connections_to_the_others() -> None:
    world = World(make_lanes(concurrency=8), latency_ms=10_000)
    for number in range(50):
        world.show("hung", f"m{number}", "👍")
    world.pump()
    assert len(world.starts("hung")) == 4
    world.show("quiet", "m", "👍")
    world.pump()
    assert world.starts("quiet") == [0]


def test_hung_phases_of_a_conversation_do_not_hold_up_its_end() -> None:
    world = World(make_lanes(concurrency=8), latency_ms=10_000)
    for number in range(20):
        world.show("c", f"m{number}", "🤔", rank=Rank.PHASE)
        world.lanes.type_start("c", str(number), number, 0)
    world.pump()
    world.show("c", "end", "👍")
    world.pump()
    assert "c/end 👍" in world.made()


# --- pacing ----------------------------------------------------------------------------------------------------


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
    assert all(second - first >= 150 for first, second in zip(later, later[1:], strict=False))
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


# --- answers ---------------------------------------------------------------------------------------------------


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


# --- circuits --------------------------------------------------------------------------------------------------


def forbidding(conversation: str, until_ms: int = 1 << 60) -> Callable[[Begin, int], Outcome]:
    def answer(begin: Begin, at_ms: int) -> Outcome:
        forbidden = begin.command.conversation == conversation and at_ms < until_ms
        return refusal("forbidden") if forbidden else OK

    return answer


def test_a_forbidden_conversation_costs_one_call_and_refuses_the_rest_at_once() -> None:
    world = World(make_lanes(concurrency=2), forbidding("kicked"))
    for number in range(10):
        world.show("kicked", f"m{number}", "👍")
    world.show("fine", "m", "👍")
    world.run(1_000)
    assert len(world.starts("kicked")) == 1
    assert len(world.starts("fine")) == 1
    refused = [r for r in world.reports if isinstance(r, MarkReport) and r.refused is OutcomeKind.FORBIDDEN]
    assert len(refused) == 10
    assert len(world.lanes) == 1
    assert world.show("kicked", "later", "👍")[0] == MarkReport("kicked", "later", "👍", OutcomeKind.FORBIDDEN, ("👍",))
    assert world.lanes.counters["breaker_opened"] == 1


def test_a_circuit_of_marks_leaves_typing_alone_and_the_other_way_round() -> None:
    def answer(begin: Begin, at_ms: int) -> Outcome:
        return refusal("forbidden") if (begin.command.emoji is not None) == marks_forbidden else OK

    for marks_forbidden in (True, False):
        world = World(make_lanes(), answer)
        world.show("c", "m", "👍")
        world.lanes.type_start("c", None, 1, 0)
        world.run(1_000)
        world.show("c", "n", "👍")
        reports = world.lanes.type_start("c", None, 2, 1_000)
        world.run(2_000)
        assert len(world.calls) == 3
        if not marks_forbidden:
            assert isinstance(reports[0], TypingReport)
            assert (reports[0].token, reports[0].outcome.kind, reports[0].called) == (2, "forbidden", False)


def test_a_probe_goes_out_after_ten_minutes_then_twenty_and_heals_the_circuit() -> None:
    world = World(make_lanes(), forbidding("c", until_ms=1_500_000))
    for at_ms in range(0, 3_000_000, 10_000):
        world.run(at_ms)
        world.show("c", f"m{at_ms}", "👍")
    world.run(3_000_000)
    starts = world.starts("c")
    assert starts[:3] == [0, 610_000, 1_820_000]
    assert starts[3:5] == [1_830_000, 1_840_000]
    assert world.lanes.counters["breaker_opened"] == 2


def test_while_a_probe_is_out_the_others_wait_for_its_answer() -> None:
    for healed in (True, False):
        world = World(make_lanes(), forbidding("c", until_ms=100_000 if healed else 1 << 60), latency_ms=500)
        world.show("c", "m", "👍")
        world.run(700_000)
        for number in range(5):
            world.show("c", f"n{number}", "👍")
        world.run(700_400)
        assert len(world.starts("c")) == 2
        assert world.lanes.wake_at_ms() is None
        world.run(702_000)
        assert len(world.starts("c")) == (6 if healed else 2)
        assert world.lanes.idle


def test_the_time_a_circuit_is_open_doubles_up_to_a_day() -> None:
    world = World(make_lanes(), forbidding("c"))
    for at_ms in range(0, 10 * DAY_MS, 600_000):
        world.run(at_ms)
        world.show("c", f"m{at_ms}", "👍")
    starts = world.starts("c")
    gaps = [second - first for first, second in zip(starts, starts[1:], strict=False)]
    assert gaps == sorted(gaps)
    assert DAY_MS <= gaps[-1] <= DAY_MS + 1_200_000


def test_a_probe_without_an_answer_is_followed_by_another_one() -> None:
    def answer(begin: Begin, at_ms: int) -> Outcome:
        return refusal("forbidden" if at_ms < 600_000 else "transient" if at_ms < 700_500 else "ok")

    world = World(make_lanes(), answer)
    world.show("c", "m", "👍")
    world.run(700_000)
    world.show("c", "n", "👍")
    world.show("c", "o", "👍")
    world.run(710_000)
    assert world.lanes.shown_marks().keys() == {("c", "n"), ("c", "o")}


def test_marks_that_show_are_still_taken_away_where_new_ones_are_forbidden() -> None:
    def answer(begin: Begin, at_ms: int) -> Outcome:
        return refusal("forbidden") if begin.command.emoji in ("🤔", "👍") else OK

    world = World(make_lanes(rules=ADD_REMOVE), answer)
    world.show("c", "m", "👀")
    world.show("c", "n", "👀")
    world.run(100)
    world.show("c", "m", "🤔", rank=Rank.PHASE)
    world.run(200)
    assert world.reports[-1] == MarkReport("c", "m", "🤔", OutcomeKind.FORBIDDEN, ("🤔",))
    assert world.show("c", "n", "👍")[0] == MarkReport("c", "n", "👍", OutcomeKind.FORBIDDEN, ("👍",))
    world.show("c", "m")
    world.show("c", "n")
    world.run(300)
    assert [begin.command.op for _, begin in world.calls[-2:]] == [Op.REMOVE, Op.REMOVE]
    assert world.lanes.shown_marks() == {}
    assert len(world.lanes) == 0


def test_a_refusal_for_the_whole_account_refuses_everywhere() -> None:
    world = World(make_lanes(concurrency=1), lambda begin, at_ms: refusal("forbidden", scope="account"))
    for number in range(10):
        world.show(f"c{number}", "m", "👍")
    world.run(1_000)
    assert len(world.calls) == 1
    assert len(world.reports) == 10
    world.run(700_000)
    world.show("x", "m", "👍")
    world.show("y", "m", "👍")
    world.run(701_000)
    assert len(world.calls) == 2
    assert world.lanes.idle


def test_a_refusal_for_one_message_opens_no_circuit() -> None:
    world = World(make_lanes(), lambda begin, at_ms: refusal("forbidden", scope="message"))
    world.show("c", "m", "👍")
    world.run(100)
    world.show("c", "n", "👍")
    world.run(200)
    assert len(world.calls) == 2


def test_a_post_of_the_bot_lets_a_forbidden_conversation_be_tried_again() -> None:
    world = World(make_lanes(), forbidding("c", until_ms=60_000))
    world.show("c", "m", "👍")
    world.run(60_300)
    world.lanes.posted("c", 60_300)
    world.show("c", "n", "👍")
    world.run(61_000)
    assert world.lanes.shown_marks() == {("c", "n"): {"👍": None}}


def test_a_gone_conversation_stops_typing_there() -> None:
    world = World(make_lanes(), lambda begin, at_ms: refusal("gone"))
    for token in range(10):
        world.lanes.type_start("c", None, token, world.now_ms)
        world.run(world.now_ms + 3_000)
    assert len(world.calls) == 1


# --- outages ---------------------------------------------------------------------------------------------------


def down_until(until_ms: int, kind: str = "transient") -> Callable[[Begin, int], Outcome]:
    return lambda begin, at_ms: refusal(kind) if at_ms < until_ms else OK


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
    gaps = [second - first for first, second in zip(world.starts(), world.starts()[1:], strict=False)]
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


# --- refused calls ---------------------------------------------------------------------------------------------


def test_half_of_the_refusals_that_a_host_survives_stop_typing_and_phases_and_most_stop_everything() -> None:
    def answer(begin: Begin, at_ms: int) -> Outcome:
        return refusal("rate_limited", retry_after_ms=1, scope="route")

    world = World(make_lanes(refusal_ceiling=100), answer, latency_ms=1)
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


# --- restarts and late answers ---------------------------------------------------------------------------------


def test_after_a_restart_calls_under_way_are_made_once_more_with_the_same_key() -> None:
    world = World(make_lanes(), latency_ms=10_000)
    world.show("c", "m", "👍")
    world.pump()
    world.lanes.restart(100)
    world.under_way.clear()
    world.now_ms = 100
    world.latency_ms = 50
    world.run(20_000)
    first, second = (begin for _, begin in world.calls)
    assert second.call_id != first.call_id
    assert second.command == first.command
    assert world.lanes.shown_marks() == {("c", "m"): {"👍": None}}


def test_a_restart_is_no_evidence_of_an_outage() -> None:
    world = World(make_lanes(), latency_ms=10_000)
    for number in range(20):
        world.show(f"c{number}", "m", "👍")
    world.pump()
    world.lanes.restart(100)
    world.now_ms = 100
    assert len(world.pump()) == 20


def test_a_restart_during_an_outage_lets_another_probe_go() -> None:
    world = World(make_lanes(), down_until(10_000))
    for number in range(20):
        world.show(f"c{number}", "m", "👍")
    world.run(1_500)
    world.under_way.clear()
    world.lanes.restart(1_500)
    world.run(600_000)
    assert len(world.lanes.shown_marks()) == 20


def test_a_late_answer_changes_nothing() -> None:
    world = World(make_lanes())
    world.show("c", "m", "👍")
    begin = world.pump()[0]
    world.lanes.restart(10)
    assert world.lanes.end(begin.call_id, refusal("auth"), 20) == []
    assert world.lanes.end(9_999, OK, 20) == []
    assert world.lanes.stopped is None
    assert world.lanes.counters["late_answers"] == 2


# --- keeping and dropping --------------------------------------------------------------------------------------


def test_lanes_are_dropped_when_nothing_is_shown_or_wanted() -> None:
    world = World(make_lanes(rules=ADD_REMOVE))
    for number in range(100):
        world.show(f"c{number}", "m", "👀")
        world.lanes.type_start(f"c{number}", None, number, 0)
    world.run(1_000)
    assert len(world.lanes) == 200
    for number in range(100):
        world.show(f"c{number}", "m")
        world.lanes.type_stop(f"c{number}", None, 1_000)
    world.run(2_000)
    assert len(world.lanes) == 0
    assert world.lanes.snapshot(2_000)["conversations"] == 0


def test_a_mark_that_stays_is_let_go_once_it_is_confirmed() -> None:
    world = World(make_lanes())
    world.show("c", "m", "👍")
    world.lanes.release("c", "m", 0)
    assert len(world.lanes) == 1
    world.run(1_000)
    assert len(world.lanes) == 0
    assert world.lanes.release("c", "m", 1_000) == []


def test_a_mark_left_by_an_earlier_process_can_be_taken_away() -> None:
    world = World(make_lanes(rules=ADD_REMOVE))
    world.lanes.adopt("c", "m", "👀", "$event", 0)
    world.lanes.adopt("c", "m", "🤔", "$other", 0)
    world.show("c", "m")
    world.run(1_000)
    assert [(b.command.op, b.command.emoji, b.command.handle) for _, b in world.calls] == [
        (Op.REMOVE, "👀", "$event"), (Op.REMOVE, "🤔", "$other"),
    ]  # fmt: skip
    assert len(world.lanes) == 0


def test_typing_that_has_not_begun_can_be_withdrawn() -> None:
    world = World(make_lanes())
    world.lanes.type_start("c", None, 5, 0)
    assert world.lanes.type_withdraw("c", None, 10) == [TypingReport("c", None, 5, OK, called=False)]
    assert world.lanes.type_withdraw("c", None, 10) == []
    assert world.pump() == []
    assert len(world.lanes) == 0


def test_stopping_typing_that_never_started_is_answered_at_once() -> None:
    world = World(make_lanes())
    assert world.lanes.type_stop("c", None, 0) == [TypingReport("c", None, None, OK, called=False)]


def test_idle_means_nothing_under_way_nothing_waiting_and_nothing_backing_off() -> None:
    world = World(make_lanes(), down_until(400))
    assert world.lanes.idle
    world.show("c", "m", "👍")
    assert not world.lanes.idle
    world.pump()
    assert not world.lanes.idle
    world.run(200)
    assert not world.lanes.idle
    world.run(2_000)
    assert world.lanes.idle


def test_the_snapshot_tells_what_waits_and_what_is_blocked() -> None:
    world = World(make_lanes(), lambda begin, at_ms: refusal("rate_limited", retry_after_ms=9_000))
    world.show("c", "m", "👍")
    world.run(100)
    snapshot = world.lanes.snapshot(100)
    assert snapshot["blocked"] == {"conversation c": 9_050}
    assert snapshot["waiting"] == {"terminal": 1, "ack": 0, "phase": 0, "typing": 0, "parked": 1}
    assert (snapshot["account"], snapshot["lanes"], snapshot["in_flight"]) == ("bot", 1, 0)


def test_every_outcome_is_counted_by_kind() -> None:
    kinds = iter(["ok", "transient", "bad_request"])
    world = World(make_lanes(retry=RetryRules(phase_tries=1)), lambda begin, at_ms: refusal(next(kinds)))
    for number in range(3):
        world.show(f"c{number}", "m", "🤔", rank=Rank.PHASE)
    world.run(1_000)
    counters = world.lanes.counters
    assert [counters[f"outcome_{kind}"] for kind in ("ok", "transient", "bad_request")] == [1, 1, 1]
    assert counters["calls_made"] == 3
