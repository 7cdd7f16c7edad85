"""A bot on python-telegram-bot whose signs of life go through its own client.

    pip install . python-telegram-bot
    TELEGRAM_TOKEN=... python examples/python_telegram_bot.py

Without a bot account, from a clone of the repository:

    python -m tests.stubs telegram examples/python_telegram_bot.py
"""

import asyncio
import os
from typing import Any

from telegram import Update
from telegram.ext import Application, MessageHandler, filters

from actors import Call, Callbacks, PresenceSupervisor

CONFIG = {"ack": {"scope": "all"}, "accounts": {"bot": {"platform": "callback", "like": "telegram"}}}


async def react(call: Call) -> None:
    # With no emoji the mark is taken off.
    await app.bot.set_message_reaction(int(call.conversation), int(call.message or 0), call.emoji)


async def type_(call: Call) -> None:
    thread = int(call.thread) if call.thread else None
    await app.bot.send_chat_action(int(call.conversation), "typing", message_thread_id=thread)


async def answer(update: Update, context: Any) -> None:
    message = update.effective_message
    assert message is not None
    direct = message.chat.type == "private"
    async with presence.run(conversation=message.chat_id, message=message.message_id, direct=direct) as run:
        run.thinking()
        await asyncio.sleep(1)  # the model
        with run.tool("web_search"):
            await asyncio.sleep(1)
        await message.reply_text("42")


async def stop(app: Any) -> None:
    await presence.astop()  # while the client still works: the marks are taken off by it


url = os.environ.get("TELEGRAM_URL", "https://api.telegram.org")
app = Application.builder().token(os.environ["TELEGRAM_TOKEN"]).base_url(f"{url}/bot").post_stop(stop).build()
app.add_handler(MessageHandler(filters.TEXT, answer))
presence = PresenceSupervisor.start(CONFIG, callbacks={"bot": Callbacks(react, start_typing=type_)})
app.run_polling()
