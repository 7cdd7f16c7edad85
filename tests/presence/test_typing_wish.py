"""The reasons against typing: what brings them, what takes them away, and what keeps the TTL up."""

from __future__ import annotations

from typing import Any

import pytest

from actors.presence.terms import RunKey
from actors.presence.typing_wish import (
    ANSWERED,
    DELAY,
    EXPIRED,
    MODE,
    REFUSED,
    STOPPED,
    USER,
    TypingWish,
)
from protocol import events
from protocol.events import Event
from tests.presence.typing_world import TypingWorld, policy

KEY = RunKey("a", "c", "m")

RECEIVED = events.Received(conversation="c", message="m", direct=True)
REASONS = (MODE, DELAY, USER, EXPIRED, STOPPED, REFUSED, ANSWERED)


def event(kind: type[Event], **fields: Any) -> Event:
    return kind(conversation="c", run="m", **fields)  # type: ignore[call-arg]


QUEUED, THINKING, PROGRESS = event(events.Queued), event(events.Thinking), event(events.Progress)
SLOT, ON_USER = event(events.Waiting, on="slot"), event(events.Waiting, on="user")
TOOL, TOOL_END = event(events.Tool, call="1"), event(events.ToolEnd, call="1")
COMPACTING, COMPACTED = event(events.Compacting), event(events.CompactingEnd)
TEXT, HIDDEN = event(events.Text), event(events.Text, visible=False)
CHILD, CHILD_END = event(events.Child, child="x"), event(events.ChildEnd, child="x")
MERGED, MOVED = event(events.Merged, into="x"), event(events.Moved, thread="7")
SENDING, SENT = event(events.Sending), event(events.Sent)
ANSWER, LOST = event(events.Sent, final=True), event(events.Sent, final=True, ok=False)
LANE_ERROR, RESTORE, ALIVE = event(events.Error, scope="lane"), event(events.Restore), event(events.Alive)
START, STOP = event(events.TypingStart), event(events.TypingStop)

PHASES = (QUEUED, SLOT, THINKING, TOOL, COMPACTING, TEXT, HIDDEN)
WORK = (THINKING, TOOL, COMPACTING, TEXT, HIDDEN)
PROGRESSES = (
    *PHASES, ON_USER, PROGRESS, TOOL_END, COMPACTED, CHILD, CHILD_END, MERGED, MOVED, SENDING, SENT, LOST,
    LANE_ERROR,
)  # fmt: skip
OTHERS = (RESTORE, ALIVE, STOP)
ALL = (*PROGRESSES, ANSWER, *OTHERS, START)


def wish(off: int = 0, **typing: Any) -> TypingWish:
    made = TypingWish(KEY, policy(**typing), 0)
    made.note(RECEIVED, 0)
    made.off = off
    return made


def name(value: Any) -> str:
    return repr(value).replace("conversation='c', ", "").replace("run='m'", "")


@pytest.mark.parametrize("then", ALL, ids=name)
@pytest.mark.parametrize("reason", REASONS)
def test_each_event_takes_away_the_reasons_of_its_row_and_no_others(reason: int, then: Event) -> None:
    gone = {MODE: ALL[:-1], USER: PHASES, EXPIRED: (*PROGRESSES, ANSWER)}.get(reason, ())
    left = 0 if then is START or (then in gone and reason is not MODE) else reason
    if reason is MODE:
        left = 0 if then is not ALIVE else MODE
    brought = {ON_USER: USER, ANSWER: ANSWERED, STOP: STOPPED}.get(then, 0)
    tried = wish(reason)
    tried.note(then, 10)
    assert tried.off == left | brought


@pytest.mark.parametrize(
    ("mode", "starters"),
    [
        ("instant", ALL[:-1]),
        ("thinking", (*WORK, START)),
        ("message", (TEXT, START)),
        ("never", (START,)),
    ],
)
def test_each_mode_has_its_events_that_begin_typing(mode: str, starters: tuple[Event, ...]) -> None:
    for then in ALL:
        tried = TypingWish(KEY, policy(mode=mode), 0)
        tried.note(RECEIVED, 0)
        tried.note(then, 10)
        if mode == "instant":
            assert not tried.off & MODE
        else:
            assert (not tried.off & MODE) == (then in starters), then


@pytest.mark.parametrize(
    ("mode", "opener", "begins"),
    [
        ("instant", RECEIVED, True),
        ("instant", QUEUED, True),
        ("thinking", RECEIVED, False),
        ("thinking", QUEUED, False),
        ("thinking", SLOT, False),
        ("thinking", THINKING, True),
        ("thinking", PROGRESS, True),
        ("message", PROGRESS, False),
        ("message", TEXT, True),
        ("never", TEXT, False),
    ],
)
def test_the_first_event_of_a_run_may_begin_typing(mode: str, opener: Event, begins: bool) -> None:
    tried = TypingWish(KEY, policy(mode=mode), 0)
    tried.note(opener, 0)
    assert (tried.off == 0) is begins


def test_a_bare_scope_wants_typing_from_the_start() -> None:
    assert TypingWish("s", policy(mode="never"), 0).off == 0


# --- delay --------------------------------------------------------------------------------------------------


def test_the_first_start_waits_for_the_delay() -> None:
    world = TypingWorld(start_delay_ms=500).open().tell(100, "m", events.Thinking).advance(4000)
    assert world.starts == [500, 3500]


