"""The settings of the whole process: where it listens and for whom, where the ledger is, how it stops."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from actors.config_accounts import Source, read_token
from actors.config_problems import Report
from actors.config_tree import Layer, Tree, value_of
from actors.config_values import quoted
from actors.server_settings import ServerLimits, ServerSettings, TokenGrant

_UNIX_PATH_MAX_BYTES = 107
_LOOPBACK = ("localhost", "::1")


@dataclass(frozen=True, slots=True)
class Supervision:
    intensity: int = 3
    period_ms: int = 5_000


def socket_path(environ: Mapping[str, str]) -> str:
    """The default Unix socket. Its directory is to be made with mode 0700 by whoever listens."""
    runtime = environ.get("XDG_RUNTIME_DIR")
    if runtime and os.path.isabs(runtime):
        return os.path.join(runtime, "livesign", "livesign.sock")
    return os.path.join(tempfile.gettempdir(), f"livesign-{os.getuid()}", "livesign.sock")


def state_directory(environ: Mapping[str, str]) -> str:
    """The default directory of the ledger."""
    state = environ.get("XDG_STATE_HOME")
    if state and os.path.isabs(state):
        return os.path.join(state, "livesign")
    return os.path.join(os.path.expanduser("~"), ".local", "state", "livesign")


def ledger_path(top: Layer, source: Source) -> str:
    path = value_of(top, "ledger.path")
    if path is None:
        return state_directory(source.environ)
    return ":memory:" if path == ":memory:" else source.path(path)


def build_server(tree: Tree, accounts: Collection[str], source: Source, report: Report) -> ServerSettings:
    """The listeners and their grants."""
    top = tree.top
    tcp = value_of(top, "server.tcp")
    tls = {name: _tls_file(name, top, source, report) for name in ("cert", "key", "client_ca")}
    for name, needed in (("cert", "key"), ("key", "cert"), ("client_ca", "cert")):
        if tls[name] and not tls[needed]:
            report.problem(f"server.tls.{name}", f"needs server.tls.{needed}")
    if tls["cert"] and tcp is None:
        report.problem("server.tls.cert", "is for TCP, and server.tcp is off")
    tokens = tuple(
        _grant(f"server.tokens[{index}]", entry, accounts, source, report) for index, entry in enumerate(tree.tokens)
    )
    if tcp is not None and not source.scenario:
        if not tokens:
            report.problem("server.tcp", "nobody could connect: add server.tokens")
        if not tls["cert"] and not is_loopback(tcp):
            report.warning("server.tcp", f"tokens and events cross the network in the clear on {tcp}: set server.tls")
    return ServerSettings(
        unix=_unix(top, source, report),
        tcp=tcp,
        tls_cert=tls["cert"],
        tls_key=tls["key"],
        tls_client_ca=tls["client_ca"],
        tokens=tokens,
        limits=ServerLimits(
            event_bytes=value_of(top, "server.limits.event_bytes"),
            connections=value_of(top, "server.limits.connections"),
            open_runs=value_of(top, "server.limits.open_runs"),
            idle_ms=value_of(top, "server.limits.idle_ms"),
        ),
    )


def _unix(top: Layer, source: Source, report: Report) -> str | None:
    path = value_of(top, "server.unix")
    if path == "off":
        return None
    path = socket_path(source.environ) if path is None else source.path(path)
    if len(os.fsencode(path)) > _UNIX_PATH_MAX_BYTES and not source.scenario:
        reason = f"{quoted(path)} is longer than a Unix socket may be named"
        report.problem("server.unix", reason, f"at most {_UNIX_PATH_MAX_BYTES} bytes")
    return str(path)


def _tls_file(name: str, top: Layer, source: Source, report: Report) -> str | None:
    setting = top.get(f"server.tls.{name}")
    if setting is None:
        return None
    path = source.path(setting.value)
    if not source.scenario and not os.path.isfile(path):
        report.problem(setting.origin, f"there is no file {quoted(path)}")
    return path


def _grant(origin: str, entry: Layer, accounts: Collection[str], source: Source, report: Report) -> TokenGrant:
    token = read_token(origin, entry, source, report)
    if token is None:
        report.problem(origin, "has no token", "token, token_env or token_file")
    names = entry["accounts"].value if "accounts" in entry else None
    for name in sorted((names or frozenset()) - set(accounts)):
        report.problem(f"{origin}.accounts", f"there is no account {quoted(name)}", ", ".join(sorted(accounts)))
    grants = entry["grants"].value if "grants" in entry else ("send",)
    return TokenGrant(token or "", names, frozenset(grants))


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches it."""
    host = address.rpartition(":")[0].strip("[]")
    return host in _LOOPBACK or host.startswith("127.")
