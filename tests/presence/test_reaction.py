"""The status mark of an open run: ack, phases, debounce, spans, reports and restarts."""

from __future__ import annotations

from typing import Any

import pytest

from actors.presence.policy import DEFAULT_EMOJI, ToolCategory
from actors.presence.reaction import ReactionMachine
from actors.presence.terms import Cancel, MarkReport, OutcomeKind, Rank, Schedule, Show
from protocol import events
from protocol.events import Event
from tests.presence.reaction_stand import (
    CODING,
    COMPACTING,
    COMPACTING_END,
    DONE,
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
    info,
    span,
    span_end,
)

# --- the ack and the beginning ----------------------------------------------------------------------------


def test_received_shows_the_ack_and_nothing_else() -> None:
    stand = Stand().send(RECEIVED).to(100_000)
    assert stand.log == [(0, "👀")]
    assert stand.ranks == ["ACK"]
    assert stand.machine.phase == "queued"


def test_received_shows_nothing_where_the_gate_says_no() -> None:
    assert Stand(ack=False).send(RECEIVED, PROGRESS).to(100_000).log == []


def test_a_second_received_shows_nothing_new() -> None:
    assert Stand().send(RECEIVED, THINKING).to(700).send(RECEIVED).to(5_000).log == [(0, "👀"), (700, "🤔")]


def test_the_ack_may_have_an_emoji_of_its_own() -> None:
    chains = {**DEFAULT_EMOJI, "ack": ("🫡",)}
    stand = Stand(emoji=chains).send(RECEIVED).to(10).send(QUEUED).to(20)
    assert stand.log == [(0, "🫡"), (10, "👀")]


def test_queued_opens_a_run_and_shows_at_once() -> None:
    stand = Stand(ack=False).send(QUEUED)
    assert (stand.log, stand.ranks) == ([(0, "👀")], ["PHASE"])


def test_progress_opens_a_run_in_thinking() -> None:
    assert Stand().send(PROGRESS).to(700).log == [(700, "🤔")]


def test_progress_after_received_shows_nothing_and_starts_no_stall_clock() -> None:
    stand = Stand().send(RECEIVED).to(100).send(PROGRESS).to(60_000)
    assert stand.log == [(0, "👀")]
    assert not stand.machine.deadlines


@pytest.mark.parametrize("status", [{"allowed": False}, {"enabled": False}])
def test_status_off_leaves_the_ack_alone(status: dict[str, Any]) -> None:
    stand = Stand(**status).send(RECEIVED, THINKING).to(500).send(CODING).to(60_000)
    assert stand.log == [(0, "👀")]
    assert not stand.machine.deadlines


def test_a_run_without_a_message_shows_nothing_and_finishes() -> None:
    stand = Stand(message=None).send(RECEIVED, THINKING).to(60_000).send(DONE)
    assert stand.log == []
    assert len(stand.finished) == 1


# --- debounce ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "emoji"),
    [
        (WAITING_SLOT, "👀"),
        (WAITING_USER, "👀"),
        (THINKING, "🤔"),
        (TEXT, "🤔"),
        (TOOL, "🔥"),
        (CODING, "👨\u200d💻"),
        (events.Tool(name="web_search", **TO), "⚡"),
        (COMPACTING, "✍"),
    ],
)
def test_a_phase_is_shown_after_the_debounce(event: Event, emoji: str) -> None:
    assert Stand(ack=False).send(event).to(699).log == []
    assert Stand(ack=False).send(event).to(700).log == [(700, emoji)]


def test_the_same_phase_again_does_not_start_the_debounce_anew() -> None:
    assert Stand().send(THINKING).to(400).send(THINKING, TEXT).to(2_000).log == [(700, "🤔")]


def test_another_phase_starts_the_debounce_anew() -> None:
    assert Stand().send(THINKING).to(400).send(TOOL).to(2_000).log == [(1_100, "🔥")]


def test_a_burst_waits_for_three_debounces_at_most() -> None:
    stand = Stand().send(QUEUED)
    for at_ms in range(100, 2_600, 500):
        stand.to(at_ms).send(THINKING if at_ms % 1_000 == 100 else TOOL)
    assert stand.to(5_000).log == [(0, "👀"), (2_200, "🤔")]


def test_dropping_what_is_pending_ends_the_burst() -> None:
    stand = Stand().send(QUEUED, THINKING).to(600).send(QUEUED).to(650).send(THINKING).to(1_300).send(TOOL)
    assert stand.to(5_000).log == [(0, "👀"), (2_000, "🔥")]


def test_asking_for_what_shows_drops_what_is_pending() -> None:
    assert Stand().send(QUEUED, THINKING).to(300).send(QUEUED).to(5_000).log == [(0, "👀")]


def test_queued_overtakes_a_pending_phase() -> None:
    stand = Stand().send(THINKING).to(1_000).send(TOOL).to(1_200).send(QUEUED).to(5_000)
    assert stand.log == [(700, "🤔"), (1_200, "👀")]


def test_a_debounce_of_zero_is_off() -> None:
    assert Stand(debounce_ms=0).send(THINKING).to(0).log == [(0, "🤔")]


def test_cancel_pending_forgets_the_phase_but_not_the_stalls() -> None:
    stand = Stand().send(QUEUED, THINKING).to(300)
    stand.perform(stand.machine.cancel_pending(300)).to(11_000)
    assert stand.log == [(0, "👀"), (10_000, "🥱")]


def test_a_stream_of_text_has_no_effects_once_it_shows() -> None:
    stand = Stand().send(TEXT).to(700)
    assert stand.machine.handle(TEXT, 1_000) == ()
    assert stand.machine.handle(TEXT, 5_000) == ()


