"""A server that says anything at all on its first connections, and then is a good one."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from protocol.codec import Decoder, encode
from protocol.events import Ack, Call, CallResult, Event, Hello, Subscribe
from tests.protocol.scripted_server import WELCOME

ENDLESS_BYTES = 50_000_000
CALL = Call(call_id="good", account="a", conversation="c", op="typing_start", deadline_ms=5_000)


@dataclass(frozen=True)
class Script:
    """What is said on one connection. ``cut``: pieces of so many bytes. ``again``: every 10 ms; ``endless``: without a pause."""

    said: bytes = b""
    end: Literal["close", "reset", "silence", "endless", "again"] = "close"
    cut: int = 0


class HostileServer:
    """Plays its scripts, one a connection; connections after them are served well."""

    def __init__(self, path: str, scripts: Sequence[Script]) -> None:
        self.scripts = list(scripts)
        self.events: list[Event] = []
        """What the good server was told."""
        self.results: list[CallResult] = []
        self.connections = 0
        self._stopping = threading.Event()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        self._listener.bind(path)
        self._listener.listen(20)
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        """Waits until all its threads have ended."""
        self._stopping.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            script = self.scripts.pop(0) if self.scripts else None
            thread = threading.Thread(target=self._serve, args=(sock, script), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, sock: socket.socket, script: Script | None) -> None:
        sock.settimeout(0.02)
        with sock, contextlib.suppress(OSError):
            if script is None:
                self._be_good(sock)
            else:
                self._play(sock, script)

    def _play(self, sock: socket.socket, script: Script) -> None:
        size = script.cut or len(script.said) or 1
        for start in range(0, len(script.said), size):
            sock.sendall(script.said[start : start + size])
        if script.end == "endless":
            sent = 0
            while script.said and sent < ENDLESS_BYTES and not self._stopping.is_set():
                sent += sock.send(script.said)
        while script.end == "again" and not self._stopping.wait(0.01):
            sock.sendall(script.said)
        while script.end == "silence" and not self._stopping.is_set():
            with contextlib.suppress(TimeoutError):
                if not sock.recv(65_536):
                    return
        if script.end == "reset":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    def _be_good(self, sock: socket.socket) -> None:
        decoder = Decoder()
        while not self._stopping.is_set():
            try:
                data = sock.recv(65_536)
            except TimeoutError:
                continue
            if not data:
                return
            for event in decoder.feed(data):
                assert isinstance(event, Event), event
                self._answer(sock, event)

    def _answer(self, sock: socket.socket, event: Event) -> None:
        if isinstance(event, Hello):
            sock.sendall(encode(WELCOME))
            return
        if isinstance(event, CallResult):
            self.results.append(event)
        self.events.append(event)
        if event.id is not None:
            sock.sendall(encode(Ack(id=event.id, result="applied")))
        if isinstance(event, Subscribe) and event.what == "calls":
            sock.sendall(encode(CALL))


@contextlib.contextmanager
def playing(path: str, *scripts: Script) -> Iterator[HostileServer]:
    """A hostile server, and no thread of anybody's left after it."""
    before = threading.active_count()
    server = HostileServer(path, scripts)
    try:
        yield server
    finally:
        server.close()
    until = time.monotonic() + 5
    while threading.active_count() > before:  # workers end when they have done what they are at
        assert time.monotonic() < until
        time.sleep(0.005)
