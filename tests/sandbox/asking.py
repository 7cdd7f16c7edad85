"""A service with a clock in the test's hand, and plain HTTP to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
from geventhttpclient import HTTPClient

from actors.sandbox import SandboxClient, SandboxOptions, SandboxService


class Said(NamedTuple):
    status: int
    headers: dict[str, str]
    body: Any


class Asker:
    """What a platform adapter does, by hand."""

    def __init__(self, service: SandboxService, clock: list[int]) -> None:
        self.service = service
        self.client = SandboxClient(service.base_url)
        self._clock = clock
        self._http = HTTPClient.from_url(service.base_url, concurrency=8, network_timeout=10)

    def advance(self, ms: int) -> None:
        self._clock[0] += ms

    def ask(self, method: str, path: str, token: str | None = "support", body: Any = None) -> Said:
        headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
        data = body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)
        response = self._http.request(method, path, data, headers)
        text = bytes(response.read())
        told = {str(name).lower(): str(value) for name, value in response.items()}
        parsed = msgspec.json.decode(text) if "json" in told.get("content-type", "") else text
        return Said(response.status_code, told, parsed)

    def mark(self, method: str, chat: str, message: str, emoji: str, token: str | None = "support") -> Said:
        return self.ask(method, mark_path(chat, message, emoji), token)

    def close(self) -> None:
        self.client.close()
        self._http.close()


def mark_path(chat: str, message: str, emoji: str) -> str:
    return f"/v1/chats/{quote(chat, safe='')}/messages/{quote(message, safe='')}/marks/{quote(emoji, safe='')}"


@contextmanager
def running(options: SandboxOptions | None = None) -> Iterator[Asker]:
    """A service whose time stands still until the test moves it."""
    clock = [0]
    with SandboxService(options=options, now_ms=lambda: clock[0]) as service:
        asker = Asker(service, clock)
        try:
            yield asker
        finally:
            asker.close()
