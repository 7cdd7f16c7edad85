"""The sandbox as a running HTTP service on the hub of the thread that starts it. Nothing is patched."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable
from typing import Any

import gevent.socket
from gevent.pool import Pool
from gevent.pywsgi import WSGIHandler, WSGIServer

from actors.sandbox.api import Api
from actors.sandbox.calls import CallLog
from actors.sandbox.chat import Chats
from actors.sandbox.options import SandboxOptions

log = logging.getLogger("livesign.sandbox")

BACKLOG = 1_024
"""Connections that may wait to be accepted: a load test opens all of its own at once."""


class SandboxService:
    """A chat service in this process. Also a context manager.

    ``port`` 0 takes a free one. ``now_ms`` replaces the service's own clock (real time since its making,
    times ``time_scale``); it must not go backwards.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        options: SandboxOptions | None = None,
        now_ms: Callable[[], int] | None = None,
    ) -> None:
        self.options = options or SandboxOptions()
        self._address = (host, port)
        self._start_ns = time.monotonic_ns()
        self._api = Api(self.options, now_ms or self._own_now_ms)
        self._server: WSGIServer | None = None
        self._clients: Pool | None = None

    def start(self) -> SandboxService:
        """Listen and answer.

        Raises:
            OSError: the address cannot be had.
        """
        if self._server is not None:
            return self
        self._clients = Pool()  # without a pool the connections would outlive the server
        self._server = WSGIServer(
            _listener(*self._address),
            self._api,
            spawn=self._clients,
            log=None,
            error_log=log,
            handler_class=_Handler,
            environ={"SERVER_NAME": self._address[0]},  # else the library asks the name service
        )
        self._server.start()
        return self

    def stop(self) -> None:
        """Close the listener and every connection; calls that hang are never answered."""
        server, self._server = self._server, None
        if server is not None:
            server.stop(timeout=0)

    def __enter__(self) -> SandboxService:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def port(self) -> int:
        """The port in use.

        Raises:
            RuntimeError: the service is not running.
        """
        if self._server is None:
            raise RuntimeError("the sandbox is not running")
        return int(self._server.address[1])

    @property
    def base_url(self) -> str:
        """Where it is, without a slash at the end. Raises as `port`."""
        host = self._address[0]
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    @property
    def chats(self) -> Chats:
        """The state itself, for code on the same hub."""
        return self._api.chats

    @property
    def calls(self) -> CallLog:
        """The count of calls itself, for code on the same hub."""
        return self._api.calls

    def _own_now_ms(self) -> int:
        return int((time.monotonic_ns() - self._start_ns) * self.options.time_scale) // 1_000_000


def _listener(host: str, port: int) -> Any:
    """A listening socket.

    An answer goes out in two writes, head and body. Accepted connections inherit TCP_NODELAY from here;
    without it the body waits for the client's delayed acknowledgement of the head, some 40 ms a call.
    """
    listener = gevent.socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


class _Handler(WSGIHandler):
    """Adds what WSGI leaves out: the path before decoding (a name may hold a slash) and the connection."""

    def get_environ(self) -> dict[str, Any]:
        environ: dict[str, Any] = super().get_environ()
        environ["sandbox.path"] = self.path
        environ["sandbox.socket"] = self.socket
        return environ
