"""One running livesign without a way in: runtime, ledger, platform ports and the tree, put together.

`actors.daemon` adds the server, `actors.embedding` the API of a bot's own process. Everything here is used in the thread
of the runtime's hub, in a greenlet that may wait. An account on platform ``sandbox`` without a ``base_url`` gets a chat
service of its own in here, with the account's options; its address is in `Engine.sandboxes`.
"""

from __future__ import annotations

import logging
import ssl
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias

import gevent
from gevent.event import AsyncResult, Event

from actors.application import Application
from actors.config import Account, Config, Reload, reload
from actors.ledger import Ledger, MemoryLedger
from actors.ledger_sqlite import SqliteLedger
from actors.platforms.port import HttpPlatform, PlatformPort
from actors.platforms.spec import Credentials
from actors.runtime import Runtime
from actors.sandbox import SandboxOptions, SandboxService

__all__ = ["AccountError", "Engine", "PortMaker", "open_ledger", "sandbox_options"]

log = logging.getLogger("livesign")

GRACE_S = 1.0
"""A drain that has not answered this long after its budget never will."""

PortMaker: TypeAlias = Callable[[Account], PlatformPort]
_NO_MAKERS: Mapping[str, PortMaker] = MappingProxyType({})
_ELSEWHERE = {
    "callback": "the bot's own functions can be called in the bot's process only: use PresenceSupervisor there, or remote",
    "remote": "executors come in by the socket of `livesign serve`: in the bot's own process use callback",
}
"""Why a platform without a maker of its own is not to be had here."""


class AccountError(Exception):
    """An account cannot be used as it is configured; the text says which one and why."""


class Engine:
    """Built, then `start`-ed, then `drain`-ed and `close`-d, once."""

    def __init__(
        self,
        config: Config,
        runtime: Runtime,
        ledger: Ledger,
        makers: Mapping[str, PortMaker] = _NO_MAKERS,
    ) -> None:
        """``makers``: by platform, the ports of those that are not reached by HTTP.

        Raises AccountError; the ledger is closed then, and nothing is left running.
        """
        self.runtime = runtime
        self.sandboxes: dict[str, SandboxService] = {}
        """In-process chat services by account."""
        self.gauges: dict[str, Callable[[], int]] = {
            "actors": lambda: self.runtime.actor_count,
            "backlog": lambda: self.runtime.backlog,
            "ledger_degraded": lambda: int(ledger.degraded),
            "conversations": lambda: len(self.application.parts.router.conversations),
            "open_runs": lambda: len(self.application.parts.router.runs.open),
            "timers": lambda: self.runtime.armed_timers,
        }
        """Present values that `stats` adds to what is counted."""
        self._makers = makers
        self._prepared: dict[str, PlatformPort] = {}
        self._counters: Counter[str] = Counter()
        try:
            self.application = Application(config, self.runtime, self._port, ledger)
        except BaseException:
            ledger.close()
            self._stop_sandboxes()
            raise

    @property
    def config(self) -> Config:
        """The configuration in force."""
        return self.application.config

    @property
    def alive(self) -> bool:
        """Whether the tree still stands; once it has fallen nothing more can be done here."""
        return self.runtime.lookup("root") is not None

    def drain(self, hurry: Event | None = None) -> bool:
        """Take back what shows, within ``shutdown.budget_ms``.

        True: nothing of ours is left on the platforms. Once ``hurry`` is set, what still shows stays.
        """
        drained: AsyncResult[bool] = AsyncResult()
        budget_ms = self.config.shutdown_budget_ms
        if self.alive:
            self.application.shut_down(budget_ms, drained.set)
        else:
            drained.set(False)
        gevent.wait([drained, hurry or Event()], timeout=budget_ms / 1_000 + GRACE_S, count=1)
        return drained.ready() and bool(drained.value)

    def close(self) -> None:
        """Stop the tree and let go of everything but the runtime, which is the caller's to close.

        The tree last: when it has ended, a thread of the runtime's own ends too, and with it whoever waits there.
        """
        self._stop_sandboxes()
        self.application.close()

    def reload(self, config: Config) -> Reload:
        """Use another configuration, as `actors.config.reload` allows.

        Raises ConfigError or AccountError; then nothing has changed.
        """
        try:
            change = reload(self.config, config)
            try:
                for name in (*change.changed, *change.added):
                    self._prepared[name] = self._make_port(config.accounts[name])
            except BaseException:
                for port in self._prepared.values():
                    port.close()
                self._prepared.clear()
                raise
        except BaseException:
            self.refuse_reload()
            raise
        self.application.reload(change)
        self._counters["reloads"] += 1
        return change

    def refuse_reload(self) -> None:
        """Count a configuration that could not be used."""
        self._counters["reloads_refused"] += 1

    def stats(self) -> dict[str, int]:
        """Everything that is counted or can be measured, by name."""
        numbers = Counter(self.application.counters())
        numbers.update(self._counters)
        numbers.update({name: gauge() for name, gauge in self.gauges.items()})
        return dict(sorted(numbers.items()))

    # --- parts ---------------------------------------------------------------------------------------------------

    def _port(self, account: Account) -> PlatformPort:
        return self._prepared.pop(account.name, None) or self._make_port(account)

    def _make_port(self, account: Account) -> PlatformPort:
        maker = self._makers.get(account.platform)
        try:
            if maker is not None:
                return maker(account)
            if account.platform in _ELSEWHERE:
                raise ValueError(_ELSEWHERE[account.platform])
            credentials = self._at_home(account) or account.credentials
            return HttpPlatform(account.adapter, credentials, concurrency=account.calls.concurrency)
        except ssl.SSLError:
            file = account.credentials.ca_file
            raise AccountError(f"accounts.{account.name}.ca_file: {file} holds no usable certificate") from None
        except (OSError, ValueError) as error:
            raise AccountError(f"accounts.{account.name}: {error}") from None

    def _at_home(self, account: Account) -> Credentials | None:
        """How to reach the chat service in here, for an account that uses it."""
        if account.platform != "sandbox" or account.credentials.base_url is not None:
            return None
        service = self.sandboxes.get(account.name)
        if service is None:
            service = self.sandboxes[account.name] = SandboxService(options=sandbox_options(account)).start()
        token = account.credentials.token or account.name
        return replace(account.credentials, base_url=service.base_url, token=token)

    def _stop_sandboxes(self) -> None:
        for service in self.sandboxes.values():
            service.stop()
        self.sandboxes.clear()


def open_ledger(path: str, runtime: Runtime) -> Ledger:
    """The ledger at ``path`` (``:memory:`` or a directory). Raises `LedgerLockedError`."""
    return MemoryLedger() if path == ":memory:" else SqliteLedger(path, runtime.call_soon, gevent.spawn_later)


def sandbox_options(account: Account) -> SandboxOptions:
    """The chat service that an account's options describe. Raises ValueError for options that make no sense."""
    rules = account.spec.rules
    return SandboxOptions(
        reactions=rules.reactions,  # type: ignore[arg-type]  # the adapter has checked it
        typing_stop=rules.typing_stop,
        typing_lifetime_ms=rules.typing_lifetime_ms,
        post_clears_typing=account.spec.post_clears_typing,
        typing_in=account.typing_in,  # type: ignore[arg-type]  # one of the two
    )
