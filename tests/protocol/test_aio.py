"""The asyncio client against a scripted server: answers, lost connections, refusals."""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

import pytest

from protocol.client import link
from protocol.client.aio import AsyncClient, OutboxFullError
from protocol.codec import DecodeError
from protocol.events import (
    Ack,
    Closing,
    Done,
    Gap,
    Ping,
    Pong,
    Progress,
    Rejected,
    Reply,
    State,
    StatsReply,
    Subscribe,
    Thinking,
    Tool,
    Welcome,
)
from tests.protocol.scripted_server import ScriptedServer

pytestmark = pytest.mark.real

EVENT = Thinking(conversation="c", message="m")
QUICK = (0.01, 0.05)


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Iterator[ScriptedServer]:
    server = ScriptedServer(str(tmp_path / "l.sock"))
    yield server
    server.close()


def play(script: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(script, 20))


@contextlib.asynccontextmanager
async def connected(server: ScriptedServer, **more: Any) -> AsyncIterator[AsyncClient]:
    client = AsyncClient(server.path, session="bot", token="t0ken", backoff_s=QUICK, **more)
    client.open()
    try:
        yield client
    finally:
        await client.close(timeout_s=0)


async def does(step: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A step of the server's, which blocks."""
    return await asyncio.to_thread(step, *args, **kwargs)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.001)


def test_it_says_hello_and_then_sends(server: ScriptedServer) -> None:
    async def script() -> None:
        async with connected(server) as client:
            event_id = client.send({"type": "thinking", "conversation": "c", "message": "m"})
            hello = await does(server.accept)
            assert (hello.session, hello.token, hello.role) == ("bot", "t0ken", "send")
            got = await does(server.receive)
            assert got == Thinking(conversation="c", message="m", id=event_id)
            assert client.unacknowledged == 1
            server.ack(got)
            assert await client.flush()

    play(script())


def test_a_request_waits_for_its_answer_or_gives_up_in_words(server: ScriptedServer) -> None:
    async def script() -> None:
        async with connected(server) as client:
            request = asyncio.create_task(client.request(Thinking(conversation="c", message="m", id="e2")))
            await does(server.accept)
            got = await does(server.receive)
            server.say(Rejected(code="bad_value", detail="no", id=got.id))
            assert await request == Rejected(code="bad_value", detail="no", id="e2")
            with pytest.raises(TimeoutError, match=r"no answer within 0\.02 s"):
                await client.request(EVENT, timeout_s=0.02)
            assert client.unacknowledged == 1
            stats = asyncio.create_task(client.stats())
            await does(server.receive)
            event = await does(server.receive)
            server.say(StatsReply(counters={"events": 5}))
            server.ack(event)
            assert await stats == {"events": 5}

    play(script())


def test_what_was_not_acknowledged_is_sent_again_after_what_still_holds(server: ScriptedServer) -> None:
    async def script() -> None:
        async with connected(server) as client:
            for message in "abc":
                client.send(Thinking(conversation="c", message=message, id=message))
            await does(server.accept)
            first = [await does(server.receive) for _ in range(3)]
            server.ack(first[0])
            await until(lambda: client.unacknowledged == 2)
            assert (await does(server.accept)).session == "bot"
            assert await does(server.receive) == Thinking(conversation="c", message="a")
            assert [(await does(server.receive)).id for _ in range(2)] == ["b", "c"]

    play(script())


def test_it_survives_a_server_that_is_away(server: ScriptedServer) -> None:
    async def script() -> None:
        async with connected(server) as client:
            await does(server.accept)
            await client.wait_connected()
            server.close()
            client.send(EVENT)
            await until(lambda: "refused" in str(client.last_error).lower())
            assert server.path in str(client.last_error), "it says whom it cannot reach"
            with pytest.raises(ConnectionError, match=r"(?i)refused"):
                await client.wait_connected(timeout_s=0.01)
            server.listen()
            await does(server.accept)
            assert isinstance(await does(server.receive), Thinking)
            await client.wait_connected()
            assert client.last_error is None

    play(script())


