"""The lane of one message's marks: which call comes next."""

from __future__ import annotations

import pytest

from actors.presence.mark_lane import MarkLane
from actors.presence.terms import LaneRules, MarkReport, Outcome, OutcomeKind, Rank, RetryRules
from tests.presence.mark_stand import Stand

OK, TRANSIENT, UNKNOWN = OutcomeKind.OK, OutcomeKind.TRANSIENT, OutcomeKind.UNKNOWN
INVALID, BAD, LIMITED = OutcomeKind.INVALID_REACTION, OutcomeKind.BAD_REQUEST, OutcomeKind.RATE_LIMITED
PHASE, TERMINAL, ACK = Rank.PHASE, Rank.TERMINAL, Rank.ACK


# --- plain changes ----------------------------------------------------------------------------------------


def test_a_new_lane_has_nothing_to_do() -> None:
    lane = Stand().lane
    assert lane.next_command(0) is None
    assert lane.settled
    assert lane.idle
    assert lane.end(Outcome(OK), 0) == ()


def test_the_new_mark_is_added_before_the_old_one_is_removed() -> None:
    stand = Stand().on("A").show("B").settle()
    assert stand.calls == ["set B", "remove A"]
    assert stand.shown == ["B"]


def test_a_mark_is_confirmed_when_it_is_added_not_when_the_old_one_is_gone() -> None:
    stand = Stand().on("A").show("B").call(OK)
    assert stand.reports == [MarkReport("chat", "m", "B", None, ("B",))]
    assert stand.call(OK).results == [("B", None)]


def test_on_platforms_that_replace_one_set_is_all() -> None:
    stand = Stand("replace").on("A").show("B").settle()
    assert stand.calls == ["set B"]
    assert stand.shown == ["B"]


def test_clear_is_one_call_where_sets_replace_and_removals_elsewhere() -> None:
    assert Stand("replace").on("A").show(rank=TERMINAL).settle().calls == ["clear"]
    stand = Stand().on("A").show("B").call(OK).show(rank=TERMINAL).settle()
    assert stand.calls == ["set B", "remove A", "remove B"]
    assert stand.results == [("B", None), (None, None)]
    assert stand.lane.idle


@pytest.mark.parametrize("reactions", ["add_remove", "replace"])
def test_what_holds_already_makes_no_call_and_is_reported_at_once(reactions: str) -> None:
    stand = Stand(reactions).on("A").show("A").show("A", rank=TERMINAL)
    assert stand.results == [("A", None), ("A", None)]
    assert stand.lane.settled
    assert Stand(reactions).show().results == [(None, None)]


@pytest.mark.parametrize("reactions", ["add_remove", "replace"])
def test_a_wish_that_was_replaced_is_never_sent(reactions: str) -> None:
    stand = Stand(reactions).show("A").begin().show("B").show("C").end().settle()
    assert "set B" not in stand.calls
    assert stand.shown == ["C"]
    assert stand.results == [("C", None)]
    assert stand.lane.saved == 1


def test_one_call_at_a_time() -> None:
    stand = Stand().show("A").begin().show("B")
    assert stand.lane.next_command(0) is None
    assert not stand.lane.settled


def test_asking_again_is_free_but_answered() -> None:
    stand = Stand().show("A").begin().show("A").end().show("A")
    assert stand.calls == ["set A"]
    assert stand.results == [("A", None), ("A", None)]


def test_going_back_joins_the_call_in_flight() -> None:
    stand = Stand().show("A").begin().show("B").show("A").end().settle()
    assert stand.calls == ["set A"]
    assert stand.results == [("A", None)]
    assert stand.lane.saved == 2


def test_a_platform_without_reactions_is_never_called() -> None:
    stand = Stand("none").show("A")
    assert stand.lane.settled
    stand.show()
    assert stand.results == [("A", OutcomeKind.FORBIDDEN), (None, None)]


def test_asking_for_the_next_command_changes_nothing() -> None:
    stand = Stand().show("A")
    assert stand.lane.next_command(0) == stand.lane.next_command(0)


def test_a_call_cannot_be_begun_when_none_is_due() -> None:
    stand = Stand().show("A")
    following = stand.lane.next_command(0)
    assert following is not None
    stand.begin().end()
    with pytest.raises(ValueError, match="nothing"):
        stand.lane.begin(following[0], 0)


def test_handles_come_back_with_the_removal() -> None:
    stand = Stand().show("A").begin().end(handle="h1").show("B").settle()
    assert stand.calls == ["set A", "set B", "remove A@h1"]


def test_an_answer_without_a_handle_keeps_the_known_one() -> None:
    stand = Stand().show("A").begin().end(handle="h1").show().begin().end(TRANSIENT).show("A")
    assert stand.begin().end(OutcomeKind.ALREADY_DONE).lane.shown == {"A": "h1"}


# --- order ------------------------------------------------------------------------------------------------


