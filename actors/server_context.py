"""What all connections of a server share: settings, time limits, sessions, the gate, and the way to the
application."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import gevent
from gevent.event import Event as Signal

from actors.executors import Executors
from actors.grants import Grant, token_grant
from actors.server_settings import ServerSettings
from actors.sessions import Sessions, Teller
from protocol.codec import MAX_DEPTH

COUNTED: Mapping[str, str] = MappingProxyType({
    "accepts_failed": "times a connection could not be accepted, as without free descriptors",
    "bytes_in": "bytes that clients have sent",
    "connections": "connections that were served",
    "connections_cut": "connections ended because of a time limit, or because their replies were not read",
    "connections_refused": "connections above server.limits.connections",
    "events": "events of clients",
    "events_rejected": "events that were refused before anything looked at what they mean",
    "events_repeated": "events whose id the session had used before",
    "faults": "connections that a fault of livesign has ended",
    "handshakes_failed": "connections that did not come to TLS",
    "reads_paused": "times a reader had to wait, for the runtime was behind or its replies were not read",
    "sockets_replaced": "socket files of dead processes that were replaced",
    "states_dropped": "states that a subscriber did not read in time",
    "streams_broken": "connections ended by bytes that are no events",
    "tokens_refused": "connections that did not begin with a good token",
    "users_refused": "connections of other users to the Unix socket",
})  # fmt: skip
"""What a server counts, and what it means."""
HIGH_BACKLOG = 16_384
LOW_BACKLOG = 4_096
_POLL_S = 0.005


@dataclass(frozen=True, slots=True)
class Timing:
    """Time limits in seconds."""

    handshake_s: float = 5.0
    """From accept to a good hello on TCP."""
    half_event_s: float = 5.0
    """From an event's first byte to its last."""
    silence_s: float = 20.0
    """Without a byte from a peer that pings; without a byte taken by a peer that should read."""
    linger_s: float = 1.0
    """For the last replies of a connection that ends."""
    check_s: float = 0.25
    """How often the limits are looked at."""


class Gate:
    """Open while the runtime keeps up. Readers wait here instead of dropping; one greenlet looks for all of
    them."""

    def __init__(self, backlog: Callable[[], int], high: int = HIGH_BACKLOG, low: int = LOW_BACKLOG) -> None:
        self._backlog = backlog
        self._high = high
        self._low = low
        self._opened = Signal()
        self._opened.set()

    @property
    def is_open(self) -> bool:
        return self._backlog() <= self._high

    def wait(self) -> None:
        """Returns once there is room. Whoever wakes looks again, for those before it may have filled it
        up."""
        while not self.is_open:
            if self._opened.is_set():
                self._opened.clear()
                gevent.spawn(self._watch)
            self._opened.wait()

    def _watch(self) -> None:
        while self._backlog() > self._low:
            gevent.sleep(_POLL_S)
        self._opened.set()


@dataclass(slots=True)
class ServerContext:
    settings: ServerSettings
    router: Teller
    sessions: Sessions
    gate: Gate
    accounts: Callable[[], Collection[str]]
    """The accounts there are at present."""
    stats: Callable[[], dict[str, int]]
    name: str
    timing: Timing
    executors: Executors = field(default_factory=Executors)
    counters: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(COUNTED, 0)))

    def grant_of(self, token: str) -> Grant | None:
        return token_grant(token, self.settings.tokens)

    def limits(self) -> dict[str, int]:
        """What a `Welcome` says of limits; ``silence_ms`` is for clients that ping."""
        limits = self.settings.limits
        return {
            "event_bytes": limits.event_bytes,
            "depth": MAX_DEPTH,
            "open_runs": limits.open_runs,
            "idle_ms": limits.idle_ms,
            "silence_ms": int(self.timing.silence_s * 1_000),
        }
