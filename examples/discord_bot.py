"""A bot on discord.py whose signs of life go through its own client.

    pip install . discord.py
    DISCORD_TOKEN=... python examples/discord_bot.py

Without a bot account, from a clone of the repository:

    python -m tests.stubs discord examples/discord_bot.py
"""

import asyncio
import os
from typing import Any

import discord

from actors import Call, Callbacks, PresenceSupervisor

CONFIG = {"ack": {"scope": "all"}, "accounts": {"bot": {"platform": "callback", "like": "discord"}}}


class Bot(discord.Client):
    def __init__(self) -> None:
        super().__init__(intents=discord.Intents.default())
        callbacks = Callbacks(self.add, self.remove, self.type_)
        self.presence = PresenceSupervisor.start(CONFIG, callbacks={"bot": callbacks})

    async def close(self) -> None:
        await self.presence.astop()  # while the client still works
        await super().close()

    async def add(self, call: Call) -> None:
        await self.marked(call).add_reaction(call.emoji or "")

    async def remove(self, call: Call) -> None:
        await self.marked(call).remove_reaction(call.emoji or "", self.user or discord.Object(0))

    async def type_(self, call: Call) -> None:
        await self.get_partial_messageable(int(call.thread or call.conversation)).typing()

    def marked(self, call: Call) -> Any:
        return self.get_partial_messageable(int(call.conversation)).get_partial_message(int(call.message or 0))

    async def on_message(self, message: discord.Message) -> None:
        if message.author == self.user:
            return
        mentioned = self.user in message.mentions
        async with self.presence.run(
            conversation=message.channel.id, message=message.id, direct=message.guild is None, mentioned=mentioned
        ) as run:
            run.thinking()
            await asyncio.sleep(1)
            with run.tool("edit_file"):
                await asyncio.sleep(1)
            await message.channel.send("42")


Bot().run(os.environ["DISCORD_TOKEN"], log_handler=None)
