"""The status mark of an open run: stalls, delays, quiet hours, and restore."""

from __future__ import annotations

import pytest

from protocol import events
from protocol.events import Event
from tests.presence.reaction_stand import (
    CODING,
    COMPACTING_END,
    DONE,
    ERROR,
    FINAL_SENT,
    PROGRESS,
    QUEUED,
    RECEIVED,
    RESTORE,
    TEXT,
    THINKING,
    TO,
    TOOL,
    WAITING_SLOT,
    WAITING_USER,
    Stand,
    span_end,
)

# --- stalls -----------------------------------------------------------------------------------------------


def test_silence_shows_the_soft_and_then_the_hard_stall() -> None:
    assert Stand().send(THINKING).to(10**6).log == [(700, "🤔"), (10_000, "🥱"), (30_000, "😨")]


@pytest.mark.parametrize(
    "event",
    [
        PROGRESS,
        span_end("none"),
        COMPACTING_END,
        events.Child(child="c", **TO),
        events.ChildEnd(child="c", **TO),
        events.Moved(thread="t", **TO),
        events.Sending(**TO),
        events.Sent(**TO),
        events.Sent(final=True, ok=False, **TO),
        events.Error(scope="lane", **TO),
        THINKING,
        TEXT,
    ],
)
def test_progress_puts_the_stalls_off_and_brings_the_phase_back(event: Event) -> None:
    stand = Stand().send(THINKING).to(5_000).send(event).to(14_999)
    assert stand.log == [(700, "🤔")]
    assert stand.to(16_000).send(event).to(20_000).log[1:] == [(15_000, "🥱"), (16_700, "🤔")]


@pytest.mark.parametrize("event", [events.Alive(**TO), events.TypingStart(**TO), events.Merged(into="x", **TO)])
def test_life_alone_is_no_progress(event: Event) -> None:
    assert Stand().send(THINKING).to(5_000).send(event).to(10_000).shown == "🥱"


def test_after_a_stall_the_clocks_run_from_the_new_progress() -> None:
    stand = Stand().send(THINKING).to(40_000).send(PROGRESS).to(100_000)
    assert stand.log[3:] == [(40_700, "🤔"), (50_000, "🥱"), (70_000, "😨")]


def test_progress_between_the_stalls_begins_with_the_soft_one_again() -> None:
    assert Stand().send(THINKING).to(12_000).send(PROGRESS).to(22_000).log[2:] == [(12_700, "🤔"), (22_000, "🥱")]


@pytest.mark.parametrize("event", [WAITING_SLOT, WAITING_USER])
def test_waiting_has_no_stall(event: Event) -> None:
    stand = Stand().send(THINKING, event).to(5_000).send(PROGRESS).to(10**6)
    assert stand.log == [(700, "👀")]
    assert stand.send(THINKING).to(10**6 + 10_000).shown == "🥱"


def test_a_final_sent_turns_the_stalls_off_until_a_phase() -> None:
    stand = Stand().send(THINKING).to(2_000).send(FINAL_SENT).to(50_000).send(PROGRESS).to(99_000)
    assert stand.log == [(700, "🤔")]
    assert stand.send(THINKING).to(109_000).shown == "🥱"


@pytest.mark.parametrize(
    ("status", "log"),
    [
        ({"stall_soft_ms": 0}, [(700, "🤔"), (30_000, "😨")]),
        ({"stall_hard_ms": 0}, [(700, "🤔"), (10_000, "🥱")]),
        ({"stall_soft_ms": 0, "stall_hard_ms": 0}, [(700, "🤔")]),
        ({"stall_soft_ms": 9_000, "stall_hard_ms": 4_000}, [(700, "🤔"), (4_000, "😨"), (9_000, "🥱")]),
        ({"stall_soft_ms": 5_000, "stall_hard_ms": 5_000}, [(700, "🤔"), (5_000, "🥱"), (5_000, "😨")]),
        ({"stall_soft_ms": 700}, [(700, "🤔"), (700, "🥱"), (30_000, "😨")]),
        ({"debounce_ms": 12_000}, [(12_000, "🤔"), (30_000, "😨")]),
    ],
)
def test_stalls_with_unusual_numbers(status: dict[str, int], log: list[tuple[int, str]]) -> None:
    assert Stand(**status).send(THINKING).to(10**6).log == log


# --- when a change may be made ----------------------------------------------------------------------------


def test_min_change_delays_phases_and_stalls_but_no_end() -> None:
    stand = Stand(min_change_ms=5_000).send(RECEIVED).to(100).send(THINKING).to(2_000).send(TOOL).to(4_000)
    assert stand.log == [(0, "👀")]
    assert stand.to(6_000).log[1:] == [(5_000, "🔥")]
    assert stand.send(DONE).log[2:] == [(6_000, "👍")]
    assert stand.to(10_000).log[3:] == [(7_500, None)]


def test_min_change_makes_a_stall_wait() -> None:
    assert Stand(min_change_ms=9_800).send(THINKING).to(10**5).log[1] == (10_500, "🥱")


def test_min_change_makes_the_restored_ack_wait() -> None:
    stand = Stand(min_change_ms=5_000, settle="restore").send(RECEIVED, THINKING).to(7_000).send(DONE).to(20_000)
    assert stand.log[2:] == [(7_000, "👍"), (12_000, "👀")]


