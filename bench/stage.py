"""What several scenarios stand on: the whole tree of livesign, with platforms that cost next to nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from actors.application import Application
from actors.config import Config, load
from actors.ledger import MemoryLedger
from actors.messages import FromClient
from actors.presence.terms import OK, Command, Op, Outcome, RunKey
from actors.runtime import Runtime
from protocol import events
from protocol.events import Event

ACCOUNT = "bench"
SESSION = "bench/1"
Done = Callable[[Outcome], None]


class SilentPort:
    """A platform that never answers: what is wanted changes, and nothing is called twice."""

    def __init__(self) -> None:
        self.calls = 0

    def call(self, command: Command, deadline_ms: int, done: Done) -> None:
        self.calls += 1

    def close(self) -> None:
        """Nothing is held."""


class ObedientPort(SilentPort):
    """A platform that does at once what it is told, and keeps nothing."""

    def call(self, command: Command, deadline_ms: int, done: Done) -> None:
        self.calls += 1
        done(OK)


class WatchedPort(SilentPort):
    """The same, and it knows what shows."""

    def __init__(self) -> None:
        super().__init__()
        self.showing: set[tuple[str, str | None]] = set()
        """Messages with a mark (by conversation), and typing conversations (message None)."""

    def call(self, command: Command, deadline_ms: int, done: Done) -> None:
        self.calls += 1
        place = command.conversation, command.message
        if command.op in (Op.SET, Op.TYPING_START):
            self.showing.add(place)
        else:
            self.showing.discard(place)
        done(OK)


class ForgetfulLedger(MemoryLedger):
    """Keeps no ended runs, as a ledger on disk keeps none in memory."""

    def ended(self, key: RunKey, outcome: str, reason: str | None, wall_ms: int) -> None:
        self._contents.runs.pop(key, None)


def config(**sections: Any) -> Config:
    """One account on a platform that replaces marks, without limits, and ``sections`` of settings."""
    return load({"accounts": {ACCOUNT: {"platform": "sandbox"}}, **sections}, scenario=True)


class Stage:
    """The whole tree under the manual driver, on virtual time."""

    def __init__(self, settings: Config, port: SilentPort) -> None:
        self.runtime = Runtime.manual(name="bench")
        self.application = Application(settings, self.runtime, lambda _: port, ForgetfulLedger())
        self.application.start()
        self.runtime.run_until_idle()

    @property
    def now_ms(self) -> int:
        return self.runtime.clock.now_ms()

    @property
    def conversations(self) -> int:
        """Conversations whose actors are alive."""
        return len(self.application.parts.router.conversations)

    def send(self, event: Event) -> None:
        """An event of the one client."""
        self.application.submit(FromClient(SESSION, event, None))

    def close(self) -> None:
        self.application.close()


Step = tuple[int, Callable[[str, str], Event]]

RUN: tuple[Step, ...] = (
    (0, lambda chat, message: events.Received(conversation=chat, message=message, direct=False, mentioned=True)),
    (300, lambda chat, message: events.Thinking(conversation=chat, message=message)),
    (1_500, lambda chat, message: events.Tool(conversation=chat, message=message, name="web_search", call="1")),
    (4_000, lambda chat, message: events.ToolEnd(conversation=chat, message=message, call="1")),
    (4_500, lambda chat, message: events.Text(conversation=chat, message=message)),
    (7_000, lambda chat, message: events.Done(conversation=chat, message=message)),
)
"""A run as a bot reports it: when (ms), and what. On a willing platform it makes ten calls: five marks, one of them
taken off, and four of typing."""
OPENING = RUN[:2]
SETTLED_MS = 9_000
"""When its last mark has been taken off, hold included."""


def play(stage: Stage, chats: range, message: str, steps: Iterable[Step] = RUN, until_ms: int = SETTLED_MS) -> None:
    """One run in each of these chats, side by side."""
    began_ms = stage.now_ms
    for at_ms, event in steps:
        stage.runtime.run_until(began_ms + at_ms)
        for chat in chats:
            stage.send(event(f"chat-{chat}", message))
    stage.runtime.run_until(began_ms + until_ms)
