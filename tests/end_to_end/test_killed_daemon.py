"""A daemon that is killed again and again under its clients, on a platform that is slow, refuses and loses answers.

After all of it nothing is stuck, what was alive was not touched, and every acknowledged event has had its effect. It dies in
the middle of calls and commits, while it starts and takes over, and while it stops. The ordinary run kills it ten times and
twice on a homeserver; the long one: ``LIVESIGN_KILLS=200 pytest -s tests/end_to_end/test_killed_daemon.py``.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from protocol.client.aio import AsyncClient
from protocol.client.blocking import Client
from protocol.events import Ack, Done, Event, Received, Reply, Thinking, Tool, ToolEnd
from tests.end_to_end.processes import ChatService, Process, RawClient, chat_service, eventually
from tests.end_to_end.room import Room
from tests.end_to_end.synapse import running

pytestmark = pytest.mark.real

KILLS = int(os.environ.get("LIVESIGN_KILLS", "10"))
ON_MATRIX = max(2, KILLS // 10)
CONFIG = """
[ledger]
path = "ledger"
[server]
unix = "livesign.sock"
[status]
debounce_ms = 10
done_hold_ms = 50
[lease]
ms = 5000
adopt_ms = 5000
[calls]
deadline_ms = 1000
typing_deadline_ms = 500
[accounts.bot]
platform = "sandbox"
base_url = "{base_url}"
token = "bot"
"""
QUICK = (0.02, 0.2)
RULES: tuple[dict[str, Any], ...] = (
    {"nth": list(range(5, 10_000, 97)), "outcome": "hang", "applied": True},
    {"nth": list(range(9, 10_000, 101)), "outcome": "rate_limited", "retry_after_ms": 40, "scope": "conversation"},
    {"nth": list(range(13, 10_000, 31)), "outcome": "transient"},
    {"latency_ms": 15},
)
"""What the platform does to its calls."""


def script(name: str, number: int) -> list[Event]:
    """The events of one run."""
    message = f"{name}-{number}"
    names: dict[str, Any] = {"conversation": f"{name}-{number % 61}"}
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
                    time.sleep(0.005)
                ended.append(run[0])
            assert client.flush(30), client.last_error
            for opening in ended:
                again = client.request(probe(opening), 20)
                self.judge(opening.message, "its end", getattr(again, "result", "rejected"), ("late",))  # type: ignore[attr-defined]
            for opening in self.open:
                again = client.request(probe(opening), 20)
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
                    await asyncio.sleep(0.005)
                ended.append(run[0])
            assert await client.flush(30), client.last_error
            for opening in ended:
                again = await client.request(probe(opening), 20)
                self.judge(opening.message, "its end", getattr(again, "result", "rejected"), ("late",))  # type: ignore[attr-defined]
            for opening in self.open:
                again = await client.request(probe(opening), 20)
                self.judge(opening.message, "its opening", getattr(again, "result", "rejected"), ("applied",))  # type: ignore[attr-defined]
                client.send(Done(conversation=opening.conversation, message=opening.message))  # type: ignore[attr-defined]
            assert await client.flush(30)


def probe(opening: Any) -> ToolEnd:
    """An event that opens nothing: a run that was forgotten answers it with ``unknown``, an ended one with ``late``."""
    return ToolEnd(conversation=opening.conversation, message=opening.message, call="probe")


@pytest.fixture
def chat() -> Iterator[ChatService]:
    with chat_service() as service:
        yield service


class Watcher(threading.Thread):
    """Sees every call that the platform gets, and keeps those that would take marks of long runs away."""

    def __init__(self, chat: ChatService) -> None:
        super().__init__(name="watcher")
        self._chat = chat
        self.stop = threading.Event()
        self.touched: list[str] = []
        self.missed = 0
        self.total = 0

    def run(self) -> None:
        while not self.stop.wait(0.1):
            self.look()

    def look(self) -> None:
        seen = self._chat.get("/v1/calls?last=1000")
        new, self.total = seen["total"] - self.total, seen["total"]
        self.missed += max(0, new - len(seen["last"]))
        for call in seen["last"][-new:] if new else ():
            if "-open-" in (call["message"] or "") and call["op"] != "set":
                self.touched.append(f"{call['op']} on {call['message']}")


def die(process: Process, config: Path, dice: random.Random) -> str:
    """The end of this process, most often at once; how it was killed."""
    how = dice.choice(("at work", "at work", "at work", "while it starts", "while it stops"))
    if how == "while it stops":
        process.signal(signal.SIGTERM)
        time.sleep(dice.uniform(0.0, 0.05))
    process.signal(signal.SIGKILL)
    process.close()
    if how == "while it starts":
        heir = Process(*SERVE, str(config))
        time.sleep(dice.uniform(0.1, 1.0))
        heir.signal(signal.SIGKILL)
        heir.close()
    return how


def whole_run(address: Path, number: int) -> list[str]:
    """A client tells a run from its beginning to its end, and hears what became of each event."""
    names: dict[str, Any] = {"conversation": f"last-{number % 5}", "message": f"last-{number}"}
    with RawClient(address) as client:
        client.send(type="hello", protocol=1, client="last", session=f"last-{number}")
        assert client.receive()["type"] == "welcome"
        begun = client.send(type="received", id="1", direct=False, mentioned=True, **names)
        return [begun["result"], client.send(type="done", id="2", **names)["result"]]


def abandon(address: Path, number: int) -> None:
    """A client opens a run, and never comes back."""
    with RawClient(address) as client:
        names: dict[str, Any] = {"conversation": f"stray-{number % 5}", "message": f"stray-{number}"}
        client.send(type="received", id=f"stray-{number}", direct=False, mentioned=True, **names)
        client.send(type="thinking", **names)


def test_a_daemon_that_is_killed_again_and_again_loses_nothing_and_leaves_nothing(
    tmp_path: Path, chat: ChatService
) -> None:
    config, socket = tmp_path / "livesign.toml", tmp_path / "livesign.sock"
    config.write_text(CONFIG.format(base_url=chat.base_url))
    dice = random.Random(KILLS)
    bots = [BlockingBot(str(socket)), AsyncBot(str(socket))]
    watcher = Watcher(chat)
    ways: Counter[str] = Counter()
    process = serve(config)
    try:
        for thread in (watcher, *(bot.thread for bot in bots)):
            thread.start()
        for number in range(KILLS):
            if number % 10 == 0:
                chat.rules(*RULES)  # they count anew
            abandon(socket, number)
            time.sleep(dice.uniform(0.02, 0.6))
            assert whole_run(socket, number) == ["applied", "applied"]
            ways[die(process, config, dice)] += 1
            process = serve(config)
            assert whole_run(socket, number) == ["duplicate", "duplicate"]
            print(f"\r{number + 1} of {KILLS} kills", end="", flush=True)
        time.sleep(0.5)
        watcher.stop.set()
        watcher.join()
        watcher.look()
        for bot in bots:
            bot.stop.set()
        for bot in bots:
            bot.thread.join(300)
            assert not bot.thread.is_alive()
        assert [bot.failure for bot in bots] == [None, None]
        assert [line for bot in bots for line in bot.wrong] == []
        assert watcher.touched == []
        assert watcher.missed == 0
        for bot in bots:
            results = Counter(bot.results.values())
            assert results["applied"] + results["duplicate"] >= bot.sent
            assert results["unknown"] == 0
        start_s = time.monotonic()
        try:
            eventually(lambda: chat.left() == (0, 0), "nothing is left on the platform")
        except AssertionError:
            raise AssertionError(f"still there: {shown(chat)}") from None
        clean_s = time.monotonic() - start_s
        eventually(lambda: not left_in_ledger(tmp_path / "ledger"), "the ledger knows it, too")
        process.signal(signal.SIGTERM)
        assert process.exit_code() == 0
        acked = sum(len(bot.results) for bot in bots)
        print(
            f"\r{dict(ways)}: {acked} events acknowledged, {watcher.total} calls, clean {clean_s:.1f} s after the end"
        )
    finally:
        for stop in (watcher.stop, *(bot.stop for bot in bots)):
            stop.set()
        process.close()


def shown(chat: ChatService) -> list[str]:
    """Where marks and indicators are."""
    chats = chat.get("/v1/state")["chats"]
    marks = [f"{mark['emoji']} on {each['id']}" for one in chats for each in one["messages"] for mark in each["marks"]]
    return marks + [f"typing in {one['id']}" for one in chats if one["typing"]]


def left_in_ledger(folder: Path) -> int:
    """Rows of what may still be there. A removal that was not answered keeps its row until it is made again."""
    with closing(sqlite3.connect(folder / "ledger.db")) as connection:
        counts = [f"(SELECT count(*) FROM {table})" for table in ("runs", "marks", "typing")]
        return int(connection.execute(f"SELECT {'+'.join(counts)}").fetchone()[0])


def test_a_daemon_that_is_killed_on_a_real_homeserver_leaves_nothing_there(tmp_path: Path) -> None:
    room = Room(running(), tmp_path, adopt_ms=300)
    dice = random.Random(ON_MATRIX)
    try:
        for number in range(ON_MATRIX):
            room.message = room.alice.say(room.id, f"question {number}")
            for kind in ("received", "thinking", "done")[: dice.randint(2, 3)]:
                room.tell(kind, direct=True) if kind == "received" else room.tell(kind)
                time.sleep(dice.uniform(0.0, 0.3))
            room.server.signal(signal.SIGKILL)
            room.serve_again()
        room.eyes.until(lambda eyes: not eyes.marks and not (eyes.typing or [[]])[-1], within_s=20)
    finally:
        room.close()


SERVE = ("-m", "actors", "serve", "--leave")


def serve(config: Path) -> Process:
    process = Process(*SERVE, str(config))
    process.line_with("ready")
    return process
