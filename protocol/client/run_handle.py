"""A run as a context manager: what happens inside becomes events, and so does the way it ends.

The same handle serves a bot that embeds livesign and the clients of a socket; what differs is its host.

| the block is left | the run ends as |
| --- | --- |
| normally | done |
| by an exception | error, with the exception's class as reason |
| by asyncio's CancelledError, KeyboardInterrupt, SystemExit, GreenletExit, GeneratorExit | cancelled |
| after `RunHandle.done`, ``silent``, ``error``, … in it | as was said there |

Whatever was raised goes on. No fault of livesign is raised into the block: what cannot be told is logged. Only a value that
no event could carry is refused, with `DecodeError`.
"""

from __future__ import annotations

import logging
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, Protocol, Self

from protocol.client.keeper import Keeper, Pulse, owner_here
from protocol.client.outcome import RunOutcome
from protocol.client.run_events import RunEvents
from protocol.codec import DecodeError
from protocol.events import Event, RunEvent

__all__ = ["RunHandle", "RunHost", "current_run"]

log = logging.getLogger("livesign.client")

RENEW_S = 10.0
"""A run that says nothing is renewed so often, or three times in a lease of its own."""
_NAMES = ("account", "conversation", "message", "run", "thread")
_CURRENT: ContextVar[RunHandle | None] = ContextVar("livesign_run", default=None)


class RunHost(Protocol):
    """What a handle needs of whoever made it."""

    keeper: Keeper

    def put(self, event: Event) -> object:
        """Take a checked event. Any thread; never waits. May raise when it cannot be taken."""

    def outcome_of(self, run: RunHandle, timeout_s: float) -> RunOutcome: ...

    async def aoutcome_of(self, run: RunHandle, timeout_s: float) -> RunOutcome: ...


def current_run() -> RunHandle | None:
    """The run whose block this code runs in (this thread, task or greenlet, and tasks started in it); None: none."""
    return _CURRENT.get()


class RunHandle(RunEvents):
    """One run: ``with`` or ``async with`` it, or `begin` it and end it yourself. (What is told before begins it.)

    While its block runs it is kept alive; a handle that is garbage-collected without an end is torn down.
    """

    __slots__ = ("__weakref__", "_begun", "_host", "_opening", "_pulse", "_token")

    def __init__(self, host: RunHost, opening: RunEvent, renew_s: float = RENEW_S) -> None:
        """``opening``: the checked event that opens the run."""
        super().__init__({name: getattr(opening, name) for name in _NAMES})
        self._host = host
        self._opening = opening
        self._pulse = Pulse(self._names, renew_s if opening.lease_ms is None else opening.lease_ms / 3_000)
        self._begun = False
        self._token: Token[RunHandle | None] | None = None

    @property
    def conversation(self) -> str:
        """The conversation's id."""
        return str(self._names["conversation"])

    @property
    def account(self) -> str | None:
        """The account's name, where one was named."""
        account: str | None = self._names["account"]
        return account

    @property
    def name(self) -> str:
        """The run's own name: ``run``, else the message's id."""
        return str(self._names["run"] or self._names["message"])

    def __repr__(self) -> str:
        state = self.ended or ("open" if self._begun else "not begun")
        return f"<run {self.name} in {self.conversation}: {state}>"

    # --- the block -----------------------------------------------------------------------------------------

    def begin(self) -> Self:
        """Open the run without a block. End it with `done`, `error`, `cancelled` or `silent`. Once only."""
        if self._begun:
            raise RuntimeError("this run has begun already: make a new handle for a new run")
        self._begun = True
        self._host.keeper.add(self._pulse)
        self._send(self._opening)
        return self

    def __enter__(self) -> Self:
        self._pulse.owner = owner_here()
        self.begin()
        self._token = _CURRENT.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
        if self.ended is not None:
            return
        if kind is None:
            self.done()
        elif _cancels(kind):
            self.cancelled(kind.__name__)
        else:
            self.error(kind.__name__)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    def _leave(self) -> None:
        token, self._token = self._token, None
        if token is None:
            return
        try:
            _CURRENT.reset(token)
        except ValueError:  # left in another context than it was entered in
            _CURRENT.set(None)

    def __del__(self) -> None:
        pulse = getattr(self, "_pulse", None)
        if pulse is not None:
            pulse.lost = True  # no more than that: this may run at any place of any thread

    # --- results -------------------------------------------------------------------------------------------

    def outcome(self, timeout_s: float = 5.0) -> RunOutcome:
        """How it ended and what showed at the end. Waits until that is certain, ``timeout_s`` at most; never raises.

        In an asyncio task nothing waits: the answer is what is known now; `aoutcome` waits there.
        """
        return self._host.outcome_of(self, timeout_s)

    async def aoutcome(self, timeout_s: float = 5.0) -> RunOutcome:
        """The same for asyncio."""
        return await self._host.aoutcome_of(self, timeout_s)

    # --- inside --------------------------------------------------------------------------------------------

    def _end(self, kind: type[RunEvent], **fields: Any) -> None:
        super()._end(kind, **fields)
        self._host.keeper.drop(self._pulse)

    def _send(self, event: Event) -> None:
        if not self._begun:
            self.begin()
        self._pulse.active = True
        try:
            self._host.put(event)
        except DecodeError:
            raise
        except Exception as error:
            log.warning("livesign was not told of %s: %s", event.__struct_config__.tag, error)


def _cancels(kind: type[BaseException]) -> bool:
    """Whether leaving a block this way means that it was called off (gevent's Timeout means that it failed)."""
    return not issubclass(kind, Exception) and all(base.__module__ != "gevent.timeout" for base in kind.__mro__)
