"""Every reply livesign gives, as frozen tagged structs; on the wire as events are (`protocol.events`)."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from msgspec import Struct

__all__ = [
    "Ack", "Call", "Closing", "Code", "Gap", "Pong", "Rejected", "Reply", "State", "StatsReply", "Welcome",
    "snake",
]  # fmt: skip

Code: TypeAlias = Literal[
    "malformed", "unknown_type", "missing_field", "wrong_type", "bad_value", "too_large", "unauthorized",
    "unknown_account", "limit",
]  # fmt: skip
Result: TypeAlias = Literal["applied", "duplicate", "late", "unknown"]


def snake(name: str) -> str:
    """A struct's name on the wire: ``ToolEnd`` is ``tool_end``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class Reply(Struct, frozen=True, kw_only=True, gc=False, tag_field="type", tag=snake, omit_defaults=True):
    """Base of everything livesign answers."""


class Welcome(Reply, frozen=True, kw_only=True):
    """The answer to `Hello`: the connection is good."""

    protocol: int
    """The version that is spoken: 1."""
    server: str
    """Its name, for logs."""
    session: str
    """To be given in the next `Hello`, so that the session goes on: its runs, and the ids it has used."""
    accounts: list[str]
    """Those that this client may use."""
    limits: dict[str, int]
    """`event_bytes` and `depth`: largest event, in bytes and in levels of nesting. `open_runs`: of one session. `idle_ms`: a
    connection that says nothing for so long is closed (0: never). `silence_ms`: the same for one that has sent a `Ping`
    and says nothing more."""


class Ack(Reply, frozen=True, kw_only=True):
    """The event with this `id` is taken in, and what it has done is written down. (No `id`, no ack.)"""

    id: str
    """The event's."""
    result: Result
    """`applied`. `duplicate`: this `id` was used before, or this message is known; it took only the lease. `late`: the run
    has ended, and nothing is changed. `unknown`: there is no such run, and this event opens none; nothing is changed."""


class Rejected(Reply, frozen=True, kw_only=True):
    """The event changed nothing. Always told, with or without an `id`."""

    code: Code
    """`malformed`: no event at all. `unknown_type`, `missing_field`, `wrong_type`, `bad_value`, `too_large`: as they say.
    `unauthorized`: the token, or this connection's role, does not allow it. `unknown_account`: there is none of that name.
    `limit`: too much of something, or livesign is shutting down: try again later."""
    detail: str
    """Why, in words."""
    id: str | None = None
    field: str | None = None
    """The first field that is wrong."""


class Call(Reply, frozen=True, kw_only=True):
    """A call handed to an executor, to be answered with `CallResult`."""

    call_id: str
    account: str
    conversation: str
    op: Literal["set", "remove", "clear", "typing_start", "typing_stop"]
    """`set`: show `emoji` on `message`, in place of the mark before where the platform replaces. `remove`: take that one off.
    `clear`: take off what shows, where the platform replaces. The others: the indicator."""
    deadline_ms: int
    """A result counts within so long, from the time of sending."""
    thread: str | None = None
    message: str | None = None
    emoji: str | None = None
    handle: str | None = None
    """What the result of the `set` that is to be removed gave as its handle."""
    epoch: int = 0
    """0 on one machine."""


class State(Reply, frozen=True, kw_only=True):
    """What shows now of one run, for subscribers: first of all open runs, then with each change."""

    account: str
    conversation: str
    run: str
    phase: str
    """`queued`, `waiting`, `thinking`, `tool`, `compacting`; of a run that has ended `done`, `error`, `cancelled` or `silent`."""
    shown: list[str]
    """The marks that the platform has confirmed on the message."""
    typing: bool
    message: str | None = None
    reason: str | None = None
    """Why it ended: the client's text, or livesign's own (`lease_expired`, `run_max`, `shutdown`, ...)."""
    final: bool = False
    """It has ended, and what people saw at the end is certain: `mark` and `problem` say it."""
    mark: str | None = None
    """The mark that was confirmed at the end."""
    problem: str | None = None
    """Why the mark that belongs to the end did not show: `no_message`, `not_allowed`, `not_presented`, `superseded`,
    `gave_up`, or what the platform's refusal meant."""


class Gap(Reply, frozen=True, kw_only=True):
    """`State` replies were lost because the reader was slow. Subscribing again tells what is so now."""

    dropped: int
    """How many."""


class Pong(Reply, frozen=True, kw_only=True):
    """The answer to `Ping`."""


class StatsReply(Reply, frozen=True, kw_only=True, tag="stats"):
    """The answer to `Stats`."""

    counters: dict[str, int]
    """Everything that is counted or can be measured, by name."""


class Closing(Reply, frozen=True, kw_only=True):
    """The last reply: the connection is closed after it."""

    reason: str
