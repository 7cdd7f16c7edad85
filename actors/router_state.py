"""What the router works on: the plain data that outlives it, and what it is told by its own side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from actors.conversation_state import (
    Conversation,
    Deliver,
    LetBe,
    Place,
    TakenOver,
)
from actors.ledger import Ledger
from actors.messages import Message
from actors.presence.run import EndedRun
from actors.presence.runs import PolicyFor, RunTable
from actors.presence.terms import RunInfo
from actors.runtime import ActorRef
from actors.subscribers import Subscribers


class StartConversation(Message, frozen=True):
    """To the conversations' supervisor: start these actors, then say `ConversationStarted`."""

    state: Conversation


class ConversationsLost(Message, frozen=True):
    """The conversations' supervisor was restarted: all conversations have to be started again."""


class RouterFailedOn(Message, frozen=True):
    """To a restarted router: the message that it failed on."""

    message: Any


class AdoptRuns(Message, frozen=True):
    """Take in the runs that an earlier process has left of an account which is there again."""


class EndAll(Message, frozen=True):
    """End every open run in this way (shutdown)."""

    reason: str


class EndAccount(Message, frozen=True):
    """The configuration names this account no longer: its runs end, and their marks are taken off."""

    account: str


class Idle(Message, frozen=True):
    """A conversation has had nothing to do for a while."""

    place: Place


@dataclass(slots=True)
class Entry:
    """What the router knows of one live conversation."""

    state: Conversation
    open_runs: int = 0
    reaction: ActorRef[Any] | None = None
    typing: ActorRef[Any] | None = None
    waiting: list[Deliver | LetBe | TakenOver] | None = field(default_factory=list)
    """Deliveries that wait for the actors; None: the actors are there."""
    given_up: bool = False
    """Its actors could not be kept running, and are started once more to end what is left."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """A run left by an earlier process, and the mark that shows for it."""

    info: RunInfo
    emoji: str | None


@dataclass(slots=True)
class RouterState:
    """Plain data that outlives the actor."""

    runs: RunTable
    policy_for: PolicyFor
    accounts: tuple[str, ...]
    ledger: Ledger
    subscribers: Subscribers
    adopted: list[Adopted] = field(default_factory=list)
    """Runs that an earlier process has left; emptied at the first start."""
    conversations: dict[Place, Entry] = field(default_factory=dict)
    idle_ms: int = 60_000
    draining: bool = False
    counters: dict[str, int] = field(default_factory=lambda: {"rejected": 0, "parked": 0, "events": 0, "repaired": 0})
    on_ended: Callable[[EndedRun], None] | None = None
    """Told of every run that ends (and again when its result changes)."""
    reports: bool = False
    """Whether ``on_ended`` is also told, again, of what showed at the end."""

    def wants_verdicts(self) -> bool:
        """Whether anybody is to hear what showed at the end of runs."""
        return self.reports or self.subscribers.any
