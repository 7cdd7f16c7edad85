"""One running livesign with its server, put together on the present thread's hub.

`actors.serve` makes a process of it and `actors.demo` a show.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import gevent
from gevent.event import Event
from pykka import ActorDeadError

from actors.application import Application
from actors.config import Config
from actors.engine import AccountError, Engine, open_ledger, sandbox_options
from actors.executors import Executors
from actors.keys import io_key
from actors.platform_messages import Reachable
from actors.runtime import Runtime
from actors.server import Server

if TYPE_CHECKING:
    from actors.metrics import MetricsPage

__all__ = ["AccountError", "Daemon", "sandbox_options"]

log = logging.getLogger("livesign")


class Daemon(Engine):
    """Built, then `start`-ed, then `stop`-ped, once. All in one thread, whose hub it uses."""

    def __init__(self, config: Config, runtime: Runtime | None = None) -> None:
        """Raises AccountError and LedgerLockedError; nothing is left running then."""
        runtime = runtime or Runtime(name="livesign")
        ledger = open_ledger(config.ledger_path, runtime)
        executors = Executors(self._reachable)
        super().__init__(config, runtime, ledger, {"remote": executors.port})
        self.server = Server(
            config.server,
            _Door(self.application),
            backlog=lambda: self.runtime.backlog,
            accounts=lambda: self.application.config.accounts,
            stats=self.stats,
            executors=executors,
        )
        self.server.context.sessions.remember(ledger.load().used)
        self.gauges["connections"] = lambda: len(self.server.connections)
        self.gauges["sessions"] = lambda: len(self.server.context.sessions)
        self.metrics = _metrics_page(self)
        """None: there is none."""

    def start(self) -> None:
        """Start the tree and listen. Raises `actors.server.ListenError`, and then nothing runs any more."""
        try:
            self.application.start()
            self.server.start()
            if self.metrics is not None:
                self.metrics.start()
        except BaseException:
            self.close()
            raise

    def stop(self, hurry: Event | None = None) -> bool:
        """Take back what shows, within ``shutdown.budget_ms``, while the clients are sent away; then end.

        True: nothing of ours is left on the platforms. Once ``hurry`` is set, what still shows stays. The
        application's `left` then says what.
        """
        try:
            leaving = gevent.spawn(self.server.stop, executors=False)
            clean = self.drain(hurry)
            leaving.join()
            self.server.stop()
        finally:
            self.close()
        return clean

    def leave(self) -> None:
        """End at once and leave what shows to a successor on the same ledger.

        The tree goes first: nobody is to see the clients leave, and to end their runs.
        """
        self.application.close()
        self.server.stop()
        self.close()

    def _reachable(self, account: str) -> None:
        ref = self.runtime.lookup(io_key(account))
        if ref is not None:
            ref.tell(Reachable())

    def close(self) -> None:
        """End at once; what shows is left as it is."""
        if self.metrics is not None:
            self.metrics.stop()
        super().close()
        self.runtime.close()

    def stats(self) -> dict[str, int]:
        """Everything that is counted or can be measured, by name; those of the server begin with ``server_``."""
        numbers = super().stats() | self.server.context.executors.counters
        numbers |= {f"server_{name}": value for name, value in self.server.counters.items()}
        return dict(sorted(numbers.items()))


def _metrics_page(daemon: Daemon) -> MetricsPage | None:
    address = daemon.config.metrics_listen
    if address is None:
        return None
    from actors.metrics import MetricsPage  # its library is loaded only where it is wanted

    return MetricsPage(address, daemon)


class _Door:
    """The way from sessions to the router, whichever actor that is at the moment."""

    def __init__(self, application: Application) -> None:
        self._application = application

    def tell(self, message: Any) -> None:
        try:
            self._application.submit(message)
        except ActorDeadError:
            log.debug("nobody is there any more for %s", type(message).__name__)
