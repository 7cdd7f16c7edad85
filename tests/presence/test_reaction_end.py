"""How a run's marks end: the transition table of `actors.presence.reaction` from its first terminal on."""

from __future__ import annotations

from typing import Any

import pytest

from actors.presence.reaction import ReactionMachine
from actors.presence.terms import Finished, MarkReport, OutcomeKind, Rank, Schedule, Show
from protocol.events import Event
from tests.presence.reaction_stand import (
    CANCELLED,
    CLEAR,
    CODING,
    DONE,
    ERROR,
    PROGRESS,
    QUEUED,
    RECEIVED,
    RESTORE,
    SILENT,
    THINKING,
    Stand,
    info,
)

NOTHING_FITS = (OutcomeKind.INVALID_REACTION, OutcomeKind.BAD_REQUEST)
LOST = (OutcomeKind.GONE, OutcomeKind.FORBIDDEN, OutcomeKind.TRANSIENT)


def working(**status: Any) -> Stand:
    """A run that was acked at 0 and thinks since; the time is 5,000."""
    return Stand(**status).send(RECEIVED, THINKING).to(5_000)


# --- open -> final, leaving -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "emoji", "hold_ms", "phase"), [(DONE, "👍", 1_500, "done"), (ERROR, "😱", 2_500, "error")]
)
def test_a_terminal_shows_at_once_is_held_and_clears(event: Event, emoji: str, hold_ms: int, phase: str) -> None:
    stand = working().send(event)
    assert stand.log[2:] == [(5_000, emoji)]
    assert stand.ranks[-1] == "TERMINAL"
    assert (stand.machine.phase, stand.machine.ended) == (phase, True)
    assert stand.to(60_000).log[3:] == [(5_000 + hold_ms, None)]
    assert stand.ranks[-1] == "TERMINAL"
    assert stand.finished == [Finished()]


def test_the_hold_counts_from_the_confirmation() -> None:
    stand = working()
    stand.confirms = False
    stand.send(DONE).to(30_000)
    assert stand.log[2:] == [(5_000, "👍")]
    stand.confirm().to(31_499)
    assert len(stand.log) == 3
    assert stand.to(31_500).shown is None


@pytest.mark.parametrize("event", [CANCELLED, SILENT, CLEAR])
@pytest.mark.parametrize("settle", ["clear", "keep", "restore"])
def test_some_terminals_remove_the_marks_at_once(event: Event, settle: str) -> None:
    stand = working(settle=settle).send(event)
    assert stand.log[2:] == [(5_000, None)]
    assert stand.finished == [Finished()]
    assert stand.machine.phase == ("silent" if event is SILENT else "cancelled")


def test_keep_leaves_the_final_mark() -> None:
    stand = working(settle="keep").send(DONE).to(60_000)
    assert stand.shown == "👍"
    assert stand.finished == [Finished()]


def test_restore_shows_the_ack_after_the_hold() -> None:
    stand = working(settle="restore").send(ERROR).to(60_000)
    assert stand.log[2:] == [(5_000, "😱"), (7_500, "👀")]
    assert stand.ranks[-1] == "TERMINAL"
    assert stand.finished == [Finished()]


def test_restore_without_an_ack_clears() -> None:
    assert working(settle="restore", ack=False).send(DONE).to(60_000).shown is None


@pytest.mark.parametrize("first", [DONE, ERROR, CANCELLED, SILENT, CLEAR])
@pytest.mark.parametrize("later", [DONE, ERROR, CANCELLED, SILENT, THINKING, QUEUED, RECEIVED, PROGRESS, CODING])
def test_the_first_terminal_wins_and_no_phase_comes_after_it(first: Event, later: Event) -> None:
    alone = working().send(first).to(60_000)
    stand = working().send(first, later).to(5_100).send(later).to(60_000).send(later)
    assert stand.log == alone.log
    assert stand.machine.phase == alone.machine.phase
    assert not stand.machine.deadlines


def test_a_terminal_takes_the_debounce_and_the_stalls_along() -> None:
    stand = working().send(CODING, DONE)
    assert not [key for key in stand.machine.deadlines if key != "hold"]


def test_a_terminal_that_looks_like_the_phase_is_still_told() -> None:
    stand = Stand(emoji={"queued": ("👀",), "thinking": ("👍",), "done": ("👍",)}).send(THINKING).to(700).send(DONE)
    assert stand.log == [(700, "👍"), (700, "👍")]
    assert stand.ranks == ["PHASE", "TERMINAL"]


@pytest.mark.parametrize("event", [DONE, ERROR])
@pytest.mark.parametrize(("settle", "shown"), [("clear", None), ("keep", "👀"), ("restore", "👀")])
def test_a_terminal_that_is_not_presented_settles_at_once(event: Event, settle: str, shown: str | None) -> None:
    stand = working(settle=settle, presentation=frozenset({"thinking"})).send(event)
    assert stand.log[2:] == [(5_000, shown)]
    assert stand.finished == [Finished()]


@pytest.mark.parametrize(("settle", "shown"), [("clear", None), ("keep", "👀"), ("restore", "👀")])
def test_with_status_off_the_end_settles_the_ack(settle: str, shown: str | None) -> None:
    stand = working(settle=settle, enabled=False).send(DONE)
    assert stand.shown == shown
    assert stand.finished == [Finished()]


@pytest.mark.parametrize("event", [DONE, CANCELLED, CLEAR])
def test_a_run_that_never_showed_a_mark_finishes_at_once(event: Event) -> None:
    stand = Stand(ack=False, allowed=False).send(RECEIVED, THINKING, event)
    assert stand.log == []
    assert stand.finished == [Finished()]


