"""An HTTP server on loopback that writes down what it is asked, for livesign and official clients alike.

Runs in threads of its own, so asyncio, gevent and plain clients can share it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

Answer: TypeAlias = tuple[int, dict[str, str], bytes]


@dataclass(frozen=True)
class Recorded:
    """One request as it came in; header names in lower case."""

    method: str
    path: str
    headers: dict[str, str] = field(repr=False)
    body: bytes

    @property
    def values(self) -> Any:
        """What the body says, whatever its encoding; None: there is none."""
        if not self.body:
            return None
        if self.headers.get("content-type", "").startswith("application/json"):
            return json.loads(self.body)
        return dict(parse_qsl(self.body.decode(), keep_blank_values=True))


class Recorder:
    """``answer`` says what to answer, in the server's threads, one request at a time."""

    def __init__(self, answer: Callable[[Recorded], Answer]) -> None:
        self._answer = answer
        self._lock = threading.Lock()
        self.seen: list[Recorded] = []

    @property
    def url(self) -> str:
        """Base URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def take(self) -> list[Recorded]:
        """What has been asked since the last time."""
        seen, self.seen = self.seen, []
        return seen

    def answer(self, request: Recorded) -> Answer:
        """Write the request down and answer it."""
        with self._lock:
            self.seen.append(request)
            return self._answer(request)

    def __enter__(self) -> Recorder:
        handler = type("Handler", (_Handler,), {"recorder": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), name="recorder")
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    recorder: Recorder
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 5

    def handle(self) -> None:
        with suppress(ConnectionError):  # a client that was killed
            super().handle()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        status, more, data = self.recorder.answer(Recorded(self.command, self.path, headers, body))
        self.send_response(status)
        for name, value in more.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_PUT = do_DELETE = do_POST  # noqa: N815 - the base class's naming

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Silent."""
