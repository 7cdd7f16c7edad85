"""A router that writes down what it is told, and a peer on a real socket."""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import gevent
import msgpack
from gevent import socket

from actors.grants import Grant, user_grant
from actors.messages import FromClient, SessionDown, SessionUp, Subscription
from actors.server import Server
from actors.server_context import Gate, ServerContext, Timing
from actors.server_settings import ServerLimits, ServerSettings, TokenGrant
from actors.sessions import Sessions
from protocol.codec import ReplyDecoder, encode
from protocol.errors import DecodeError
from protocol.events import Ack, Event, Reply

QUICK = Timing(handshake_s=0.2, half_event_s=0.2, silence_s=0.5, linger_s=0.3, check_s=0.02)
T = TypeVar("T")
THINKING: dict[str, Any] = {"type": "thinking", "account": "a", "conversation": "c", "message": "m"}


class Router:
    """Acknowledges every event that has an id, unless told to wait."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.answers = True
        self.backlog = 0

    def tell(self, message: Any) -> None:
        self.messages.append(message)
        if self.answers and isinstance(message, (FromClient, Subscription)) and message.event.id is not None:
            assert message.reply is not None
            repeated = isinstance(message, FromClient) and message.repeated
            message.reply(Ack(id=message.event.id, result="duplicate" if repeated else "applied"))

    @property
    def events(self) -> list[Event]:
        """Those that were told for the first time."""
        return [m.event for m in self.messages if isinstance(m, FromClient) and not m.repeated]

    @property
    def sessions(self) -> list[SessionUp | SessionDown]:
        return [message for message in self.messages if isinstance(message, (SessionUp, SessionDown))]


def context(router: Router, *tokens: TokenGrant, limits: ServerLimits | None = None) -> ServerContext:
    """What the connections of a server share, without a server."""
    return ServerContext(
        settings=ServerSettings(tokens=tokens, limits=limits or ServerLimits()),
        router=router,
        sessions=Sessions(router),
        gate=Gate(lambda: router.backlog),
        accounts=lambda: ("a", "b"),
        stats=lambda: {"leases_expired": 2},
        name="livesign test",
        timing=QUICK,
    )


def local() -> Grant:
    return user_grant(0)


class Peer:
    """The other end of a connection; reads give up after 2 s."""

    def __init__(self, sock: Any) -> None:
        self.sock = sock
        sock.settimeout(2)
        self._decoder = ReplyDecoder()
        self._replies: list[Reply] = []
        self.ended = False

    def send(self, *sources: dict[str, Any] | Event | bytes) -> None:
        for source in sources:
            data = encode(source) if isinstance(source, Event) else source
            self.sock.sendall(data if isinstance(data, bytes) else msgpack.packb(data))

    def receive(self) -> Reply | None:
        """The next reply; None: the end of the stream."""
        while not self._replies and not self.ended:
            try:
                data = self.sock.recv(65_536)
            except ConnectionResetError:
                data = b""
            self.ended = not data
            for item in self._decoder.feed(data):
                assert not isinstance(item, DecodeError), item
                self._replies.append(item)
        return self._replies.pop(0) if self._replies else None

    def rest(self) -> list[Reply]:
        """Everything up to the end of the stream."""
        replies = []
        while (reply := self.receive()) is not None:
            replies.append(reply)
        return replies

    def close(self) -> None:
        self.sock.close()


class World:
    """A running server."""

    def __init__(self, settings: ServerSettings, timing: Timing = QUICK) -> None:
        self.router = Router()
        self.settings = settings
        self.path = settings.unix or ""
        self._peers: list[Peer] = []
        self.server = Server(
            settings,
            self.router,
            backlog=lambda: self.router.backlog,
            accounts=lambda: ("a", "b"),
            stats=lambda: {"leases_expired": 2},
            name="livesign test",
            timing=timing,
        )
        self.server.start()
        self.address = self.server.tcp_address or ("", 0)

    def unix(self) -> Peer:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.connect(self.path)
        return self._peer(sock)

    def tcp(self) -> Peer:
        return self._peer(socket.create_connection(self.address))

    def tls(self, context: Any) -> Peer:
        sock = socket.create_connection(self.address)
        try:
            return self._peer(context.wrap_socket(sock, server_hostname="localhost"))
        finally:
            sock.close()

    def _peer(self, sock: Any) -> Peer:
        peer = Peer(sock)
        self._peers.append(peer)
        return peer

    def close(self) -> None:
        for peer in self._peers:
            peer.close()
        self.server.stop()


@contextlib.contextmanager
def running(settings: ServerSettings, timing: Timing = QUICK) -> Iterator[World]:
    world = World(settings, timing)
    try:
        yield world
    finally:
        world.close()


def unix_settings(directory: pathlib.Path, limits: ServerLimits | None = None) -> ServerSettings:
    return ServerSettings(unix=str(directory / "run" / "l.sock"), limits=limits or ServerLimits())


def eventually(condition: Any) -> None:
    """Wait (2 s at most) until ``condition()`` holds."""
    with gevent.Timeout(2):
        while not condition():
            gevent.sleep(0.002)


def elsewhere(work: Callable[[], T]) -> T:
    """Run ``work``, which blocks, in a thread of its own while the server's hub goes on."""
    result: Any = gevent.get_hub().threadpool.spawn(work).get(timeout=30)
    return cast(T, result)
