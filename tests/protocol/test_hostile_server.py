"""A server that may be anything: our clients are never ended, stopped or filled by it, and work with the next good one."""

from __future__ import annotations

import asyncio
import logging
import pathlib
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import msgpack
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from protocol.client import link
from protocol.client.aio import AsyncClient
from protocol.client.blocking import Client
from protocol.client.core import Core
from protocol.client.execution import Callbacks
from protocol.codec import ReplyDecoder, encode
from protocol.convert import REPLY_TYPES
from protocol.events import Ack, Closing, Done, Gap, Hello, Pong, Rejected, State, StatsReply, Subscribe, Thinking
from tests.protocol.hostile_server import HostileServer, Script, playing
from tests.protocol.scripted_server import WELCOME

pytestmark = pytest.mark.real

QUICK = (0.001, 0.004)
EVENTS = (Thinking(conversation="c", message="m"), Done(conversation="c", message="m"))
HELLO = encode(WELCOME)
PONG = encode(Pong())


@pytest.fixture(autouse=True)
def quick_and_quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(link, "SILENCE_S", 0.1)
    monkeypatch.setattr(link, "PING_S", 0.03)
    logger = logging.getLogger("livesign.client")
    logger.addFilter(no_fault)
    yield
    logger.removeFilter(no_fault)


def no_fault(record: logging.LogRecord) -> bool:
    """Warnings are as many as the server likes; a fault of ours fails the test that caused it."""
    if record.levelno >= logging.ERROR:
        FAULTS.append(record.getMessage())
    return False


FAULTS: list[str] = []


def blocking(path: str) -> None:
    """A program with the blocking client."""
    client = Client(path, backoff_s=QUICK, follow=True)
    try:
        for event in EVENTS:
            client.send(event)
        assert client.flush(10), client.last_error
    finally:
        began = time.monotonic()
        client.close(timeout_s=0)
        assert time.monotonic() - began < 2


def with_asyncio(path: str) -> None:
    """A program with the asyncio client."""

    async def program() -> None:
        client = AsyncClient(path, backoff_s=QUICK, follow=True)
        client.open()
        try:
            for event in EVENTS:
                client.send(event)
            assert await client.flush(10), client.last_error
        finally:
            began = time.monotonic()
            await client.close(timeout_s=0)
            assert time.monotonic() - began < 2

    asyncio.run(program())


PROGRAMS = pytest.mark.parametrize("program", [blocking, with_asyncio])


def told(server: HostileServer) -> list[str]:
    """The good server has heard all events, each once, in their order."""
    return [type(event).__name__ for event in server.events if isinstance(event, Thinking | Done) and event.id]


def survives(path: str, program: Callable[[str], None], *scripts: Script) -> HostileServer:
    FAULTS.clear()
    with playing(path, *scripts) as server:
        program(path)
    assert not FAULTS
    assert server.connections > len(scripts)
    return server


