"""The server: a Unix socket and a TCP listener, and the connections that come in by them.

It runs in the runtime's own thread, on the same hub, with greenlets that may block. What it hears goes to the
router as messages (`actors.messages`); what the router answers comes back through the ``reply`` each message
carries.

- Unix socket: mode 0600 and the peer's user checked: only the server's own user and root get in.
- TCP: the address that the settings name; whoever comes in that way has to show a token. TLS if there is a
  certificate.
- A client that goes against a limit is told why and closed; the others notice nothing.
"""

from __future__ import annotations

import logging
import os
import socket
import ssl
import time
from collections.abc import Callable, Collection
from typing import Any

import gevent
from gevent import socket as gevent_socket
from gevent.ssl import SSLContext

from actors.acceptor import Acceptor, listen_tcp
from actors.connection import Connection
from actors.executors import Executors
from actors.grants import Grant, user_grant
from actors.server_context import Gate, ServerContext, Timing
from actors.server_settings import ServerSettings
from actors.sessions import Sessions, Teller
from actors.unix_listener import ListenError, UnixListener, peer_uid
from protocol.codec import encode
from protocol.events import Closing

__all__ = ["ListenError", "Server"]

log = logging.getLogger("livesign.server")

_KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 2, "TCP_USER_TIMEOUT": 20_000}
"""A peer that is gone without a word is noticed after 20 s, even if it never pings."""
QUIET_S = 60.0
"""Between two complaints that nothing can be accepted."""


class Server:
    """Listens from `start` to `stop`.

    ``router`` gets the messages; ``backlog`` tells how many wait in the runtime; ``accounts`` which accounts
    there are; ``stats`` answers `Stats`. ``sessions`` may be that of a server before this one; ``executors``
    makes the calls of remote accounts.
    """

    def __init__(
        self,
        settings: ServerSettings,
        router: Teller,
        *,
        backlog: Callable[[], int],
        accounts: Callable[[], Collection[str]],
        stats: Callable[[], dict[str, int]],
        sessions: Sessions | None = None,
        executors: Executors | None = None,
        name: str = "livesign",
        timing: Timing | None = None,
    ) -> None:
        self.context = ServerContext(
            settings=settings,
            router=router,
            sessions=sessions or Sessions(router),
            gate=Gate(backlog),
            accounts=accounts,
            stats=stats,
            name=name,
            timing=timing or Timing(),
            executors=executors or Executors(),
        )
        self.connections: set[Connection] = set()
        self._unix: UnixListener | None = None
        self._tcp: Any = None
        self._tls: SSLContext | None = None
        self._servers: list[Acceptor] = []
        self._watch: Any = None
        self._quiet_until = 0.0

    @property
    def counters(self) -> dict[str, int]:
        """By the names in `actors.server_context.COUNTED`."""
        return dict(self.context.counters)

    @property
    def tcp_address(self) -> tuple[str, int] | None:
        """Where it really listens (the settings may ask for port 0)."""
        return None if self._tcp is None else self._tcp.getsockname()[:2]

    def start(self) -> None:
        """Listen. Raises `ListenError`, and then listens nowhere."""
        settings = self.context.settings
        try:
            if settings.unix is not None:
                self._unix = UnixListener(settings.unix, gevent_socket.socket)
                self.context.counters["sockets_replaced"] += self._unix.replaced
                self._serve(self._unix.socket, self._unix_peer)
                log.info("listening on %s", settings.unix)
            if settings.tcp is not None:
                self._tls = _tls_context(settings)
                self._tcp = listen_tcp(settings.tcp)
                self._serve(self._tcp, self._tcp_peer)
                log.info("listening on %s:%s%s", *self.tcp_address or (), " with TLS" if self._tls else "")
        except BaseException:
            self.stop()
            raise
        self._watch = gevent.spawn(self._watch_limits)

    def stop(self, reason: str = "livesign is shutting down", *, executors: bool = True) -> None:
        """Take no new connections, tell the present ones why, and wait until they are closed (about 2 s at most).

        Not ``executors``: those that make our calls stay, until the next stop.
        """
        for server in self._servers:
            server.close()
        self._servers.clear()
        if self._unix is not None:
            self._unix.close()
        if self._watch is not None:
            self._watch.kill()
        leaving = {each for each in self.connections if executors or not each.dialogue.executes}
        for connection in leaving:
            connection.close(reason)
        try:
            with gevent.Timeout(2 * self.context.timing.linger_s + 0.5):
                while not leaving.isdisjoint(self.connections):
                    gevent.sleep(0.005)
        except gevent.Timeout:
            log.warning("%d connections did not end in time", len(leaving & self.connections))
        self._unix = self._tcp = self._watch = None

    # --- connections ---------------------------------------------------------------------------------------

    def _serve(self, listener: Any, handle: Callable[[Any, Any], None]) -> None:
        server = Acceptor(listener, handle, self._not_accepted)
        server.start()
        self._servers.append(server)

    def _not_accepted(self, error: OSError) -> None:
        self.context.counters["accepts_failed"] += 1
        if time.monotonic() > self._quiet_until:
            self._quiet_until = time.monotonic() + QUIET_S
            log.error("no connection can be accepted (%s): clients wait until one ends", error.strerror)

    def _unix_peer(self, sock: Any, _: Any) -> None:
        uid = peer_uid(sock)
        if uid is not None and uid not in (os.geteuid(), 0):
            log.warning("refused a connection of uid %d to %s", uid, self.context.settings.unix)
            self._turn_away(sock, "this socket belongs to another user", "users_refused")
            return
        self._run(sock, f"unix uid {uid}", user_grant(uid))

    def _tcp_peer(self, sock: Any, address: Any) -> None:
        peer = f"{address[0]}:{address[1]}"
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _KEEPALIVE.items():
            if hasattr(socket, option):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        if self._tls is not None:
            try:
                with gevent.Timeout(self.context.timing.handshake_s, TimeoutError("TLS handshake")):
                    sock = self._tls.wrap_socket(sock, server_side=True)
            except OSError as error:
                self.context.counters["handshakes_failed"] += 1
                log.info("%s: no TLS: %s", peer, error)
                return
        self._run(sock, peer, None)

    def _run(self, sock: Any, peer: str, grant: Grant | None) -> None:
        if len(self.connections) >= self.context.settings.limits.connections:
            self._turn_away(sock, "too many connections", "connections_refused")
            return
        self.context.counters["connections"] += 1
        connection = Connection(self.context, sock, peer, grant)
        self.connections.add(connection)
        try:
            connection.run()
        finally:
            self.connections.discard(connection)

    def _turn_away(self, sock: Any, reason: str, counter: str) -> None:
        self.context.counters[counter] += 1
        try:
            sock.settimeout(self.context.timing.linger_s)
            sock.sendall(encode(Closing(reason=reason)))
            sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        finally:
            sock.close()

    def _watch_limits(self) -> None:
        while True:
            gevent.sleep(self.context.timing.check_s)
            now = time.monotonic()
            for connection in list(self.connections):
                reason = connection.overdue(now)
                if reason is not None:
                    log.info("%s: closed, %s", connection.peer, reason)
                    self.context.counters["connections_cut"] += 1
                    connection.close(reason)


def _tls_context(settings: ServerSettings) -> SSLContext | None:
    if settings.tls_cert is None:
        return None
    context = SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(settings.tls_cert, settings.tls_key)
        if settings.tls_client_ca is not None:
            context.load_verify_locations(settings.tls_client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ssl.SSLError) as error:
        raise ListenError(f"cannot use the TLS certificate {settings.tls_cert}: {error}") from error
    return context
