"""A run as a ``with`` block: which events come of it."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from typing import Any

import gevent
import pytest

from protocol.client.keeper import SLICE, Keeper
from protocol.client.outcome import RunOutcome
from protocol.client.run_handle import RunHandle, current_run
from protocol.client.runs import RunMaker
from protocol.codec import DecodeError, normalise
from protocol.events import (
    Alive,
    Cancelled,
    Child,
    ChildEnd,
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


class Host(RunMaker):
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.sent: list[Event] = []
        self.now_s = 0.0
        self.keeper = Keeper(self.put, lambda: self.now_s)
        self.fault: Exception | None = None

    def put(self, event: Event) -> None:
        if self.fault is not None:
            raise self.fault
        assert normalise(event) == event
        self.sent.append(event)

    def outcome_of(self, run: RunHandle, timeout_s: float) -> RunOutcome:
        return RunOutcome(run.ended or "open")

    async def aoutcome_of(self, run: RunHandle, timeout_s: float) -> RunOutcome:
        return self.outcome_of(run, timeout_s)

    def handle(self, **fields: Any) -> RunHandle:
        return self.run(**{"conversation": "c", "account": "a", "message": "m", **fields})

    def kinds(self) -> list[str]:
        return [type(event).__name__ for event in self.sent]

    def pass_time(self, seconds: float, steps: int = 10) -> None:
        for _ in range(steps):
            self.now_s += seconds / steps
            self.keeper.beat()


@pytest.fixture
def host() -> Iterator[Host]:
    host = Host()
    yield host
    assert current_run() is None


def test_leaving_the_block_is_done(host: Host) -> None:
    with host.handle() as run:
        run.thinking()
    assert host.sent == [
        Progress(conversation="c", account="a", message="m"),
        Thinking(conversation="c", account="a", message="m"),
        Done(conversation="c", account="a", message="m"),
    ]
    assert len(host.keeper) == 0


def test_an_accepted_message_opens_as_received(host: Host) -> None:
    with host.handle(direct=False, mentioned=True, lease_ms=5_000):
        pass
    opened, done = host.sent
    assert opened == Received(conversation="c", account="a", message="m", direct=False, mentioned=True, lease_ms=5_000)
    assert done == Done(conversation="c", account="a", message="m")


def test_whole_numbers_are_ids(host: Host) -> None:
    with host.run(conversation=-100123, message=817, sender=5, direct=True):
        pass
    assert host.sent[0] == Received(conversation="-100123", message="817", sender="5", direct=True)
    assert host.sent[1] == Done(conversation="-100123", message="817")


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"conversation": ""}, "conversation"),
        ({"message": 1.5}, "message"),
        ({"message": None}, "message or run"),
        ({"mentioned": True}, "direct"),
        ({"lease_ms": 0, "direct": True}, "lease_ms"),
    ],
)
def test_a_bad_value_is_refused_before_anything_is_told(host: Host, fields: dict[str, Any], what: str) -> None:
    with pytest.raises(DecodeError, match=what):
        host.handle(**fields)
    assert host.sent == []


def test_an_exception_is_an_error_that_tells_its_class_and_nothing_else(host: Host) -> None:
    with pytest.raises(ValueError, match="secret"), host.handle():
        raise ValueError("secret")
    assert host.sent[-1] == Error(conversation="c", account="a", message="m", reason="ValueError")


@pytest.mark.parametrize(
    "kind", [KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit, gevent.GreenletExit]
)
def test_an_interrupt_is_a_cancellation(host: Host, kind: type[BaseException]) -> None:
    with pytest.raises(kind), host.handle():
        raise kind
    assert host.sent[-1] == Cancelled(conversation="c", account="a", message="m", reason=kind.__name__)


def test_a_timeout_of_gevent_is_an_error(host: Host) -> None:
    with pytest.raises(gevent.Timeout), host.handle():
        raise gevent.Timeout(0)
    assert isinstance(host.sent[-1], Error)


@pytest.mark.parametrize("how", ["done", "error", "cancelled", "silent", "clear"])
def test_an_end_inside_the_block_is_the_only_one(host: Host, how: str) -> None:
    with host.handle() as run:
        getattr(run, how)()
    assert len(host.sent) == 2
    assert run.ended == how
    assert run.outcome() == RunOutcome(how)


def test_a_merged_run_is_left_to_the_other(host: Host) -> None:
    with host.handle() as run:
        run.merged("r2")
    assert len(host.sent) == 2


def test_an_end_with_a_reason_of_the_programs_own(host: Host) -> None:
    with host.handle() as run:
        run.silent("nothing to add")
    assert host.sent[-1] == Silent(conversation="c", account="a", message="m", reason="nothing to add")


def test_tools_are_spans_and_each_has_its_own_call(host: Host) -> None:
    with host.handle() as run:
        with run.tool("web_search"):
            run.text(visible=False)
        with pytest.raises(KeyError), run.tool():
            raise KeyError
        span = run.tool("grep")
        span.end(ok=False)
        span.end()
    tools = [event for event in host.sent if isinstance(event, (Tool, ToolEnd))]
    assert [(type(event), event.call, getattr(event, "ok", None)) for event in tools] == [
        (Tool, "1", None),
        (ToolEnd, "1", True),
        (Tool, "2", None),
        (ToolEnd, "2", False),
        (Tool, "3", None),
        (ToolEnd, "3", False),
    ]
    assert [event.name for event in tools if isinstance(event, Tool)] == ["web_search", None, "grep"]
    assert Text(conversation="c", account="a", message="m", visible=False) in host.sent


def test_nested_and_parallel_tools_stay_open_until_their_own_end(host: Host) -> None:
    with host.handle() as run, run.tool("outer"):
        run.thinking()
        with run.tool("inner"):
            run.text()
        run.progress()
    assert host.kinds() == [
        "Progress", "Tool", "Thinking", "Tool", "Text", "ToolEnd", "Progress", "ToolEnd", "Done",
    ]  # fmt: skip


def test_tools_told_by_a_call_alone_end_with_the_next_phase(host: Host) -> None:
    with host.handle() as run:
        run.tool("grep")
        run.tool("web_search")
        run.progress()
        run.thinking()
        run.text()
    assert host.kinds() == ["Progress", "Tool", "Tool", "Progress", "ToolEnd", "ToolEnd", "Thinking", "Text", "Done"]


def test_a_helper_run_is_a_block_too(host: Host) -> None:
    with host.handle() as run:
        with run.child("k", max_ms=1_000):
            pass
        with pytest.raises(KeyError), run.child("l"):
            raise KeyError
    helpers = [event for event in host.sent if isinstance(event, (Child, ChildEnd))]
    assert [(type(event).__name__, event.child) for event in helpers] == [
        ("Child", "k"), ("ChildEnd", "k"), ("Child", "l"), ("ChildEnd", "l"),
    ]  # fmt: skip
    assert [event.ok for event in helpers if isinstance(event, ChildEnd)] == [True, False]


def test_after_a_move_events_name_the_new_thread(host: Host) -> None:
    with host.handle(thread="old") as run:
        run.moved("new")
    _, moved, done = host.sent
    assert moved == Moved(conversation="c", account="a", message="m", thread="new")
    assert isinstance(done, Done)
    assert done.thread == "new"


def test_every_method_makes_an_event_that_livesign_takes(host: Host) -> None:
    run = host.handle(lease_ms=5_000).begin()
    run.queued()
    run.waiting("user")
    run.thinking()
    run.compacting()
    run.compacting_end()
    run.text()
    run.alive()
    run.child("k", max_ms=1_000)
    run.child_end("k", ok=False)
    run.sending()
    run.sent(final=True)
    run.typing_start()
    run.typing_stop()
    run.restore()
    run.done()
    assert len(set(host.kinds())) == len(host.sent) == 16


def test_a_fault_of_livesign_is_none_of_the_bot(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    with host.handle() as run:
        host.fault = RuntimeError("the client is closed")
        run.thinking()
    assert run.ended == "done"
    assert caplog.text.count("livesign was not told of") == 2


def test_what_is_told_of_a_run_that_has_not_begun_begins_it(host: Host) -> None:
    run = host.handle(direct=True)
    run.thinking()
    assert [type(event) for event in host.sent] == [Received, Thinking]
    run.done()
    other = host.handle(message="other", direct=True)
    with other.tool("web_search"):
        pass
    assert [type(event) for event in host.sent[2:]] == [Done, Received, Tool, ToolEnd]
    del other
    gc.collect()
    host.now_s += 2
    host.keeper.beat()
    assert isinstance(host.sent[-1], Cancelled), "one that is dropped is torn down"


def test_a_run_begins_once(host: Host) -> None:
    with host.handle() as run:
        pass
    with pytest.raises(RuntimeError, match="begun already"):
        run.begin()


# --- the keeper --------------------------------------------------------------------------------------------


def test_a_silent_run_is_renewed_for_as_long_as_its_block_runs(host: Host) -> None:
    with host.handle(lease_ms=9_000) as run:
        host.pass_time(12, 24)
        assert host.kinds() == ["Progress", "Alive", "Alive", "Alive"]
        assert host.sent[1] == Alive(conversation="c", account="a", message="m")
        run.thinking()
    count = len(host.sent)
    host.pass_time(60, 60)
    assert len(host.sent) == count


def test_what_the_run_says_itself_is_renewal_enough(host: Host) -> None:
    with host.handle(lease_ms=9_000) as run:
        for _ in range(10):
            run.progress()
            host.pass_time(2)
    assert not any(isinstance(event, Alive) for event in host.sent)


def test_a_handle_that_was_dropped_is_torn_down_and_reported(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    host.handle().begin()
    gc.collect()
    host.pass_time(2)
    assert host.sent[-1] == Cancelled(conversation="c", account="a", message="m", reason="abandoned")
    assert "the run m in c was left open (its handle was garbage-collected): cancelled" in caplog.text
    assert host.keeper.abandoned == 1
    assert len(host.keeper) == 0


def test_a_handle_whose_task_is_gone_is_torn_down(host: Host) -> None:
    handles = []

    async def leave_open() -> None:
        handles.append(host.handle().__enter__())

    loop = asyncio.new_event_loop()
    loop.run_until_complete(loop.create_task(leave_open()))
    loop.close()
    host.pass_time(2)
    assert isinstance(host.sent[-1], Cancelled)
    assert host.keeper.abandoned == 1


def test_a_handle_whose_greenlet_is_gone_is_torn_down(host: Host) -> None:
    handles = []
    greenlet = gevent.spawn(lambda: handles.append(host.handle().__enter__()))
    greenlet.join()
    host.pass_time(2)
    assert isinstance(host.sent[-1], Cancelled)


def test_thousands_of_handles_are_looked_at_in_small_pieces(host: Host) -> None:
    runs = [host.handle(message=f"m{number}").begin() for number in range(4 * SLICE)]
    host.sent.clear()
    host.now_s = 20.0
    pauses = []
    most = 0
    for _ in range(60):
        before = len(host.sent)
        pauses.append(host.keeper.beat())
        most = max(most, len(host.sent) - before)
        host.now_s += pauses[-1]
    assert most == SLICE
    assert pauses[0] == pytest.approx(0.25)
    assert {getattr(event, "message", "") for event in host.sent} == {run.name for run in runs}
    for run in runs:
        run.done()


# --- current_run and handlers ------------------------------------------------------------------------------


def test_code_inside_the_block_finds_its_run(host: Host) -> None:
    assert current_run() is None
    with host.handle() as outer:
        with host.handle(message="m2") as inner:
            assert current_run() is inner
        assert current_run() is outer


def test_a_handler_is_a_run(host: Host) -> None:
    @host.handler(lambda text, chat: {"conversation": chat, "message": "m", "direct": True} if text else None)
    def answer(text: str, chat: int) -> str:
        run = current_run()
        if run is not None:
            run.thinking()
        return text.upper()

    assert answer("hi", 5) == "HI"
    assert host.kinds() == ["Received", "Thinking", "Done"]
    assert answer("", 5) == ""
    assert len(host.sent) == 3


def test_an_async_handler_is_a_run(host: Host) -> None:
    @host.handler(lambda text: {"conversation": "c", "message": text})
    async def answer(text: str) -> str:
        await asyncio.sleep(0)
        if text == "bad":
            raise KeyError(text)
        return text.upper()

    assert asyncio.run(answer("hi")) == "HI"
    with pytest.raises(KeyError):
        asyncio.run(answer("bad"))
    assert host.kinds() == ["Progress", "Done", "Progress", "Error"]
    assert asyncio.iscoroutinefunction(answer)


def test_a_generator_is_no_handler(host: Host) -> None:
    def stream() -> Iterator[int]:
        yield 1

    with pytest.raises(TypeError, match="inside it"):
        host.handler(lambda: None)(stream)