def test_a_phase_that_comes_while_the_ack_waits_still_has_its_debounce() -> None:
    stand = Stand(start_delay_ms=300).send(RECEIVED).to(200).send(THINKING).to(2_000)
    assert stand.log == [(900, "🤔")]
    restored = Stand(min_change_ms=5_000).send(RECEIVED, THINKING).to(6_000).send(RESTORE).to(9_900)
    assert restored.send(events.Tool(conversation="c", name="x")).to(12_000).log[2:] == [(10_600, "🔥")]


def test_no_mark_before_the_start_delay() -> None:
    stand = Stand(start_delay_ms=3_000).send(RECEIVED).to(1_000).send(THINKING).to(2_999)
    assert stand.log == []
    assert stand.to(4_000).log == [(3_000, "🤔")]


@pytest.mark.parametrize("event", [DONE, ERROR])
@pytest.mark.parametrize("settle", ["clear", "keep", "restore"])
def test_a_run_that_ends_before_the_start_delay_shows_nothing(event: Event, settle: str) -> None:
    stand = Stand(start_delay_ms=3_000, settle=settle).send(RECEIVED, THINKING).to(2_000).send(event).to(9_000)
    assert stand.log == []
    assert [each.not_shown for each in stand.finished] == [False]


# --- presentation and quiet hours -------------------------------------------------------------------------

ENDS = frozenset({"queued", "stall_soft", "stall_hard", "done", "error"})


def test_states_that_are_not_presented_leave_the_mark_as_it_is() -> None:
    stand = Stand(presentation=ENDS).send(RECEIVED, QUEUED, THINKING).to(2_000).send(CODING).to(12_000)
    assert stand.log == [(0, "👀"), (12_000, "🥱")]
    assert stand.send(PROGRESS).to(13_000).shown == "👀"
    assert stand.send(DONE).shown == "👍"


def test_a_stall_over_no_mark_leaves_no_mark() -> None:
    stand = Stand(presentation=ENDS, ack=False).send(THINKING).to(10_000).send(PROGRESS).to(12_000)
    assert stand.log == [(10_000, "🥱"), (10_700, None)]


@pytest.mark.parametrize("event", [QUEUED, WAITING_USER, TOOL, PROGRESS])
def test_after_a_stall_the_phase_before_comes_back_debounced_whatever_hidden_event_brings_it(event: Event) -> None:
    shown = frozenset({"thinking", "stall_soft"})
    stand = Stand(presentation=shown).send(THINKING).to(12_000).send(event).to(14_000)
    assert stand.log == [(700, "🤔"), (10_000, "🥱"), (12_700, "🤔")]


def test_a_hidden_phase_does_not_push_out_a_pending_one() -> None:
    shown = frozenset({"thinking"})
    assert Stand(presentation=shown).send(THINKING).to(300).send(TOOL).to(2_000).log == [(700, "🤔")]


@pytest.mark.parametrize(("quiet", "minute"), [((60, 120), 60), ((60, 120), 119), ((1_380, 360), 10)])
def test_quiet_hours_show_only_done_and_error(quiet: tuple[int, int], minute: int) -> None:
    stand = Stand(quiet_minutes=quiet)
    stand.minute = minute
    assert stand.send(RECEIVED, QUEUED, THINKING).to(40_000).log == []
    assert stand.send(ERROR).to(50_000).log == [(40_000, "😱"), (42_500, None)]


@pytest.mark.parametrize(("quiet", "minute"), [((60, 120), 59), ((60, 120), 120), ((1_380, 360), 360)])
def test_outside_quiet_hours_marks_show(quiet: tuple[int, int], minute: int) -> None:
    stand = Stand(quiet_minutes=quiet)
    stand.minute = minute
    assert stand.send(RECEIVED).log == [(0, "👀")]


def test_quiet_hours_that_begin_meanwhile_hold_back_what_is_pending() -> None:
    stand = Stand(quiet_minutes=(60, 120), debounce_ms=61_000, stall_soft_ms=0, stall_hard_ms=0)
    stand.minute = 59
    assert stand.send(THINKING).to(200_000).log == []


# --- restore before the end -------------------------------------------------------------------------------


def test_restore_shows_the_ack_and_stops_the_stalls_until_the_next_phase() -> None:
    stand = Stand().send(RECEIVED, THINKING).to(5_000).send(RESTORE).to(60_000)
    assert stand.log == [(0, "👀"), (700, "🤔"), (5_000, "👀")]
    assert stand.ranks[-1] == "ACK"
    assert stand.send(THINKING).to(70_000).log[3:] == [(60_700, "🤔"), (70_000, "🥱")]


def test_restore_drops_what_is_pending() -> None:
    assert Stand().send(RECEIVED, THINKING).to(300).send(RESTORE).to(60_000).log == [(0, "👀")]


def test_restore_without_an_ack_changes_nothing() -> None:
    stand = Stand(ack=False).send(THINKING).to(5_000).send(RESTORE).to(20_000)
    assert stand.log == [(700, "🤔"), (10_000, "🥱")]
    assert Stand(ack=False).send(RECEIVED, RESTORE).log == []
