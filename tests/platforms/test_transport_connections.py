"""TLS, proxies and addresses of the HTTP transport, against real sockets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gevent
import gevent.socket
import gevent.ssl
import pytest

from actors.platforms.connections import server
from actors.platforms.spec import Credentials
from actors.platforms.transport import GeventTransport, NoAnswer, NotSent
from tests.platforms.raw_server import (
    Exchange,
    Hangup,
    RawServer,
    Script,
    answering,
    sending,
    silent,
)
from tests.platforms.transport_calls import GET, PUT, SECRET, refused, the_hub_runs_on

pytestmark = pytest.mark.real

TLS = Path(__file__).parent / "tls"
CA = str(TLS / "ca.pem")


# --- TLS --------------------------------------------------------------------------------


def test_reading_over_tls_does_not_block_the_hub() -> None:
    with tls_server(silent) as peer:
        transport = GeventTransport(f"https://localhost:{peer.port}", 1, ca_file=CA)
        with the_hub_runs_on():
            assert isinstance(refused(transport, PUT, 100), NoAnswer)


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


def test_a_plain_call_that_the_proxy_wants_a_login_for_is_not_sent() -> None:
    with RawServer(answering(b"<html>who are you", "407 Proxy Authentication Required")) as proxy:
        via = f"http://me:{SECRET.replace(':', '')}@127.0.0.1:{proxy.port}"
        transport = GeventTransport("http://api.example.org", 1, proxy_url=via)
        for _ in range(2):
            error = refused(transport)
            assert isinstance(error, NotSent)
            assert str(error) == "connect: refused by the proxy"
        assert SECRET.replace(":", "") not in repr(vars(transport))
        transport.close()


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