KINDS = {
    "nothing": Script(),
    "a reset": Script(end="reset"),
    "no welcome": Script(end="silence"),
    "no welcome, but pongs": Script(PONG, end="again"),
    "a welcome and the end": Script(HELLO),
    "a welcome in pieces": Script(HELLO, cut=1),
    "half a welcome": Script(HELLO[:-3], end="silence"),
    "a welcome and silence": Script(HELLO, end="silence"),
    "a refusal": Script(encode(Rejected(code="unauthorized", detail="no")) + encode(Closing(reason="no"))),
    "another version": Script(msgpack.packb({"type": "welcome", "protocol": 2, "brave": [1, {"new": None}]})),
    "unknown replies": Script(HELLO + msgpack.packb({"type": "aura", "x": [1]}) * 3),
    "no msgpack": Script(HELLO + b"\xc1"),
    "a web server": Script(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"),
    "a giant header": Script(HELLO + b"\xdd\xff\xff\xff\xff"),
    "a giant text": Script(HELLO + b"\x81\xa4type\xdb\xff\xff\xff\xff" + b"x" * 2_000_000),
    "deep nesting": Script(HELLO + b"\x91" * 100_000),
    "a map that never ends": Script(HELLO + b"\xdf\x00\x00\xff\xff" + b"\xa1x\xc0" * 10),
    "acks for what was never sent": Script(HELLO + encode(Ack(id="e", result="applied")) * 1_000),
}


@PROGRAMS
@pytest.mark.parametrize("name", KINDS)
def test_a_client_gets_over_a_server_that_says(
    tmp_path: pathlib.Path, program: Callable[[str], None], name: str
) -> None:
    server = survives(str(tmp_path / "l.sock"), program, KINDS[name])
    assert told(server)[-2:] == ["Thinking", "Done"]


ENDLESS = {
    "welcomes": HELLO,
    "gaps": encode(Gap(dropped=1)),
    "states": encode(State(account="a", conversation="c", run="m", phase="done", shown=["👍"] * 50, typing=False)),
    "stats": encode(StatsReply(counters={f"n{number}": number for number in range(500)})),
    "refusals": encode(Rejected(code="limit", detail="x" * 500, id="e")),
    "unknown replies": msgpack.packb({"type": "aura", "x": "y" * 200}),
}


@PROGRAMS
@pytest.mark.parametrize("name", ENDLESS)
def test_endless_replies_neither_fill_a_client_nor_keep_it_from_closing(
    tmp_path: pathlib.Path, program: Callable[[str], None], name: str
) -> None:
    def impatient(path: str) -> None:
        """Closes in the middle of it."""
        if program is blocking:
            client = Client(path, backoff_s=QUICK, follow=True)
            client.send(EVENTS[0])
            time.sleep(0.25)
            began = time.monotonic()
            client.close(timeout_s=0)
        else:
            began = asyncio.run(impatient_async(path))
        assert time.monotonic() - began < 1

    async def impatient_async(path: str) -> float:
        client = AsyncClient(path, backoff_s=QUICK, follow=True)
        client.open()
        client.send(EVENTS[0])
        await asyncio.sleep(0.25)
        began = time.monotonic()
        await client.close(timeout_s=0)
        return began

    FAULTS.clear()
    tracemalloc.start()
    try:
        said = HELLO + ENDLESS[name] * (100_000 // len(ENDLESS[name]))
        with playing(str(tmp_path / "l.sock"), *[Script(said, end="endless")] * 50) as server:
            impatient(str(tmp_path / "l.sock"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert server.connections
    assert peak < 8_000_000
    assert not FAULTS


def test_what_a_server_makes_us_say_does_not_grow_with_what_it_says() -> None:
    core = Core(Hello(client="c"), 10)
    core.follow()
    core.begin()
    for reply in (WELCOME, Gap(dropped=1)) * 1_000:
        core.heard(reply)
    assert core.take(100_000) == encode(Subscribe()) * 2
    assert core.take(100_000) == b""


class EndlessSocket:
    """Has always more to read."""

    def __init__(self) -> None:
        self.reads = 0

    def recv(self, size: int) -> bytes:
        self.reads += 1
        return PONG * 10


def test_reading_comes_to_an_end_although_there_is_always_more() -> None:
    client = Client("/nowhere/at/all")
    sock: Any = EndlessSocket()
    assert client._link._read(sock, ReplyDecoder()) is True
    assert sock.reads == link.PIECES
    client.close(timeout_s=0)


def test_a_server_that_lets_in_and_closes_is_not_stormed(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "l.sock")
    with playing(path, *[Script(HELLO)] * 1_000) as server:
        client = Client(path, backoff_s=(0.001, 0.5))
        time.sleep(0.5)
        client.close(timeout_s=0)
    assert 3 < server.connections < 20


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=5)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
FIELDS = sorted({name for cls in REPLY_TYPES.values() for name in cls.__struct_fields__})
REPLIES = st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=5).flatmap(
    lambda fields: st.sampled_from(sorted(REPLY_TYPES)).map(lambda kind: msgpack.packb({"type": kind, **fields}))
)
GOOD = st.sampled_from(
    [HELLO, encode(Ack(id="e", result="late")), encode(Gap(dropped=2)), encode(Closing(reason="bye"))]
)
SAID = st.lists(REPLIES | GOOD | st.binary(max_size=20), max_size=6).map(b"".join)
SCRIPTS = st.lists(
    st.builds(Script, SAID, st.sampled_from(["close", "close", "close", "reset"]), st.integers(0, 3)), max_size=3
)


@PROGRAMS
def test_no_replies_do_harm(tmp_path: pathlib.Path, program: Callable[[str], None]) -> None:
    @settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(SCRIPTS)
    def try_out(scripts: list[Script]) -> None:
        survives(str(tmp_path / "l.sock"), program, *scripts)

    try_out()


# --- executors -------------------------------------------------------------------------------------------------------


def calls(**fields: Any) -> bytes:
    names = {"type": "call", "call_id": "x", "account": "a", "conversation": "c", "op": "set"}
    return bytes(msgpack.packb({**names, **fields}))


CALLS = {
    "a call without a deadline": calls(),
    "a deadline in the past": calls(deadline_ms=-5),
    "a deadline without end": calls(deadline_ms=2**63 - 1),
    "an operation that there is not": calls(deadline_ms=50, op="sing"),
    "the same call again and again": calls(deadline_ms=50) * 500,
    "more calls than can be made": calls(deadline_ms=5_000) * 30_000,
    "a wrong handle": calls(deadline_ms=50, op="remove", handle=[1]),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", ["blocking", "asyncio"])
def test_an_executor_gets_over_a_server_that_hands_over(tmp_path: pathlib.Path, kind: str, name: str) -> None:
    path = str(tmp_path / "l.sock")
    said = HELLO + encode(Ack(id="calls", result="applied")) + CALLS[name]
    callbacks = Callbacks(set_reaction=lambda _: None, start_typing=lambda _: None)
    FAULTS.clear()
    with playing(path, Script(said), Script(said, cut=997)) as server:
        if kind == "blocking":
            client = Client(path, backoff_s=QUICK)
            client.execute(callbacks)
            wait_for(lambda: bool(server.results))
            client.close(timeout_s=0)
        else:
            asyncio.run(execute(path, callbacks, server))
    assert server.results[-1].call_id == "good"
    assert server.results[-1].outcome == "ok"
    assert not FAULTS


async def execute(path: str, callbacks: Callbacks, server: HostileServer) -> None:
    async with AsyncClient(path, backoff_s=QUICK) as client:
        client.execute(callbacks)
        async with asyncio.timeout(10):
            while not server.results:
                await asyncio.sleep(0.005)


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)
