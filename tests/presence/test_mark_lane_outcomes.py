"""The lane of one message's marks: what refusals and failures of its calls mean."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from actors.presence.marks import Mark
from actors.presence.terms import MarkReport, OutcomeKind, Rank
from tests.presence.mark_stand import Stand

OK, TRANSIENT, UNKNOWN = OutcomeKind.OK, OutcomeKind.TRANSIENT, OutcomeKind.UNKNOWN
INVALID, BAD, LIMITED = OutcomeKind.INVALID_REACTION, OutcomeKind.BAD_REQUEST, OutcomeKind.RATE_LIMITED
FORBIDDEN = OutcomeKind.FORBIDDEN
PHASE, TERMINAL, ACK = Rank.PHASE, Rank.TERMINAL, Rank.ACK


def refused(emoji: str) -> Callable[[str, str], bool]:
    return lambda conversation, asked: (conversation, asked) == ("chat", emoji)


def in_doubt(stand: Stand) -> list[str]:
    return [emoji for emoji in stand.lane.possible if emoji not in stand.lane.shown]


# --- refusals ---------------------------------------------------------------------------------------------


def test_an_invalid_reaction_moves_on_along_the_chain_and_is_remembered() -> None:
    stand = Stand().show("A", "B").call(INVALID, OK)
    assert stand.calls == ["set A", "set B"]
    assert stand.reports == [MarkReport("chat", "m", "B", None, ("A", "B"))]
    assert stand.show("C").settle().show("A", "B").settle().calls[2:] == ["set C", "remove B", "set B", "remove C"]


def test_a_fallback_that_shows_already_needs_no_call() -> None:
    stand = Stand().on("B").show("A", "B").call(INVALID)
    assert stand.results == [("B", None)]
    assert stand.lane.settled


def test_at_most_three_calls_for_one_wish() -> None:
    stand = Stand().show("A", "B", "C", "D").call(INVALID, INVALID, INVALID)
    assert stand.results == [("A", INVALID)]
    assert stand.lane.settled


def test_the_negative_cache_saves_calls() -> None:
    stand = Stand(is_refused=refused("A")).show("A", "B").settle()
    assert stand.calls == ["set B"]
    assert Stand(is_refused=refused("A")).show("A").results == [("A", INVALID)]


def test_a_wish_that_waits_and_is_told_again_does_not_ask_for_what_was_refused_elsewhere_meanwhile() -> None:
    elsewhere: set[str] = set()
    stand = Stand(is_refused=lambda conversation, emoji: emoji in elsewhere).show("A", "B")
    elsewhere.add("A")
    assert stand.show("A", "B").settle().calls == ["set B"]


def test_a_mark_that_shows_stays_when_it_is_told_again_though_it_was_refused_elsewhere_meanwhile() -> None:
    elsewhere: set[str] = set()
    stand = Stand(is_refused=lambda conversation, emoji: emoji in elsewhere)
    stand.lane.adopt("A", Mark(None), 0)
    elsewhere.add("A")
    stand.reports.clear()
    assert stand.show("A").settle().calls == []
    assert stand.results == [("A", None)]


def test_a_refused_phase_keeps_the_mark_before_it() -> None:
    stand = Stand().on("A").show("B").call(INVALID)
    assert stand.results == [("B", INVALID)]
    assert stand.lane.settled
    assert stand.shown == ["A"]


def test_on_a_full_message_our_own_mark_makes_room_for_the_next_one() -> None:
    stand = Stand().on("A").show("B").begin().end(FORBIDDEN, scope="message").settle()
    assert stand.calls == ["set B", "remove A", "set B"]
    assert len(set(stand.keys)) == 3
    assert stand.results == [("B", None)]
    assert stand.show("C", rank=TERMINAL).settle().calls[3:] == ["remove B", "set C"]
    assert stand.shown == ["C"]


def test_a_full_message_without_a_mark_of_ours_is_left_alone() -> None:
    stand = Stand().show("A", "B").begin().end(FORBIDDEN, scope="message")
    assert stand.results == [("A", FORBIDDEN)]
    assert stand.lane.settled


def test_a_message_that_is_full_again_after_ours_has_gone_is_left_alone() -> None:
    stand = Stand().on("A").show("B", "C").begin().end(FORBIDDEN, scope="message").call(OK)
    stand.begin().end(FORBIDDEN, scope="message")
    assert stand.calls == ["set B", "remove A", "set B"]
    assert stand.results == [("B", FORBIDDEN)]
    assert (stand.shown, stand.lane.settled) == ([], True)


def test_a_bad_request_ends_the_wish_and_is_never_made_again() -> None:
    stand = Stand().on("A").show("B", "C").call(BAD)
    assert stand.results == [("B", BAD)]
    assert stand.show("B", "C", rank=TERMINAL).results[1:] == [("B", BAD)]
    assert stand.lane.settled


@pytest.mark.parametrize("rank", list(Rank))
def test_a_refused_wish_leaves_the_begun_swap_to_be_finished_in_its_own_class(rank: Rank) -> None:
    stand = Stand(is_refused=refused("C")).on("A").show("B", rank=rank).call(OK).show("C").settle()
    assert stand.calls == ["set B", "remove A"]
    assert stand.ranks[-2:] == [rank, rank]
    assert stand.results == [("B", None), ("C", INVALID)]


@pytest.mark.parametrize("kind", [INVALID, BAD])
def test_a_removal_that_is_refused_is_given_up(kind: OutcomeKind) -> None:
    stand = Stand().on("A").show(rank=TERMINAL).call(kind)
    assert stand.results == [(None, kind)]
    assert stand.lane.idle
    stand = Stand("replace").on("A").show(rank=TERMINAL).call(kind)
    assert stand.results == [(None, kind)]
    assert stand.lane.idle


@pytest.mark.parametrize("kind", [OutcomeKind.GONE, OutcomeKind.FORBIDDEN])
def test_a_lost_message_is_left_alone_for_good(kind: OutcomeKind) -> None:
    stand = Stand().on("A").show("B").call(kind)
    assert stand.results == [("B", kind)]
    assert stand.show("C").show(rank=TERMINAL).results[1:] == [("C", kind), (None, kind)]
    assert stand.lane.settled
    assert stand.lane.idle
    assert stand.lane.dead is kind


def test_already_done_is_success() -> None:
    stand = Stand().on("A").show("B").call(OutcomeKind.ALREADY_DONE, OutcomeKind.ALREADY_DONE)
    assert stand.results == [("B", None)]
    assert stand.shown == ["B"]
    assert stand.lane.settled


# --- failures ---------------------------------------------------------------------------------------------


def test_a_phase_is_tried_three_times_with_doubling_delays() -> None:
    stand = Stand().on("A").show("B").call(TRANSIENT)
    assert stand.lane.not_before_ms == 500
    assert stand.lane.next_command(499) is None
    stand.now_ms = 500
    stand.call(TRANSIENT)
    assert stand.lane.not_before_ms == 1_500
    stand.now_ms = 1_500
    stand.call(TRANSIENT)
    assert stand.results == [("B", TRANSIENT)]
    assert stand.calls == ["set B"] * 3
    assert stand.shown == ["A"]
    assert stand.lane.settled


def test_terminals_are_tried_without_limit_and_the_delay_has_one() -> None:
    stand = Stand().show("D", rank=TERMINAL)
    for _ in range(40):
        stand.call(TRANSIENT)
        assert stand.lane.not_before_ms - stand.now_ms <= 60_000
        stand.now_ms = stand.lane.not_before_ms
    assert stand.results == []
    assert stand.call(OK).results == [("D", None)]
    assert stand.lane.not_before_ms == 0


@pytest.mark.parametrize("rank", [PHASE, TERMINAL])
def test_removals_are_tried_without_limit(rank: Rank) -> None:
    stand = Stand().on("A").show("B", rank=rank).call(OK)
    for _ in range(10):
        stand.call(TRANSIENT)
        stand.now_ms = stand.lane.not_before_ms
    assert stand.call(OK).shown == ["B"]
    assert set(stand.ranks) == {rank}


def test_where_nothing_is_retried_a_failed_removal_is_tried_at_the_next_change() -> None:
    stand = Stand(phase_tries=1, terminal_retries=False).on("A").show("B").call(OK, TRANSIENT)
    assert stand.lane.settled
    assert stand.show("C").settle().calls[2:] == ["set C", "remove A", "remove B"]


def test_where_nothing_is_retried_a_failed_terminal_and_a_failed_clear_are_told() -> None:
    stand = Stand(phase_tries=1, terminal_retries=False).on("A").show("D", rank=TERMINAL).call(TRANSIENT)
    assert stand.results == [("D", TRANSIENT)]
    assert stand.show(rank=TERMINAL).call(OK, TRANSIENT).results[1:] == [(None, TRANSIENT)]
    stand = Stand("replace", phase_tries=1, terminal_retries=False).on("A").show(rank=TERMINAL).call(TRANSIENT)
    assert stand.results == [(None, TRANSIENT)]


def test_another_wish_waits_for_no_back_off() -> None:
    stand = Stand().on("A").show("B").call(TRANSIENT).show("D", rank=TERMINAL)
    assert stand.begin().calls[-1] == "set D"


def test_the_failure_of_a_call_nobody_wants_any_more_is_no_failure() -> None:
    stand = Stand().show("A").begin().show("B").end(TRANSIENT)
    assert stand.lane.not_before_ms == 0
    assert stand.settle().calls == ["set A", "set B", "remove A"]


def test_a_failed_add_may_have_happened_and_is_cleaned_up_at_the_next_change() -> None:
    stand = Stand(phase_tries=1).on("A").show("B").call(TRANSIENT)
    assert in_doubt(stand) == ["B"]
    assert stand.show(rank=TERMINAL).settle().calls == ["set B", "remove A", "remove B"]
    stand = Stand("replace", phase_tries=1).show("B").call(TRANSIENT).show(rank=TERMINAL).settle()
    assert stand.calls == ["set B", "clear"]


def test_where_sets_replace_a_doubt_is_settled_by_the_next_set() -> None:
    stand = Stand("replace", phase_tries=1).on("A").show("B").call(TRANSIENT).show("A").settle()
    assert stand.calls == ["set B", "set A"]
    assert in_doubt(stand) == []


def test_an_unknown_outcome_is_followed_by_the_same_call_once_with_the_same_key() -> None:
    stand = Stand().show("A").call(UNKNOWN)
    assert stand.lane.not_before_ms == 0
    stand.call(UNKNOWN)
    assert stand.lane.not_before_ms > 0
    stand.now_ms = stand.lane.not_before_ms
    stand.call(UNKNOWN)
    assert stand.calls == ["set A"] * 3
    assert len(set(stand.keys)) == 1
    assert stand.results == [("A", UNKNOWN)]


def test_a_mark_in_doubt_whose_next_try_is_not_let_through_is_sought_under_its_own_key() -> None:
    """A platform that knows keys answers with the mark that it has, and makes no second one."""
    stand = Stand(needs_handle=True).show("A", rank=TERMINAL).call(UNKNOWN).begin().refuse(BAD).show(rank=TERMINAL)
    stand.begin().end(handle="7").settle()
    assert stand.calls == ["set A"] * 3 + ["remove A@7"]
    assert len(set(stand.keys[:3])) == 1


def test_an_unknown_removal_is_repeated_before_any_other() -> None:
    stand = Stand().on("A").show("B").begin().show("D", rank=TERMINAL).end()
    stand.call(OK, UNKNOWN).call(UNKNOWN)
    assert stand.calls == ["set B", "set D", "remove A", "remove A"]
    assert stand.keys[2] == stand.keys[3]


def test_an_unknown_add_that_is_not_wanted_any_more_is_removed_not_repeated() -> None:
    stand = Stand().show("A").begin().show("B").end(UNKNOWN).settle()
    assert stand.calls == ["set A", "set B", "remove A"]
    assert Stand("replace").show("A").begin().show("B").end(UNKNOWN).settle().calls == ["set A", "set B"]


def test_where_a_removal_needs_a_handle_an_unknown_add_is_repeated_to_learn_it() -> None:
    stand = Stand(needs_handle=True).show("A").begin().show("B").end(UNKNOWN).begin().end(handle="h2")
    stand.begin().end(handle="h1").settle()
    assert stand.calls == ["set A", "set B", "set A", "remove A@h1"]
    assert stand.keys[0] == stand.keys[2]
    assert stand.shown == ["B"]


def test_a_mark_whose_handle_never_comes_is_not_asked_for_for_ever() -> None:
    stand = Stand(needs_handle=True).show("A").begin().show(rank=TERMINAL).end(UNKNOWN).settle()
    assert stand.calls == ["set A", "set A", "remove A"]


@pytest.mark.parametrize("kind", [LIMITED, OutcomeKind.AUTH])
def test_a_limit_is_no_failure(kind: OutcomeKind) -> None:
    stand = Stand().on("A").show("B")
    for _ in range(10):
        stand.call(kind)
    assert stand.lane.not_before_ms == 0
    assert in_doubt(stand) == []
    assert stand.settle().shown == ["B"]
    assert len(set(stand.keys[:-1])) == 1


def test_a_limited_removal_leaves_the_mark_where_it_was() -> None:
    stand = Stand().on("A").show(rank=TERMINAL).call(LIMITED)
    assert stand.shown == ["A"]
    assert stand.settle().calls == ["remove A", "remove A"]


def test_each_new_call_has_a_key_of_its_own() -> None:
    stand = Stand().show("A").settle().show("B").settle().show("A").settle().show("B").settle()
    assert len(set(stand.keys)) == len(stand.keys) == 7
    stand = Stand("replace", phase_tries=1).show("A").call(TRANSIENT).show("B").call(OK).show("A").call(OK)
    assert len(set(stand.keys)) == 3


def test_a_mark_that_was_set_anew_is_removed_by_a_call_of_its_own() -> None:
    """A platform that knows a removal's key would take the second one for a repeat, and leave the mark."""
    stand = Stand().on("A").show("B").call(OK, UNKNOWN).show("A").call(OK).show("B").settle()
    removals = [key for call, key in zip(stand.calls, stand.keys, strict=True) if call == "remove A"]
    assert len(removals) == len(set(removals)) == 2
    assert stand.shown == ["B"]