# --- spans ------------------------------------------------------------------------------------------------


def test_a_span_keeps_its_mark_through_thinking_and_text() -> None:
    stand = Stand().send(span("1", "bash")).to(2_000)
    for at_ms in range(2_000, 8_000, 200):
        stand.to(at_ms).send(THINKING, TEXT)
    assert stand.log == [(700, "👨\u200d💻")]


def test_of_several_spans_the_newest_open_one_shows() -> None:
    stand = Stand().send(span("1", "bash")).to(2_000).send(span("2", "web_search")).to(4_000).send(span_end("2"))
    assert stand.to(6_000).log == [(700, "👨\u200d💻"), (2_700, "⚡"), (4_700, "👨\u200d💻")]


def test_after_the_last_span_the_mark_stays_until_the_next_phase() -> None:
    stand = Stand().send(span("1")).to(2_000).send(span_end("1")).to(5_000).send(PROGRESS).to(6_000)
    assert stand.log == [(700, "🔥")]
    assert stand.send(THINKING).to(7_000).shown == "🤔"


def test_a_tool_without_a_call_ends_with_the_next_phase() -> None:
    assert Stand().send(TOOL).to(2_000).send(THINKING).to(3_000).shown == "🤔"


def test_a_category_of_the_users_own_shows_its_emoji_or_that_of_a_tool() -> None:
    tools = (ToolCategory("deploy", tokens=("deploy",)), ToolCategory("build", tokens=("build",)))
    stand = Stand(tools=tools, emoji={**DEFAULT_EMOJI, "deploy": ("🚀",)})
    assert stand.send(events.Tool(name="deploy_app", **TO)).to(700).shown == "🚀"
    assert stand.send(events.Tool(name="build_app", **TO)).to(2_000).shown == "🔥"


def test_compacting_ends_in_the_phase_before_debounced() -> None:
    stand = Stand().send(CODING).to(1_000).send(COMPACTING).to(3_000).send(COMPACTING_END).to(3_699)
    assert stand.shown == "✍"
    assert stand.to(3_700).shown == "👨\u200d💻"


# --- reports, newer runs, restarts ------------------------------------------------------------------------


def test_a_refused_phase_keeps_the_mark_before_it_and_may_be_asked_for_again() -> None:
    stand = Stand()
    stand.refuses["🤔"] = OutcomeKind.TRANSIENT
    stand.send(QUEUED, THINKING).to(2_000)
    assert stand.machine.desired == DEFAULT_EMOJI["queued"]
    assert stand.send(THINKING).to(3_000).log == [(0, "👀"), (700, "🤔"), (2_700, "🤔")]


def test_a_refused_stall_is_not_brought_back() -> None:
    stand = Stand()
    stand.refuses["🥱"] = OutcomeKind.INVALID_REACTION
    stand.send(THINKING).to(11_000).send(PROGRESS).to(13_000)
    assert stand.log == [(700, "🤔"), (10_000, "🥱")]


def test_a_late_report_about_an_older_wish_changes_nothing() -> None:
    stand = Stand()
    stand.confirms = False
    stand.send(QUEUED)
    older = stand.machine.desired
    stand.to(100).send(THINKING).to(900)
    refused = MarkReport("chat", "m", "👀", OutcomeKind.INVALID_REACTION, older)
    assert stand.machine.on_mark(refused, 900) == ()
    assert stand.machine.desired == DEFAULT_EMOJI["thinking"]


def test_a_timer_that_is_not_armed_is_ignored() -> None:
    machine = ReactionMachine(info())
    machine.handle(QUEUED, 0)
    assert machine.on_timeout("show", 500) == ()
    assert machine.on_timeout("unheard of", 500) == ()


def test_a_disowned_run_is_tracked_but_not_shown() -> None:
    stand = Stand().send(RECEIVED, THINKING).to(1_000)
    stand.perform(stand.machine.disown())
    stand.send(RESTORE, CODING, QUEUED).to(60_000)
    assert stand.log == [(0, "👀"), (700, "🤔")]
    assert stand.machine.phase == "queued"
    assert not stand.machine.deadlines
    assert not stand.finished
    stand.send(DONE).to(90_000)
    assert len(stand.log) == 2
    assert len(stand.finished) == 1


def test_after_a_restart_the_stalls_begin_anew_and_the_wish_is_told_again() -> None:
    stand = Stand().send(QUEUED, THINKING).to(5_000)
    effects = stand.machine.restart(29_000)
    assert effects == [Show(DEFAULT_EMOJI["thinking"], Rank.PHASE), Schedule("stall", 39_000)]
    stand.now_ms = 29_000
    assert stand.perform(effects).to(60_000).log[2:] == [(29_000, "🤔"), (39_000, "🥱"), (59_000, "😨")]


def test_after_a_restart_a_pending_phase_is_shown() -> None:
    stand = Stand().send(QUEUED, THINKING).to(100)
    stand.now_ms = 5_000
    assert stand.perform(stand.machine.restart(5_000)).to(5_000).log[1:] == [(5_000, "👀"), (5_000, "🤔")]


def test_a_restart_of_an_untouched_run_has_no_effects() -> None:
    machine = ReactionMachine(info(ack=False))
    machine.handle(RECEIVED, 0)
    assert machine.restart(1_000) == ()


def test_waiting_takes_the_stall_timer_away() -> None:
    machine = ReactionMachine(info(ack=False))
    machine.handle(QUEUED, 0)
    assert Cancel("stall") in machine.handle(WAITING_USER, 1_000)
