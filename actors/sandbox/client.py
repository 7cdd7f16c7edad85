"""A small client of the sandbox for tests and the demo: what a chat user does and sees. Works on gevent."""

from __future__ import annotations

from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from geventhttpclient import HTTPClient

from actors.sandbox.faults import FaultPlan
from actors.sandbox.views import Calls, State

T = TypeVar("T")


class SandboxError(Exception):
    """The service refused; ``status`` is HTTP's and ``code`` its own."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(f"{status} {code}: {detail}")
        self.status = status
        self.code = code


class SandboxClient:
    """One client, for one thread. Methods raise `SandboxError`, or OSError when nobody answers."""

    def __init__(self, base_url: str, timeout_ms: int = 10_000) -> None:
        self._http = HTTPClient.from_url(
            base_url,
            concurrency=4,
            connection_timeout=timeout_ms / 1000,
            network_timeout=timeout_ms / 1000,
        )

    def post(
        self,
        chat: str,
        text: str,
        sender: str = "user",
        *,
        thread: str | None = None,
        direct: bool | None = None,
    ) -> str:
        """Write a message as a user; its id. ``direct`` says what the chat is."""
        body = {"from": sender, "text": text, "thread": thread, "direct": direct}
        return str(self._request("POST", _messages(chat), dict[str, str], body)["id"])

    def reply(self, chat: str, text: str, token: str, *, thread: str | None = None) -> str:
        """Write a message as the account of ``token``; its id."""
        body = {"text": text, "thread": thread}
        return str(self._request("POST", _messages(chat), dict[str, str], body, token)["id"])

    def delete(self, chat: str, message: str) -> None:
        """Take a message away."""
        self._request("DELETE", f"{_messages(chat)}/{quote(message, safe='')}", dict[str, Any])

    def state(self, *, chat: str | None = None, recent: int | None = None) -> State:
        """Everything, or one chat, or the ``recent`` latest ones; the totals are always of everything."""
        return self._request("GET", _with_query("/v1/state", chat=chat, recent=recent), State)

    def marks(self, chat: str, message: str) -> list[str]:
        """The emoji on one message, oldest first."""
        messages = [m for c in self.state(chat=chat).chats for m in c.messages if m.id == message]
        return [mark.emoji for m in messages for mark in m.marks]

    def typing(self, chat: str) -> list[str]:
        """The accounts that type in a chat."""
        return [typing.account for c in self.state(chat=chat).chats for typing in c.typing]

    def calls(self, last: int | None = None) -> Calls:
        """The service's own count of the calls made to it."""
        return self._request("GET", _with_query("/v1/calls", last=last), Calls)

    def rules(self, plan: FaultPlan) -> None:
        """Put a fault plan in force, in place of the one before."""
        self._request("PUT", "/v1/rules", dict[str, Any], plan)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _request(self, method: str, path: str, type_: type[T], body: Any = None, token: str | None = None) -> T:
        headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
        data = b"" if body is None else msgspec.json.encode(body)
        response = self._http.request(method, path, data, headers)
        answer = bytes(response.read())
        if response.status_code != 200:
            refused = msgspec.json.decode(answer, type=dict[str, Any])
            raise SandboxError(response.status_code, str(refused.get("code")), str(refused.get("detail")))
        return msgspec.json.decode(answer, type=type_)


def _messages(chat: str) -> str:
    return f"/v1/chats/{quote(chat, safe='')}/messages"


def _with_query(path: str, **values: Any) -> str:
    query = urlencode({name: value for name, value in values.items() if value is not None})
    return f"{path}?{query}" if query else path
