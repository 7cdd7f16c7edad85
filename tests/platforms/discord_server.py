"""Discord over HTTP: simcord, a simulator of Discord's own behaviour by others, behind a socket.

It knows guilds, channels, permissions, messages and reactions, and has no limits; those stand before it.
"""

from __future__ import annotations

import json
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.platforms.recorder import Answer, Recorded

JSON = {"Content-Type": "application/json", "Via": "1.1 simulated"}
API = "/api/v10"
ADD_REACTIONS = 1 << 6


@dataclass
class Discord:
    """One guild with a channel, a person's message in it, and what the API answers to calls of a bot.

    ``per_s``: marks allowed a second in the channel, counted as a sliding window; None: no limit.
    """

    per_s: int | None = None
    limited: int = 0
    typed: list[str] = field(default_factory=list)
    _starts: deque[float] = field(default_factory=deque)

    def __post_init__(self) -> None:
        backend = pytest.importorskip("simcord.backend", reason="simcord is in the extra sdk")
        self._errors = pytest.importorskip("simcord.backend.errors")
        pytest.importorskip("simcord.http.routes")  # registers the routes
        self._router = pytest.importorskip("simcord.http.router")
        self.backend: Any = backend.Backend()
        self.guild: Any = self.backend.create_guild("G")
        self.channel: Any = self.backend.create_channel(self.guild.id, "general")
        self.person: Any = self.backend.make_user("person")
        self.backend.add_member(self.guild.id, self.person.id)
        self.message: Any = self.backend.create_message(self.channel.id, self.person.id, "please work on this")

    def answer(self, request: Recorded) -> Answer:
        """What Discord says."""
        if self._over_limit(request):
            self.limited += 1
            body = {"message": "You are being rate limited.", "retry_after": 1.0, "global": False}
            headers = {**JSON, "Retry-After": "1", "X-RateLimit-Scope": "user"}
            return 429, headers, json.dumps(body).encode()
        path = request.path.removeprefix(API)
        if path.endswith("/typing"):
            self.typed.append(path.split("/")[2])
        try:
            result = self._router.dispatch(self.backend, request.method, path, json=request.values)
        except self._errors.BackendError as error:
            return error.status, JSON, json.dumps(error.to_json()).encode()
        return (204, {"Via": "1.1 simulated"}, b"") if result is None else (200, JSON, json.dumps(result).encode())

    def forbid_marks(self) -> None:
        """The bot may no longer add reactions in the channel."""
        models = pytest.importorskip("simcord.backend.models")
        member = pytest.importorskip("simcord.enums").OverwriteType.MEMBER
        denied = models.Overwrite(self.backend.bot_user.id, member, deny=ADD_REACTIONS)
        self.backend.set_overwrite(self.channel.id, denied)

    def marks(self) -> list[str]:
        """Emojis on the message."""
        return self.marks_on(self.channel.id, self.message.id)

    def marks_on(self, channel: int, message_id: int) -> list[str]:
        """Emojis on a message."""
        message = self._router.dispatch(self.backend, "GET", f"/channels/{channel}/messages/{message_id}", json=None)
        return [each["emoji"]["name"] for each in message.get("reactions", [])]

    def _over_limit(self, request: Recorded) -> bool:
        if self.per_s is None or "/reactions/" not in request.path:
            return False
        now_s = time.monotonic()
        while self._starts and self._starts[0] <= now_s - 1:
            self._starts.popleft()
        self._starts.append(now_s)  # refused calls count, as they do at Discord's edge
        return len(self._starts) > self.per_s
