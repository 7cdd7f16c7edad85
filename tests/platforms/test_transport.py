"""The HTTP transport against real sockets: what is sent, how calls end, and what never happens."""

from __future__ import annotations

import fcntl
import os
import resource
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import gaierror
from typing import Any

import gevent
import gevent.socket
import gevent.ssl
import pytest

from actors.platforms import transport as subject
from actors.platforms.connections import server
from actors.platforms.spec import Credentials, Request, Response
from actors.platforms.transport import GeventTransport, NoAnswer, NotSent
from tests.platforms.raw_server import (
    Exchange,
    Hangup,
    RawServer,
    Script,
    answering,
    dripping,
    sending,
    silent,
)

pytestmark = pytest.mark.real

SECRET = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"
POST = Request("POST", f"/bot{SECRET}/sendChatAction", (("Content-Type", "application/json"),), b"{}")
PUT = Request("PUT", "/v3/typing", (("Authorization", f"Bearer {SECRET}"),), b'{"typing":true}')
GET = Request("GET", "/v3/whoami", (("Authorization", f"Bearer {SECRET}"),))
DELETE = Request("DELETE", "/v1/marks")

TLS = Path(__file__).parent / "tls"
CA = str(TLS / "ca.pem")


@contextmanager
def against(
    script: Script, connections: int = 2, **options: Any
) -> Iterator[tuple[RawServer, GeventTransport]]:
    with RawServer(script) as peer:
        transport = GeventTransport(peer.url + "/api", connections, **options)
        try:
            yield peer, transport
        finally:
            transport.close()


def refused(transport: GeventTransport, request: Request = POST, deadline_ms: int = 2_000) -> Exception:
    """How the call failed; its whole text was searched for the secret."""
    with pytest.raises((NotSent, NoAnswer)) as caught:
        transport.send(request, deadline_ms)
    text = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    assert SECRET not in text
    return caught.value


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


def test_a_redirect_is_an_answer_and_is_not_followed() -> None:
    with against(answering(b"", "307 Temporary Redirect", "Location: /elsewhere\r\n")) as (peer, transport):
        response = transport.send(PUT, 2_000)
        assert (response.status, response.headers["location"]) == (307, "/elsewhere")
        assert len(peer.seen) == 1


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
    error = refused(GeventTransport(url, 1))
    assert isinstance(error, NotSent)
    assert "ECONNREFUSED" in str(error)


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


# --- deadlines --------------------------------------------------------------------------


@pytest.mark.parametrize("script", [silent, dripping], ids=["silent", "dripping"])
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
        others = gevent.spawn(_ticks)
        before = time.monotonic()
        error = refused(transport, deadline_ms=5_000)
        assert isinstance(error, NotSent)
        assert str(error) == "connect: deadline"
        assert time.monotonic() - before < 1
        others.kill()
        assert others.value > 4, "the hub was blocked meanwhile"


def _ticks() -> int:
    ticks = 0
    try:
        while True:
            gevent.sleep(0.005)
            ticks += 1
    except gevent.GreenletExit:
        return ticks


def test_reading_over_tls_does_not_block_the_hub() -> None:
    with tls_server(silent) as peer:
        transport = GeventTransport(f"https://localhost:{peer.port}", 1, ca_file=CA)
        others = gevent.spawn(_ticks)
        assert isinstance(refused(transport, PUT, 100), NoAnswer)
        others.kill()
        assert others.value > 4


# --- TLS --------------------------------------------------------------------------------


def tls_server(script: Script) -> RawServer:
    context = gevent.ssl.SSLContext(gevent.ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "server.pem", TLS / "server-key.pem")
    return RawServer(script, tls={"ssl_context": context})


def test_a_trusted_certificate_is_accepted() -> None:
    with tls_server(answering()) as peer:
        transport = GeventTransport(f"https://localhost:{peer.port}", 1, ca_file=CA)
        for _ in range(2):
            assert transport.send(PUT, 2_000).status == 200
        transport.close()
        assert peer.connections == 1


def test_an_unknown_certificate_is_refused_before_anything_is_sent() -> None:
    with tls_server(answering()) as peer:
        error = refused(GeventTransport(f"https://localhost:{peer.port}", 1))
        assert isinstance(error, NotSent)
        assert str(error).startswith("TLS: ")
        assert peer.seen == []


def test_a_certificate_for_another_name_is_refused() -> None:
    with tls_server(answering()) as peer:
        error = refused(GeventTransport(f"https://127.0.0.1:{peer.port}", 1, ca_file=CA))
        assert isinstance(error, NotSent)
        assert str(error).startswith("TLS: ")
        assert peer.seen == []


