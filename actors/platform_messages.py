"""What a `PlatformIOActor` is told: desires of the conversations, answers to its calls, and what has changed around it."""

from __future__ import annotations

from actors.messages import Message
from actors.presence.terms import Command, Outcome, Rank


class ShowMark(Message, frozen=True):
    """This chain should show on the message; an empty chain: no mark of ours."""

    conversation: str
    message: str
    chain: tuple[str, ...]
    rank: Rank
    forum: bool = False


class TypeStart(Message, frozen=True):
    """One typing call now; answered by a `TypingReport` with the same token."""

    conversation: str
    thread: str | None
    token: int
    forum: bool = False
    inbound: str | None = None


class TypeStop(Message, frozen=True):
    """Typing of this target should be off."""

    conversation: str
    thread: str | None


class TypeWithdraw(Message, frozen=True):
    """A start that has not begun is not to be made; what is on stays on."""

    conversation: str
    thread: str | None


class Release(Message, frozen=True):
    """The run of this message is over and its last wish is told: its lane may go."""

    conversation: str
    message: str
    run: str


class CallEnded(Message, frozen=True):
    """The port's answer to a call."""

    call_id: int
    outcome: Outcome
    command: Command


Desire = ShowMark | TypeStart | TypeStop | TypeWithdraw | Release


class Retold(Message, frozen=True):
    """Told again by the supervisor, because the actor has failed on it ``fails`` times.

    A desire is forgotten if a newer one for the same lane was taken in meanwhile."""

    message: Desire | CallEnded
    fails: int = 1


class AnswersLost(Message, frozen=True):
    """The actor failed on an answer time and again: nobody knows how the calls in flight ended."""


class Changed(Message, frozen=True):
    """To the router, while somebody listens: what shows has changed; ``message`` empty: typing."""

    account: str
    conversation: str
    message: str


class Posted(Message, frozen=True):
    """The bot has posted there: what was forbidden may be allowed again."""

    conversation: str


class Revive(Message, frozen=True):
    """The configuration was loaded again: an account stopped by auth may try again."""


class Reachable(Message, frozen=True):
    """Somebody who makes the calls of a remote account has come: what backs off need not wait."""


class Wake(Message, frozen=True):
    """Time to look at the lanes again."""


WAKE = Wake()


def lane_of(desire: Desire) -> tuple[str, str | None, bool]:
    """What the desire is about: a message's marks, or typing in a thread."""
    if isinstance(desire, ShowMark | Release):
        return desire.conversation, desire.message, True
    return desire.conversation, desire.thread, False
