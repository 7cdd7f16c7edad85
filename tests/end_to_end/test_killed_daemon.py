"""A daemon that is killed again and again under its clients: no acknowledged event is lost, nothing gets stuck.

The ordinary run kills it a few times. The long one: ``LIVESIGN_KILLS=100 pytest tests/end_to_end/test_killed_daemon.py``.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from protocol.client.aio import AsyncClient
from protocol.client.blocking import Client
from protocol.events import Ack, Done, Event, Received, Reply, Restore, Thinking, Tool, ToolEnd
from tests.end_to_end.processes import ChatService, Process, chat_service, eventually

pytestmark = pytest.mark.real

KILLS = int(os.environ.get("LIVESIGN_KILLS", "4"))
CONFIG = """
[ledger]
path = "ledger"
[server]
unix = "livesign.sock"
[status]
debounce_ms = 10
done_hold_ms = 50
[accounts.bot]
platform = "sandbox"
base_url = "{base_url}"
token = "bot"
"""
QUICK = (0.02, 0.2)


def script(name: str, number: int) -> list[Event]:
    """The events of one run."""
    message = f"{name}-{number}"
    names: dict[str, Any] = {"conversation": f"{name}-{number % 7}"}
    return [
        Received(message=message, direct=False, mentioned=True, **names),
        Thinking(message=message, **names),
        Tool(message=message, name="web_search", call="1", **names),
        ToolEnd(message=message, call="1", **names),
        Done(message=message, **names),
    ]


class Bot:
    """Sends runs for as long as it may, and knows what came of each event."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.stop = threading.Event()
        self.results: dict[str, str] = {}
        self.sent = 0
        self.wrong: list[str] = []
        self.open: list[Event] = [script(f"{name}-open", number)[0] for number in range(5)]
        self.failure: BaseException | None = None
        self.thread = threading.Thread(target=self._run, name=name)

    def heard(self, reply: Reply) -> None:
        if isinstance(reply, Ack):
            self.results[reply.id] = reply.result

    def _run(self) -> None:
        try:
            self.work()
        except BaseException as error:
            self.failure = error

    def work(self) -> None:
        raise NotImplementedError

    def judge(self, message: str | None, kind: str, result: str, allowed: tuple[str, ...]) -> None:
        if result not in allowed:
            self.wrong.append(f"{message}: {kind} was {result}")

    def runs(self) -> Iterator[list[Event]]:
        number = 0
        while not self.stop.is_set():
            yield script(self.name, number)
            number += 1


class BlockingBot(Bot):
    def __init__(self, address: str) -> None:
        super().__init__("blocking")
        self._address = address

    def work(self) -> None:
        with Client(self._address, on_reply=self.heard, backoff_s=QUICK) as client:
            ended = []
            for event in self.open:
                client.send(event)
            for run in self.runs():
                for event in run:
                    client.send(event)
                    self.sent += 1
                    time.sleep(0.002)
                ended.append(run[0])
            assert client.flush(30), client.last_error
            for opening in ended:
                again = client.request(restore(opening), 20)
                self.judge(opening.message, "its end", getattr(again, "result", "rejected"), ("late", "applied"))  # type: ignore[attr-defined]
            for opening in self.open:
                again = client.request(restore(opening), 20)
                self.judge(opening.message, "its opening", getattr(again, "result", "rejected"), ("applied",))  # type: ignore[attr-defined]
                client.send(Done(conversation=opening.conversation, message=opening.message))  # type: ignore[attr-defined]
            assert client.flush(30)


class AsyncBot(Bot):
    def __init__(self, address: str) -> None:
        super().__init__("asyncio")
        self._address = address

    def work(self) -> None:
        asyncio.run(self._work())

    async def _work(self) -> None:
        async with AsyncClient(self._address, on_reply=self.heard, backoff_s=QUICK) as client:
            ended = []
            for event in self.open:
                client.send(event)
            for run in self.runs():
                for event in run:
                    client.send(event)
                    self.sent += 1
                    await asyncio.sleep(0.002)
                ended.append(run[0])
            assert await client.flush(30), client.last_error
            for opening in ended:
                again = await client.request(restore(opening), 20)
                self.judge(opening.message, "its end", getattr(again, "result", "rejected"), ("late", "applied"))  # type: ignore[attr-defined]
            for opening in self.open:
                again = await client.request(restore(opening), 20)
                self.judge(opening.message, "its opening", getattr(again, "result", "rejected"), ("applied",))  # type: ignore[attr-defined]
                client.send(Done(conversation=opening.conversation, message=opening.message))  # type: ignore[attr-defined]
            assert await client.flush(30)


def restore(opening: Any) -> Restore:
    """An event that opens nothing: a run that was forgotten answers it with ``unknown``."""
    return Restore(conversation=opening.conversation, message=opening.message)


@pytest.fixture
def chat() -> Iterator[ChatService]:
    with chat_service() as service:
        yield service


def test_a_daemon_that_is_killed_again_and_again_loses_nothing_that_it_acknowledged(
    tmp_path: Path, chat: ChatService
) -> None:
    config = tmp_path / "livesign.toml"
    config.write_text(CONFIG.format(base_url=chat.base_url))
    address = str(tmp_path / "livesign.sock")
    dice = random.Random(KILLS)
    bots = [BlockingBot(address), AsyncBot(address)]
    process = serve(config)
    for bot in bots:
        bot.thread.start()
    for _ in range(KILLS):
        time.sleep(dice.uniform(0.05, 0.6))
        process.signal(signal.SIGKILL)
        process.close()
        process = serve(config)
    time.sleep(0.3)
    for bot in bots:
        bot.stop.set()
    for bot in bots:
        bot.thread.join(120)
        assert not bot.thread.is_alive()
    try:
        assert [bot.failure for bot in bots] == [None, None]
        assert [line for bot in bots for line in bot.wrong] == []
        for bot in bots:
            results = Counter(bot.results.values())
            assert results["applied"] + results["duplicate"] >= bot.sent
            assert results["unknown"] == 0
        eventually(lambda: chat.left() == (0, 0), "nothing is left on the platform")
        process.signal(signal.SIGTERM)
        assert process.exit_code() == 0
    finally:
        process.close()


def serve(config: Path) -> Process:
    process = Process("-m", "actors", "serve", str(config))
    process.line_with("ready")
    return process
