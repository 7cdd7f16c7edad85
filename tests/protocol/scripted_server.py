"""A server whose part the test plays."""

from __future__ import annotations

import contextlib
import os
import queue
import socket

from protocol.codec import Decoder, encode
from protocol.events import Ack, Event, Hello, Reply, Welcome

WELCOME = Welcome(protocol=1, server="test", session="s", accounts=["a"], limits={})


class ScriptedServer:
    """Takes one connection at a time; the test plays its part."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._listener: socket.socket | None = None
        self._sock: socket.socket | None = None
        self._decoder = Decoder()
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self.listen()

    def listen(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.settimeout(5)
        self._listener.bind(self.path)
        self._listener.listen(5)

    def accept(self, *, welcome: bool = True) -> Hello:
        """The hello of the next connection."""
        assert self._listener is not None
        self.hang_up()
        self._sock, _ = self._listener.accept()
        self._decoder = Decoder()
        hello = self.receive()
        assert isinstance(hello, Hello)
        if welcome:
            self.say(WELCOME)
        return hello

    def receive(self, timeout_s: float = 5) -> Event:
        assert self._sock is not None
        self._sock.settimeout(timeout_s)
        while self._events.empty():
            data = self._sock.recv(65_536)
            assert data, "the client hung up"
            for item in self._decoder.feed(data):
                assert isinstance(item, Event), item
                self._events.put(item)
        return self._events.get()

    def say(self, *replies: Reply | bytes) -> None:
        assert self._sock is not None
        self._sock.sendall(b"".join(encode(item) if isinstance(item, Reply) else item for item in replies))

    def ack(self, event: Event) -> None:
        assert event.id is not None
        self.say(Ack(id=event.id, result="applied"))

    def hang_up(self) -> None:
        if self._sock is not None:
            self._sock.close()
        self._sock = None

    def close(self) -> None:
        self.hang_up()
        if self._listener is not None:
            self._listener.close()
        self._listener = None
