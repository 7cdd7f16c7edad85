"""Cases about cost and memory, at a size that an ordinary test run can bear; the benches have the large ones."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from actors.application import Application
from actors.config import load
from actors.ledger import MemoryLedger
from actors.messages import FromClient, SessionUp
from actors.presence.terms import OK, Command, Outcome, RunKey
from actors.runtime import Runtime
from protocol import events
from protocol.events import Event

pytestmark = pytest.mark.filterwarnings("error")

SESSION = "client"
HOUR_MS = 3_600_000
PUT_AWAY_MS = 130_000
"""After so long an ended conversation is gone."""


class Obedient:
    """A platform that does at once what it is told, and keeps nothing."""

    def __init__(self) -> None:
        self.calls = 0

    def call(self, command: Command, deadline_ms: int, done: Callable[[Outcome], None]) -> None:
        self.calls += 1
        done(OK)

    def close(self) -> None:
        """Nothing is held."""


class Tree:
    """The whole tree on virtual time, with one account and one client."""

    def __init__(self, runtime: Runtime | None = None, ledger: MemoryLedger | None = None, **settings: Any) -> None:
        self.runtime = runtime or Runtime.manual()
        self.port = Obedient()
        config = load({"accounts": {"a": {"platform": "sandbox"}}, **settings}, scenario=True)
        self.application = Application(config, self.runtime, lambda _: self.port, ledger or MemoryLedger())
        self.application.start()
        self.application.submit(SessionUp(SESSION))

    @property
    def conversations(self) -> int:
        return len(self.application.parts.router.conversations)

    def send(self, event: Event) -> None:
        self.application.submit(FromClient(SESSION, event, None))

    def open(self, chats: range, message: str = "1") -> None:
        """One run in each chat, ack and phase shown, typing on."""
        for chat in chats:
            self.send(events.Received(conversation=f"chat-{chat}", message=message, direct=False, mentioned=True))
            self.send(events.Thinking(conversation=f"chat-{chat}", message=message))
        self.runtime.advance(2_000)

    def end(self, chats: range, message: str = "1", rest_ms: int = PUT_AWAY_MS) -> None:
        """The runs end, and everything comes to rest."""
        for chat in chats:
            self.send(events.Done(conversation=f"chat-{chat}", message=message))
        self.runtime.advance(rest_ms)


def blocks() -> int:
    """Blocks of memory that Python holds: whatever is kept of something is at least one."""
    gc.collect()
    return sys.getallocatedblocks()


def lines_run(tree: Tree, chats: int) -> int:
    """Lines of Python for one more phase in each of 50 of these conversations."""
    count = 0

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for chat in range(0, chats, chats // 50):
            tree.send(events.Tool(conversation=f"chat-{chat}", message="1", name="bash"))
            tree.runtime.run_until_idle()
    finally:
        sys.settrace(before)
    return count


def test_an_event_costs_the_same_among_few_and_among_many_conversations() -> None:
    costs = []
    for chats in (100, 1_000, 4_000):
        tree = Tree()
        tree.open(range(chats))
        costs.append(lines_run(tree, chats))
        tree.application.close()
    assert max(costs) <= 1.1 * min(costs)


class Forgetful(MemoryLedger):
    """Keeps no ended runs, as a ledger on disk keeps none in memory."""

    def ended(self, key: RunKey, outcome: str, reason: str | None, wall_ms: int) -> None:
        super().ended(key, outcome, reason, wall_ms)
        self._contents.ended.clear()


def test_days_of_messages_leave_the_tables_as_they_were() -> None:
    """Ended runs are remembered for 24 hours: what is held grows until then and comes to rest after it."""
    tree, held = Tree(ledger=Forgetful()), []
    for hour in range(91):
        chats = range(hour * 20, hour * 20 + 20)
        tree.open(chats, str(hour))
        tree.end(chats, str(hour), HOUR_MS - 2_000)
        if hour in (50, 90):
            held.append(blocks())
    assert tree.conversations == 0
    assert all(len(account.lanes) == 0 for account in tree.application.parts.accounts.values())
    assert held[1] - held[0] < 0.2 * 40 * 20, "less than one block for each of five runs: nothing of a run is kept"
    tree.application.close()


def test_a_keepalive_that_ticks_for_ever_does_not_grow() -> None:
    tree, held = Tree(typing={"ttl_ms": 0}, lease={"run_max_ms": 0}), []
    tree.open(range(1))
    for ticks in (5_000, 25_000):
        tree.runtime.run_until(ticks * 3_000)
        held.append(blocks())
    assert tree.port.calls > 25_000
    assert held[1] - held[0] < 0.01 * 20_000
    tree.application.close()


@pytest.mark.real
def test_calls_from_thousands_of_short_threads_leave_nothing() -> None:
    runtime = Runtime(name="threads").start_thread()
    tree = Tree(runtime)
    counters = tree.application.parts.router.runs.counters

    def report(number: int) -> None:
        chat = f"chat-{number % 10}"
        tree.send(events.Received(conversation=chat, message=str(number), direct=True))
        tree.send(events.Done(conversation=chat, message=str(number)))

    def wave(first: int, count: int) -> tuple[int, int]:
        for start in range(first, first + count, 50):
            threads = [threading.Thread(target=report, args=(number,)) for number in range(start, start + 50)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        until_s = time.monotonic() + 20
        while counters["runs_ended"] < first + count and time.monotonic() < until_s:
            time.sleep(0.01)
        return threading.active_count(), len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0

    try:
        before = wave(0, 100)
        after = wave(100, 2_000)
        assert counters["runs_ended"] == 2_100
    finally:
        tree.application.close()
        runtime.close()
    assert after[0] == before[0]
    assert abs(after[1] - before[1]) <= 10
