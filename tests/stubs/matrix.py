"""A Matrix homeserver, for matrix-nio."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

from aiohttp import web

from tests.stubs.room import Stub

ROOM, ME, PERSON = "!room:localhost", "@stub:localhost", "@ada:localhost"
MESSAGE = {
    "type": "m.room.message", "event_id": "$817", "sender": PERSON, "origin_server_ts": 1_700_000_000_000,
    "content": {"msgtype": "m.text", "body": "what is the answer?"},
}  # fmt: skip


class Matrix(Stub):
    """One room."""

    def __init__(self) -> None:
        self._events: dict[str, str] = {}
        """The marks by their event ids."""
        self._numbers = count(900)
        super().__init__()

    def env(self) -> dict[str, str]:
        return {"MATRIX_URL": self.url, "MATRIX_USER": ME, "MATRIX_TOKEN": "stub"}

    def routes(self) -> list[web.RouteDef]:
        room = "/_matrix/client/v3/rooms/{room}"
        return [
            web.get("/_matrix/client/v3/sync", self._sync),
            web.put(f"{room}/send/{{kind}}/{{txn}}", self._send),
            web.put(f"{room}/redact/{{event}}/{{txn}}", self._redact),
            web.put(f"{room}/typing/{{user}}", self._type),
        ]

    async def _sync(self, request: web.Request) -> web.Response:
        since = request.query.get("since")
        timeline: list[dict[str, Any]] = []
        if since == "s0":
            timeline = [MESSAGE]
        elif since is not None:
            await asyncio.sleep(0.05)
        joined = {
            "timeline": {"events": timeline, "limited": False, "prev_batch": "p"}, "state": {"events": []},
            "account_data": {"events": []}, "ephemeral": {"events": []}, "unread_notifications": {},
            "summary": {"m.joined_member_count": 2},
        }  # fmt: skip
        return web.json_response({
            "next_batch": "s0" if since is None else "s1",
            "rooms": {"join": {ROOM: joined}, "invite": {}, "leave": {}},
            "presence": {"events": []}, "to_device": {"events": []}, "device_lists": {"changed": [], "left": []},
            "device_one_time_keys_count": {},
        })  # fmt: skip

    async def _send(self, request: web.Request) -> web.Response:
        content = await request.json()
        event_id = f"${next(self._numbers)}"
        if request.match_info["kind"] == "m.reaction":
            key = content["m.relates_to"]["key"]
            self._events[event_id] = key
            self.put(key)
        else:
            self.said.append(content["body"])
        return web.json_response({"event_id": event_id})

    async def _redact(self, request: web.Request) -> web.Response:
        self.take(self._events.pop(request.match_info["event"]))
        return web.json_response({"event_id": f"${next(self._numbers)}"})

    async def _type(self, request: web.Request) -> web.Response:
        self.typed += (await request.json())["typing"]
        return web.json_response({})
