"""The Bot API, for python-telegram-bot and aiogram."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from tests.stubs.room import TOKEN, Stub, values

ME = {"id": 424242, "is_bot": True, "first_name": "Stub", "username": "stub_bot"}
PERSON = {"id": 5, "is_bot": False, "first_name": "Ada"}
MESSAGE = {
    "message_id": 817, "date": 1_700_000_000, "chat": {"id": 5, "type": "private", "first_name": "Ada"}, "from": PERSON,
    "text": "what is the answer?",
}  # fmt: skip


class Telegram(Stub):
    """One private chat."""

    def env(self) -> dict[str, str]:
        return {"TELEGRAM_URL": self.url, "TELEGRAM_TOKEN": TOKEN}

    def routes(self) -> list[web.RouteDef]:
        return [web.route("*", f"/bot{TOKEN}/{{method}}", self._answer)]

    async def _answer(self, request: web.Request) -> web.Response:
        given = await values(request)
        result: Any = True
        match request.match_info["method"].lower():
            case "getme":
                result = ME
            case "getupdates":
                result = [{"update_id": 1, "message": MESSAGE}] if int(given.get("offset") or 0) <= 1 else []
                if not result:
                    await asyncio.sleep(0.05)
            case "setmessagereaction":
                emojis = [each["emoji"] for each in given.get("reaction") or ()]
                self.put(emojis[0], replace=True) if emojis else self.take()
            case "sendchataction":
                self.typed += 1
            case "sendmessage":
                self.said.append(str(given["text"]))
                result = {**MESSAGE, "message_id": 818, "from": ME, "text": str(given["text"])}
        return web.json_response({"ok": True, "result": result})
