"""What a livesign that was started anew is told of the runs that are open."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from protocol import events
from protocol.client.open_runs import OpenRuns
from protocol.client.workers import Workers
from protocol.codec import Decoder
from protocol.events import Event

RUN: dict[str, Any] = {"conversation": "c", "message": "m"}
RECEIVED = events.Received(direct=True, id="1", **RUN)
THINKING = events.Thinking(id="2", **RUN)


def told(*acknowledged: Event | tuple[Event, str]) -> list[Event]:
    runs = OpenRuns()
    for each in acknowledged:
        event, result = each if isinstance(each, tuple) else (each, "applied")
        runs.acknowledged(event, result)
    return [item for item in Decoder().feed(runs.retell()) if isinstance(item, Event)]


def tool(call: str | None = None) -> events.Tool:
    return events.Tool(name="grep", call=call, **RUN)


def test_the_opening_and_the_phase_are_told_without_ids() -> None:
    assert told(RECEIVED, THINKING) == [events.Received(direct=True, **RUN), events.Thinking(**RUN)]
    assert told(THINKING) == [events.Thinking(**RUN)]


def test_of_several_phases_only_the_last_holds() -> None:
    assert told(RECEIVED, THINKING, events.Text(**RUN), events.Progress(**RUN))[1:] == [events.Text(**RUN)]


def test_an_open_tool_is_told_as_a_span_and_one_that_ended_as_what_still_shows() -> None:
    assert told(RECEIVED, tool("1"))[1:] == [tool(), tool("1")]
    assert told(RECEIVED, tool("1"), events.ToolEnd(call="1", **RUN))[1:] == [tool()]
    assert told(tool("1"), events.ToolEnd(call="1", **RUN)) == [tool()]


def test_helpers_another_thread_and_a_final_post_are_told() -> None:
    child, moved = events.Child(child="k", **RUN), events.Moved(thread="t", **RUN)
    sent = events.Sent(final=True, **RUN)
    assert told(RECEIVED, child, moved, sent)[1:] == [moved, child, sent]
    assert told(RECEIVED, child, events.ChildEnd(child="k", **RUN))[1:] == []
    assert told(RECEIVED, sent, THINKING)[1:] == [events.Thinking(**RUN)]
    assert told(RECEIVED, events.Sent(final=True, ok=False, **RUN))[1:] == []


@pytest.mark.parametrize(
    "end",
    [
        events.Done(**RUN),
        events.Error(**RUN),
        events.Cancelled(**RUN),
        events.Silent(**RUN),
        events.Clear(**RUN),
        events.Merged(into="r", **RUN),
    ],
)
def test_a_run_that_has_ended_is_not_told(end: Event) -> None:
    assert told(RECEIVED, end) == []


def test_an_error_of_a_lane_ends_nothing() -> None:
    assert len(told(RECEIVED, events.Error(scope="lane", **RUN))) == 1


@pytest.mark.parametrize("result", ["late", "unknown"])
def test_what_livesign_has_ended_itself_is_not_told(result: str) -> None:
    assert told(RECEIVED, (THINKING, result)) == []


def test_what_opens_no_run_is_not_told() -> None:
    bare = events.TypingStart(conversation="c", scope="s")
    assert told(events.ToolEnd(call="1", **RUN), events.Alive(), bare) == []


def test_the_oldest_run_is_forgotten_when_there_are_too_many() -> None:
    runs = OpenRuns(runs_max=2)
    for message in "abc":
        runs.acknowledged(events.Thinking(conversation="c", message=message), "applied")
    assert len(runs) == 2
    assert [getattr(item, "message", None) for item in Decoder().feed(runs.retell())] == ["b", "c"]


def test_workers_are_few_take_turns_and_end() -> None:
    workers = Workers(2, "worker")
    ready, go = threading.Semaphore(0), threading.Event()
    names: list[str] = []

    def job() -> None:
        names.append(threading.current_thread().name)
        ready.release()
        go.wait(5)

    for _ in range(6):
        workers.submit(job)
    for _ in range(2):
        assert ready.acquire(timeout=5)
    assert sorted(names) == ["worker-1", "worker-2"]
    go.set()
    for _ in range(4):
        assert ready.acquire(timeout=5)
    workers.submit(lambda: 1 / 0)
    workers.submit(job)
    assert ready.acquire(timeout=5)
    workers.close()
    workers.submit(job)
    assert len(names) == 7
    assert set(names) == {"worker-1", "worker-2"}
