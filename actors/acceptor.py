"""Accepting connections, also where that fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gevent.server import StreamServer

_RETRY_S = 0.1


class Acceptor(StreamServer):
    """Where a connection cannot be accepted (no descriptor is free), ``failed`` is told, and it is tried again soon.

    The peer waits meanwhile. gevent's own server prints a trace each time.
    """

    def __init__(self, listener: Any, handle: Callable[[Any, Any], None], failed: Callable[[OSError], None]) -> None:
        super().__init__(listener, handle)
        self._failed = failed

    def do_read(self) -> Any:
        """The next connection; None: there is none now."""
        try:
            return super().do_read()
        except OSError as error:
            if self.is_fatal_error(error):
                raise
            self.stop_accepting()  # the waiting peer would wake us without end
            timer: Any = self.loop.timer(_RETRY_S)
            timer.start(self._again)
            self._timer = timer  # the library closes it
            self._failed(error)
            return None

    def _again(self) -> None:
        if self.started:
            self.start_accepting()
