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
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, Self
from weakref import WeakSet

import pykka

from actors.callback import BotLoop
from actors.config import SHOW_ALL, Config, Reload, load
from actors.homes import Home, home_for
from actors.runtime import Future
from actors.telling import GRACE_S, ForkedError, Telling
from protocol.client.execution import Callbacks

__all__ = ["ForkedError", "PresenceSupervisor"]

log = logging.getLogger("livesign")

AT_EXIT_S = 3.0
"""A process that just ends waits so long for what shows to be taken back."""

Source = str | os.PathLike[str] | Mapping[str, Any] | Config | None


class PresenceSupervisor(Telling):
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
        super().__init__(config, home, callbacks, bot)
        self._stopping: Future[bool] | None = None

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
        built-in chat service, where all messages are marked. ``callbacks``: by account, the bot's own functions for those
        on platform ``callback``; its coroutine functions run in ``loop``, else in the loop that livesign is used in.
        ``hub``: ``thread`` is a thread of its own, ``caller`` the hub of the present thread (a gevent process), ``auto``
        the latter where gevent has patched the process.

        Raises ConfigError, AccountError, ValueError and OSError for what cannot be used; nothing is left running then.
        After a fork, start a new one in the child.
        """
        checked = _checked(SHOW_ALL if config is None else config)
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
        checked = _checked(source)

        def change() -> Reload:
            changed = self._inside.reload(checked, callbacks or {})
            self._config = self._inside.engine.config
            return changed

        return self._home.begin(change).get()  # type: ignore[no-any-return]

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


_ALL: WeakSet[PresenceSupervisor] = WeakSet()
"""Those that run in this process."""


def _checked(source: Source) -> Config:
    config = load(source)
    for warning in config.warnings:
        log.warning("%s", warning)
    return config


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
