"""A bounded pool of kept connections to one server, on gevent, directly or through an HTTP proxy.

It is livesign's own and not geventhttpclient's because of four things that one does: its TLS is the
standard library's, whose handshakes and reads block the hub where nothing is patched; its client sends PUT
and DELETE again when a connection closes without an answer; it asks ``select`` whether a kept connection is
alive, which refuses descriptors above 1023, so that a daemon with many clients never reuses one; and a
deadline within a handshake leaves the socket open.
"""

from __future__ import annotations

import select
import ssl
from base64 import b64encode
from dataclasses import dataclass, field
from socket import IPPROTO_TCP, TCP_NODELAY
from typing import Final, TypeAlias
from urllib.parse import SplitResult, unquote, urlsplit

import certifi
import gevent
import gevent.socket
import gevent.ssl
from gevent.lock import BoundedSemaphore
from gevent.socket import AF_UNSPEC, SOCK_STREAM

Socket: TypeAlias = gevent.socket.socket

MAX_PROXY_HEAD_BYTES: Final = 16_384


class ConnectDeadline(Exception):  # noqa: N818 - it is what has come
    """No connection within the time for one."""


class ProxyRefused(Exception):  # noqa: N818
    """The proxy does not let us through."""


class Closed(Exception):  # noqa: N818
    """The pool has been closed."""


@dataclass(frozen=True, slots=True)
class Server:
    """Where calls go: a checked base URL."""

    host: str
    port: int
    tls: bool
    prefix: str
    """Path before every request's path, without a slash at its end."""

    @property
    def authority(self) -> str:
        """As in the Host header."""
        return self.address if self.port != (443 if self.tls else 80) else _bracketed(self.host)

    @property
    def address(self) -> str:
        """Host and port."""
        return f"{_bracketed(self.host)}:{self.port}"


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy."""

    host: str
    port: int
    authorization: str | None = field(repr=False)
    """Value of Proxy-Authorization."""


def server(url: str) -> Server:
    """The base URL ``url`` taken apart. Raises ValueError, with a text that does not repeat it."""
    parts = _split(url, "a base URL")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("a base URL is http://host or https://host, with a port and a path if need be")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("a base URL has no user, password, query or fragment")
    tls = parts.scheme == "https"
    port = _port(parts, "a base URL") or (443 if tls else 80)
    return Server(_ascii_host(parts.hostname, "a base URL"), port, tls, parts.path.rstrip("/"))


def proxy(url: str) -> Proxy:
    """The proxy ``http://[user:password@]host:port``. Raises ValueError as `server` does."""
    parts = _split(url, "a proxy")
    if parts.scheme != "http" or not parts.hostname or parts.path not in ("", "/"):
        raise ValueError("a proxy is http://[user:password@]host:port")
    authorization = None
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = "Basic " + b64encode(pair.encode()).decode("ascii")
    return Proxy(_ascii_host(parts.hostname, "a proxy"), _port(parts, "a proxy") or 8080, authorization)


class Connections:
    """At most ``size`` connections to ``to``, the one used last first. A taken one must be given back."""

    def __init__(self, to: Server, size: int, connect_ms: int, via: Proxy | None, ca_file: str | None) -> None:
        """Raises OSError for a certificate file that cannot be read."""
        self._to = to
        self._via = via
        self._connect_ms = connect_ms
        self._slots = BoundedSemaphore(size)
        self._idle: list[Socket] = []
        self._closed = False
        self._tls = _context(ca_file) if to.tls else None

    def take(self) -> Socket:
        """A connection that is open as far as one can know. Blocks until there is one. Raises OSError,
        `ConnectDeadline`, `ProxyRefused`, `Closed`."""
        self._slots.acquire()
        try:
            if self._closed:
                raise Closed
            while self._idle:
                sock = self._idle.pop()
                if _is_open(sock):
                    return sock
                sock.close()
            with gevent.Timeout(self._connect_ms / 1_000, ConnectDeadline):
                return self._connect()
        except BaseException:
            self._slots.release()
            raise

    def give_back(self, sock: Socket, reusable: bool) -> None:
        """End the use of a taken connection."""
        if reusable and not self._closed:
            self._idle.append(sock)
        else:
            sock.close()
        self._slots.release()

    def close(self) -> None:
        """Close what is idle now and the rest when it is given back."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    def _connect(self) -> Socket:
        sock = _tcp(self._via or self._to)
        try:
            if self._tls is not None:
                if self._via is not None:
                    _tunnel(sock, self._to, self._via)
                sock = self._tls.wrap_socket(sock, server_hostname=self._to.host, do_handshake_on_connect=False)
                sock.do_handshake()
        except BaseException:
            sock.close()
            raise
        return sock


def _tcp(to: Server | Proxy) -> Socket:
    """A TCP connection to the first address of ``to`` that takes one."""
    failure: OSError | None = None
    for family, kind, protocol, _, address in gevent.socket.getaddrinfo(to.host, to.port, AF_UNSPEC, SOCK_STREAM):
        sock = gevent.socket.socket(family, kind, protocol)
        try:
            sock.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
            sock.connect(address)
        except OSError as error:
            sock.close()
            failure = error
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise failure or OSError("no address")


def _tunnel(sock: Socket, to: Server, via: Proxy) -> None:
    """Ask the proxy for a way through."""
    lines = [f"CONNECT {to.address} HTTP/1.1", f"Host: {to.address}"]
    if via.authorization is not None:
        lines.append(f"Proxy-Authorization: {via.authorization}")
    sock.sendall("\r\n".join([*lines, "", ""]).encode("ascii"))
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        # Byte by byte: what follows the head belongs to the handshake.
        byte = sock.recv(1)
        if not byte or len(head) > MAX_PROXY_HEAD_BYTES:
            raise ProxyRefused
        head += byte
    if not head.startswith((b"HTTP/1.1 2", b"HTTP/1.0 2")):
        raise ProxyRefused


def _is_open(sock: Socket) -> bool:
    """An idle connection has nothing to say: one that is readable has been closed by the peer, or is out of
    step."""
    poll = select.poll()
    poll.register(sock.fileno(), select.POLLIN)
    return not poll.poll(0)


def _context(ca_file: str | None) -> gevent.ssl.SSLContext:
    """Verifies certificates and names; trusts ``ca_file`` alone, or what the system trusts."""
    context = gevent.ssl.SSLContext(gevent.ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca_file is not None:
        context.load_verify_locations(ca_file)
        return context
    context.load_default_certs()
    if ssl.get_default_verify_paths().cafile is None:
        context.load_verify_locations(certifi.where())
    return context


def _split(url: str, what: str) -> SplitResult:
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ValueError(f"{what} is not a URL") from None
    if not url.isprintable() or " " in url or not parts.path.isascii():
        raise ValueError(f"{what} is not plain text")
    return parts


def _port(parts: SplitResult, what: str) -> int | None:
    try:
        return parts.port
    except ValueError:  # its text would repeat what may be a part of a password
        raise ValueError(f"the port of {what} is not a number up to 65535") from None


def _ascii_host(host: str, what: str) -> str:
    try:
        return host if host.isascii() else host.encode("idna").decode("ascii")
    except UnicodeError:
        raise ValueError(f"the host of {what} is not a name") from None


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
