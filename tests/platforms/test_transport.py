"""The HTTP transport against real sockets: what is sent, how calls end, and what never happens."""

from __future__ import annotations

import fcntl
import gc
import os
import resource
from socket import IPPROTO_TCP, TCP_NODELAY, gaierror
from typing import Any

import gevent
import gevent.socket
import gevent.ssl
import pytest

from actors.platforms.connections import Connections, server
from actors.platforms.spec import Request, Response
from actors.platforms.transport import GeventTransport, NoAnswer, NotSent
from tests.platforms.raw_server import (
    Exchange,
    Hangup,
    RawServer,
    answering,
    sending,
)
from tests.platforms.transport_calls import DELETE, GET, POST, PUT, SECRET, against, refused

pytestmark = pytest.mark.real

# --- what is sent -----------------------------------------------------------------------


def test_a_request_is_written_exactly_once_and_exactly_so() -> None:
    with against(answering()) as (peer, transport):
        response = transport.send(PUT, 2_000)
        assert response == Response(200, {"content-length": "11"}, b'{"ok":true}')
        (exchange,) = peer.seen
        assert exchange.head.split("\r\n") == [
            "PUT /api/v3/typing HTTP/1.1",
            f"Host: 127.0.0.1:{peer.port}",
            "User-Agent: livesign",
            "Accept: application/json",
            "Accept-Encoding: identity",
            f"Authorization: Bearer {SECRET}",
            "Content-Length: 15",
        ]
        assert exchange.body == b'{"typing":true}'


def test_a_put_without_a_body_says_so_and_a_delete_needs_not() -> None:
    with against(answering()) as (peer, transport):
        transport.send(Request("PUT", "/x"), 2_000)
        transport.send(DELETE, 2_000)
        assert [each.headers.get("content-length") for each in peer.seen] == ["0", None]


def test_a_request_s_own_user_agent_goes_in_place_of_ours() -> None:
    with against(answering()) as (peer, transport):
        transport.send(Request("GET", "/x", (("user-agent", "DiscordBot (livesign, 1)"),)), 2_000)
        lines = [line for line in peer.seen[0].head.split("\r\n") if line.lower().startswith("user-agent:")]
        assert lines == ["user-agent: DiscordBot (livesign, 1)"]


def test_calls_share_a_kept_connection() -> None:
    with against(answering()) as (peer, transport):
        for request in (POST, PUT, GET, DELETE):
            assert transport.send(request, 2_000).status == 200
        assert peer.connections == 1


def test_there_are_never_more_connections_than_allowed() -> None:
    def slow(exchange: Exchange, sock: Any) -> None:
        gevent.sleep(0.01)
        answering()(exchange, sock)

    with against(slow, connections=2) as (peer, transport):
        calls = [gevent.spawn(transport.send, POST, 2_000) for _ in range(10)]
        gevent.joinall(calls, timeout=5, raise_error=True)
        assert len(peer.seen) == 10
        assert peer.connections == 2


def test_connections_are_kept_with_a_thousand_descriptors_open() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 1_200:
        pytest.skip("the limit on open files is too low here")
    gc.collect()
    gevent.sleep(0.01)  # what earlier tests left to be closed would make room below
    held = [fcntl.fcntl(0, fcntl.F_DUPFD, 3)]
    try:
        while held[-1] < 1_100:
            held.append(fcntl.fcntl(0, fcntl.F_DUPFD, 3))
        with against(answering()) as (peer, transport):
            for _ in range(3):
                transport.send(POST, 2_000)
            assert peer.connections == 1
    finally:
        for each in held:
            os.close(each)


def test_a_connection_that_the_peer_closed_while_idle_is_not_used() -> None:
    def once(exchange: Exchange, sock: Any) -> None:
        answering()(exchange, sock)
        raise Hangup

    with against(once) as (peer, transport):
        for _ in range(3):
            peer.closed.clear()
            assert transport.send(PUT, 2_000).status == 200
            peer.closed.wait(2)
        assert peer.connections == 3


def test_a_connection_that_the_peer_wants_closed_is_not_used_again() -> None:
    with against(answering(head="Connection: close\r\n")) as (peer, transport):
        for _ in range(3):
            assert transport.send(PUT, 2_000).status == 200
        assert peer.connections == 3


def test_small_writes_are_not_held_back() -> None:
    with RawServer(answering()) as peer:
        pool = Connections(server(peer.url), 1, 1_000, None, None)
        sock = pool.take()
        assert sock.getsockopt(IPPROTO_TCP, TCP_NODELAY)
        pool.give_back(sock, reusable=False)


@pytest.mark.parametrize("path", ["/a b", "/a\r\nX: y", "no-slash", "/ä", "/a\x00"])
def test_a_path_that_is_not_plain_is_refused_without_being_repeated(path: str) -> None:
    with against(answering()) as (peer, transport):
        with pytest.raises(ValueError, match="plain text") as caught:
            transport.send(Request("GET", path + SECRET if path.startswith("/") else path), 2_000)
        assert SECRET not in str(caught.value)
        assert peer.seen == []


