"""Making a client wait for its answer, and noticing when it does not wait any longer."""

from __future__ import annotations

import errno
import socket as native
import time
from typing import Any

import gevent
from gevent.event import Event
from gevent.socket import wait_read


class ClientLeftError(ConnectionResetError):
    """The client has closed its side. The HTTP server then closes the connection without an answer."""

    def __init__(self) -> None:
        super().__init__(errno.ECONNRESET, "the client has left")


class _OverError(Exception):
    """The time to wait is over."""


def client_left(socket: Any, wait_s: float | None) -> bool:
    """Wait ``wait_s`` seconds (None: for ever) or until the client leaves; whether it left.

    Raises:
        ClientLeftError: this greenlet is being ended; its connection is to be closed without an answer.
    """
    start_s = time.monotonic()
    try:
        wait_read(socket.fileno(), timeout=wait_s, timeout_exc=_OverError())
        if _at_end(socket):
            return True
        # The next request is there already: nothing more can be learned from the socket.
        Event().wait(None if wait_s is None else max(0.0, start_s + wait_s - time.monotonic()))
        return False
    except _OverError:
        return False
    except gevent.GreenletExit:
        raise ClientLeftError from None


def _at_end(socket: Any) -> bool:
    try:
        return not socket.recv(1, native.MSG_PEEK)
    except OSError:
        return True
