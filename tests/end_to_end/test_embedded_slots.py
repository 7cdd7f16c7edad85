"""Bots with livesign inside, several processes on one ledger: each has a slot, and what the dead have left is cleaned once."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest

from tests.end_to_end.processes import ChatService, Process, chat_service, eventually

pytestmark = pytest.mark.real

BOT = """
import os, sys, time
from pathlib import Path
from actors import PresenceSupervisor
base_url, ledger, start, *orders = sys.argv[1:]
account = {"platform": "sandbox", "base_url": base_url, "token": "bot"}
config = {
    "accounts": {"bot": account}, "ack": {"scope": "all"}, "ledger": {"path": ledger}, "status": {"debounce_ms": 0},
    "lease": {"adopt_ms": 300}, "typing": {"mode": "never"},
}
print("here", flush=True)
while start and not Path(start).exists():
    time.sleep(0)
presence = PresenceSupervisor.start(config)
print("slot", presence._inside._slots.own.path.parent.name, flush=True)
for order in orders:
    if order == "fork":
        child = os.fork()
        if child == 0:
            os.close(1), os.close(2)  # the test reads to their end
            time.sleep(600)
            os._exit(0)
        print("child", child, flush=True)
    else:
        run = presence.run(conversation="c", message=order, direct=True).begin()
        run.thinking()
print("ready", flush=True)
time.sleep(600)
"""


class Bots:
    """Processes on one folder and one chat service."""

    def __init__(self, chat: ChatService, ledger: Path, stack: ExitStack) -> None:
        self.chat = chat
        self.ledger = ledger
        self._stack = stack

    def start(self, *orders: str, when: Path | None = None) -> Process:
        bot = Process("-W", "error", "-c", BOT, self.chat.base_url, str(self.ledger), str(when or ""), *orders)
        self._stack.callback(bot.close)
        return bot

    def child_of(self, bot: Process) -> int:
        child = int(bot.line_with("child").split()[1])

        def end() -> None:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)

        self._stack.callback(end)
        return child

    def marked(self, *messages: str) -> None:
        eventually(lambda: self.marks() == dict.fromkeys(messages, "🤔"), f"only {messages} are marked")

    def marks(self) -> dict[str, str]:
        chats = self.chat.get("/v1/state")["chats"]
        return {message["id"]: "".join(mark["emoji"] for mark in message["marks"])
                for chat in chats for message in chat["messages"] if message["marks"]}  # fmt: skip

    def removals(self) -> Counter[str]:
        """By message: how often its mark was taken off."""
        calls = self.chat.get("/v1/calls")["last"]
        return Counter(call["message"] for call in calls if call["op"] in ("clear", "remove"))

    def rows(self) -> Counter[str]:
        """By message: in how many slots it still has marks."""
        found: Counter[str] = Counter()
        for path in self.ledger.glob("ledger-*/ledger.db"):
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as other:
                found.update(message for (message,) in other.execute("SELECT message FROM marks"))
        return found


def kill(bot: Process) -> None:
    bot.signal(signal.SIGKILL)
    bot.exit_code()


def slot(bot: Process) -> str:
    return bot.line_with("slot").split()[1]


@pytest.fixture
def bots(tmp_path: Path) -> Iterator[Bots]:
    with chat_service() as chat, ExitStack() as stack:
        yield Bots(chat, tmp_path / "ledger", stack)


def test_processes_have_slots_of_their_own_and_the_next_one_cleans_up_after_a_killed_one_once(bots: Bots) -> None:
    first, second = bots.start("m1"), bots.start("m2")
    assert {slot(first), slot(second)} == {"ledger-0", "ledger-1"}
    bots.marked("m1", "m2")
    kill(second)
    third = bots.start("m3")
    slot(third)
    bots.marked("m1", "m3")
    assert bots.removals() == {"m2": 1}
    kill(first)
    kill(third)
    last = bots.start("m4")
    assert slot(last) == "ledger-0"
    bots.marked("m4")
    assert bots.removals() == {"m1": 1, "m2": 1, "m3": 1}
    eventually(lambda: bots.rows() == {"m4": 1}, "nothing else is in any slot")
    last.signal(signal.SIGTERM)  # no handler: it dies at once
    last.exit_code()


def test_those_that_start_in_the_same_instant_share_what_the_dead_have_left(bots: Bots, tmp_path: Path) -> None:
    left = [f"m{number}" for number in range(4)]
    dead = [bots.start(message) for message in left]
    assert {slot(bot) for bot in dead} == {f"ledger-{number}" for number in range(4)}
    bots.marked(*left)
    for bot in dead:
        kill(bot)
    gun = tmp_path / "now"
    crowd = [bots.start(f"n{number}", when=gun) for number in range(3)]
    for bot in crowd:
        bot.line_with("here")
    gun.touch()
    assert len({slot(bot) for bot in crowd}) == 3
    bots.marked("n0", "n1", "n2")
    assert bots.removals() == dict.fromkeys(left, 1)
    eventually(lambda: bots.rows() == {"n0": 1, "n1": 1, "n2": 1}, "nothing else is in any slot")


def test_a_fork_keeps_no_slot_of_a_dead_parent(bots: Bots) -> None:
    parent = bots.start("m1", "fork", "m2")
    child = bots.child_of(parent)
    bots.marked("m1", "m2")
    kill(parent)
    os.kill(child, 0)  # it lives on, with everything it has inherited
    heir = bots.start()
    assert slot(heir) == "ledger-0"
    bots.marked()
    assert bots.removals() == {"m1": 1, "m2": 1}


def test_a_fork_takes_nothing_from_its_living_parent(bots: Bots) -> None:
    parent = bots.start("m1", "fork")
    assert slot(parent) == "ledger-0"
    child = bots.child_of(parent)
    bots.marked("m1")
    os.kill(child, signal.SIGKILL)
    other = bots.start("m2")
    assert slot(other) == "ledger-1"
    bots.marked("m1", "m2")
    time.sleep(0.5)  # longer than an open run waits for its client
    assert bots.marks() == {"m1": "🤔", "m2": "🤔"}
    assert not bots.removals()
