"""What a person in the room sees, and the server that the platforms' stubs have in common."""

from __future__ import annotations

import asyncio
import json
import threading
from abc import ABC, abstractmethod
from typing import Any

from aiohttp import web

TOKEN = "424242:AAE-stub-token_0123456789abcdefghijkl"


class Stub(ABC):
    """A chat service with one room. Its server runs in a thread of its own."""

    def __init__(self) -> None:
        self.marks: list[str] = []
        """On the person's message, now."""
        self.seen: list[str] = []
        """Every mark that was put on it."""
        self.typed = 0
        self.said: list[str] = []
        """What the bot has posted."""
        self.token_seen = True
        self.loop = asyncio.new_event_loop()
        self.port = 0
        started = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(started,), name="stub", daemon=True)
        self._thread.start()
        started.wait()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def over(self) -> bool:
        """The bot has answered, and has taken its marks off."""
        return bool(self.said) and not self.marks

    @abstractmethod
    def routes(self) -> list[web.RouteDef]:
        """What it answers."""

    @abstractmethod
    def env(self) -> dict[str, str]:
        """The environment that an example reads."""

    def patch(self) -> None:  # noqa: B027 - most clients have an option for it
        """Have the client of this process use the stub, where it has no option for that."""

    # --- what happens in the room --------------------------------------------------------------------------------

    def put(self, emoji: str, *, replace: bool = False) -> None:
        """A mark of the bot's."""
        if replace:
            self.marks.clear()
        self.marks.append(emoji)
        self.seen.append(emoji)

    def take(self, emoji: str | None = None) -> None:
        """A mark is taken off, or all."""
        self.marks = [] if emoji is None else [mark for mark in self.marks if mark != emoji]

    # --- the server ----------------------------------------------------------------------------------------------

    def _serve(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(self._start())
        started.set()
        self.loop.run_forever()

    async def _start(self) -> None:
        app = web.Application()
        app.add_routes(self.routes())
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.port = runner.addresses[0][1]


async def values(request: web.Request) -> dict[str, Any]:
    """What is given, whatever its form; numbers and lists inside forms are JSON."""
    if request.content_type == "application/json":
        loaded: dict[str, Any] = await request.json()
        return loaded
    form = await request.post()
    return {name: _decoded(str(value)) for name, value in (*request.query.items(), *form.items())}


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
