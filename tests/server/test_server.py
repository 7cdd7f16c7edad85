"""The server on real sockets: who gets in, what goes through, how it ends."""

from __future__ import annotations

import logging
import os
import pathlib
import subprocess
import sys
from typing import Literal

import gevent
import pytest

from actors.messages import SessionDown, SessionUp
from actors.server import ListenError
from actors.server_context import Timing
from actors.server_settings import ServerLimits, ServerSettings, TokenGrant
from protocol.codec import encode
from protocol.events import Ack, Closing, Hello, Pong, Rejected, State, Thinking, Welcome
from tests.server.world import THINKING, World, elsewhere, eventually, running, unix_settings

pytestmark = pytest.mark.real

TOKEN = TokenGrant("t0ken", None, frozenset({"send", "subscribe"}))
TCP = ServerSettings(tcp="127.0.0.1:0", tokens=(TOKEN,))
EVENT = Thinking(account="a", conversation="c", message="m")


def test_an_event_goes_in_and_its_ack_comes_back(tmp_path: pathlib.Path) -> None:
    with running(unix_settings(tmp_path)) as world:
        peer = world.unix()
        peer.send({**THINKING, "id": 1})
        assert peer.receive() == Ack(id="1", result="applied")
        assert world.router.events == [Thinking(account="a", conversation="c", message="m", id="1")]
        peer.close()
        eventually(lambda: len(world.router.sessions) == 2)
        up, down = world.router.sessions
        assert (type(up), type(down)) == (SessionUp, SessionDown)
        assert up.session == down.session


def test_tcp_asks_for_the_token_first() -> None:
    with running(TCP) as world:
        peer = world.tcp()
        peer.send(Hello(token="t0ken", session="bot"), EVENT, {"type": "ping"})
        assert isinstance(peer.receive(), Welcome)
        assert peer.receive() == Pong()
        assert world.router.events == [EVENT]
        stranger = world.tcp()
        stranger.send(EVENT, EVENT)
        rejected, closing = stranger.rest()
        assert isinstance(rejected, Rejected)
        assert rejected.code == "unauthorized"
        assert closing == Closing(reason=rejected.detail)
        assert world.router.events == [EVENT]


def test_events_are_told_in_the_order_they_came_whatever_the_pieces(tmp_path: pathlib.Path) -> None:
    stream = b"".join(encode(Thinking(conversation="c", message=str(n))) for n in range(2_000))
    with running(unix_settings(tmp_path)) as world:
        peer = world.unix()
        for start in range(0, len(stream), 777):
            peer.send(stream[start : start + 777])
        eventually(lambda: len(world.router.events) == 2_000)
        assert [getattr(event, "message", None) for event in world.router.events] == [str(n) for n in range(2_000)]


def test_a_bad_frame_closes_its_client_with_a_reason_and_nobody_else(tmp_path: pathlib.Path) -> None:
    with running(unix_settings(tmp_path)) as world:
        bad, good = world.unix(), world.unix()
        bad.send(bytes.fromhex("9ffd74f7dd74fffdbd"), b"y" * 100_000)
        rejected, closing = bad.rest()
        assert isinstance(rejected, Rejected)
        assert (rejected.code, closing) == ("too_large", Closing(reason=rejected.detail))
        good.send({**THINKING, "id": "e1"})
        assert good.receive() == Ack(id="e1", result="applied")


def test_the_last_replies_reach_a_tcp_peer_that_is_still_sending() -> None:
    with running(TCP) as world:
        peer = world.tcp()
        peer.send(Hello(token="t0ken"), b"GET / HTTP/1.1\r\n")
        for _ in range(10):
            gevent.sleep(0.005)
            peer.send(b"Host: localhost\r\n")  # a reset would make this fail
        welcome, rejected, closing = peer.rest()
        assert isinstance(welcome, Welcome)
        assert isinstance(rejected, Rejected)
        assert isinstance(closing, Closing)


def test_a_peer_that_only_stops_writing_still_gets_what_it_is_owed(tmp_path: pathlib.Path) -> None:
    with running(unix_settings(tmp_path)) as world:
        world.router.answers = False
        peer = world.unix()
        peer.send({**THINKING, "id": "e1"})
        peer.sock.shutdown(1)
        eventually(lambda: len(world.router.sessions) == 2)
        world.router.messages[1].reply(Ack(id="e1", result="applied"))
        assert peer.rest() == [Ack(id="e1", result="applied")]


def test_a_reply_to_a_client_that_is_gone_is_nothing(tmp_path: pathlib.Path) -> None:
    with running(unix_settings(tmp_path)) as world:
        world.router.answers = False
        peer = world.unix()
        peer.send({**THINKING, "id": "e1"})
        eventually(lambda: world.router.events)
        peer.close()
        eventually(lambda: not world.server.connections)
        world.router.messages[1].reply(Ack(id="e1", result="applied"))


