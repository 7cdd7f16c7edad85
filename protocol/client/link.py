"""The thread that holds a client's connection: connect, talk, notice that it is lost, connect again.

- After each connect: what `Link` is given to begin with (hello), then whatever the client gives. Between two tries the
  pause doubles, up to a limit, with some chance in it so that many clients do not come back at the same moment. Only a
  connection that has lasted makes it short again: a server that lets us in and closes is not stormed.
- A ping every 10 s; 20 s without a byte, or without a good answer to the hello, count as a lost connection.
- The server may be anything: whatever it says, the client can be closed, sends in between, and holds no more than a reply.
- One thread does both directions, by a selector: a TLS connection must not be used by two at a time.
"""

from __future__ import annotations

import logging
import random
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable

from protocol.codec import ReplyDecoder, encode
from protocol.events import Ping, Reply

log = logging.getLogger("livesign.client")

PING_S = 10.0
SILENCE_S = 20.0
CONNECT_S = 5.0
PIECE_BYTES = 65_536
PIECES = 16
"""Read in one go."""
_NOT_NOW = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
PING = encode(Ping())

Address = str | tuple[str, int]
"""Path of a Unix socket, or (host, port)."""


class Link:
    """``begin`` is called for each new connection and gives the first bytes, ``take`` gives the next, ``heard`` gets each
    reply (it may raise ConnectionError to end the connection), ``lost`` the reason, and returns whether it had been a good
    one. ``tick`` is called now and then while there is a connection, at the latest after the seconds it returned. ``good``
    says whether the server has let us in.
    """

    def __init__(
        self,
        address: Address,
        tls: ssl.SSLContext | None,
        backoff_s: tuple[float, float],
        begin: Callable[[], bytes],
        take: Callable[[int], bytes],
        heard: Callable[[Reply], None],
        lost: Callable[[str], bool],
        tick: Callable[[], float],
        good: Callable[[], bool],
    ) -> None:
        self._address = address
        self._tls = tls
        self._backoff_s = backoff_s
        self._begin = begin
        self._take = take
        self._heard = heard
        self._lost = lost
        self._tick = tick
        self._good = good
        self._stop = threading.Event()
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._thread = threading.Thread(target=self._work, name="livesign-client", daemon=True)

    @property
    def stopping(self) -> bool:
        return self._stop.is_set()

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """There is something to send. Any thread."""
        try:
            self._wake_out.send(b"!")
        except OSError:
            pass  # full: it is awake; closed: it is gone

    def stop(self) -> None:
        """Disconnect, and wait until the thread has ended."""
        self._stop.set()
        self.wake()
        if self._thread is not threading.current_thread():
            self._thread.join(CONNECT_S + 1)

    def _work(self) -> None:
        first_s, max_s = self._backoff_s
        pause_s = first_s
        with self._wake_in, self._wake_out:
            while not self.stopping:
                began_s = time.monotonic()
                try:
                    with self._connect() as sock:
                        self._talk(sock)
                except Exception as error:
                    if not isinstance(error, OSError | UnicodeError):  # a fault of ours must not end the client
                        log.exception("the connection to livesign has failed")
                    if self._lost(reason(self._address, error)) and time.monotonic() - began_s >= max_s:
                        pause_s = first_s
                self._stop.wait(pause_s * random.uniform(0.5, 1.0))
                pause_s = min(2 * pause_s, max_s)

    def _connect(self) -> socket.socket:
        if isinstance(self._address, str):
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        else:
            sock = socket.create_connection(self._address, CONNECT_S)
        try:
            sock.settimeout(CONNECT_S)
            if isinstance(self._address, str):
                sock.connect(self._address)
            else:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self._tls is not None:
                    sock = self._tls.wrap_socket(sock, server_hostname=self._address[0])
        except BaseException:
            sock.close()
            raise
        return sock

    def _talk(self, sock: socket.socket) -> None:
        """Returns when the client is closed; raises OSError when the connection is lost."""
        sock.setblocking(False)
        decoder = ReplyDecoder()
        unsent = bytearray(self._begin())
        began_at = heard_at = pinged_at = time.monotonic()
        with selectors.DefaultSelector() as selector:
            selector.register(self._wake_in, selectors.EVENT_READ)
            selector.register(sock, selectors.EVENT_READ)
            while not self.stopping:
                if len(unsent) < PIECE_BYTES:
                    unsent += self._take(PIECE_BYTES)
                selector.modify(sock, selectors.EVENT_READ | (selectors.EVENT_WRITE if unsent else 0))
                wait_s = min(self._tick(), pinged_at + PING_S - time.monotonic())
                selector.select(0.0 if _decrypted(sock) else max(0.0, wait_s))
                self._drain_wake()
                if self._read(sock, decoder):
                    heard_at = time.monotonic()
                if unsent:
                    _write(sock, unsent)
                now = time.monotonic()
                if now - heard_at > SILENCE_S:
                    raise ConnectionError(f"livesign has said nothing for {SILENCE_S:g} s")
                if now - began_at > SILENCE_S and not self._good():
                    raise ConnectionError(f"no welcome within {SILENCE_S:g} s")
                if now - pinged_at >= PING_S:
                    pinged_at = now
                    unsent += PING

    def _drain_wake(self) -> None:
        try:
            self._wake_in.recv(4_096)
        except BlockingIOError:
            pass

    def _read(self, sock: socket.socket, decoder: ReplyDecoder) -> bool:
        """Whether anything came. Not all of what a server says without end: there is something else to do."""
        for number in range(PIECES):
            try:
                data = sock.recv(PIECE_BYTES)
            except _NOT_NOW:
                return number > 0
            if not data:
                raise ConnectionError("livesign closed the connection")
            for item in decoder.feed(data):
                if isinstance(item, Reply):
                    self._heard(item)
                elif item.fatal:
                    raise ConnectionError(f"what answers is no livesign: {item.detail}")
        return True


def _decrypted(sock: socket.socket) -> bool:
    """Whether decrypted bytes wait, which no selector would see."""
    return isinstance(sock, ssl.SSLSocket) and sock.pending() > 0


def reason(address: Address, error: Exception) -> str:
    """Why there is no connection, for people."""
    if not isinstance(error, OSError) or error.errno is None:
        return str(error) or type(error).__name__
    where = address if isinstance(address, str) else f"{address[0]}:{address[1]}"
    return f"{where}: {error.strerror or error}"


def _write(sock: socket.socket, unsent: bytearray) -> None:
    try:
        del unsent[: sock.send(unsent)]
    except _NOT_NOW:
        pass
