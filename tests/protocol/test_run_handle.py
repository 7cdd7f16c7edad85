"""A run as a ``with`` block: which events come of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from protocol.client.run_handle import RunHandle
from protocol.codec import normalise
from protocol.events import (
    Cancelled,
    Done,
    Error,
    Event,
    Moved,
    Progress,
    Received,
    Silent,
    Text,
    Thinking,
    Tool,
    ToolEnd,
)


def handle(sent: list[Event], **fields: Any) -> RunHandle:
    return RunHandle(lambda event: sent.append(normalise(event)), conversation="c", account="a", message="m", **fields)


def kinds(sent: list[Event]) -> list[type[Event]]:
    return [type(event) for event in sent]


def test_leaving_the_block_is_done() -> None:
    sent: list[Event] = []
    with handle(sent) as run:
        run.thinking()
    assert sent == [
        Progress(conversation="c", account="a", message="m"),
        Thinking(conversation="c", account="a", message="m"),
        Done(conversation="c", account="a", message="m"),
    ]


def test_an_accepted_message_opens_as_received() -> None:
    sent: list[Event] = []
    with handle(sent, received={"direct": False, "mentioned": True}, lease_ms=5_000):
        pass
    assert sent[0] == Received(conversation="c", account="a", message="m", direct=False, mentioned=True, lease_ms=5_000)


def test_an_exception_is_an_error_that_tells_its_class_and_nothing_else() -> None:
    sent: list[Event] = []
    with pytest.raises(ValueError, match="secret"), handle(sent):
        raise ValueError("secret")
    assert sent[-1] == Error(conversation="c", account="a", message="m", reason="ValueError")


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit])
def test_an_interrupt_is_a_cancellation(kind: type[BaseException]) -> None:
    sent: list[Event] = []
    with pytest.raises(kind), handle(sent):
        raise kind
    assert sent[-1] == Cancelled(conversation="c", account="a", message="m", reason=kind.__name__)


@pytest.mark.parametrize("how", ["done", "error", "cancelled", "silent", "clear"])
def test_an_end_inside_the_block_is_the_only_one(how: str) -> None:
    sent: list[Event] = []
    with handle(sent) as run:
        getattr(run, how)()
    assert len(sent) == 2


def test_a_merged_run_is_left_to_the_other() -> None:
    sent: list[Event] = []
    with handle(sent) as run:
        run.merged("r2")
    assert len(sent) == 2


def test_an_end_with_a_reason_of_the_programs_own() -> None:
    sent: list[Event] = []
    with handle(sent) as run:
        run.silent("nothing to add")
    assert sent[-1] == Silent(conversation="c", account="a", message="m", reason="nothing to add")


def test_tools_are_spans_and_each_has_its_own_call() -> None:
    sent: list[Event] = []
    with handle(sent) as run:
        with run.tool("web_search"):
            run.text(visible=False)
        with pytest.raises(KeyError), run.tool():
            raise KeyError
        span = run.tool("grep")
        span.end(ok=False)
    tools = [event for event in sent if isinstance(event, (Tool, ToolEnd))]
    assert [(type(event), event.call, getattr(event, "ok", None)) for event in tools] == [
        (Tool, "1", None),
        (ToolEnd, "1", True),
        (Tool, "2", None),
        (ToolEnd, "2", False),
        (Tool, "3", None),
        (ToolEnd, "3", False),
    ]
    assert [event.name for event in tools if isinstance(event, Tool)] == ["web_search", None, "grep"]
    assert Text(conversation="c", account="a", message="m", visible=False) in sent


def test_after_a_move_events_name_the_new_thread() -> None:
    sent: list[Event] = []
    with handle(sent, thread="old") as run:
        run.moved("new")
    _, moved, done = sent
    assert moved == Moved(conversation="c", account="a", message="m", thread="new")
    assert isinstance(done, Done)
    assert done.thread == "new"


def test_every_method_makes_an_event_that_livesign_takes() -> None:
    sent: list[Event] = []
    run = handle(sent, lease_ms=5_000)
    run.queued()
    run.waiting("user")
    run.thinking()
    run.compacting()
    run.compacting_end()
    run.text()
    run.progress()
    run.alive()
    run.child("k", max_ms=1_000)
    run.child_end("k", ok=False)
    run.sending()
    run.sent(final=True)
    run.typing_start()
    run.typing_stop()
    run.restore()
    assert len(set(kinds(sent))) == len(sent) == 15
