"""What a bot tells an embedded livesign, and what it learns of its runs: the part of `PresenceSupervisor` that is used all the
time, from any thread, and must never fail."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal
from weakref import WeakSet

from actors.callback import BotLoop
from actors.config import Config
from actors.homes import Home
from actors.messages import FromClient
from actors.presence.terms import RunKey
from actors.resident import SESSION, Resident
from protocol.client.execution import Callbacks
from protocol.client.keeper import Keeper
from protocol.client.outbox import WORTH_LITTLE_LATE
from protocol.client.outcome import RunOutcome
from protocol.client.run_handle import RENEW_S, RunHandle
from protocol.client.runs import RunMaker
from protocol.codec import DecodeError, normalise
from protocol.events import Alive, Event, Rejected, Reply, RunEvent

__all__ = ["ForkedError", "Telling"]

log = logging.getLogger("livesign")

BACKLOG_MAX = 65_536
"""Above this many waiting messages, what is worth little when late is dropped."""
GRACE_S = 2.0
"""What takes so much longer than it may is not waited for."""
_FORKED = (
    "this PresenceSupervisor was started in process {} and is used in its fork {}, where its thread does not exist: "
    "start one after the fork (gunicorn: post_fork, uWSGI: @postfork, Celery: worker_process_init)"
)


class ForkedError(RuntimeError):
    """A PresenceSupervisor was started before a fork and is used after it, where its thread does not exist."""


class Telling(RunMaker):
    """See the module."""

    def __init__(self, config: Config, home: Home, callbacks: Mapping[str, Callbacks], bot: BotLoop) -> None:
        """Starts what lives inside; raises what that raises."""
        self.keeper = Keeper(self.put)
        self._home = home
        self._bot = bot
        self._config = config
        self._state: Literal["running", "stopping", "stopped", "forked"] = "running"
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._counters: Counter[str] = Counter()
        self._complained = False
        self._late: WeakSet[RunHandle] = WeakSet()
        """Handles of runs that had ended before."""
        self._inside: Resident = home.begin(partial(Resident, config, home, callbacks, bot, self.keeper)).get()

    def tell(self, event: Event | Mapping[str, Any]) -> None:
        """Tell what happens, from any thread or loop. Takes microseconds, never waits.

        Raises `DecodeError` (a ValueError) for what is no event of a run, and `ForkedError`; nothing else.
        """
        self.put(self._checked(normalise(event)))

    def put(self, event: Event) -> None:
        """The same for an event that is known to be good."""
        if self._state != "running":
            self._not_running()
            return
        if self._bot.loop is None:
            self._bot.see()
        runtime = self._home.runtime
        if runtime.backlog > BACKLOG_MAX and isinstance(event, WORTH_LITTLE_LATE):
            self._counters["dropped"] += 1
            return
        repeated = event.id is not None and self._is_repeat(event.id)
        try:
            self._inside.application.submit(FromClient(SESSION, event, self._heard, repeated=repeated))
        except Exception as error:
            self._lose(f"{type(error).__name__}: {error}")

    def _is_repeat(self, event_id: str) -> bool:
        with self._lock:
            return self._inside.session.is_repeat(event_id)

    def _checked(self, event: Event) -> Event:
        if not isinstance(event, RunEvent | Alive):
            raise DecodeError("bad_value", "only events of runs are told here", field="type", event_id=event.id)
        accounts = self._config.accounts
        if event.account is not None and event.account not in accounts:
            detail = f"there is no account {event.account!r}; there are {', '.join(accounts)}"
            raise DecodeError("unknown_account", detail, field="account", event_id=event.id)
        if event.account is None and len(accounts) > 1 and isinstance(event, RunEvent):
            detail = f"there are several accounts: name one of {', '.join(accounts)}"
            raise DecodeError("missing_field", detail, field="account", event_id=event.id)
        return event

    def _check(self, opening: RunEvent) -> RunEvent:
        self._check_fork()
        checked = self._checked(opening)
        assert isinstance(checked, RunEvent)
        return checked

    def _check_fork(self) -> None:
        if self._state == "forked":
            raise ForkedError(_FORKED.format(self._pid, os.getpid()))

    def _check_running(self) -> None:
        self._check_fork()
        if self._state != "running":
            raise RuntimeError("this PresenceSupervisor has been stopped: start a new one")

    def _not_running(self) -> None:
        self._check_fork()
        self._lose("it has been stopped")

    def _lose(self, why: str) -> None:
        self._counters["lost"] += 1
        if not self._complained:
            self._complained = True
            log.error("livesign takes no events any more: %s", why)

    def _heard(self, reply: Reply) -> None:
        """In the runtime's thread."""
        if isinstance(reply, Rejected):
            log.warning("livesign rejected an event: %s: %s", reply.code, reply.detail)

    def _renew_s(self, opening: RunEvent) -> float:
        account = self._config.accounts[opening.account or next(iter(self._config.accounts))]
        times_ms = (account.policy.lease.ms, account.policy.typing.ttl_ms)
        return min([RENEW_S, *(ms / 3_000 for ms in times_ms if ms)])

    def _made(self, run: RunHandle) -> None:
        if self._state != "running" or not self._inside.outcomes.over(self._key(run)):
            return
        if not self._counters["repeated"]:
            text = "run %s in %s has ended already, so nothing more shows of it; a second run on a message needs a name: run=..."
            log.warning(text, run.name, run.conversation)
        self._counters["repeated"] += 1
        self._late.add(run)

    # --- results -----------------------------------------------------------------------------------------------

    def outcome_of(self, run: RunHandle, timeout_s: float) -> RunOutcome:
        """See `RunHandle.outcome`."""
        key = self._key(run)
        known = self._known(run, key)
        if known.final or self._state != "running" or asyncio._get_running_loop() is not None:
            return known
        try:
            self._home.begin(partial(self._inside.outcomes.wait, key, timeout_s)).get(timeout=timeout_s + GRACE_S)
        except Exception as error:
            log.debug("no outcome: %r", error)
        return self._inside.outcomes.known(key)

    async def aoutcome_of(self, run: RunHandle, timeout_s: float) -> RunOutcome:
        """See `RunHandle.aoutcome`."""
        key = self._key(run)
        known = self._known(run, key)
        if known.final or self._state != "running":
            return known
        await self._home.begin(partial(self._inside.outcomes.wait, key, timeout_s))
        return self._inside.outcomes.known(key)

    def _known(self, run: RunHandle, key: RunKey) -> RunOutcome:
        known = self._inside.outcomes.known(key)
        return RunOutcome(known.outcome, known.reason, problem="ended_before") if run in self._late else known

    def _key(self, run: RunHandle) -> RunKey:
        return RunKey(run.account or next(iter(self._config.accounts)), run.conversation, run.name)
