"""Listening on TCP, and accepting connections, also where that fails."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from gevent import socket as gevent_socket
from gevent.baseserver import BaseServer
from gevent.server import StreamServer

from actors.unix_listener import BACKLOG, ListenError

_RETRY_S = 0.1


class Patient(BaseServer):  # type: ignore[type-arg]
    """Part of a server. Where a connection cannot be accepted (no descriptor is free), it is tried again soon.

    The peer waits meanwhile. gevent's own servers print a trace each time.
    """

    def not_accepted(self, error: OSError) -> None:
        """A connection could not be accepted."""
        raise NotImplementedError

    def do_read(self) -> Any:
        """The next connection; None: there is none now."""
        try:
            return super().do_read()
        except OSError as error:
            if self.is_fatal_error(error):
                raise
            self.stop_accepting()  # the waiting peer would wake us without end
            timer: Any = self.loop.timer(_RETRY_S)
            timer.start(self._again)
            self._timer = timer  # the library closes it
            self.not_accepted(error)
            return None

    def _again(self) -> None:
        if self.started:
            self.start_accepting()


class Acceptor(Patient, StreamServer):
    """``failed`` is told where a connection could not be accepted."""

    def __init__(self, listener: Any, handle: Callable[[Any, Any], None], failed: Callable[[OSError], None]) -> None:
        super().__init__(listener, handle)
        self._failed = failed

    def not_accepted(self, error: OSError) -> None:
        """See `Patient`."""
        self._failed(error)


def listen_tcp(address: str) -> Any:
    """A listening socket at ``host:port``. Raises `ListenError`."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = gevent_socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, int(port)))
        listener.listen(BACKLOG)
    except (OSError, ValueError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or error
        raise ListenError(f"cannot listen on {address}: {reason}") from error
    return listener
