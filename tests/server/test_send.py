"""``livesign send`` at a server that does not let it in, or is none: what is wrong, and what to do."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import gevent
import pytest
from gevent.server import StreamServer

from actors.send import Target, UnavailableError, checked_event, send_events, target_of
from actors.server_settings import ServerSettings, TokenGrant
from protocol.codec import encode
from protocol.events import Closing, Rejected, StatsReply
from tests.server.test_server_tls import CA
from tests.server.test_server_tls import SETTINGS as TLS
from tests.server.world import THINKING, elsewhere, running

pytestmark = pytest.mark.real

TOKENS = (TokenGrant("t0ken", frozenset({"a"})), TokenGrant("watch", grants=frozenset({"subscribe"})))
TCP = ServerSettings(tcp="127.0.0.1:0", tokens=TOKENS)


def send(target: Target, **event: Any) -> list[Any]:
    """What is told for this event."""
    told: list[Any] = []
    elsewhere(lambda: send_events([checked_event({**THINKING, **event}, 0)], target, told.append))
    return told


def refused(address: tuple[str, int], monkeypatch: pytest.MonkeyPatch, token: str, ca: str | None = None) -> str:
    """Reason and hint."""
    monkeypatch.setenv("TOKEN", token)
    with pytest.raises(UnavailableError) as caught:
        send(target_of(None, f"{address[0]}:{address[1]}", ca, "TOKEN", 500))
    return f"{caught.value}; {caught.value.hint}"


@pytest.mark.parametrize(
    ("settings", "token", "ca", "words"),
    [
        (TCP, "wrong", None, ("unknown token", "server.tokens", "--token-env")),
        (TCP, "watch", None, ("no grant to send", "grants of this token")),
        (TCP, "t0ken", CA, ("WRONG_VERSION", "leave --tls-ca out")),
        (TLS, "t0ken", "system", ("CERTIFICATE_VERIFY", "--tls-ca FILE")),
        (TLS, "t0ken", None, ("", "--tls-ca is needed")),
    ],
)
def test_who_is_not_let_in_is_told_why_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, settings: ServerSettings, token: str, ca: str | None, words: tuple[str, ...]
) -> None:
    with running(settings) as world:
        text = refused(world.address, monkeypatch, token, ca)
    assert all(word in text for word in words), text
    assert token not in text


def silence(sock: Any, _: Any) -> None:
    gevent.sleep(10)


def newer(sock: Any, _: Any) -> None:
    sock.recv(4_096)
    detail = "this server speaks protocol 2"
    sock.sendall(encode(Rejected(code="bad_value", field="protocol", detail=detail)) + encode(Closing(reason=detail)))


def web(sock: Any, _: Any) -> None:
    sock.recv(4_096)
    sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


@pytest.mark.parametrize(
    ("server", "words"),
    [(silence, "no welcome within 500 ms; something else"), (newer, "different versions"), (web, "something else")],
)
def test_what_is_no_livesign_of_this_version_is_named(
    monkeypatch: pytest.MonkeyPatch, server: Callable[[Any, Any], None], words: str
) -> None:
    listener = StreamServer(("127.0.0.1", 0), server)
    listener.start()
    try:
        assert words in refused(("127.0.0.1", int(listener.server_port or 0)), monkeypatch, "t0ken")
    finally:
        listener.stop()


def test_nobody_at_the_socket_is_a_hint_to_start_one(tmp_path: pathlib.Path) -> None:
    with pytest.raises(UnavailableError) as caught:
        send(Target(str(tmp_path / "none.sock")))
    assert str(caught.value) == "No such file or directory"
    assert "livesign serve" in str(caught.value.hint)


def test_a_wrong_account_is_answered_with_those_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "t0ken")
    with running(TCP) as world:
        host, port = world.address
        (answer,) = send(target_of(None, f"{host}:{port}", None, "TOKEN", 500), account="b")
    assert answer.detail == "no grant for account 'b' (there are: a)"


def test_stats_are_answered_with_what_is_counted(tmp_path: pathlib.Path) -> None:
    with running(ServerSettings(unix=str(tmp_path / "l.sock"))) as world:
        told: list[Any] = []
        event = checked_event({"type": "stats"}, 0)
        path = world.path
        elsewhere(lambda: send_events([event], Target(path), told.append))
    assert told == [StatsReply(counters={"leases_expired": 2})]
