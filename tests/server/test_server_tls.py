"""TLS on the TCP listener."""

from __future__ import annotations

import contextlib
import pathlib
import ssl

import pytest
from gevent.ssl import SSLContext

from actors import connection
from actors.server import ListenError
from actors.server_settings import ServerSettings, TokenGrant
from protocol.codec import encode
from protocol.events import Ack, Closing, Hello, Rejected, Thinking, Welcome
from tests.server.world import THINKING, World, eventually, running

pytestmark = pytest.mark.real

FILES = pathlib.Path(__file__).parent.parent / "platforms" / "tls"
CA = str(FILES / "ca.pem")
SETTINGS = ServerSettings(
    tcp="127.0.0.1:0",
    tls_cert=str(FILES / "server.pem"),
    tls_key=str(FILES / "server-key.pem"),
    tokens=(TokenGrant("t0ken"),),
)


def client() -> SSLContext:
    context = SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(CA)
    return context


def test_events_go_in_and_acks_come_back_by_tls() -> None:
    with running(SETTINGS) as world:
        peer = world.tls(client())
        peer.send(Hello(token="t0ken"), {**THINKING, "id": "e1"})
        assert isinstance(peer.receive(), Welcome)
        assert peer.receive() == Ack(id="e1", result="applied")


def test_nothing_of_a_burst_stays_behind_in_a_decrypted_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "RECV_BYTES", 1_000)
    events = b"".join(encode(Thinking(conversation="c", message=str(n), thread="t" * 200)) for n in range(3_000))
    with running(SETTINGS) as world:
        peer = world.tls(client())
        peer.send(Hello(token="t0ken"), events)
        eventually(lambda: len(world.router.events) == 3_000)


def test_the_reason_of_a_close_arrives_by_tls_too() -> None:
    with running(SETTINGS) as world:
        peer = world.tls(client())
        peer.send(Hello(token="wrong"))
        rejected, closing = peer.rest()
        assert isinstance(rejected, Rejected)
        assert closing == Closing(reason="unknown token")


def test_a_client_without_tls_and_one_that_says_nothing_are_closed() -> None:
    with running(SETTINGS) as world:
        plain, silent = world.tcp(), world.tcp()
        plain.send(Hello(token="t0ken"))
        for peer in (plain, silent):
            with contextlib.suppress(ConnectionResetError):
                while peer.sock.recv(99):  # at most an alert of TLS
                    pass
        assert world.router.messages == []
        peer = world.tls(client())
        peer.send(Hello(token="t0ken"))
        assert isinstance(peer.receive(), Welcome)


def test_where_clients_need_a_certificate_nobody_gets_in_without() -> None:
    settings = ServerSettings(
        tcp=SETTINGS.tcp,
        tls_cert=SETTINGS.tls_cert,
        tls_key=SETTINGS.tls_key,
        tls_client_ca=CA,
        tokens=SETTINGS.tokens,
    )
    with running(settings) as world:
        with pytest.raises(OSError, match=r"(?i)certificate required|reset|EOF"):
            peer = world.tls(client())
            peer.send(Hello(token="t0ken"))
            peer.sock.recv(1)
        assert world.router.messages == []


def test_a_certificate_that_cannot_be_used_is_a_clear_error(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ListenError, match="cannot use the TLS certificate"):
        World(ServerSettings(tcp="127.0.0.1:0", tls_cert=str(tmp_path / "none.pem")))
