"""livesign inside a bot's own process: `PresenceSupervisor`.

- It runs in a thread of its own, so that a bot which blocks does not stop typing; in a gevent process on the caller's hub.
- What the bot tells goes over a queue that never waits. What livesign itself cannot do is logged and counted, never raised
  into the bot's work. When more waits than livesign can handle, phases and progress are dropped, never the end of a run.
- It is one session, connected for as long as the process lives. Its ledger is a slot of its own (`actors.slots`).
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, Self
from weakref import WeakSet

import pykka

from actors.callback import BotLoop
from actors.config import Config, Reload, load
from actors.homes import Home, home_for
from actors.messages import FromClient
from actors.presence.terms import RunKey
from actors.resident import SESSION, Resident
from actors.runtime import Future
from protocol.client.execution import Callbacks
from protocol.client.keeper import Keeper
from protocol.client.outbox import WORTH_LITTLE_LATE
from protocol.client.outcome import RunOutcome
from protocol.client.run_handle import RENEW_S, RunHandle
from protocol.client.runs import RunMaker
from protocol.codec import DecodeError, normalise
from protocol.events import Alive, Event, Rejected, Reply, RunEvent

__all__ = ["ForkedError", "PresenceSupervisor"]

log = logging.getLogger("livesign")

BACKLOG_MAX = 65_536
"""Above this many waiting messages, what is worth little when late is dropped."""
GRACE_S = 2.0
"""A stop that takes so much longer than it may is not waited for."""
AT_EXIT_S = 3.0

Source = str | os.PathLike[str] | Mapping[str, Any] | Config | None


class ForkedError(RuntimeError):
    """A PresenceSupervisor was started before a fork and is used after it, where its thread does not exist."""


class PresenceSupervisor(RunMaker):
    """One livesign for this process; see `start`. Usable from any thread, asyncio loop or greenlet.

    ::

        with PresenceSupervisor.start("livesign.toml") as presence:
            with presence.run(conversation=chat, message=message, direct=True) as run:
                run.thinking()
                with run.tool("web_search"):
                    ...
    """

    def __init__(self, config: Config, home: Home, callbacks: Mapping[str, Callbacks], bot: BotLoop) -> None:
        """Use `start`."""
        self.keeper = Keeper(self.put)
        self._home = home
        self._bot = bot
        self._config = config
        self._state: Literal["running", "stopping", "stopped", "forked"] = "running"
        self._pid = os.getpid()
        self._stopping: Future[bool] | None = None
        self._lock = threading.Lock()
        self._counters: Counter[str] = Counter()
        self._complained = False
        self._inside: Resident = home.begin(partial(Resident, config, home, callbacks, bot, self.keeper)).get()

    # --- start and stop ----------------------------------------------------------------------------------------

    @classmethod
    def start(
        cls,
        config: Source = None,
        *,
        callbacks: Mapping[str, Callbacks] | None = None,
        hub: Literal["auto", "thread", "caller"] = "auto",
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> Self:
        """Start livesign in this process; it stands when this returns, after some ten milliseconds.

        ``config``: path of a TOML file, a tree of the same form, a `Config` of `load_config`, or None: one account on the
        built-in chat service. ``callbacks``: by account, the bot's own functions for those on platform ``callback``; its
        coroutine functions run in ``loop``, else in the loop that livesign is used in. ``hub``: ``thread`` is a thread of
        its own, ``caller`` the hub of the present thread (a gevent process), ``auto`` the latter where gevent has patched
        the process.

        Raises ConfigError, AccountError, ValueError and OSError for what cannot be used; nothing is left running then.
        After a fork, start a new one in the child.
        """
        checked = load(config)
        for warning in checked.warnings:
            log.warning("%s", warning)
        _warn_of_others(checked)
        strange = sorted(set(callbacks or {}) - set(checked.accounts))
        if strange:
            raise ValueError(f"callbacks for {', '.join(strange)}: there is no such account")
        bot = BotLoop(loop)
        bot.see()
        home = home_for(hub)
        try:
            presence = cls(checked, home, callbacks or {}, bot)
        except BaseException:
            home.runtime.close()
            raise
        _ALL.add(presence)
        return presence

    def __enter__(self) -> Self:
        if self._state != "running":
            raise RuntimeError("this PresenceSupervisor has been stopped: start a new one")
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        self._bot.see()
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        await self.astop()

    def stop(self, timeout_s: float | None = None) -> bool:
        """Take back what shows, within ``shutdown.budget_ms`` (or ``timeout_s``), and end; waits for that.

        True: nothing of ours is left on the platforms. Stopping twice does no harm. In an asyncio program use ``async
        with``, or `astop`: this holds the loop, and functions that run in it cannot be called meanwhile.
        """
        future = self._begin_stop(timeout_s)
        if future is None:
            return True
        if self._bot.loop is not None and asyncio._get_running_loop() is self._bot.loop and self._calls_in_loop:
            log.warning(
                "stopped in the loop that the callbacks need: what shows stays; use `async with`, or await astop()"
            )
            self._home.begin(self._inside.hurry.set)
        try:
            clean = bool(future.get(timeout=self._wait_s(timeout_s)))
        except pykka.Timeout:
            log.error("livesign did not stop in time")
            return False
        self._home.runtime.close()
        return clean

    async def astop(self, timeout_s: float | None = None) -> bool:
        """The same for asyncio."""
        future = self._begin_stop(timeout_s)
        if future is None:
            return True
        try:
            async with asyncio.timeout(self._wait_s(timeout_s)):
                clean = bool(await future)
        except TimeoutError:
            log.error("livesign did not stop in time")
            return False
        await asyncio.to_thread(self._home.runtime.close)
        return clean

    @property
    def _calls_in_loop(self) -> bool:
        return any(callbacks.any_async for callbacks in self._inside.callbacks.values())

    def _wait_s(self, timeout_s: float | None) -> float:
        return (self._config.shutdown_budget_ms / 1_000 if timeout_s is None else timeout_s) + GRACE_S

    def _begin_stop(self, timeout_s: float | None) -> Future[bool] | None:
        """None: there is nothing to stop."""
        if self._state == "forked":
            return None
        with self._lock:
            if self._stopping is None:
                self._state = "stopping"
                self._stopping = self._home.begin(partial(self._end, timeout_s))
            return self._stopping

    def _end(self, timeout_s: float | None) -> bool:
        """In the runtime's thread."""
        try:
            return self._inside.end(timeout_s)
        finally:
            self._state = "stopped"
            _ALL.discard(self)

    def _forked(self) -> None:
        """In the child of a fork."""
        self._state = "forked"
        self._inside.abandon()

    def reload(self, config: Source = None, *, callbacks: Mapping[str, Callbacks] | None = None) -> Reload:
        """Use another configuration from now on (None: the same file again); open runs keep their settings.

        ``callbacks`` are added to those of `start`, or take their place. Returns what has changed. Raises ConfigError or
        AccountError; then nothing has. Takes some milliseconds: in asyncio, use ``asyncio.to_thread``.
        """
        self._check_running()
        source = self._config.source if config is None else config
        if source is None:
            raise ValueError("there is no configuration file to read again: give a configuration")
        checked = load(source)

        def change() -> Reload:
            changed = self._inside.reload(checked, callbacks or {})
            self._config = self._inside.engine.config
            return changed

        return self._home.begin(change).get()  # type: ignore[no-any-return]

    # --- telling -----------------------------------------------------------------------------------------------

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
        if event.id is not None and self._is_repeat(event.id):
            return
        try:
            self._inside.application.submit(FromClient(SESSION, event, self._heard))
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
        checked = self._checked(opening)
        assert isinstance(checked, RunEvent)
        return checked

    def _check_running(self) -> None:
        if self._state == "forked":
            raise ForkedError(_FORKED.format(self._pid, os.getpid()))
        if self._state != "running":
            raise RuntimeError("this PresenceSupervisor has been stopped: start a new one")

    def _not_running(self) -> None:
        if self._state == "forked":
            raise ForkedError(_FORKED.format(self._pid, os.getpid()))
        self._lose("it has been stopped")

    def _lose(self, why: str) -> None:
        self._counters["lost"] += 1
        if not self._complained:
            self._complained = True
            log.error("livesign takes no events any more: %s", why)

    def _heard(self, reply: Reply) -> None:
        """In the runtime's thread."""
        if isinstance(reply, Rejected):
            if reply.id is not None:
                with self._lock:
                    self._inside.session.forget(reply.id)
            log.warning("livesign rejected an event: %s: %s", reply.code, reply.detail)

    def _renew_s(self, opening: RunEvent) -> float:
        account = self._config.accounts[opening.account or next(iter(self._config.accounts))]
        times_ms = (account.policy.lease.ms, account.policy.typing.ttl_ms)
        return min([RENEW_S, *(ms / 3_000 for ms in times_ms if ms)])

    # --- results -----------------------------------------------------------------------------------------------

    def outcome_of(self, run: RunHandle, timeout_s: float) -> RunOutcome:
        """See `RunHandle.outcome`."""
        key = self._key(run)
        known = self._inside.outcomes.known(key)
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
        known = self._inside.outcomes.known(key)
        if known.final or self._state != "running":
            return known
        await self._home.begin(partial(self._inside.outcomes.wait, key, timeout_s))
        return self._inside.outcomes.known(key)

    def _key(self, run: RunHandle) -> RunKey:
        return RunKey(run.account or next(iter(self._config.accounts)), run.conversation, run.name)

    # --- seeing ------------------------------------------------------------------------------------------------

    @property
    def config(self) -> Config:
        """The configuration in force."""
        return self._config

    @property
    def addresses(self) -> dict[str, str]:
        """Where the built-in chat services of sandbox accounts can be watched, by account."""
        return {name: service.base_url for name, service in self._inside.engine.sandboxes.items()}

    def stats(self) -> dict[str, int]:
        """Everything that is counted or can be measured. Takes a moment: in asyncio, use ``asyncio.to_thread``."""
        self._check_running()
        numbers = Counter(self._home.begin(self._inside.engine.stats).get())
        numbers.update(self._counters)
        numbers["host_lags"] = self._inside.lag.count
        numbers["handles"] = len(self.keeper)
        numbers["handles_abandoned"] = self.keeper.abandoned
        return dict(sorted(numbers.items()))


_FORKED = (
    "this PresenceSupervisor was started in process {} and is used in its fork {}, where its thread does not exist: "
    "start one after the fork (gunicorn: post_fork, uWSGI: @postfork, Celery: worker_process_init)"
)
_ALL: WeakSet[PresenceSupervisor] = WeakSet()
"""Those that run in this process."""


def _warn_of_others(config: Config) -> None:
    for other in _ALL:
        both = sorted(set(config.accounts) & set(other.config.accounts))
        if both:
            log.warning(
                "another PresenceSupervisor serves %s in this process: each keeps its own limits", ", ".join(both)
            )


def _after_fork() -> None:
    for presence in list(_ALL):
        presence._forked()
    _ALL.clear()


def _at_exit() -> None:
    for presence in list(_ALL):
        presence.stop(AT_EXIT_S)


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
