"""HTTP over gevent: one account's connections to one server.

`Transport` is the port; `GeventTransport` is what production uses; tests put a function behind it.

- A call is made at most once, whatever its method: nothing is sent again.
- A call ends in one of three ways: a `Response`; `NotSent`, when nothing of it has left; `NoAnswer`, when
  it may have happened. No text of these errors comes from the request or from an exception that has seen
  it: paths hold tokens.
- Two deadlines: one for getting a connection (name, TCP, proxy, TLS), one for all of it, waiting for a free
  connection included. Both are gevent timers, so a peer that drips bytes does not extend them.
- Connections are kept (`connections`); answers are parsed by geventhttpclient; redirects are not followed;
  heads and bodies together are capped.
"""

from __future__ import annotations

import errno
import re
import ssl
from socket import gaierror
from typing import Final, Protocol

import gevent
from geventhttpclient.response import HTTPParseError, HTTPSocketResponse

from actors.platforms.connections import (
    Closed,
    ConnectDeadline,
    Connections,
    ProxyRefused,
    Socket,
    proxy,
    server,
)
from actors.platforms.spec import Credentials, Request, Response

MAX_ANSWER_BYTES: Final = 1_048_576
CONNECT_MS: Final = 5_000
_PROXY_LOGIN: Final = 407
_NAME: Final = re.compile(r"[\x21-\x7e]+")
_PATH: Final = re.compile(r"/[\x21-\x7e]*")
_OWN_HEADERS: Final = ("User-Agent: livesign", "Accept: application/json", "Accept-Encoding: identity")
_HEADER_VALUE: Final = re.compile(r"[\x20-\x7e]*")


class NotSent(Exception):  # noqa: N818 - the names say what happened
    """Nothing of the call has reached the platform."""


class NoAnswer(Exception):  # noqa: N818
    """The call may have reached the platform, and may have taken effect."""


class Transport(Protocol):
    """Makes one HTTP call at a time per calling greenlet; any number of greenlets may call."""

    def send(self, request: Request, deadline_ms: int) -> Response:
        """The answer. Blocks the greenlet. Raises `NotSent`, `NoAnswer`, and ValueError for a request that is
        not HTTP."""

    def close(self) -> None:
        """Close idle connections now and the others as their calls end. Does not block."""


class _TooLarge(Exception):  # noqa: N818
    """The answer is larger than the cap."""


class _CappedResponse(HTTPSocketResponse):
    """The first answer on a connection, of at most `MAX_ANSWER_BYTES`, head and body together.

    The parser takes what follows an answer in the same packet for the next one (it is after an interim answer) and
    would mix the two. It is no part of this answer; a connection that has said more than asked is not used again.
    """

    final: Response | None = None
    _seen = 0

    def feed(self, data: str | bytes) -> None:
        self._seen += len(data)
        if self._seen > MAX_ANSWER_BYTES:
            raise _TooLarge
        try:
            super().feed(data)
        except HTTPParseError:
            if self.final is None:
                raise

    def get_code(self) -> int:
        return super().get_code() if self.final is None else self.final.status

    def _on_message_begin(self) -> None:
        if self.final is not None:
            raise HTTPParseError("more than one answer")
        super()._on_message_begin()

    def _on_message_complete(self) -> None:
        if self.get_code() >= 200:
            headers = {name.lower(): value for name, value in self.items()}
            self.final = Response(self.get_code(), headers, bytes(self._body_buffer))
        super()._on_message_complete()


