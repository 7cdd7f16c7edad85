"""The bot's own functions, which make livesign's calls with the bot's own client.

They serve an account on platform ``callback`` (in the bot's process) and one on ``remote`` (handed over a socket) alike. A
function gets one `protocol.events.Call` and is sync or async. What it returns or raises becomes a `CallOutcome`:

| returned | outcome |
| --- | --- |
| None, True, an object that is not known | ok |
| text | ok; the text is the mark's handle, which its removal will get back (Matrix: the event id) |
| False | bad_request |
| a `CallOutcome` | itself |

| raised | outcome |
| --- | --- |
| something with ``retry_after`` (seconds, or a timedelta) or ``retry_after_ms``, or of status 429 | rate_limited |
| status 401; 403; 404, 410; 408, 5xx; other | auth; forbidden; gone; transient; bad_request |
| TimeoutError, a cancellation | unknown: it may have happened |
| OSError (ConnectionError) | transient |
| anything else | bad_request: never tried again |

The status is looked for in ``status``, ``status_code``, ``code`` and in those of ``response``. `actors.sdk_outcome` knows the
exceptions of the usual Python clients better; give it, or a function of your own, as ``outcome_of``.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from protocol.events import Call

__all__ = ["OUTCOMES", "CallOutcome", "Callbacks", "plain_outcome"]

OUTCOMES = (
    "ok", "already_done", "gone", "forbidden", "invalid_reaction", "rate_limited", "transient", "auth", "bad_request",
    "unknown",
)  # fmt: skip
"""How a call can end."""
_BY_STATUS = {401: "auth", 403: "forbidden", 404: "gone", 408: "transient", 410: "gone", 429: "rate_limited"}

Function = Callable[[Call], object]
"""A sync or async function of the bot's."""


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """How a call ended, in the words of `OUTCOMES`. ``scope``: what a limit covers, account, conversation or route."""

    outcome: str = "ok"
    retry_after_ms: int | None = None
    scope: str | None = None
    handle: str | None = None
    detail: str = ""

    def __post_init__(self) -> None:
        if self.outcome not in OUTCOMES:
            raise ValueError(f"{self.outcome!r} is no outcome; there are {', '.join(OUTCOMES)}")


OutcomeOf = Callable[[Call, object], CallOutcome | None]
"""What a returned value or a raised exception means; None: as it is without."""


@dataclass(frozen=True, slots=True)
class Callbacks:
    """The functions of one account.

    ``set_reaction``: put ``call.emoji`` on ``call.message``; where a reaction replaces ours, ``call.emoji`` None takes it off.
    ``remove_reaction``: take ``call.emoji`` off (platforms where each reaction is added and removed; ``call.handle`` is what
    the add returned). ``start_typing``, ``stop_typing``: in ``call.conversation`` or ``call.thread``.

    A function may take ``call.deadline_ms``; after that its answer does not count.
    """

    set_reaction: Function | None = None
    remove_reaction: Function | None = None
    start_typing: Function | None = None
    stop_typing: Function | None = None
    outcome_of: OutcomeOf | None = field(default=None, kw_only=True)

    def function_for(self, op: str) -> Function | None:
        """The function that makes calls of this kind."""
        if op in ("set", "clear"):
            return self.set_reaction
        return {
            "remove": self.remove_reaction,
            "typing_start": self.start_typing,
            "typing_stop": self.stop_typing,
        }.get(op)

    @property
    def any_async(self) -> bool:
        """Whether one of them is a coroutine function."""
        functions = (self.set_reaction, self.remove_reaction, self.start_typing, self.stop_typing)
        return any(is_async(function) for function in functions if function is not None)

    def judge(self, call: Call, thing: object) -> CallOutcome:
        """What was returned, or raised, as an outcome. Never raises."""
        if isinstance(thing, CallOutcome):
            return thing
        try:
            found = self.outcome_of(call, thing) if self.outcome_of is not None else None
        except Exception as error:
            return CallOutcome("bad_request", detail=f"outcome_of failed: {type(error).__name__}")
        return found or plain_outcome(thing)


def is_async(function: Function) -> bool:
    """Whether calling it gives a coroutine."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def plain_outcome(thing: object) -> CallOutcome:
    """What a value or an exception means by itself; see the module's table."""
    if not isinstance(thing, BaseException):
        if thing is False:
            return CallOutcome("bad_request", detail="the function returned False")
        return CallOutcome(handle=thing) if isinstance(thing, str) and thing else CallOutcome()
    detail = type(thing).__name__  # its text may hold an address, and with it a token
    retry_after_ms = wait_ms(thing)
    status = status_of(thing)
    if retry_after_ms is not None or status == 429:
        return CallOutcome("rate_limited", retry_after_ms, detail=detail)
    if status is not None:
        return CallOutcome(outcome_of_status(status), detail=detail)
    if isinstance(thing, TimeoutError | asyncio.CancelledError):
        return CallOutcome("unknown", detail=detail)
    if isinstance(thing, OSError):
        return CallOutcome("transient", detail=detail)
    return CallOutcome("bad_request", detail=detail)


def outcome_of_status(status: int) -> str:
    """What an HTTP status means where nothing else is known."""
    return _BY_STATUS.get(status) or ("transient" if status >= 500 else "bad_request")


def wait_ms(thing: object) -> int | None:
    """How long to wait, where an exception or answer says so."""
    direct = getattr(thing, "retry_after_ms", None)
    if isinstance(direct, int) and not isinstance(direct, bool):
        return max(direct, 0)
    return seconds_ms(getattr(thing, "retry_after", None))


def seconds_ms(value: object) -> int | None:
    """A number of seconds, or a timedelta, in ms; None: it is neither."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9:
        return int(value * 1_000)
    return None


def status_of(thing: object) -> int | None:
    """The HTTP status that an exception carries."""
    for holder in (thing, getattr(thing, "response", None)):
        for name in ("status", "status_code", "code"):
            value: Any = getattr(holder, name, None)
            if isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599:
                return value
    return None