def test_a_reconnect_names_its_session_and_is_not_applied_twice(tmp_path: pathlib.Path) -> None:
    with running(unix_settings(tmp_path)) as world:
        results: tuple[Literal["applied", "duplicate"], ...] = ("applied", "duplicate")
        for result in results:
            peer = world.unix()
            peer.send(Hello(session="bot"), {**THINKING, "id": "e1"})
            assert isinstance(peer.receive(), Welcome)
            assert peer.receive() == Ack(id="e1", result=result)
            peer.close()
            eventually(lambda: not world.server.connections)
        assert len(world.router.events) == 1
        assert len(world.router.sessions) == 4


def test_a_slow_subscriber_loses_states_and_is_told_how_many(tmp_path: pathlib.Path) -> None:
    with running(unix_settings(tmp_path), timing=Timing()) as world:
        peer = world.unix()
        peer.send({"type": "subscribe", "id": "e1"})
        assert isinstance(peer.receive(), Ack)
        reply = world.router.messages[-1].reply
        state = State(account="a", conversation="c", run="r", phase="x" * 1_000, shown=[], typing=False)
        sent = 3_000
        for _ in range(sent):
            reply(state)
            gevent.sleep(0)
        peer.send({"type": "ping"})
        got = gap = 0
        while not isinstance(item := peer.receive(), Pong):
            got += isinstance(item, State)
            gap += getattr(item, "dropped", 0)
        assert gap > 0
        assert got + gap == sent
        assert world.server.counters["states_dropped"] == gap


def test_stopping_tells_every_client_why_and_leaves_nothing(tmp_path: pathlib.Path) -> None:
    settings = ServerSettings(unix=str(tmp_path / "l.sock"), tcp="127.0.0.1:0", tokens=(TOKEN,))
    world = World(settings)
    peers = [world.unix(), world.tcp()]
    peers[1].send(Hello(token="t0ken"))
    assert isinstance(peers[1].receive(), Welcome)
    peers[0].send({"type": "ping"})
    peers[0].receive()
    address = world.address
    world.server.stop()
    for peer in peers:
        assert peer.rest() == [Closing(reason="livesign is shutting down")]
        peer.close()
    assert [type(message) for message in world.router.sessions].count(SessionDown) == 2
    assert not world.server.connections
    assert not os.path.exists(str(tmp_path / "l.sock"))
    with gevent.socket.socket() as sock, pytest.raises(OSError, match="refused"):
        sock.connect(address)
    World(settings).close()


def test_a_start_that_fails_listens_nowhere(tmp_path: pathlib.Path) -> None:
    with running(TCP) as world:
        address = world.address
        both = ServerSettings(unix=str(tmp_path / "l.sock"), tcp=f"127.0.0.1:{address[1]}", tokens=(TOKEN,))
        with pytest.raises(ListenError, match="cannot listen on 127"):
            World(both)
        assert not os.path.exists(str(tmp_path / "l.sock"))


def test_a_second_server_on_a_live_socket_is_refused_and_the_first_serves_on(tmp_path: pathlib.Path) -> None:
    with running(unix_settings(tmp_path)) as world:
        with pytest.raises(ListenError, match="in use"):
            World(unix_settings(tmp_path))
        peer = world.unix()
        peer.send({"type": "ping"})
        assert peer.receive() == Pong()


def test_one_connection_too_many_is_told_so(tmp_path: pathlib.Path) -> None:
    with running(unix_settings(tmp_path, ServerLimits(connections=2))) as world:
        peers = [world.unix() for _ in range(3)]
        eventually(lambda: world.server.counters.get("connections_refused"))
        assert peers[2].rest() == [Closing(reason="too many connections")]
        peers[0].close()
        eventually(lambda: len(world.server.connections) == 1)
        again = world.unix()
        again.send({"type": "ping"})
        assert again.receive() == Pong()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_another_user_is_refused_and_the_log_names_it(tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    connect = (
        "import os, socket, sys; s = socket.socket(socket.AF_UNIX); d = os.open(sys.argv[1], os.O_PATH);"
        "os.fchdir(d); os.setuid(12345); s.connect('l.sock'); sys.stdout.buffer.write(s.recv(999))"
    )
    with running(unix_settings(tmp_path)) as world:
        directory = os.path.dirname(world.path)
        denied = subprocess_in_the_background(connect, directory)
        assert b"PermissionError" in denied
        os.chmod(world.path, 0o666)
        os.chmod(directory, 0o711)
        assert b"belongs to another user" in subprocess_in_the_background(connect, directory)
        assert world.router.messages == []
        assert world.server.counters["users_refused"] == 1
    assert "refused a connection of uid 12345" in caplog.text


def subprocess_in_the_background(code: str, *arguments: str) -> bytes:
    """Run Python in another process while this one's hub goes on."""
    command = [sys.executable, "-c", code, *arguments]
    done = elsewhere(
        lambda: subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20, check=False)
    )
    return done.stdout