class GeventTransport:
    """A keep-alive pool of at most ``connections`` connections to ``base_url``."""

    def __init__(
        self,
        base_url: str,
        connections: int,
        *,
        proxy_url: str | None = None,
        ca_file: str | None = None,
        connect_ms: int = CONNECT_MS,
    ) -> None:
        """Raises ValueError for a base URL or proxy that is none, OSError for a certificate file that cannot
        be read."""
        self._server = server(base_url)
        via = None if proxy_url is None else proxy(proxy_url)
        self._pool = Connections(self._server, connections, connect_ms, via, ca_file)
        self._proxy = None if self._server.tls else via
        """Of a call that is not inside a tunnel."""

    @classmethod
    def of(cls, credentials: Credentials, base_url: str | None, connections: int) -> GeventTransport:
        """For an account; ``base_url`` is the platform's own, used where the account names none."""
        url = credentials.base_url or base_url
        if url is None:
            raise ValueError("the platform needs a base_url")
        return cls(url, connections, proxy_url=credentials.proxy, ca_file=credentials.ca_file)

    def send(self, request: Request, deadline_ms: int) -> Response:
        """See `Transport`."""
        wire = self._wire(request)
        timer = gevent.Timeout.start_new(deadline_ms / 1_000)
        sent = False
        try:
            sock = self._connection()
            sent = True
            return self._exchange(sock, wire, request.method)
        except gevent.Timeout as fired:
            if fired is not timer:
                raise
            raise (NoAnswer if sent else NotSent)("deadline") from None
        finally:
            timer.close()

    def close(self) -> None:
        """See `Transport`."""
        self._pool.close()

    def _connection(self) -> Socket:
        try:
            return self._pool.take()
        except Closed:
            raise NotSent("closed") from None
        except ConnectDeadline:
            raise NotSent("connect: deadline") from None
        except ProxyRefused:
            raise NotSent("connect: refused by the proxy") from None
        except ssl.SSLCertVerificationError as error:
            raise NotSent(f"TLS: {error.verify_message}") from None
        except OSError as error:
            raise NotSent(f"connect: {_reason(error)}") from None

    def _exchange(self, sock: Socket, wire: bytes, method: str) -> Response:
        """Send ``wire`` and read the answer. Whatever happens, the connection is given back."""
        reusable = False
        try:
            sock.sendall(wire)
            answer = _CappedResponse(sock, method=method)
            answer.read()
            reusable = not answer.should_close()
            if answer.final is None:
                raise HTTPParseError("no answer")
            if self._proxy is not None and answer.final.status == _PROXY_LOGIN:
                raise NotSent("connect: refused by the proxy")
            return answer.final
        except _TooLarge:
            raise NoAnswer(f"an answer of more than {MAX_ANSWER_BYTES} bytes") from None
        except HTTPParseError:
            raise NoAnswer("closed before the answer was complete, or no HTTP") from None
        except OSError as error:
            raise NoAnswer(f"connection: {_reason(error)}") from None
        finally:
            self._pool.give_back(sock, reusable)

    def _wire(self, request: Request) -> bytes:
        """The request as bytes. Raises ValueError with a text that names only what is wrong."""
        target = self._server.prefix + request.path
        if not _PATH.fullmatch(request.path):
            raise ValueError("the path of a request is not plain text")
        if self._proxy is not None:
            target = f"http://{self._server.authority}{target}"
        lines = [f"{request.method} {target} HTTP/1.1", f"Host: {self._server.authority}"]
        if self._proxy is not None and self._proxy.authorization is not None:
            lines.append(f"Proxy-Authorization: {self._proxy.authorization}")
        own = {name.lower() for name, _ in request.headers}
        lines += [line for line in _OWN_HEADERS if line.partition(":")[0].lower() not in own]
        for name, value in request.headers:
            if not _NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
                raise ValueError("a header (or the token in it) is not plain text")
            lines.append(f"{name}: {value}")
        if request.body or request.method in ("POST", "PUT"):
            lines.append(f"Content-Length: {len(request.body)}")
        return "\r\n".join([*lines, "", ""]).encode("ascii") + request.body


def _reason(error: OSError) -> str:
    """A short reason that cannot hold anything of the request."""
    if isinstance(error, gaierror):
        return "name not resolved"
    if isinstance(error, ssl.SSLError):  # its number is one of OpenSSL's, not the system's
        return error.reason or type(error).__name__
    return errno.errorcode.get(error.errno or 0, type(error).__name__)