def test_a_refusal_is_told_to_who_waits_for_the_connection(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    async def script() -> None:
        async with connected(server) as client:
            await does(server.accept, welcome=False)
            server.say(
                Rejected(code="unauthorized", detail="unknown token", field="token"), Closing(reason="unknown token")
            )
            with pytest.raises(ConnectionError, match="unknown token"):
                await client.wait_connected(timeout_s=0.3)

    play(script())
    assert "t0ken" not in caplog.text


def test_a_bad_event_is_refused_at_once_and_a_full_buffer_forgets_phases(server: ScriptedServer) -> None:
    async def script() -> None:
        async with connected(server, capacity=1) as client:
            with pytest.raises(DecodeError, match="conversation"):
                client.send({"type": "thinking", "message": "m"})
            client.send(Done(conversation="c", message="m"))
            client.send(EVENT)
            assert client.dropped == 1
            with pytest.raises(OutboxFullError):
                client.send(Done(conversation="c", message="m2"))
        with pytest.raises(RuntimeError, match="closed"):
            client.send(EVENT)

    play(script())


def test_a_run_ends_with_its_block_and_can_be_used_from_a_thread(server: ScriptedServer) -> None:
    async def script() -> None:
        async with connected(server) as client:
            with pytest.raises(asyncio.CancelledError):
                async with client.run(conversation="c", message="m", direct=True) as run:
                    await does(run.thinking)
                    raise asyncio.CancelledError
            await does(server.accept)
            got = [type(await does(server.receive)).__name__ for _ in range(3)]
            assert got == ["Received", "Thinking", "Cancelled"]
            assert run.outcome().outcome == "cancelled"
            assert (await run.aoutcome(0.01)).problem == "not_followed"

    play(script())


def test_it_pings_and_notices_silence(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "PING_S", 0.02)
    monkeypatch.setattr(link, "SILENCE_S", 0.2)

    async def script() -> None:
        async with connected(server) as client:
            await does(server.accept)
            for _ in range(12):
                assert isinstance(await does(server.receive), Ping)
                server.say(Pong())
            await client.wait_connected()
            await until(lambda: client.last_error)
            assert client.last_error == "livesign has said nothing for 0.2 s"
            await does(server.accept)

    play(script())


def test_what_is_no_livesign_is_told(server: ScriptedServer) -> None:
    async def script() -> None:
        async with connected(server) as client:
            await does(server.accept, welcome=False)
            server.say(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            await until(lambda: client.last_error)
            assert "no livesign" in str(client.last_error)

    play(script())


def test_states_come_to_who_asked_for_them_also_after_a_reconnect_and_a_gap(server: ScriptedServer) -> None:
    states: list[str] = []
    replies: list[Reply] = []

    def state(conversation: str) -> State:
        return State(account="a", conversation=conversation, run="r", phase="done", shown=[], typing=False)

    async def script() -> None:
        async with connected(server, on_reply=replies.append) as client:
            client.subscribe(lambda state: states.append(state.conversation), conversation="c")
            await does(server.accept)
            assert await does(server.receive) == Subscribe(conversation="c")
            server.say(state("c"), state("other"), Gap(dropped=3))
            assert await does(server.receive) == Subscribe(conversation="c")
            await does(server.accept)
            assert await does(server.receive) == Subscribe(conversation="c")
            client.subscribe(lambda state: 1 / 0)
            assert await does(server.receive) == Subscribe()
            server.say(state("c"), state("other"))
            await until(lambda: len(replies) >= 6)

    play(script())
    assert states == ["c", "c"]
    assert [type(reply) for reply in replies] == [Welcome, State, State, Gap, Welcome, State, State]


def test_the_outcome_of_a_followed_run_is_known(server: ScriptedServer) -> None:
    def state(phase: str, *shown: str, **end: Any) -> State:
        return State(account="a", conversation="c", run="m", phase=phase, shown=list(shown), typing=False, **end)

    async def script() -> None:
        async with connected(server, follow=True) as client:
            await does(server.accept)
            assert await does(server.receive) == Subscribe()
            async with client.run(conversation="c", message="m") as run:
                assert run.outcome().outcome == "open"
                server.say(state("thinking", "🤔"))
            server.say(state("done", "🤔"))
            assert (await run.aoutcome(0.05)).final is False
            server.say(state("done", "👍", final=True, mark="👍"), state("done", final=True, mark="👍"))
            outcome = await run.aoutcome()
            assert (outcome.outcome, outcome.mark, outcome.final) == ("done", "👍", True)

    play(script())


def test_the_task_is_gone_after_close(server: ScriptedServer) -> None:
    async def script() -> None:
        before = len(asyncio.all_tasks())
        async with AsyncClient(server.path, backoff_s=QUICK) as client:
            await does(server.accept)
            await client.wait_connected()
        assert len(asyncio.all_tasks()) == before

    play(script())


def test_thousands_of_events_never_hold_the_loop_for_long(server: ScriptedServer) -> None:
    def answer() -> None:
        server.accept()
        for _ in range(4_000):
            server.ack(server.receive())

    async def script() -> None:
        async with connected(server) as client:
            longest = 0.0
            answering = asyncio.create_task(does(answer))
            for number in range(4_000):
                client.put(Progress(conversation="c", message=f"m{number}"))
                if number % 50 == 0:
                    began = time.perf_counter()
                    await asyncio.sleep(0)
                    longest = max(longest, time.perf_counter() - began)
            assert await client.flush(15)
            await answering
            assert longest < 0.5  # a busy machine may take the loop away; a blocking call would take seconds

    play(script())


def test_open_tools_are_told_again_and_those_that_ended_are_not(server: ScriptedServer) -> None:
    async def script() -> None:
        async with connected(server) as client:
            await does(server.accept)
            run = client.run(conversation="c", message="m", direct=True).begin()
            with run.tool("grep"):
                pass
            span = run.tool("web_search")
            for _ in range(4):
                server.ack(await does(server.receive))
            await until(lambda: client.unacknowledged == 0)
            await does(server.accept)
            again = [await does(server.receive) for _ in range(3)]
            assert [type(event).__name__ for event in again] == ["Received", "Tool", "Tool"]
            assert [event.call for event in again[1:]] == [None, span.call]
            assert all(event.id is None for event in again)
            run.done()
            done = await does(server.receive)
            server.say(Ack(id=str(done.id), result="applied"))
            await until(lambda: client.unacknowledged == 0)
            await does(server.accept)
            with pytest.raises(TimeoutError):
                await does(server.receive, timeout_s=0.05)
        assert isinstance(again[1], Tool)

    play(script())
