"""A scripted TCP server in the test's own hub: sees every byte of a request, answers with any bytes, or
never."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import gevent
from gevent.event import Event
from gevent.server import StreamServer


@dataclass
class Exchange:
    """One request on one connection."""

    head: str
    body: bytes
    connection: int
    """Number of the connection, from 0."""

    @property
    def line(self) -> str:
        """The request line."""
        return self.head.partition("\r\n")[0]

    @property
    def headers(self) -> dict[str, str]:
        """Names in lower case."""
        lines = self.head.split("\r\n")[1:]
        return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


Script = Callable[[Exchange, Any], None]
"""Answers on the socket. Raising `Hangup` closes the connection."""


class Hangup(Exception):
    """The server closes the connection."""


@dataclass
class RawServer:
    """``script`` answers each request. ``tls``: what `StreamServer` takes for TLS."""

    script: Script
    tls: dict[str, Any] = field(default_factory=dict)
    seen: list[Exchange] = field(default_factory=list)
    connections: int = 0
    closed: Event = field(default_factory=Event)
    """Set when a connection has ended."""

    def __enter__(self) -> RawServer:
        self._open: set[Any] = set()
        self._server = StreamServer(("127.0.0.1", 0), self._serve, **self.tls)
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.stop(timeout=1)

    @property
    def port(self) -> int:
        """Where it listens."""
        port = self._server.server_port
        assert port is not None
        return port

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def _serve(self, sock: Any, address: Any) -> None:
        number = self.connections
        self.connections += 1
        stream = sock.makefile("rb")
        try:
            while (exchange := _read(stream, number)) is not None:
                self.seen.append(exchange)
                self.script(exchange, sock)
        except (Hangup, OSError):
            pass
        finally:
            stream.close()
            sock.close()
            self.closed.set()


def _read(stream: Any, number: int) -> Exchange | None:
    lines: list[str] = []
    while line := stream.readline():
        if line == b"\r\n":
            break
        lines.append(line.decode("latin-1").rstrip("\r\n"))
    if not lines:
        return None
    exchange = Exchange("\r\n".join(lines), b"", number)
    exchange.body = stream.read(int(exchange.headers.get("content-length", "0")))
    return exchange


def answering(body: bytes = b'{"ok":true}', status: str = "200 OK", head: str = "") -> Script:
    """A script that answers every request alike."""

    def script(exchange: Exchange, sock: Any) -> None:
        sock.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{head}\r\n".encode() + body)

    return script


def sending(data: bytes) -> Script:
    """A script that sends ``data`` and hangs up."""

    def script(exchange: Exchange, sock: Any) -> None:
        sock.sendall(data)
        raise Hangup

    return script


def silent(exchange: Exchange, sock: Any) -> None:
    """Never answers; ends when the client goes."""
    while sock.recv(1):
        pass
    raise Hangup


def dripping(exchange: Exchange, sock: Any) -> None:
    """Sends a byte of an endless head now and then."""
    sock.sendall(b"HTTP/1.1 200 OK\r\nX-Drip: ")
    while True:
        gevent.sleep(0.01)
        sock.sendall(b"x")
