"""Deadlines of the HTTP transport, against real sockets: of the connection, and of the whole call."""

from __future__ import annotations

import socket
import time
from typing import Any

import gevent
import pytest

from actors.platforms.transport import GeventTransport, NoAnswer, NotSent
from tests.platforms.raw_server import Exchange, RawServer, Script, answering, dripping, silent
from tests.platforms.transport_calls import POST, PUT, against, refused, the_hub_runs_on

pytestmark = pytest.mark.real


def dripping_body(exchange: Exchange, sock: Any) -> None:
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while True:
        gevent.sleep(0.01)
        sock.sendall(b"x")


def dripping_chunks(exchange: Exchange, sock: Any) -> None:
    sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        gevent.sleep(0.01)
        sock.sendall(b"1\r\nx\r\n")


@pytest.mark.parametrize("script", [silent, dripping, dripping_body, dripping_chunks], ids=lambda each: each.__name__)
def test_a_call_ends_at_its_deadline_and_frees_its_connection(script: Script) -> None:
    def first_time(exchange: Exchange, sock: Any) -> None:
        (script if len(peer.seen) == 1 else answering())(exchange, sock)

    with against(first_time, connections=1) as (peer, transport):
        before = time.monotonic()
        error = refused(transport, PUT, 100)
        assert isinstance(error, NoAnswer)
        assert 0.09 < time.monotonic() - before < 1
        assert peer.closed.wait(2)
        assert transport.send(PUT, 2_000).status == 200
        assert len(peer.seen) == 2


def test_a_call_that_found_no_free_connection_was_not_sent() -> None:
    with against(silent, connections=1) as (peer, transport):
        hung = gevent.spawn(refused, transport, PUT, 300)
        gevent.sleep(0.02)
        assert isinstance(refused(transport, POST, 50), NotSent)
        assert isinstance(hung.get(timeout=2), NoAnswer)
        assert len(peer.seen) == 1


def test_a_killed_call_frees_its_connection() -> None:
    def first_time(exchange: Exchange, sock: Any) -> None:
        (silent if len(peer.seen) == 1 else answering())(exchange, sock)

    with against(first_time, connections=1) as (peer, transport):
        call = gevent.spawn(transport.send, PUT, 5_000)
        gevent.sleep(0.02)
        call.kill(timeout=1)
        assert peer.closed.wait(2)
        assert transport.send(POST, 2_000).status == 200


def test_a_handshake_that_never_ends_hits_the_deadline_for_connecting() -> None:
    def mute(exchange: Exchange, sock: Any) -> None:
        silent(exchange, sock)

    with RawServer(mute) as peer:
        transport = GeventTransport(f"https://127.0.0.1:{peer.port}", 1, connect_ms=80)
        before = time.monotonic()
        with the_hub_runs_on():
            error = refused(transport, deadline_ms=5_000)
        assert isinstance(error, NotSent)
        assert str(error) == "connect: deadline"
        assert time.monotonic() - before < 1


def test_a_host_that_takes_no_connection_hits_the_deadline_for_connecting() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        try:
            for each in waiting:  # the queue of the listener is full then, and what comes is not answered
                each.setblocking(False)
                each.connect_ex(full.getsockname())
            transport = GeventTransport(f"http://127.0.0.1:{full.getsockname()[1]}", 1, connect_ms=80)
            before = time.monotonic()
            with the_hub_runs_on():
                error = refused(transport, deadline_ms=5_000)
        finally:
            for each in waiting:
                each.close()
    assert isinstance(error, NotSent)
    assert str(error) == "connect: deadline"
    assert time.monotonic() - before < 1
