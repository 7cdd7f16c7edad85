"""The part of an embedded livesign that lives in its runtime's thread: ledger, ports, tree, and what looks after handles.

`PresenceSupervisor` has its methods called there, as jobs of its home.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import gevent
from gevent.event import Event as Signal

from actors.callback import BotLoop, CallbackPort, Submit
from actors.config import Account, Config, Reload
from actors.engine import Engine
from actors.homes import Home
from actors.host_lag import HostLag
from actors.ledger import Ledger, MemoryLedger
from actors.messages import SessionUp
from actors.outcomes import Outcomes
from actors.sessions import Session
from actors.slots import Slots, open_slots
from protocol.client.execution import Callbacks
from protocol.client.keeper import Keeper
from protocol.client.workers import Workers

__all__ = ["SESSION", "Resident"]

log = logging.getLogger("livesign")

SESSION = "embedded"
LOOK_S = 0.25
"""Longest sleep of the greenlet that looks after run handles."""


class Resident:
    """Built once, in the runtime's thread. Raises AccountError, ValueError and OSError; nothing is held then."""

    def __init__(
        self, config: Config, home: Home, callbacks: Mapping[str, Callbacks], bot: BotLoop, keeper: Keeper
    ) -> None:
        self.callbacks = dict(callbacks)
        self.session = Session(SESSION, SESSION)
        """Knows the ids that were used. To be guarded by who uses it."""
        self.hurry = Signal()
        """Once set, a stop does not wait any more for what still shows."""
        self.lag = HostLag(bot)
        self._runtime = home.runtime
        self._bot = bot
        self._keeper = keeper
        self._workers: Workers | None = None
        self._submit: Submit = gevent.spawn  # the bot's functions wait cooperatively where its hub is ours
        if not home.shares_hub:
            count = max((account.calls.concurrency for account in config.accounts.values()), default=1)
            self._workers = Workers(count, "livesign-calls")
            self._submit = self._workers.submit
        self._slots = self._open_slots(config)
        try:
            self._start(config)
        except BaseException:
            self._let_go()
            raise
        self._looker: Any = gevent.spawn(self._look_after)

    def _open_slots(self, config: Config) -> Slots | None:
        if config.ledger_path == ":memory:":
            return None
        try:
            return open_slots(config.ledger_path, self._runtime.call_soon, config.accounts, gevent.spawn_later)
        except OSError as error:
            log.warning("no ledger in %s (%s): a crash will leave what shows", config.ledger_path, error)
            return None

    def _start(self, config: Config) -> None:
        ledger: Ledger = MemoryLedger() if self._slots is None else self._slots.own
        ledger.degraded |= self._slots is None and config.ledger_path != ":memory:"
        for event_id in ledger.load().used.get(SESSION, ()):
            self.session.is_repeat(event_id)
        self.engine = Engine(config, self._runtime, ledger, {"callback": self._port})
        self.application = self.engine.application
        router = self.application.parts.router
        router.runs.session_max = 0
        router.reports = True
        self.outcomes = Outcomes(router.runs)
        self.application.on_ended(self.outcomes.told)
        self.application.start()
        if self._slots is not None:
            self._slots.settle()
        self.application.submit(SessionUp(SESSION))

    def _port(self, account: Account) -> CallbackPort:
        callbacks = self.callbacks.get(account.name)
        if callbacks is None:
            raise ValueError(f"no callbacks were given: start(callbacks={{{account.name!r}: Callbacks(...)}})")
        return CallbackPort(account, callbacks, self._runtime, self._bot, self._submit)

    def _look_after(self) -> None:
        while True:
            gevent.sleep(min(self._keeper.beat(), LOOK_S))
            self.lag.look()

    def reload(self, config: Config, callbacks: Mapping[str, Callbacks]) -> Reload:
        """Use another configuration, and these callbacks too. Raises ConfigError or AccountError: nothing has changed."""
        before = dict(self.callbacks)
        self.callbacks.update(callbacks)
        try:
            return self.engine.reload(config)
        except BaseException:
            self.callbacks = before
            raise

    def end(self, timeout_s: float | None) -> bool:
        """Take back what shows, and end. True: nothing of ours is left on the platforms."""
        if timeout_s is not None:
            gevent.spawn_later(timeout_s, self.hurry.set)
        try:
            return self.engine.drain(self.hurry)
        finally:
            self._looker.kill()
            self.engine.close()
            self._let_go()

    def abandon(self) -> None:
        """This is the child of a fork: all of this is the parent's. Any thread."""
        if self._slots is not None:
            for ledger in (self._slots.own, *self._slots.dead):
                ledger.abandon()

    def _let_go(self) -> None:
        if self._slots is not None:
            self._slots.close_dead()
        if self._workers is not None:
            self._workers.close()
