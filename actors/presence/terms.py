"""The shared vocabulary of the machines: run identity, effects, platform commands and typed outcomes."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Final, NamedTuple, TypeAlias

from actors.presence.policy import Policy


class RunKey(NamedTuple):
    """Identity of a run."""

    account: str
    conversation: str
    run: str


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What the machines need to know of a run; fixed when it opens."""

    key: RunKey
    message: str | None
    """The inbound message that carries the marks; None: typing only."""
    thread: str | None
    policy: Policy
    ack_allowed: bool
    """The gate's answer: whether the ack may be shown."""
    status_allowed: bool
    """Whether status marks may be shown."""
    forum: bool = False
    """Telegram: the chat has topics."""


class Rank(IntEnum):
    """Priority class of a call: lower goes first (design §6)."""

    TERMINAL = 0
    ACK = 1
    PHASE = 2
    TYPING = 3


# --- effects -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Show:
    """This mark should show. ``chain``: the emoji and its fallbacks, best first, never empty."""

    chain: tuple[str, ...]
    rank: Rank


@dataclass(frozen=True, slots=True)
class Clear:
    """No mark of ours should show."""

    rank: Rank = Rank.TERMINAL


@dataclass(frozen=True, slots=True)
class StartTyping:
    """Make one typing call now (start or refresh). Answered by ``on_started`` with the same ``token``."""

    token: int


@dataclass(frozen=True, slots=True)
class StopTyping:
    """Typing should be off."""


@dataclass(frozen=True, slots=True)
class WithdrawTyping:
    """A start that has not begun is not to be made; what is on stays on for now (no stop call)."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Call ``on_timeout(key)`` at ``at_ms``. Replaces an armed timer of the same key."""

    key: Hashable
    at_ms: int


@dataclass(frozen=True, slots=True)
class Cancel:
    """Disarm the timer ``key``, if armed."""

    key: Hashable


@dataclass(frozen=True, slots=True)
class Finished:
    """The machine has nothing left to do and can be dropped. ``not_shown``: its final mark could not be shown."""

    not_shown: bool = False


Effect: TypeAlias = Show | Clear | StartTyping | StopTyping | WithdrawTyping | Schedule | Cancel | Finished


# --- calls ---------------------------------------------------------------------------------------------------


class Op(StrEnum):
    """What a platform can be asked. ``set`` adds on platforms that do not replace."""

    SET = "set"
    REMOVE = "remove"
    CLEAR = "clear"
    TYPING_START = "typing_start"
    TYPING_STOP = "typing_stop"


TYPING_OPS: Final = frozenset({Op.TYPING_START, Op.TYPING_STOP})


@dataclass(frozen=True, slots=True)
class Command:
    """One outbound call of one account."""

    op: Op
    conversation: str
    thread: str | None = None
    message: str | None = None
    emoji: str | None = None
    handle: str | None = None
    """The platform's own id of the mark to remove (Matrix: the reaction's event id)."""
    idempotency_key: str = ""
    """The same for a repeat of the same call, otherwise unique per account."""
    forum: bool = False
    inbound: str | None = None
    """Of a typing start: the newest message that is being worked on there (WhatsApp's typing needs one)."""


class OutcomeKind(StrEnum):
    """How a call ended (design §6). ``unknown``: deadline, lost answer or crash: it may have happened."""

    OK = "ok"
    ALREADY_DONE = "already_done"
    GONE = "gone"
    FORBIDDEN = "forbidden"
    INVALID_REACTION = "invalid_reaction"
    RATE_LIMITED = "rate_limited"
    TRANSIENT = "transient"
    AUTH = "auth"
    BAD_REQUEST = "bad_request"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A typed answer. ``detail`` is for people and logs, never for decisions, and carries no secret."""

    kind: OutcomeKind
    handle: str | None = None
    retry_after_ms: int | None = None
    """When calls of ``scope`` may start again. Of a success: it has used up their budget (Discord says so)."""
    scope: str | None = None
    """What a limit (or a refusal) covers: account, conversation or route; None: the platform did not say."""
    detail: str = ""

    @property
    def happened(self) -> bool:
        """The target state holds now."""
        return self.kind in (OutcomeKind.OK, OutcomeKind.ALREADY_DONE)


OK = Outcome(OutcomeKind.OK)


# --- what a platform is like (the part of its spec row that lanes need) -----------------------------------------


@dataclass(frozen=True, slots=True)
class LaneRules:
    """How marks and typing behave on a platform."""

    reactions: str = "replace"
    """replace: a set replaces ours; add_remove: each is added and removed; none: there are no reactions."""
    removal_needs_handle: bool = False
    """add_remove: a mark can only be removed by the handle that its add returned (Matrix)."""
    typing: bool = True
    typing_stop: bool = False
    """Whether there is a call that ends typing."""
    typing_lifetime_ms: int = 5_000
    """How long an indicator lives by itself; 0: until stopped."""
    typing_in_threads: bool = True
    """Whether the target of typing is the thread (else the conversation)."""


@dataclass(frozen=True, slots=True)
class RetryRules:
    """When a failed call is tried again. Delays double from ``first_delay_ms`` up to ``max_delay_ms``."""

    phase_tries: int = 3
    first_delay_ms: int = 500
    max_delay_ms: int = 60_000
    terminal_retries: bool = True
    """Terminal marks and removals are tried until confirmed, gone or forbidden."""


class Verdict(NamedTuple):
    """What people could see of a run's end: the mark that was confirmed, or why the one that belongs to it was not."""

    mark: str | None = None
    problem: str | None = None


# --- reports from lanes to the machines -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MarkReport:
    """The wanted mark of a message is confirmed (``emoji``; None: no mark of ours), or will not be shown."""

    conversation: str
    message: str
    emoji: str | None
    refused: OutcomeKind | None = None
    """Why it will not be shown: the chain is used up, tries are used up, the target is gone or forbidden."""
    chain: tuple[str, ...] | None = None
    """The chain that was asked for (empty: clear), so that a late report of an older wish is known as one."""


@dataclass(frozen=True, slots=True)
class TypingReport:
    """A typing call of a target has ended, or will not be made (``superseded`` is told as kind ok, called False)."""

    conversation: str
    thread: str | None
    token: int | None
    """The start's token; None for a stop."""
    outcome: Outcome = field(default=OK)
    called: bool = True


Report: TypeAlias = MarkReport | TypingReport
