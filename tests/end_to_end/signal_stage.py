"""A server that is sent signals, on a chat service that all tests use, and what people see of it there."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from tests.end_to_end.processes import ChatService, Process, RawClient, eventually

BUDGET_MS = 400
CONFIG = """
[ledger]
path = "ledger"
[server]
unix = "livesign.sock"
[shutdown]
budget_ms = {budget_ms}
[status]
debounce_ms = 10
[lease]
adopt_ms = {adopt_ms}
[calls]
deadline_ms = 5000
[accounts.bot]
platform = "sandbox"
base_url = "{base_url}"
token = "{token}"
"""
Mark = tuple[str, str, str]
"""Conversation, message, emoji."""


class Stage:
    """Its account and its chats are named after the test."""

    def __init__(self, folder: Path, chat: ChatService) -> None:
        self.chat = chat
        chat.rules()
        self.name = folder.name
        self.config = folder / "livesign.toml"
        self.socket = folder / "livesign.sock"
        self.ledger = folder / "ledger" / "ledger.db"
        self.write()

    def write(self, more: str = "", budget_ms: int = BUDGET_MS, adopt_ms: int = 50) -> None:
        values = {"base_url": self.chat.base_url, "token": self.name, "budget_ms": budget_ms, "adopt_ms": adopt_ms}
        self.config.write_text(CONFIG.format(**values) + more)

    @contextmanager
    def serve(self, script: str | None = None) -> Iterator[Process]:
        """A server that has been started; ``script`` runs before it in its process."""
        program = ("-m", "actors") if script is None else ("-c", f"{script}\nfrom actors.__main__ import main; main()")
        process = Process(*program, "serve", str(self.config))
        try:
            yield process
        finally:
            process.close()

    @contextmanager
    def ready(self, script: str | None = None) -> Iterator[tuple[Process, RawClient]]:
        """A server that is ready, and a client of it."""
        with self.serve(script) as process:
            process.line_with("ready")
            with RawClient(self.socket) as client:
                yield process, client

    def run(self, number: int, suffix: str = "") -> dict[str, Any]:
        return {"conversation": f"{self.name}-{number % 7}", "message": f"{self.name}-{number}{suffix}"}

    def open(self, client: RawClient, count: int) -> None:
        """So many runs of this client think, and it shows."""
        for number in range(count):
            client.send(type="thinking", **self.run(number))
        eventually(lambda: len(self.shown()) >= count, f"{count} runs show")

    def shown(self) -> set[Mark]:
        """What people see."""
        return {
            (chat["id"], message["id"], mark["emoji"])
            for chat in self.chat.get("/v1/state")["chats"]
            for message in chat["messages"]
            for mark in message["marks"]
            if mark["account"] == self.name
        }

    def remembered(self) -> set[Mark]:
        """What the ledger on disk says may be there."""
        with closing(sqlite3.connect(self.ledger)) as connection:
            rows = connection.execute("SELECT conversation, message, row FROM marks").fetchall()
        return {(chat, message, emoji) for chat, message, row in rows for emoji in msgspec.msgpack.decode(row)}


class Load(threading.Thread):
    """A client that opens and ends runs for as long as the server listens."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(name="load")
        self._stage = stage
        self.sent = 0

    def run(self) -> None:
        try:
            with RawClient(self._stage.socket) as client:
                while True:
                    run = self._stage.run(self.sent, "-load")
                    client.send(type="thinking", **run)
                    client.send(type=("tool", "done", "error")[self.sent % 3], **run)
                    self.sent += 1
                    time.sleep(0.001)
        except OSError:
            pass
