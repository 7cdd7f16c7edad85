"""Real processes for the tests: a livesign server, a chat service, and a client in five lines."""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from urllib.request import Request, urlopen

import msgpack

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 20.0


class Process:
    """A command whose stderr and stdout are read line by line."""

    def __init__(self, *args: str, env: dict[str, str] | None = None, cwd: Path = ROOT) -> None:
        self.lines: list[str] = []
        self._new: queue.Queue[str] = queue.Queue()
        self._child = subprocess.Popen(
            [sys.executable, *args],
            cwd=cwd,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            self.lines.append(line)
            self._new.put(line)

    @property
    def text(self) -> str:
        """Everything said so far."""
        return "".join(self.lines)

    def line_with(self, words: str) -> str:
        """Wait for a line that holds ``words``."""
        until = time.monotonic() + WAIT_S
        while True:
            try:
                line = self._new.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"nothing said {words!r}:\n{self.text}") from None
            if words in line:
                return line

    def signal(self, number: signal.Signals) -> None:
        self._child.send_signal(number)

    def exit_code(self) -> int:
        """Wait for the end."""
        code = self._child.wait(WAIT_S)
        self._reader.join(WAIT_S)
        return code

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def runs(self) -> bool:
        return self._child.poll() is None

    def close(self) -> None:
        if self.runs:
            self._child.kill()
        self.exit_code()
        assert self._child.stdout is not None
        self._child.stdout.close()


class ChatService:
    """The sandbox in a process of its own, seen through its HTTP interface."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url

    def get(self, path: str) -> Any:
        with urlopen(f"{self.base_url}{path}", timeout=WAIT_S) as answer:
            return json.load(answer)

    def rules(self, *rules: dict[str, Any]) -> None:
        """Misbehave from now on."""
        body = json.dumps({"rules": rules}).encode()
        urlopen(Request(f"{self.base_url}/v1/rules", body, method="PUT"), timeout=WAIT_S).close()

    def left(self) -> tuple[int, int]:
        """Marks and indicators that show."""
        state = self.get("/v1/state")
        return state["marks"], state["typing"]

    def marks(self) -> list[str]:
        """Every emoji that shows."""
        chats = self.get("/v1/state")["chats"]
        return [mark["emoji"] for chat in chats for message in chat["messages"] for mark in message["marks"]]


class RawClient:
    """A client as the documentation shows it: a socket and msgpack."""

    def __init__(self, path: Path) -> None:
        self._sock = socket.socket(socket.AF_UNIX)
        self._sock.settimeout(WAIT_S)
        self._sock.connect(str(path))
        self._unpacker = msgpack.Unpacker()

    def send(self, **event: Any) -> Any:
        """Send an event; with an ``id`` also wait for the reply."""
        self._sock.sendall(msgpack.packb(event))
        return self.receive() if "id" in event else None

    def receive(self) -> Any:
        """The next reply; None: the end of the stream."""
        while True:
            for reply in self._unpacker:
                return reply
            data = self._sock.recv(4_096)
            if not data:
                return None
            self._unpacker.feed(data)

    def close(self) -> None:
        self._sock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def eventually(condition: Callable[[], bool], what: str) -> None:
    """Wait until ``condition()`` holds."""
    until = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < until, f"never: {what}"
        time.sleep(0.01)


@contextmanager
def chat_service() -> Iterator[ChatService]:
    """A running chat service."""
    process = Process("-m", "actors.sandbox", "--port", "0")
    try:
        yield ChatService(process.line_with("http://").split()[-1].rstrip("/"))
    finally:
        process.close()


@contextmanager
def server(*args: str, env: dict[str, str] | None = None) -> Iterator[Process]:
    """A running ``livesign serve``, after its ready line."""
    process = Process("-m", "actors", "serve", *args, env=env)
    try:
        process.line_with("ready")
        yield process
    finally:
        process.close()
