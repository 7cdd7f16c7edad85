"""How the server listens and whom it lets do what; built by the configuration loader."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TokenGrant:
    """What a client with this token may do. ``repr`` never shows the token."""

    token: str = field(repr=False)
    accounts: frozenset[str] | None = None
    """None: all accounts."""
    grants: frozenset[str] = frozenset({"send"})
    """Of send, execute and subscribe."""


@dataclass(frozen=True, slots=True)
class ServerLimits:
    event_bytes: int = 65_536
    """Largest event."""
    connections: int = 1_024
    """Open connections at the same time."""
    open_runs: int = 100_000
    """Open runs of one session."""
    idle_ms: int = 0
    """A connection that says nothing for so long is closed; 0 is off."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    unix: str | None = None
    """Path of the Unix socket; None: none."""
    tcp: str | None = None
    """``host:port`` (IPv6 in brackets); None: none."""
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_client_ca: str | None = None
    tokens: tuple[TokenGrant, ...] = ()
    limits: ServerLimits = ServerLimits()
