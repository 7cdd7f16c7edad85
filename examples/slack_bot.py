"""A bot on slack_sdk (Socket Mode) whose signs of life go through its own client.

    pip install . slack_sdk aiohttp
    SLACK_BOT_TOKEN=xoxb-... SLACK_APP_TOKEN=xapp-... python examples/slack_bot.py

Without a workspace, from a clone of the repository:

    python -m tests.stubs slack examples/slack_bot.py
"""

import asyncio
import os
from typing import Any

from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

from actors import Call, Callbacks, PresenceSupervisor

CONFIG = {"ack": {"scope": "all"}, "accounts": {"bot": {"platform": "callback", "like": "slack"}}}
web = AsyncWebClient(os.environ["SLACK_BOT_TOKEN"], base_url=os.environ.get("SLACK_URL", AsyncWebClient.BASE_URL))


async def add(call: Call) -> None:
    await web.reactions_add(channel=call.conversation, timestamp=call.message or "", name=call.emoji or "")


async def remove(call: Call) -> None:
    await web.reactions_remove(channel=call.conversation, timestamp=call.message, name=call.emoji or "")


async def status(call: Call) -> None:
    text = "is thinking..." if call.op == "typing_start" else ""
    await web.assistant_threads_setStatus(channel_id=call.conversation, thread_ts=call.thread or "", status=text)


async def main() -> None:
    async with PresenceSupervisor.start(CONFIG, callbacks={"bot": Callbacks(add, remove, status, status)}) as presence:

        async def listen(client: Any, request: Any) -> None:
            await client.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id))
            event = request.payload["event"]
            thread, direct = event.get("thread_ts", event["ts"]), event["channel_type"] == "im"
            async with presence.run(conversation=event["channel"], message=event["ts"], thread=thread, direct=direct):
                await asyncio.sleep(1)
                await web.chat_postMessage(channel=event["channel"], thread_ts=thread, text="42")

        listener = SocketModeClient(os.environ["SLACK_APP_TOKEN"], web_client=web)
        listener.socket_mode_request_listeners.append(listen)
        await listener.connect()
        try:
            await asyncio.Event().wait()
        finally:
            await listener.close()


asyncio.run(main())
