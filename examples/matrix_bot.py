"""A bot on matrix-nio whose signs of life go through its own client.

    pip install . matrix-nio
    MATRIX_URL=https://... MATRIX_USER=@bot:... MATRIX_TOKEN=... python examples/matrix_bot.py

Without an account, from a clone of the repository:

    python -m tests.stubs matrix examples/matrix_bot.py
"""

import asyncio
import os

import nio

from actors import Call, Callbacks, PresenceSupervisor

CONFIG = {"ack": {"scope": "all"}, "accounts": {"bot": {"platform": "callback", "like": "matrix"}}}


async def main() -> None:
    client = nio.AsyncClient(
        os.environ["MATRIX_URL"], os.environ["MATRIX_USER"], config=nio.AsyncClientConfig(max_limit_exceeded=0)
    )
    client.restore_login(client.user, "livesign", os.environ["MATRIX_TOKEN"])
    await client.sync()  # what was said before is not for us

    async def add(call: Call) -> object:
        relates = {"rel_type": "m.annotation", "event_id": call.message, "key": call.emoji}
        return await client.room_send(call.conversation, "m.reaction", {"m.relates_to": relates})

    async def remove(call: Call) -> object:
        return await client.room_redact(call.conversation, call.handle or "")

    async def type_(call: Call) -> object:
        return await client.room_typing(call.conversation, call.op == "typing_start", timeout=30_000)

    async with PresenceSupervisor.start(CONFIG, callbacks={"bot": Callbacks(add, remove, type_, type_)}) as presence:

        async def answer(room: nio.MatrixRoom, event: nio.RoomMessageText) -> None:
            if event.sender != client.user:
                async with presence.run(
                    conversation=room.room_id, message=event.event_id, direct=room.member_count == 2
                ):
                    await asyncio.sleep(1)
                    await client.room_send(room.room_id, "m.room.message", {"msgtype": "m.text", "body": "42"})

        client.add_event_callback(answer, nio.RoomMessageText)
        try:
            await client.sync_forever(timeout=30_000)
        finally:
            await presence.astop()  # while the client still works
            await client.close()


asyncio.run(main())
