"""A user's file: every part of the public API as it is meant to be used. Type checkers read it; nobody runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import assert_type

from actors import (
    Call,
    Callbacks,
    CallOutcome,
    ChildSpan,
    Config,
    ConfigError,
    DecodeError,
    ForkedError,
    PresenceSupervisor,
    RunHandle,
    RunOutcome,
    ToolSpan,
    current_run,
    load_config,
    sdk_outcome,
)
from protocol.client.aio import AsyncClient
from protocol.client.blocking import Client
from protocol.events import Ack, Rejected, State, Thinking, Welcome


class Message:
    """What a bot gets."""

    chat: int = 5
    id: int = 7
    text: str = "hello"


async def react(call: Call) -> bool:
    return bool(call.emoji)


def type_(call: Call) -> CallOutcome:
    return CallOutcome("rate_limited", retry_after_ms=1_000, scope="conversation")


def start() -> PresenceSupervisor:
    config: Config = load_config(Path("livesign.toml"))
    try:
        presence = PresenceSupervisor.start(config)
    except ConfigError as error:
        print([problem.key for problem in error.problems])
        raise
    callbacks = {"bot": Callbacks(react, start_typing=type_, outcome_of=sdk_outcome)}
    presence.reload({"accounts": {"bot": {"platform": "callback", "like": "telegram"}}}, callbacks=callbacks)
    assert_type(presence.stats(), dict[str, int])
    return presence


def threads(presence: PresenceSupervisor) -> None:
    with presence.run(account="bot", conversation=-100123, message="817", direct=False, mentioned=True) as run:
        assert_type(run, RunHandle)
        run.thinking()
        with run.tool("web_search") as span:
            assert_type(span, ToolSpan)
        with run.child("helper", max_ms=60_000) as child:
            assert_type(child, ChildSpan)
        run.waiting("user")
        run.text(visible=False)
        run.sending(final=True)
        run.sent(final=True, ok=True)
    outcome = run.outcome(timeout_s=1.0)
    assert_type(outcome, RunOutcome)
    assert_type(outcome.mark, str | None)
    assert_type(current_run(), RunHandle | None)
    try:
        presence.tell({"type": "thinking", "conversation": "c", "message": 7})
        presence.tell(Thinking(conversation="c", message="m"))
    except (DecodeError, ForkedError) as error:
        print(error)
    assert_type(presence.stop(timeout_s=2.0), bool)


def fields(message: Message) -> Mapping[str, object] | None:
    return {"conversation": message.chat, "message": message.id, "direct": True} if message.text else None


def decorated(presence: PresenceSupervisor) -> None:
    @presence.handler(fields)
    def answer(message: Message) -> str:
        return message.text

    @presence.handler(fields)
    async def answer_later(message: Message) -> str:
        return message.text

    assert_type(answer(Message()), str)
    assert_type(asyncio.run(answer_later(Message())), str)


async def loops() -> None:
    async with PresenceSupervisor.start("livesign.toml", hub="thread") as presence:
        async with presence.run(conversation="c", message="m") as run:
            run.progress()
        assert_type(await run.aoutcome(), RunOutcome)


def seen(state: State) -> None:
    print(state.conversation, state.shown)


def blocking_client() -> None:
    with Client("/run/livesign.sock", follow=True) as client:
        assert_type(client.wait_connected(), Welcome)
        assert_type(client.request(Thinking(conversation="c", message="m")), Ack | Rejected)
        client.subscribe(seen, conversation="c")
        client.execute(Callbacks(type_), account="bot").wait_ready()
        with client.run(conversation="c", message="m") as run:
            run.done("said it")
        assert_type(run.outcome(), RunOutcome)
        assert_type(client.flush(), bool)


async def asyncio_client() -> None:
    async with AsyncClient(("localhost", 7077), token="secret") as client:
        assert_type(await client.wait_connected(), Welcome)
        assert_type(await client.request(Thinking(conversation="c", message="m")), Ack | Rejected)
        client.subscribe(seen, account="bot")
        await client.execute(Callbacks(react)).wait_ready()
        async with client.run(conversation="c", message="m") as run:
            run.silent()
        assert_type(await client.flush(), bool)
