"""python-telegram-bot and aiogram against the same stub: they accept its answers, and their calls mean what
ours mean."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from actors.platforms.port import HttpPlatform
from actors.platforms.registry import adapter
from actors.platforms.spec import Credentials, Request
from actors.platforms.telegram import EMOJIS, TelegramAdapter
from actors.presence.terms import OK, Command, Op
from tests.platforms.fakes import outcome_of
from tests.telegram_stub import TOKEN, TelegramStub, refusal

pytestmark = pytest.mark.real

GROUP = "-1001234567890"
CHAT = int(GROUP)

COMMANDS = {
    "set": Command(Op.SET, GROUP, None, "42", "👨\u200d💻"),
    "clear": Command(Op.CLEAR, GROUP, None, "42"),
    "typing": Command(Op.TYPING_START, GROUP, None),
    "typing in a topic": Command(Op.TYPING_START, GROUP, "7", forum=True),
}


@pytest.fixture
def stub() -> Iterator[TelegramStub]:
    with TelegramStub() as running:
        running.topics[CHAT] = {1, 7}
        yield running


def meaning(values: dict[str, Any]) -> dict[str, Any]:
    """A call's values without those that say nothing: no reaction is an empty one, false and none are the
    defaults."""
    kept = {name: value for name, value in values.items() if value not in (None, False)}
    if "message_id" in kept:
        kept.setdefault("reaction", [])
    return kept


def ours(stub: TelegramStub) -> list[tuple[str, dict[str, Any]]]:
    platform = HttpPlatform(adapter("telegram"), Credentials(token=TOKEN, base_url=stub.url))
    for command in COMMANDS.values():
        assert outcome_of(platform, command) == OK
    platform.close()
    return taken(stub)


def taken(stub: TelegramStub) -> list[tuple[str, dict[str, Any]]]:
    calls = [(each.method, meaning(each.values)) for each in stub.calls if each.method != "getMe"]
    stub.calls.clear()
    return calls


async def with_ptb(stub: TelegramStub, work: Callable[[Any], Awaitable[Any]]) -> Any:
    telegram = pytest.importorskip("telegram", reason="python-telegram-bot is in the extra sdk")
    async with telegram.Bot(TOKEN, base_url=f"{stub.url}/bot") as bot:
        return await work(bot)


async def with_aiogram(stub: TelegramStub, work: Callable[[Any], Awaitable[Any]]) -> Any:
    aiogram = pytest.importorskip("aiogram", reason="aiogram is in the extra sdk")
    session_module = pytest.importorskip("aiogram.client.session.aiohttp")
    server_module = pytest.importorskip("aiogram.client.telegram")
    session = session_module.AiohttpSession(api=server_module.TelegramAPIServer.from_base(stub.url))
    bot = aiogram.Bot(TOKEN, session=session)
    try:
        return await work(bot)
    finally:
        await session.close()


async def the_same_by_ptb(bot: Any) -> None:
    assert await bot.set_message_reaction(CHAT, 42, "👨\u200d💻")
    assert await bot.set_message_reaction(CHAT, 42, [])
    assert await bot.send_chat_action(CHAT, "typing")
    assert await bot.send_chat_action(CHAT, "typing", message_thread_id=7)


async def the_same_by_aiogram(bot: Any) -> None:
    types = pytest.importorskip("aiogram.types")
    assert await bot.set_message_reaction(CHAT, 42, [types.ReactionTypeEmoji(emoji="👨\u200d💻")])
    assert await bot.set_message_reaction(CHAT, 42, [])
    assert await bot.send_chat_action(CHAT, "typing")
    assert await bot.send_chat_action(CHAT, "typing", message_thread_id=7)


def test_python_telegram_bot_means_what_we_mean(stub: TelegramStub) -> None:
    asyncio.run(with_ptb(stub, the_same_by_ptb))
    theirs = taken(stub)
    assert theirs == ours(stub)
    assert len(theirs) == len(COMMANDS)


def test_aiogram_means_what_we_mean(stub: TelegramStub) -> None:
    asyncio.run(with_aiogram(stub, the_same_by_aiogram))
    theirs = taken(stub)
    assert theirs == ours(stub)
    assert len(theirs) == len(COMMANDS)


def test_python_telegram_bot_understands_the_stub_s_errors(stub: TelegramStub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTB_TIMEDELTA", "true")
    errors = pytest.importorskip("telegram.error")

    async def work(bot: Any) -> None:
        stub.script.append(refusal(429, "Too Many Requests: retry after 3", retry_after=3))
        with pytest.raises(errors.RetryAfter) as limited:
            await bot.send_chat_action(CHAT, "typing")
        assert limited.value.retry_after.total_seconds() == 3
        stub.upgraded[-5001] = CHAT
        with pytest.raises(errors.ChatMigrated) as moved:
            await bot.send_chat_action(-5001, "typing")
        assert moved.value.new_chat_id == CHAT
        with pytest.raises(errors.BadRequest, match=r"(?i)reaction_invalid"):
            await bot.set_message_reaction(CHAT, 42, "✅")
        stub.token = "1:other"
        with pytest.raises(errors.InvalidToken):
            await bot.send_chat_action(CHAT, "typing")
        stub.token = TOKEN

    asyncio.run(with_ptb(stub, work))


def test_aiogram_understands_the_stub_s_errors(stub: TelegramStub) -> None:
    errors = pytest.importorskip("aiogram.exceptions")

    async def work(bot: Any) -> None:
        stub.script.append(refusal(429, "Too Many Requests: retry after 3", retry_after=3))
        with pytest.raises(errors.TelegramRetryAfter) as limited:
            await bot.send_chat_action(CHAT, "typing")
        assert limited.value.retry_after == 3
        stub.upgraded[-5001] = CHAT
        with pytest.raises(errors.TelegramMigrateToChat):
            await bot.send_chat_action(-5001, "typing")

    asyncio.run(with_aiogram(stub, work))


def test_our_bodies_validate_in_aiogram_s_models() -> None:
    methods = pytest.importorskip("aiogram.methods")
    for command in COMMANDS.values():
        request = TelegramAdapter().request(command, Credentials(token=TOKEN))
        assert isinstance(request, Request)
        name = request.path.rpartition("/")[2]
        model = getattr(methods, name[0].upper() + name[1:])
        model.model_validate_json(request.body)


def test_both_libraries_list_the_emojis_that_we_list() -> None:
    constants = pytest.importorskip("telegram.constants")
    assert {emoji.value.replace("\ufe0f", "") for emoji in constants.ReactionEmoji} == EMOJIS