def test_a_begun_swap_finishes_its_removal_before_the_next_add() -> None:
    stand = Stand().on("A").show("B").begin().show("C").end().settle()
    assert stand.calls == ["set B", "remove A", "set C", "remove B"]
    stand = Stand().on("A").show("B").call(OK).show("C").settle()
    assert stand.calls == ["set B", "remove A", "set C", "remove B"]


@pytest.mark.parametrize("rank", [ACK, PHASE])
def test_an_ack_does_not_go_ahead(rank: Rank) -> None:
    assert Stand().on("A").show("B").begin().show("C", rank=rank).end().begin().calls[-1] == "remove A"


def test_a_terminal_goes_ahead_of_a_phases_removal() -> None:
    stand = Stand().on("A").show("B").begin().show("D", rank=TERMINAL).end().settle()
    assert stand.calls == ["set B", "set D", "remove A", "remove B"]
    assert stand.ranks == [PHASE, TERMINAL, TERMINAL, TERMINAL]


def test_a_terminal_does_not_go_ahead_of_a_terminals_removal() -> None:
    stand = Stand().on("A").show("D", rank=TERMINAL).begin().show("E", rank=TERMINAL).end().settle()
    assert stand.calls == ["set D", "remove A", "set E", "remove D"]


def test_a_removal_has_the_class_of_its_add() -> None:
    assert Stand().on("A").show("B", rank=PHASE).settle().ranks == [PHASE, PHASE]
    assert Stand().on("A").show("B", rank=ACK).settle().ranks == [ACK, ACK]
    assert Stand().on("A").show("D", rank=TERMINAL).settle().ranks == [TERMINAL, TERMINAL]
    assert Stand().on("A").show(rank=TERMINAL).settle().ranks == [TERMINAL]


def test_a_removal_that_blocks_a_higher_call_has_its_class() -> None:
    stand = Stand().on("A").show("B").begin().show("C", rank=ACK).end().begin()
    assert (stand.calls[-1], stand.ranks[-1]) == ("remove A", ACK)


def test_a_mark_wanted_back_before_its_removal_began_just_stays() -> None:
    stand = Stand().on("A").show("B").call(OK).show("A").settle()
    assert stand.calls == ["set B", "remove B"]
    assert stand.shown == ["A"]


def test_a_mark_wanted_back_while_the_swap_is_begun_comes_back_behind_it() -> None:
    stand = Stand().on("A").show("B").begin().show("A")
    assert stand.results == [("A", None)]
    assert stand.end().settle().calls == ["set B", "remove A", "set A", "remove B"]
    assert stand.shown == ["A"]


def test_a_terminal_that_is_on_the_message_already_needs_no_add() -> None:
    stand = Stand().on("A").show("B").begin().show("A", rank=TERMINAL).end().settle()
    assert stand.calls == ["set B", "remove B"]
    assert stand.results == [("A", None)]


def test_what_a_swap_owed_is_forgotten_once_it_is_gone() -> None:
    stand = Stand().on("A").show("B").begin().show("C").end().settle()
    stand.show("A").settle().calls.clear()
    assert stand.show("D").settle().calls == ["set D", "remove A"]


def test_a_clear_that_has_not_begun_makes_room_for_an_add() -> None:
    assert Stand().on("A").show().show("B").settle().calls == ["set B", "remove A"]


def test_a_mark_added_while_a_clear_is_wanted_is_removed() -> None:
    stand = Stand().show("A").begin().show(rank=TERMINAL).end().settle()
    assert stand.calls == ["set A", "remove A"]
    assert stand.results == [(None, None)]


# --- the end of the lane ----------------------------------------------------------------------------------


def test_a_lane_with_a_mark_is_kept_until_it_is_released() -> None:
    stand = Stand().on("A").show("D", rank=TERMINAL).call(OK)
    stand.lane.release()
    busy = stand.lane.idle
    assert (busy, stand.settle().lane.idle) == (False, True)
    assert not Stand().on("A").lane.idle


def test_a_clear_is_not_confirmed_while_an_add_is_in_flight() -> None:
    stand = Stand().show("A").begin().show(rank=TERMINAL)
    assert stand.results == []
    assert stand.end(INVALID).results == [(None, None)]


def test_saved_counts_equal_joined_and_replaced_wishes() -> None:
    stand = Stand().on("A")
    saved = stand.lane.saved
    stand.show("A", rank=ACK)
    assert stand.lane.saved == saved + 1
    stand.show("B").show("C").settle()
    assert stand.lane.saved == saved + 2


def test_default_keys_are_unique() -> None:
    lanes = [MarkLane("chat", "m", LaneRules(), RetryRules()) for _ in range(2)]
    keys = set()
    for lane in lanes:
        lane.show(("A",), PHASE, 0)
        following = lane.next_command(0)
        assert following is not None
        keys.add(following[0].idempotency_key)
    assert len(keys) == 2
