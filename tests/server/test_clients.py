"""Real clients, in other threads and processes, against the real server."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys

import msgspec
import pytest

from actors.server_settings import ServerSettings, TokenGrant
from protocol.client.blocking import Client
from protocol.events import Ack, Done, Event, Received, Rejected, Thinking, Tool, ToolEnd
from tests.server.world import World, elsewhere, eventually, running, unix_settings

pytestmark = pytest.mark.real

EXAMPLES = pathlib.Path(__file__).parent.parent.parent / "examples"
RUN = [
    Received(conversation="chat-7", message="817", direct=True),
    Thinking(conversation="chat-7", message="817"),
    Done(conversation="chat-7", message="817", id="last"),
]


def output_of(*command: str) -> str:
    done = elsewhere(lambda: subprocess.run(command, capture_output=True, text=True, timeout=20, check=False))
    assert done.returncode == 0, done.stderr
    return done.stdout


def bare(events: list[Event]) -> list[tuple[str, str | None]]:
    return [(type(event).__name__, getattr(event, "message", None)) for event in events]


def test_a_plain_socket_and_msgpack_are_a_client(tmp_path: pathlib.Path) -> None:
    with running(unix_settings(tmp_path)) as world:
        answers = output_of(sys.executable, str(EXAMPLES / "raw_client.py"), world.path)
        assert answers == "{'type': 'ack', 'id': 'last', 'result': 'applied'}\n"
        assert world.router.events == RUN


@pytest.mark.skipif(
    shutil.which("node") is None or not (EXAMPLES / "node" / "node_modules").exists(),
    reason="needs node, and `npm install` in examples/node",
)
def test_a_plain_socket_and_msgpack_are_a_client_in_node_too(tmp_path: pathlib.Path) -> None:
    with running(unix_settings(tmp_path)) as world:
        answers = output_of("node", str(EXAMPLES / "node" / "raw_client.mjs"), world.path)
        assert answers == "{ type: 'ack', id: 'last', result: 'applied' }\n"
        assert world.router.events == [msgspec.structs.replace(each, message="818") for each in RUN]


def test_the_blocking_client_plays_a_run(tmp_path: pathlib.Path) -> None:
    def play(address: str) -> Ack | Rejected:
        with Client(address) as client:
            assert client.wait_connected().accounts == ["a", "b"]
            with client.run(conversation="c", message="m", direct=True) as run, run.tool("grep"):
                pass
            assert client.stats() == {"leases_expired": 2}
            return client.request(Thinking(conversation="c", message="m"))

    with running(unix_settings(tmp_path)) as world:
        answer = elsewhere(lambda: play(world.path))
        assert isinstance(answer, Ack)
        assert answer.result == "applied"
        kinds = [type(event) for event in world.router.events]
        assert kinds == [Received, Tool, ToolEnd, Done, Thinking]
        eventually(lambda: len(world.router.sessions) == 2)


def test_the_blocking_client_comes_back_after_a_restart_of_the_server(tmp_path: pathlib.Path) -> None:
    settings = ServerSettings(unix=str(tmp_path / "l.sock"))
    first = World(settings)
    with_client = elsewhere(lambda: Client(str(settings.unix), backoff_s=(0.01, 0.05)))
    try:
        elsewhere(with_client.wait_connected)
        first.close()
        with_client.send(Thinking(conversation="c", message="m"))
        with running(settings) as second:
            assert elsewhere(with_client.flush)
            assert bare(second.router.events) == [("Thinking", "m")]
    finally:
        elsewhere(lambda: with_client.close(timeout_s=0))


def test_the_blocking_client_comes_in_by_tcp_with_its_token() -> None:
    settings = ServerSettings(tcp="127.0.0.1:0", tokens=(TokenGrant("t0ken", frozenset({"a"})),))

    def play(address: tuple[str, int], token: str) -> list[str]:
        with Client(address, token=token) as client:
            return client.wait_connected(timeout_s=2).accounts

    with running(settings) as world:
        address = world.address
        assert elsewhere(lambda: play(address, "t0ken")) == ["a"]
        with pytest.raises(ConnectionError, match="unknown token"):
            elsewhere(lambda: play(address, "wrong"))
