"""Discord's REST API and gateway, for discord.py."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import WSMsgType, web

from tests.stubs.room import TOKEN, Stub

ME = {"id": "42", "username": "stub", "discriminator": "0", "avatar": None, "bot": True, "global_name": None}
PERSON = {"id": "5", "username": "ada", "discriminator": "0", "avatar": None, "global_name": "Ada"}
CHANNEL = {"id": "7", "type": 1, "recipients": [PERSON], "last_message_id": None}


def message(id_: str, author: dict[str, Any], content: str) -> dict[str, Any]:
    return {
        "id": id_, "channel_id": "7", "author": author, "content": content, "timestamp": "2026-01-01T00:00:00+00:00",
        "edited_timestamp": None, "tts": False, "mention_everyone": False, "mentions": [], "mention_roles": [],
        "attachments": [], "embeds": [], "pinned": False, "type": 0, "components": [], "flags": 0,
    }  # fmt: skip


def plain_json(value: Any) -> web.Response:
    """discord.py wants the bare content type."""
    return web.Response(body=json.dumps(value).encode(), content_type="application/json")


class Discord(Stub):
    """One direct-message channel."""

    def env(self) -> dict[str, str]:
        return {"DISCORD_TOKEN": TOKEN}

    def patch(self) -> None:
        import discord
        import yarl

        discord.http.Route.BASE = f"{self.url}/api/v10"
        discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(f"ws://127.0.0.1:{self.port}/gateway")

    def routes(self) -> list[web.RouteDef]:
        marks = "/api/v10/channels/{channel}/messages/{message}/reactions/{emoji}/@me"
        return [
            web.get("/gateway", self._gateway),
            web.get("/gateway/", self._gateway),
            web.get("/api/v10/users/@me", self._me),
            web.get("/api/v10/oauth2/applications/@me", self._application),
            web.put(marks, self._mark),
            web.delete(marks, self._unmark),
            web.post("/api/v10/channels/{channel}/typing", self._type),
            web.post("/api/v10/channels/{channel}/messages", self._post),
        ]

    async def _me(self, request: web.Request) -> web.Response:
        return plain_json(ME)

    async def _application(self, request: web.Request) -> web.Response:
        return plain_json({"id": "42", "name": "stub", "description": "", "flags": 0, "verify_key": "",
                                  "bot_public": False, "bot_require_code_grant": False, "icon": None, "team": None,
                                  "owner": ME})  # fmt: skip

    async def _mark(self, request: web.Request) -> web.Response:
        self.put(request.match_info["emoji"])
        return web.Response(status=204, content_type="text/plain")

    async def _unmark(self, request: web.Request) -> web.Response:
        self.take(request.match_info["emoji"])
        return web.Response(status=204, content_type="text/plain")

    async def _type(self, request: web.Request) -> web.Response:
        self.typed += 1
        return web.Response(status=204, content_type="text/plain")

    async def _post(self, request: web.Request) -> web.Response:
        content = (await request.json())["content"]
        self.said.append(content)
        return plain_json(message("818", ME, content))

    async def _gateway(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"op": 10, "d": {"heartbeat_interval": 41_250}, "s": None, "t": None})
        async for frame in socket:
            if frame.type is not WSMsgType.TEXT:
                break
            op = frame.json()["op"]
            if op == 1:
                await socket.send_json({"op": 11, "d": None, "s": None, "t": None})
            elif op == 2:
                ready = {
                    "v": 10, "user": ME, "guilds": [], "session_id": "s", "resume_gateway_url": f"ws://127.0.0.1:{self.port}/gateway",
                    "application": {"id": "42", "flags": 0}, "private_channels": [CHANNEL], "session_type": "normal",
                }  # fmt: skip
                await socket.send_json({"op": 0, "d": ready, "s": 1, "t": "READY"})
                asked = {**message("817", PERSON, "what is the answer?"), "channel_type": 1}
                await socket.send_json({"op": 0, "d": asked, "s": 2, "t": "MESSAGE_CREATE"})
        return socket
