"""What a conversation is made of: the plain data that outlives its actors, and what they and the router tell each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from actors.messages import Message
from actors.presence.policy import Policy
from actors.presence.reaction import ReactionMachine
from actors.presence.terms import (
    RunInfo,
    RunKey,
    Verdict,
)
from actors.presence.typing import TypingMachine
from actors.runtime import ActorRef
from protocol import events
from protocol.events import Event

Thread = str | None


Place = tuple[str, str]
"""(account, conversation)"""


class Deliver(Message, frozen=True):
    """An event of a run for both machines; ``info`` is None for a bare typing scope."""

    info: RunInfo | None
    event: Event
    again: bool = False
    """An end that was told before, and may have been lost: no machine is made for it."""


class LetBe(Message, frozen=True):
    """To a reaction actor: this run is over and its marks stay as they are."""

    info: RunInfo


class TakenOver(Message, frozen=True):
    """To a reaction actor: a client goes on with this run, which an earlier process had left."""

    info: RunInfo


class ConversationStarted(Message, frozen=True):
    """To the router: the actors of this conversation are there (again)."""

    place: Place


class PassivateIfIdle(Message, frozen=True):
    """Stop the conversation if nothing is left to do; answered to the router with `Passivated` or `StillBusy`."""


class Passivated(Message, frozen=True):
    place: Place


class StillBusy(Message, frozen=True):
    place: Place


class ConversationParked(Message, frozen=True):
    """The restart budget of a conversation is spent; its actors are stopped."""

    place: Place


class Settled(Message, frozen=True):
    """The marks of an ended run are at rest."""

    key: RunKey
    not_shown: bool


class Concluded(Message, frozen=True):
    """What people could see of a run's end is certain."""

    key: RunKey
    verdict: Verdict


class TerminalCrashed(Message, frozen=True):
    """An actor, the one for typing or the one for marks, failed on the terminal of this run."""

    info: RunInfo
    typing: bool


@dataclass(slots=True)
class Conversation:
    """The plain data of one conversation: what its actors do not own."""

    account: str
    conversation: str
    policy: Policy
    """The settings of bare typing scopes."""
    io: ActorRef[Any]
    router: ActorRef[Any]
    wants_verdicts: Callable[[], bool] = lambda: False
    """Whether the router wants to hear what showed at the end of runs."""
    reactions: dict[str, ReactionMachine] = field(default_factory=dict)
    """By run."""
    owners: dict[str, str] = field(default_factory=dict)
    """Message to the run that owns its marks."""
    typing: dict[Thread, TypingMachine] = field(default_factory=dict)
    """By target."""
    targets: dict[str, Thread] = field(default_factory=dict)
    """Where a run types, if it has moved."""
    moved_over: set[str] = field(default_factory=set)
    """Those of them that have ended: what is left of their typing is still there."""

    @property
    def idle(self) -> bool:
        return not self.reactions and not self.typing

    @property
    def open_runs(self) -> tuple[RunKey, ...]:
        """The runs of whose end its machines have not heard, in an order of their own."""
        marked = [machine.info.key for machine in self.reactions.values() if not machine.ended]
        typing = [key for machine in self.typing.values() for key in machine.runs]
        return tuple(dict.fromkeys(marked + typing))

    def forget(self) -> None:
        """Nothing is done for it any more."""
        for table in (self.reactions, self.owners, self.typing, self.targets):
            table.clear()
        self.moved_over.clear()


def is_terminal(event: Event) -> bool:
    """Whether this event ends its run."""
    if isinstance(event, events.Error):
        return event.scope == "run"
    return isinstance(event, events.TERMINAL_EVENTS)
