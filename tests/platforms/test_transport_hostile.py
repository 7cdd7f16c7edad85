"""The HTTP transport against servers that answer wrongly: one call has one answer, the first, or none."""

from __future__ import annotations

from typing import Any

import pytest
from gevent.server import StreamServer

from actors.platforms.transport import GeventTransport, NoAnswer, NotSent
from tests.platforms.raw_server import Exchange, Script
from tests.platforms.transport_calls import GET, PUT, against, refused

pytestmark = pytest.mark.real

OK = b'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"ok":true}'


def saying(data: bytes) -> Script:
    """Sends ``data`` and keeps the connection."""

    def script(exchange: Exchange, sock: Any) -> None:
        sock.sendall(data)

    return script


@pytest.mark.parametrize(
    ("data", "status", "body"),
    [
        (OK + b"HTTP/1.1 429 Slow\r\nRetry-After: 60\r\nContent-Length: 2\r\n\r\n{}", 200, b'{"ok":true}'),
        (b"HTTP/1.1 204 No\r\n\r\n" + OK, 204, b""),
        (OK + b"HTTP/1.1 100 Continue\r\n\r\n", 200, b'{"ok":true}'),
        (OK + b"HTTP/1.1 429 Sl", 200, b'{"ok":true}'),
        (OK + b"\x00\xff garbage", 200, b'{"ok":true}'),
        (b"HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\nhello", 204, b""),
        (b"HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 204, b""),
        (b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{"ok":true}', 200, b'{"'),
    ],
    ids=[
        "another",
        "after one without body",
        "interim",
        "half of one",
        "garbage",
        "body of 204",
        "chunk of 204",
        "too short",
    ],
)
def test_what_follows_an_answer_is_no_part_of_it_and_ends_the_connection(data: bytes, status: int, body: bytes) -> None:
    with against(saying(data), connections=1) as (peer, transport):
        for number in (1, 2):
            response = transport.send(GET, 2_000)
            assert (response.status, response.body) == (status, body)
            assert "retry-after" not in response.headers
            assert peer.connections == number


def test_an_answer_that_nobody_asked_for_is_not_taken_for_the_next_call_s() -> None:
    def late(exchange: Exchange, sock: Any) -> None:
        sock.sendall(OK if len(peer.seen) > 1 else b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")
        if len(peer.seen) == 1:
            sock.sendall(b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n")

    with against(late, connections=1) as (peer, transport):
        assert transport.send(GET, 2_000).status == 404
        peer.closed.wait(0.05)  # until the second one has come
        assert transport.send(GET, 2_000).status == 200


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\nblah",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n{}\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFFF\r\n{}",
        b"HTTP/1.1 200 OK\r\nX: a\x00b\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 abc OK\r\nContent-Length: 2\r\n\r\n{}",
        b"\x15\x03\x01\x00\x02\x02\x16",
        b'{"ok":true}',
    ],
    ids=["switched", "negative length", "endless length", "two lengths", "length and chunks", "chunk", "endless chunk", "NUL",
         "status", "TLS", "no head"],
)  # fmt: skip
def test_what_is_no_http_is_no_answer_and_ends_the_connection(data: bytes) -> None:
    with against(saying(data), connections=1) as (peer, transport):
        for number in (1, 2):
            assert isinstance(refused(transport, PUT), NoAnswer)
            assert (peer.connections, len(peer.seen)) == (number, number)


def test_a_thousand_interim_answers_are_read_past() -> None:
    with against(saying(b"HTTP/1.1 102 Wait\r\n\r\n" * 1_000 + OK), connections=1) as (peer, transport):
        assert [transport.send(GET, 2_000).body for _ in range(2)] == [b'{"ok":true}'] * 2
        assert peer.connections == 1


def test_endless_interim_answers_end_at_the_cap() -> None:
    with against(saying(b"HTTP/1.1 102 Wait\r\n\r\n" * 60_000)) as (_, transport):
        assert "1048576" in str(refused(transport))


def test_bytes_of_another_character_set_in_a_head_do_no_harm() -> None:
    data = b"HTTP/1.1 429 Zu viele \xfc\r\nX-Wait: \xff\xe9\r\nRetry-After: 3\r\nContent-Length: 0\r\n\r\n"
    with against(saying(data)) as (_, transport):
        response = transport.send(GET, 2_000)
        assert (response.status, response.headers["retry-after"]) == (429, "3")


def test_a_compressed_answer_stays_as_small_as_it_came() -> None:
    """Nobody has asked for one, so nothing here could unpack a bomb."""
    packed = b"\x1f\x8b\x08" + bytes(1_000)
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n".encode()
    with against(saying(head + packed)) as (peer, transport):
        assert transport.send(GET, 2_000).body == packed
        assert peer.seen[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("greeting", "reason"),
    [
        (b"HTTP/1.1 400 Plain HTTP here\r\n\r\n", "WRONG_VERSION_NUMBER"),
        (b"\x15\x03\x03\x00\x02\x02\x28", "ALERT_HANDSHAKE_FAILURE"),
        (b"", "EOF"),
    ],
    ids=["no TLS", "an alert", "closed"],
)
def test_a_handshake_that_fails_says_why_in_words_of_tls(greeting: bytes, reason: str) -> None:
    def answer(sock: Any, address: Any) -> None:
        sock.recv(4_096)
        sock.sendall(greeting)
        sock.close()

    server = StreamServer(("127.0.0.1", 0), answer)
    server.start()
    try:
        transport = GeventTransport(f"https://127.0.0.1:{server.server_port}", 1)
        for _ in range(2):  # and its place in the pool is free again
            error = refused(transport)
            assert isinstance(error, NotSent)
            assert reason in str(error)
    finally:
        server.stop(timeout=1)
