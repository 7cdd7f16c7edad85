"""Every kind of hostile or unlucky client: how it ends, which counter says so, and that nobody else notices.

Another user at the socket and no free descriptors are in `test_server` and `test_crowds`, a fault of ours in
`test_server_limits`, a full disk in `tests.test_ledger_disk`.
"""

from __future__ import annotations

import pathlib
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import gevent
import msgpack
import pytest

from actors.server_context import COUNTED
from actors.server_settings import ServerLimits, ServerSettings, TokenGrant
from protocol.codec import encode
from protocol.events import Ack, Closing, Hello
from tests.server import test_server_tls
from tests.server.test_unix_listener import left_over
from tests.server.world import QUICK, THINKING, Peer, World, eventually, running

pytestmark = pytest.mark.real

TOKENS = (TokenGrant("t0ken"),)
HALF = b"\x82\xa4type\xa8thinking\xa1x\xda\xff\x00"
HELLO = encode(Hello(token="t0ken"))
HEADERS = {
    "bytes": b"\xc6\xff\xff\xff\xff" + b"x" * 66_000,
    "text": b"\xdb\xff\xff\xff\xff" + b"x" * 66_000,
    "list": b"\xdd\xff\xff\xff\xff",
    "map": b"\xdf\xff\xff\xff\xff",
    "extension": b"\xc9\xff\xff\xff\xff\x01",
    "key": b"\x81\xdb\xff\xff\xff\xff" + b"x" * 66_000,
    "depth": b"\x91" * 2_000,
    "no msgpack": b"\xc1",
    "http": b"GET / HTTP/1.1\r\n\r\n",
}


def drip(peer: Peer) -> None:
    """A byte at a time, never to an end."""

    def talk() -> None:
        try:
            for byte in HALF + 1_000 * b"x":
                peer.sock.sendall(bytes([byte]))
                gevent.sleep(0.01)
        except OSError:
            pass

    gevent.spawn(talk)


def deaf(peer: Peer) -> None:
    """Asks without end, and reads nothing."""

    def talk() -> None:
        try:
            while True:
                peer.sock.sendall(msgpack.packb({"type": "ping"}) * 1_000)
        except OSError:
            pass

    gevent.spawn(talk)


def broken(data: bytes) -> Callable[[Peer], None]:
    return lambda peer: peer.send({**THINKING, "id": "e1"}, data)


class Kind(NamedTuple):
    counter: str
    play: Callable[[Peer], object]
    reason: str | None = None
    """Of the `Closing`, or its beginning; None: it ends without, or is not read."""
    tcp: bool = False


KINDS = {
    "half an event": Kind("connections_cut", lambda peer: peer.send(HALF), "an event was not finished within 0.2 s"),
    "drip feeding": Kind("connections_cut", drip, "an event was not finished within 0.2 s"),
    "replies that nobody reads": Kind("connections_cut", deaf),
    "a flood": Kind("reads_paused", deaf),
    "a stranger that is silent": Kind("connections_cut", lambda _: None, "no hello within 0.2 s", tcp=True),
    "a wrong token": Kind("tokens_refused", lambda peer: peer.send(Hello(token="no")), "unknown token", tcp=True),
    "no token": Kind("tokens_refused", lambda peer: peer.send(Hello()), "hello needs a token here", tcp=True),
    "no hello": Kind("tokens_refused", lambda peer: peer.send(THINKING), "the first map on TCP", tcp=True),
    "an unknown type": Kind("events_rejected", lambda peer: peer.send({"type": "aura"})),
    **{f"a giant or broken header: {name}": Kind("streams_broken", broken(data), "") for name, data in HEADERS.items()},
}
ELSEWHERE = {"accepts_failed", "faults", "users_refused"}
ORDINARY = {"bytes_in", "connections", "events", "events_repeated", "states_dropped"}
BELOW = {"connections_refused", "handshakes_failed", "sockets_replaced"}


def settings(tmp_path: pathlib.Path, limits: ServerLimits | None = None) -> ServerSettings:
    return ServerSettings(
        unix=str(tmp_path / "l.sock"), tcp="127.0.0.1:0", tokens=TOKENS, limits=limits or ServerLimits()
    )


def served(peer: Peer) -> bool:
    """Whether this client still gets its answer."""
    peer.send({**THINKING, "id": uuid.uuid4().hex})
    return isinstance(peer.receive(), Ack)


def test_every_counter_has_its_test() -> None:
    assert {kind.counter for kind in KINDS.values()} | ELSEWHERE | ORDINARY | BELOW == set(COUNTED)


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_has_its_end_and_its_counter_and_disturbs_nobody(tmp_path: pathlib.Path, name: str) -> None:
    kind = KINDS[name]
    with running(settings(tmp_path), replace(QUICK, silence_s=1.0)) as world:
        polite = world.unix()
        assert served(polite)
        peer = world.tcp() if kind.tcp else world.unix()
        kind.play(peer)
        if kind.reason is not None:
            last = peer.rest()[-1]
            assert isinstance(last, Closing)
            assert last.reason.startswith(kind.reason)
        eventually(lambda: world.server.counters[kind.counter] > 0)
        assert served(polite)
        assert world.server.counters["faults"] == 0
        peer.close()
        eventually(lambda: len(world.server.connections) == 1)


def test_connections_above_the_limit_are_told_so_and_counted(tmp_path: pathlib.Path) -> None:
    with running(settings(tmp_path, ServerLimits(connections=3))) as world:
        polite = [world.unix() for _ in range(3)]
        assert all(map(served, polite))
        for _ in range(50):
            assert world.unix().rest() == [Closing(reason="too many connections")]
        assert world.server.counters["connections_refused"] == 50
        assert all(map(served, polite))


def test_what_is_no_tls_is_counted() -> None:
    with running(test_server_tls.SETTINGS) as world:
        world.tcp().send(HELLO)
        eventually(lambda: world.server.counters["handshakes_failed"] == 1)


def test_a_socket_file_of_a_dead_process_is_replaced_and_counted(tmp_path: pathlib.Path) -> None:
    left_over(str(tmp_path / "l.sock"))
    with running(settings(tmp_path)) as world:
        assert served(world.unix())
        assert world.server.counters["sockets_replaced"] == 1


def test_a_storm_of_connections_that_say_nothing_leaves_nothing(tmp_path: pathlib.Path) -> None:
    def storm(world: World) -> None:
        for _ in range(300):
            world.unix().close()

    with running(settings(tmp_path)) as world:
        polite = world.unix()
        storm(world)
        assert served(polite)
        eventually(lambda: world.server.counters["connections"] == 301)