# --- final: refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", NOTHING_FITS)
def test_a_final_mark_that_cannot_be_had_removes_the_old_marks(kind: OutcomeKind) -> None:
    stand = working()
    stand.refuses["👍"] = kind
    stand.send(DONE).to(60_000)
    assert stand.log[2:] == [(5_000, "👍"), (5_000, None)]
    assert stand.finished == [Finished(not_shown=True)]


@pytest.mark.parametrize("kind", [kind for kind in LOST if kind is not OutcomeKind.FORBIDDEN])
def test_a_final_mark_whose_message_is_lost_ends_without_a_call(kind: OutcomeKind) -> None:
    stand = working()
    stand.refuses["👍"] = kind
    stand.send(DONE).to(60_000)
    assert stand.log[2:] == [(5_000, "👍")]
    assert stand.finished == [Finished(not_shown=True)]


def test_a_forbidden_final_mark_leaves_none_of_the_marks_before_it() -> None:
    stand = working()
    stand.refuses["👍"] = OutcomeKind.FORBIDDEN
    stand.send(DONE).to(60_000)
    assert stand.log[2:] == [(5_000, "👍"), (5_000, None)]
    assert stand.finished == [Finished(not_shown=True)]


@pytest.mark.parametrize("kind", NOTHING_FITS)
def test_an_ack_that_cannot_be_restored_is_cleared(kind: OutcomeKind) -> None:
    stand = working(settle="restore")
    stand.refuses["👀"] = kind
    stand.send(DONE).to(60_000)
    assert stand.log[2:] == [(5_000, "👍"), (6_500, "👀"), (6_500, None)]
    assert stand.finished == [Finished()]


@pytest.mark.parametrize("kind", [*NOTHING_FITS, *LOST])
def test_a_refused_clear_ends_the_run_all_the_same(kind: OutcomeKind) -> None:
    stand = working()
    stand.refuses[None] = kind
    stand.send(CANCELLED)
    assert stand.finished == [Finished()]


# --- clear and restore after the end ----------------------------------------------------------------------


@pytest.mark.parametrize("at_ms", [5_000, 6_000])
def test_clear_cuts_the_hold_short(at_ms: int) -> None:
    stand = working().send(DONE).to(at_ms).send(CLEAR).to(60_000)
    assert stand.log[3:] == [(at_ms, None)]
    assert stand.finished == [Finished()]


def test_restore_cuts_the_hold_short_and_the_ack_stays() -> None:
    stand = working().send(DONE).to(5_100).send(RESTORE).to(60_000)
    assert stand.log[3:] == [(5_100, "👀")]
    assert stand.finished == [Finished()]


def test_restore_after_the_end_without_an_ack_clears() -> None:
    assert working(ack=False).send(DONE).to(5_100).send(RESTORE).log[-1] == (5_100, None)


def test_clear_before_the_confirmation_goes_ahead() -> None:
    stand = working()
    stand.confirms = False
    stand.send(DONE).to(5_100).send(CLEAR)
    assert stand.shown is None
    stale = MarkReport("chat", "m", "👍", None, ("👍", "👌", "🔥"))
    assert stand.machine.on_mark(stale, 5_200) == ()
    assert stand.confirm().finished == [Finished()]


def test_clear_of_what_is_cleared_does_nothing() -> None:
    stand = working().send(CANCELLED).to(6_000).send(CLEAR)
    assert len(stand.log) == 3
    assert len(stand.finished) == 1


def test_a_kept_mark_can_still_be_cleared_or_restored() -> None:
    stand = working(settle="keep").send(DONE).to(60_000).send(RESTORE).to(70_000).send(CLEAR)
    assert stand.log[3:] == [(60_000, "👀"), (70_000, None)]


def test_restore_after_a_clear_shows_the_ack_while_the_machine_lives() -> None:
    assert working().send(CLEAR).to(6_000).send(RESTORE).log[3:] == [(6_000, "👀")]


# --- disowned, restarted ----------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [DONE, ERROR, CANCELLED])
def test_a_disowned_run_ends_without_a_mark(end: Event) -> None:
    stand = working()
    stand.perform(stand.machine.disown())
    stand.send(end)
    assert len(stand.log) == 2
    assert stand.finished == [Finished()]


def test_a_run_that_is_disowned_while_its_mark_is_held_is_finished() -> None:
    stand = working().send(DONE)
    stand.perform(stand.machine.disown()).send(CLEAR, RESTORE).to(60_000)
    assert len(stand.log) == 3
    assert stand.finished == [Finished()]
    assert not stand.machine.deadlines


def test_a_disowned_run_that_was_finished_is_not_finished_twice() -> None:
    stand = working().send(DONE).to(60_000)
    assert stand.machine.disown() == ()


def test_a_restart_keeps_the_hold() -> None:
    machine = ReactionMachine(info())
    machine.handle(QUEUED, 0)
    machine.handle(DONE, 1_000)
    machine.on_mark(MarkReport("chat", "m", "👍"), 1_100)
    assert machine.restart(2_000) == [Show(("👍", "👌", "🔥"), Rank.TERMINAL), Schedule("hold", 2_600)]
    assert machine.restart(9_000)[-1] == Schedule("hold", 9_000)


def test_a_restart_after_the_end_does_nothing() -> None:
    stand = working(settle="keep").send(DONE)
    assert stand.machine.restart(9_000) == ()
