"""A bot on aiogram whose signs of life go through its own client.

    pip install . aiogram
    TELEGRAM_TOKEN=... python examples/aiogram_bot.py

Without a bot account, from a clone of the repository:

    python -m tests.stubs telegram examples/aiogram_bot.py
"""

import asyncio
import os

from aiogram import Bot, Dispatcher
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.types import Message, ReactionTypeEmoji

from actors import Call, Callbacks, PresenceSupervisor

CONFIG = {"ack": {"scope": "all"}, "accounts": {"bot": {"platform": "callback", "like": "telegram"}}}
URL = os.environ.get("TELEGRAM_URL", "https://api.telegram.org")


async def main() -> None:
    bot = Bot(os.environ["TELEGRAM_TOKEN"], AiohttpSession(api=TelegramAPIServer.from_base(URL)))
    dispatcher = Dispatcher()

    async def react(call: Call) -> None:
        reaction = [ReactionTypeEmoji(emoji=call.emoji)] if call.emoji else []
        await bot.set_message_reaction(call.conversation, int(call.message or 0), reaction=reaction)

    async def type_(call: Call) -> None:
        thread = int(call.thread) if call.thread else None
        await bot.send_chat_action(call.conversation, "typing", message_thread_id=thread)

    callbacks = {"bot": Callbacks(react, start_typing=type_)}
    async with PresenceSupervisor.start(CONFIG, callbacks=callbacks) as presence:

        @dispatcher.message()
        @presence.handler(
            lambda message: {
                "conversation": message.chat.id,
                "message": message.message_id,
                "direct": message.chat.type == "private",
            }
        )
        async def answer(message: Message) -> None:
            await asyncio.sleep(1)
            await message.answer("42")

        await dispatcher.start_polling(bot, close_bot_session=False)
    await bot.session.close()


asyncio.run(main())
