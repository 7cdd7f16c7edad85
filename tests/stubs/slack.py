"""Slack's Web API and Socket Mode, for slack_sdk."""

from __future__ import annotations

from typing import Any

from aiohttp import WSMsgType, web

from tests.stubs.room import Stub, values

EVENT = {
    "type": "message", "channel": "D7", "channel_type": "im", "user": "U5", "text": "what is the answer?",
    "ts": "1700000000.000817",
}  # fmt: skip


class Slack(Stub):
    """One direct-message conversation."""

    def env(self) -> dict[str, str]:
        return {"SLACK_URL": f"{self.url}/api/", "SLACK_BOT_TOKEN": "xoxb-stub", "SLACK_APP_TOKEN": "xapp-stub"}

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/api/{method}", self._answer), web.get("/link", self._link)]

    async def _answer(self, request: web.Request) -> web.Response:
        given = await values(request)
        answer: dict[str, Any] = {"ok": True}
        match request.match_info["method"]:
            case "apps.connections.open":
                answer["url"] = f"ws://127.0.0.1:{self.port}/link"
            case "reactions.add":
                self.put(str(given["name"]))
            case "reactions.remove":
                self.take(str(given["name"]))
            case "assistant.threads.setStatus":
                self.typed += bool(given.get("status"))
            case "chat.postMessage":
                self.said.append(str(given["text"]))
                answer |= {"channel": given["channel"], "ts": "1700000001.000818"}
        return web.json_response(answer)

    async def _link(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"type": "hello", "num_connections": 1})
        payload = {"type": "event_callback", "event": EVENT}
        await socket.send_json({"type": "events_api", "envelope_id": "e1", "payload": payload})
        async for frame in socket:
            if frame.type is not WSMsgType.TEXT:
                break
        return socket