@pytest.mark.parametrize("value", ["Bearer a\r\nX-Evil: 1", "Bearer ä", "Bearer \x00"])
def test_a_token_cannot_smuggle_headers(value: str) -> None:
    with against(answering()) as (peer, transport):
        with pytest.raises(ValueError, match="plain text"):
            transport.send(Request("GET", "/x", (("Authorization", value),)), 2_000)
        assert peer.seen == []


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
def test_a_redirect_is_an_answer_and_takes_no_credentials_anywhere(status: str) -> None:
    with RawServer(answering()) as elsewhere:
        with against(answering(b"", status, f"Location: {elsewhere.url}/elsewhere\r\n")) as (peer, transport):
            for request in (PUT, GET):
                response = transport.send(request, 2_000)
                assert (response.status, response.headers["location"]) == (
                    int(status[:3]),
                    f"{elsewhere.url}/elsewhere",
                )
            assert len(peer.seen) == 2
        assert elsewhere.seen == []


# --- how calls end ----------------------------------------------------------------------


@pytest.mark.parametrize("request_", [POST, PUT, GET, DELETE], ids=lambda request: request.method)
def test_no_call_is_sent_again_when_the_connection_closes_without_an_answer(request_: Request) -> None:
    with against(sending(b"")) as (peer, transport):
        assert isinstance(refused(transport, request_), NoAnswer)
        assert len(peer.seen) == 1


@pytest.mark.parametrize("request_", [POST, PUT, DELETE], ids=lambda request: request.method)
def test_nor_when_a_kept_connection_closes_after_reading_the_call(request_: Request) -> None:
    def second_time_never(exchange: Exchange, sock: Any) -> None:
        if len(peer.seen) > 1:
            raise Hangup
        answering()(exchange, sock)

    with against(second_time_never) as (peer, transport):
        transport.send(request_, 2_000)
        assert isinstance(refused(transport, request_), NoAnswer)
        assert len(peer.seen) == 2


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\nContent-",
        b'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"ok":',
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{"ok',
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
    ],
    ids=["in the head", "in the body", "in a chunk", "not HTTP", "after an interim answer"],
)
def test_an_answer_that_breaks_off_is_none(data: bytes) -> None:
    with against(sending(data)) as (peer, transport):
        assert isinstance(refused(transport), NoAnswer)
        assert len(peer.seen) == 1


@pytest.mark.parametrize(
    "data",
    [
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{"ok\r\n7\r\n":true}\r\n0\r\n\r\n',
        b'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{"ok":true}',
        b'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"ok":true}',
        b'HTTP/1.0 200 OK\r\n\r\n{"ok":true}',
    ],
    ids=["chunked", "until the end", "after an interim answer", "HTTP/1.0"],
)
def test_every_framing_of_an_answer_is_understood(data: bytes) -> None:
    with against(sending(data)) as (_, transport):
        response = transport.send(POST, 2_000)
        assert (response.status, response.body) == (200, b'{"ok":true}')


def test_repeated_headers_do_not_disturb() -> None:
    with against(answering(head="Retry-After: 1\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n")) as (_, transport):
        assert transport.send(POST, 2_000).headers["retry-after"] == "1"


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n" + b"x" * 3_000_000,
        b"HTTP/1.1 200 OK\r\n" + b"X-Long: " + b"x" * 3_000_000 + b"\r\n\r\n",
    ],
    ids=["body", "head"],
)
def test_an_answer_that_is_too_large_is_not_read_to_its_end(data: bytes) -> None:
    with against(sending(data)) as (_, transport):
        error = refused(transport)
        assert isinstance(error, NoAnswer)
        assert "1048576" in str(error)


def test_a_refused_connection_is_not_sent() -> None:
    with RawServer(answering()) as peer:
        url = peer.url
    transport = GeventTransport(url, 1)
    for _ in range(3):  # and its place in the pool is free again
        error = refused(transport, deadline_ms=500)
        assert isinstance(error, NotSent)
        assert str(error) == "connect: ECONNREFUSED"


def test_a_name_that_does_not_resolve_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(*args: Any) -> None:
        raise gaierror(-2, f"Name or service not known {SECRET}")

    monkeypatch.setattr(gevent.socket, "getaddrinfo", nobody)
    error = refused(GeventTransport("http://nobody.invalid", 1))
    assert isinstance(error, NotSent)
    assert str(error) == "connect: name not resolved"


def test_a_closed_transport_sends_nothing() -> None:
    with against(answering()) as (peer, transport):
        transport.send(POST, 2_000)
        transport.close()
        assert isinstance(refused(transport), NotSent)
        assert peer.closed.wait(2)
        assert len(peer.seen) == 1
