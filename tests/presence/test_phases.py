"""The phase of a run: the whole table, and spans."""

from __future__ import annotations

import pytest

from actors.presence.phases import Phases, Step
from actors.presence.policy import StatusSettings
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
    TEXT,
    THINKING,
    TO,
    TOOL,
    WAITING_SLOT,
    WAITING_USER,
    span,
    span_end,
)

WEB = span("w", "web_search")
BASH = span("b", "bash")
PROGRESS_EVENTS = (
    PROGRESS,
    span_end("x"),
    COMPACTING_END,
    events.Child(child="c", **TO),
    events.ChildEnd(child="c", **TO),
    events.Moved(thread="t", **TO),
    events.Sending(**TO),
    events.Sent(**TO),
    events.Error(scope="lane", **TO),
)
NOT_PROGRESS = (
    events.Alive(**TO),
    events.Merged(into="other", **TO),
    events.TypingStart(**TO),
    events.TypingStop(**TO),
    RECEIVED,
)


def after(*taken: Event, span_max_ms: int = 1_800_000) -> Phases:
    phases = Phases(StatusSettings(span_max_ms=span_max_ms))
    for event in taken:
        phases.take(event, 0)
    return phases


@pytest.mark.parametrize(
    ("taken", "phase", "state"),
    [
        ([RECEIVED], "queued", "queued"),
        ([QUEUED], "queued", "queued"),
        ([WAITING_SLOT], "waiting", "waiting"),
        ([WAITING_USER], "waiting", "waiting_user"),
        ([THINKING], "thinking", "thinking"),
        ([TEXT], "thinking", "thinking"),
        ([TOOL], "tool", "tool"),
        ([CODING], "tool", "coding"),
        ([COMPACTING], "compacting", "compacting"),
        ([THINKING, COMPACTING, COMPACTING_END], "thinking", "thinking"),
        ([CODING, COMPACTING, COMPACTING, COMPACTING_END], "tool", "coding"),
        ([COMPACTING, COMPACTING_END], "thinking", "thinking"),
        ([WAITING_USER, COMPACTING, COMPACTING_END], "waiting", "waiting_user"),
        ([THINKING, COMPACTING, QUEUED, COMPACTING_END], "queued", "queued"),
        ([CODING, THINKING], "thinking", "thinking"),
        ([CODING, TEXT], "thinking", "thinking"),
        ([BASH, THINKING], "tool", "coding"),
        ([BASH, TEXT], "tool", "coding"),
        ([BASH, WEB], "tool", "web"),
        ([BASH, WEB, THINKING], "tool", "web"),
        ([BASH, WEB, span_end("w")], "tool", "coding"),
        ([BASH, WEB, span_end("b")], "tool", "web"),
        ([BASH, WEB, span_end("b"), span_end("w")], "tool", "web"),
        ([BASH, WEB, span_end("w"), span_end("b"), THINKING], "thinking", "thinking"),
        ([BASH, span_end("b")], "tool", "coding"),
        ([BASH, span_end("b"), THINKING], "thinking", "thinking"),
        ([BASH, span_end("other"), THINKING], "tool", "coding"),
        ([BASH, WEB, BASH, span_end("b")], "tool", "web"),
        ([BASH, TOOL, span_end("b")], "tool", "tool"),
        ([BASH, TOOL, THINKING], "tool", "coding"),
        ([BASH, WAITING_USER], "waiting", "waiting_user"),
        ([BASH, WAITING_USER, THINKING], "tool", "coding"),
        ([BASH, WAITING_USER, span_end("b")], "waiting", "waiting_user"),
        ([BASH, QUEUED], "queued", "queued"),
        ([BASH, COMPACTING], "compacting", "compacting"),
        ([BASH, WEB, COMPACTING, span_end("w"), COMPACTING_END], "tool", "coding"),
        ([BASH, COMPACTING, span_end("b"), COMPACTING_END], "tool", "coding"),
        ([RECEIVED, RECEIVED, PROGRESS], "queued", "queued"),
        ([THINKING, RECEIVED], "thinking", "thinking"),
    ],
)
def test_the_phase_after_these_events(taken: list[Event], phase: str, state: str) -> None:
    phases = after(*taken)
    assert (phases.phase, phases.state) == (phase, state)


@pytest.mark.parametrize("event", PROGRESS_EVENTS)
def test_progress_changes_no_phase_but_opens_a_run_in_thinking(event: Event) -> None:
    later, first = after(COMPACTING, QUEUED), after()
    assert later.take(event, 0) is Step.PROGRESS
    assert later.phase == "queued"
    assert first.take(event, 0) is Step.PHASE
    assert first.phase == "thinking"


@pytest.mark.parametrize("event", NOT_PROGRESS)
def test_life_and_commands_are_no_progress(event: Event) -> None:
    phases = after(COMPACTING)
    assert phases.take(event, 0) is Step.NONE
    assert phases.phase == "compacting"


def test_a_phase_event_that_changes_nothing_still_asks_for_its_phase() -> None:
    phases = after(BASH)
    assert phases.take(THINKING, 0) is Step.PHASE
    assert phases.take(QUEUED, 0) is Step.PHASE
    assert phases.take(QUEUED, 0) is Step.PHASE


def test_a_terminal_is_not_its_business() -> None:
    assert after().take(DONE, 0) is Step.NONE


def test_a_span_that_never_ends_holds_the_mark_no_longer_than_its_limit() -> None:
    phases = after(BASH, span_max_ms=1_000)
    phases.take(THINKING, 999)
    assert phases.state == "coding"
    phases.take(THINKING, 1_000)
    assert phases.state == "thinking"
    phases.take(WEB, 1_000)
    phases.take(span_end("w"), 1_001)
    assert phases.state == "web"


def test_a_span_limit_of_zero_is_off() -> None:
    phases = after(BASH, span_max_ms=0)
    phases.take(THINKING, 10**9)
    assert phases.state == "coding"


def test_waiting_is_known() -> None:
    assert after(WAITING_SLOT).waiting
    assert not after(WAITING_SLOT, THINKING).waiting