@pytest.mark.parametrize(
    "end", [(events.Sent, {"final": True}), (events.Done, {}), (events.Cancelled, {}), (events.Error, {})]
)
def test_the_delay_is_cancelled_by_a_final_post_and_by_every_terminal(end: tuple[type[Event], Any]) -> None:
    world = TypingWorld(start_delay_ms=500).open().tell(300, "m", end[0], **end[1]).advance(5000)
    assert world.calls == []
    assert not world.machine.deadlines


def test_the_ttl_counts_from_the_delayed_start() -> None:
    world = TypingWorld(start_delay_ms=500, keepalive_ms=0, ttl_ms=10_000).open().advance(60_000)
    assert world.calls == [(500, "start"), (10_500, "stop")]


def test_a_delay_that_is_cancelled_leaves_no_timer() -> None:
    world = TypingWorld(start_delay_ms=500).open()
    assert world.machine.deadlines == {"wishes": 500}
    assert not world.tell(300, "m", events.Sent, final=True).machine.deadlines


def test_an_explicit_start_does_not_wait_for_the_delay() -> None:
    world = TypingWorld(start_delay_ms=500).open().tell(100, "m", events.TypingStart).advance(1000)
    assert world.starts == [100]


def test_only_the_first_start_is_delayed() -> None:
    world = TypingWorld(start_delay_ms=500, keepalive_ms=0).open().tell(1000, "m", events.Waiting, on="user")
    assert world.tell(2000, "m", events.Thinking).calls == [(500, "start"), (1000, "stop"), (2000, "start")]


# --- waiting ------------------------------------------------------------------------------------------------


def test_waiting_on_the_user_stops_typing_until_the_next_phase() -> None:
    world = TypingWorld(keepalive_ms=4000).open().tell(5000, "m", events.Waiting, on="user")
    world.tell(30_000, "m", events.Progress).tell(40_000, "m", events.Thinking).tell(42_000, "m", events.Done)
    world.tell(130_000, "m", events.Thinking)
    assert world.calls == [(0, "start"), (4000, "start"), (5000, "stop"), (40_000, "start"), (42_000, "stop")]


def test_waiting_for_a_slot_keeps_typing() -> None:
    world = TypingWorld().open().tell(1000, "m", events.Waiting, on="slot").advance(3000)
    assert world.calls == [(0, "start"), (3000, "start")]


# --- what keeps the TTL up ----------------------------------------------------------------------------------


def test_the_ttl_is_armed_by_the_machine_only() -> None:
    tried = wish(ttl_ms=1000)
    tried.note(PROGRESS, 10)
    assert tried.due_ms() is None
    tried.arm(10)
    tried.note(RESTORE, 20)
    assert tried.due_ms() == 1020


def test_a_ttl_of_0_is_off() -> None:
    tried = wish(ttl_ms=0)
    tried.arm(10)
    assert tried.due_ms() is None


def test_alive_renews_the_ttl_only_for_a_while_after_the_last_progress() -> None:
    world = TypingWorld(keepalive_ms=0, ttl_ms=10_000, quiet_max_ms=25_000).open()
    world.tell(5000, "m", events.Progress)
    for at_ms in range(10_000, 100_000, 5000):
        world.tell(at_ms, "m", events.Alive)
    assert world.calls == [(0, "start"), (40_000, "stop")]


def test_without_a_longest_quiet_alive_always_counts() -> None:
    world = TypingWorld(keepalive_ms=0, ttl_ms=10_000, quiet_max_ms=0).open()
    for at_ms in range(5000, 3_000_000, 5000):
        world.tell(at_ms, "m", events.Alive)
    assert world.stops == []


def test_an_open_tool_span_is_a_sign_of_life() -> None:
    world = TypingWorld(keepalive_ms=0, ttl_ms=10_000).open().tell(2000, "m", events.Tool, call="1")
    world.tell(172_000, "m", events.ToolEnd, call="1").advance(300_000)
    assert world.calls == [(0, "start"), (182_000, "stop")]


def test_the_end_of_a_span_brings_the_ttl_near_again() -> None:
    world = TypingWorld(keepalive_ms=0, ttl_ms=10_000).open().tell(2000, "m", events.Tool, call="1")
    world.tell(3000, "m", events.Sending).tell(3500, "m", events.Sent, ok=False)
    world.tell(4000, "m", events.ToolEnd, call="1").advance(300_000)
    assert world.calls == [(0, "start"), (14_000, "stop")]


def test_but_not_for_ever() -> None:
    world = TypingWorld(keepalive_ms=0, ttl_ms=10_000, span_max_ms=50_000).open()
    world.tell(2000, "m", events.Tool, call="1").tell(3000, "m", events.Tool, call="2")
    world.tell(4000, "m", events.ToolEnd, call="2").advance(300_000)
    assert world.calls == [(0, "start"), (62_000, "stop")]


def test_a_tool_without_a_call_id_is_no_span() -> None:
    world = TypingWorld(keepalive_ms=0, ttl_ms=10_000).open().tell(2000, "m", events.Tool).advance(60_000)
    assert world.stops == [12_000]


def test_a_span_that_opens_again_counts_anew_and_too_many_are_forgotten_oldest_first() -> None:
    tried = wish(ttl_ms=1000, span_max_ms=100_000)
    tried.arm(0)
    for number in range(300):
        tried.note(event(events.Tool, call=str(number)), number)
    tried.note(event(events.Tool, call="250"), 1000)
    assert tried.due_ms() == 102_000
    tried.note(event(events.ToolEnd, call="250"), 1500)
    assert tried.due_ms() == 100_000 + 1000 + 299
    for number in range(299, 43, -1):
        tried.note(event(events.ToolEnd, call=str(number)), 2000)
    assert tried.due_ms() == 3000
