"""Remote execution, livesign's side: the calls of ``remote`` accounts are handed to a client that makes them.

- The newest executor that may use an account gets its calls; when it leaves, the one before it.
- A call without an executor waits for one, until its deadline. Then, and when livesign stops, it was certainly not made.
- A result counts only from the session that was given the call, and once. A call whose executor is lost, or whose deadline
  is over, may have been made: its outcome is unknown.

All of it in the runtime's thread.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import count
from time import monotonic_ns
from typing import Any, Protocol

import gevent
import msgspec

from actors.callback import call_of, needless_call
from actors.config import Account
from actors.platforms.port import Done
from actors.presence.terms import Command, Outcome, OutcomeKind
from protocol.events import Call, CallResult, Reply

__all__ = ["Executor", "Executors", "RemotePort"]

_SCOPES = frozenset({"account", "conversation", "route", "message"})


class Executor(Protocol):
    """A connection that makes calls."""

    @property
    def session_key(self) -> str: ...

    def put(self, reply: Reply) -> None:
        """Send; never blocks."""


@dataclass(slots=True)
class _Waiting:
    """A call that is not over."""

    call: Call
    done: Done
    timer: Any
    until_ns: int
    executor: Executor | None = None
    """Who was given it; None: nobody yet."""


@dataclass(frozen=True, slots=True)
class _Offer:
    """What an executor has asked for."""

    executor: Executor
    covers: Callable[[str], bool]


class Executors:
    """All executors and all calls under way."""

    def __init__(self, on_join: Callable[[str], None] = lambda account: None) -> None:
        """``on_join`` is told of each account for whose calls somebody has come."""
        self._on_join = on_join
        self.counters: Counter[str] = Counter()
        """calls_handed, calls_late (results that came too late or twice)."""
        self._offers: list[_Offer] = []
        """Newest last."""
        self._accounts: dict[str, RemotePort] = {}
        self._calls: dict[str, _Waiting] = {}
        self._numbers = count(1)
        self._prefix = uuid.uuid4().hex[:8]
        """An answer to a livesign before this one answers nothing here."""

    @property
    def accounts(self) -> Collection[str]:
        """The accounts that are served this way."""
        return self._accounts

    def port(self, account: Account) -> RemotePort:
        """The way out for the calls of this account."""
        port = self._accounts[account.name] = RemotePort(account, self)
        return port

    def forget(self, port: RemotePort) -> None:
        """The port is closed: its calls end now."""
        name = port.account.name
        if self._accounts.get(name) is port:
            del self._accounts[name]
        for waiting in [each for each in self._calls.values() if each.call.account == name]:
            handed = waiting.executor is not None
            self._end_soon(waiting, Outcome(OutcomeKind.UNKNOWN if handed else OutcomeKind.TRANSIENT, detail="closed"))

    # --- executors -----------------------------------------------------------------------------------------------

    def join(self, executor: Executor, covers: Callable[[str], bool]) -> None:
        """From now on this executor gets the calls of the accounts it covers, and those that wait."""
        self._offers.append(_Offer(executor, covers))
        for waiting in list(self._calls.values()):
            if waiting.executor is None:
                self._hand(waiting)
        for account in filter(covers, list(self._accounts)):
            self._on_join(account)

    def leave(self, executor: Executor) -> None:
        """Its connection is gone."""
        self._offers = [offer for offer in self._offers if offer.executor is not executor]
        for waiting in [each for each in self._calls.values() if each.executor is executor]:
            self._end(waiting, Outcome(OutcomeKind.UNKNOWN, detail="the executor is lost"))

    def result(self, executor: Executor, event: CallResult) -> bool:
        """An executor's answer; False: nobody waits for it. Raises ValueError for an outcome that there is not."""
        kind = OutcomeKind(event.outcome)
        waiting = self._calls.get(event.call_id)
        if waiting is None or waiting.executor is None or waiting.executor.session_key != executor.session_key:
            self.counters["calls_late"] += 1
            return False
        scope = event.scope if event.scope in _SCOPES else None
        self._end(waiting, Outcome(kind, event.handle, event.retry_after_ms, scope, event.detail or ""))
        return True

    # --- calls ---------------------------------------------------------------------------------------------------

    def make(self, account: Account, command: Command, deadline_ms: int, done: Done) -> None:
        """Have the call made."""
        call = call_of(account, command, deadline_ms, f"{self._prefix}-{next(self._numbers)}")
        timer = gevent.get_hub().loop.timer(deadline_ms / 1_000)
        until_ns = monotonic_ns() + deadline_ms * 1_000_000
        waiting = self._calls[call.call_id] = _Waiting(call, done, timer, until_ns)
        timer.start(self._expired, waiting)
        needless = needless_call(account, command)
        if needless is not None:
            self._end_soon(waiting, needless)
        else:
            self._hand(waiting)

    def _hand(self, waiting: _Waiting) -> None:
        for offer in reversed(self._offers):
            if offer.covers(waiting.call.account):
                waiting.executor = offer.executor
                self.counters["calls_handed"] += 1
                left_ms = max(1, (waiting.until_ns - monotonic_ns()) // 1_000_000)
                offer.executor.put(msgspec.structs.replace(waiting.call, deadline_ms=left_ms))
                return

    def _expired(self, waiting: _Waiting) -> None:
        if waiting.executor is None:
            self._end(waiting, Outcome(OutcomeKind.TRANSIENT, detail="no executor is connected"))
        else:
            self._end(waiting, Outcome(OutcomeKind.UNKNOWN, detail="deadline"))

    def _end_soon(self, waiting: _Waiting, outcome: Outcome) -> None:
        gevent.get_hub().loop.run_callback(self._end, waiting, outcome)

    def _end(self, waiting: _Waiting, outcome: Outcome) -> None:
        if self._calls.pop(waiting.call.call_id, None) is not None:
            waiting.timer.close()
            waiting.done(outcome)


class RemotePort:
    """A `PlatformPort` over `Executors`."""

    def __init__(self, account: Account, executors: Executors) -> None:
        self.account = account
        self._executors = executors
        self._closed = False

    def call(self, command: Command, deadline_ms: int, done: Done) -> None:
        """See `PlatformPort`."""
        if self._closed:
            gevent.get_hub().loop.run_callback(done, Outcome(OutcomeKind.TRANSIENT, detail="closed"))
        else:
            self._executors.make(self.account, command, deadline_ms, done)

    def close(self) -> None:
        """See `PlatformPort`."""
        self._closed = True
        self._executors.forget(self)