# --- proxy ------------------------------------------------------------------------------


def test_a_plain_call_goes_through_the_proxy() -> None:
    with RawServer(answering()) as proxy:
        via = f"http://me:p%40ss@127.0.0.1:{proxy.port}"
        transport = GeventTransport("http://api.example.org/base", 1, proxy_url=via)
        assert transport.send(GET, 2_000).status == 200
        transport.close()
        (exchange,) = proxy.seen
        assert exchange.line == "GET http://api.example.org/base/v3/whoami HTTP/1.1"
        assert exchange.headers["host"] == "api.example.org"
        assert exchange.headers["proxy-authorization"] == "Basic bWU6cEBzcw=="


def test_a_call_over_tls_goes_through_a_tunnel() -> None:
    def tunnel(exchange: Exchange, sock: Any) -> None:
        sock.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        onward = gevent.socket.create_connection(("127.0.0.1", peer.port))
        back = gevent.spawn(_pump, onward, sock)
        _pump(sock, onward)
        back.join(timeout=1)
        onward.close()
        raise Hangup

    with tls_server(answering()) as peer, RawServer(tunnel) as proxy:
        via = f"http://127.0.0.1:{proxy.port}"
        transport = GeventTransport(f"https://localhost:{peer.port}", 1, proxy_url=via, ca_file=CA)
        assert transport.send(PUT, 2_000).status == 200
        transport.close()
        assert proxy.seen[0].line == f"CONNECT localhost:{peer.port} HTTP/1.1"
        assert SECRET not in proxy.seen[0].head
        assert peer.seen[0].line == "PUT /v3/typing HTTP/1.1"
        assert proxy.closed.wait(2)


def _pump(source: Any, sink: Any) -> None:
    try:
        while data := source.recv(4_096):
            sink.sendall(data)
        sink.shutdown(gevent.socket.SHUT_WR)
    except OSError:
        pass


def test_a_proxy_that_refuses_is_not_sent() -> None:
    with RawServer(sending(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")) as proxy:
        via = f"http://me:{SECRET.replace(':', '')}@127.0.0.1:{proxy.port}"
        error = refused(GeventTransport("https://localhost:1", 1, proxy_url=via))
        assert isinstance(error, NotSent)
        assert "proxy" in str(error)


# --- where calls go ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "authority", "prefix"),
    [
        ("https://api.telegram.org", "api.telegram.org", ""),
        ("http://127.0.0.1:8081/", "127.0.0.1:8081", ""),
        ("https://example.org:8448/matrix/", "example.org:8448", "/matrix"),
        ("http://[::1]:8008", "[::1]:8008", ""),
        ("https://bücher.example", "xn--bcher-kva.example", ""),
    ],
)
def test_a_base_url_is_taken_apart(url: str, authority: str, prefix: str) -> None:
    found = server(url)
    assert (found.authority, found.prefix) == (authority, prefix)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "api.example.org",
        "ftp://x",
        "https://",
        f"https://me:{SECRET}@x",
        "https://x?a=b",
        f"https://x:{SECRET[-9:]}",
    ],
)
def test_what_is_no_base_url_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(ValueError, match="base URL") as caught:
        server(url)
    assert SECRET[-9:] not in str(caught.value)


@pytest.mark.parametrize("proxy", ["socks5://x:1", "x:1", f"http://me:{SECRET[-9:]}/x@y", "http://"])
def test_what_is_no_proxy_is_refused_without_being_repeated(proxy: str) -> None:
    with pytest.raises(ValueError, match="proxy") as caught:
        GeventTransport("http://x", 1, proxy_url=proxy)
    assert SECRET[-9:] not in str(caught.value)


def test_an_account_s_own_base_url_counts_before_the_platform_s() -> None:
    own = GeventTransport.of(Credentials(base_url="http://127.0.0.1:9"), "https://api.example.org", 1)
    with pytest.raises(NotSent):
        own.send(GET, 1_000)
    with pytest.raises(ValueError, match="needs a base_url"):
        GeventTransport.of(Credentials(), None, 1)


def test_a_certificate_file_that_is_missing_is_an_error_at_once() -> None:
    with pytest.raises(OSError, match="No such file"):
        GeventTransport("https://x", 1, ca_file=str(TLS / "missing.pem"))


def test_the_cap_is_one_megabyte() -> None:
    assert subject.MAX_ANSWER_BYTES == 1_048_576
