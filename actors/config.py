"""The configuration: loaded once, checked whole, then frozen.

`load` takes a TOML file, a tree (the ``config`` of a scenario) or nothing at all. Every problem of a source
is found before it is refused, and names its key, its line, the reason and what is allowed. Things that were
mended come back as ``warnings``. The table in ``config_keys`` lists every key.

A run's settings are found in layers, key by key: the platform's row, the top, the account, then each
``[[match]]`` block that applies, a later one over an earlier one. A condition on something that is not
known of a run (it was opened without ``received``) does not hold.

Relative paths begin at the file's own directory, else at the current one.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from actors.config_accounts import Account, CallSettings, Selector, Source, build_account
from actors.config_problems import ConfigError, Problem, Report, line_finder
from actors.config_server import Supervision, build_server, is_loopback, ledger_path
from actors.config_tree import Tree, read_tree, value_of
from actors.config_values import quoted
from actors.platforms import registry
from actors.presence.policy import Policy
from actors.server_settings import ServerSettings
from actors.text_file import read_text

__all__ = [
    "SHOW_ALL",
    "Account",
    "CallSettings",
    "Config",
    "ConfigError",
    "Problem",
    "Reload",
    "ServerSettings",
    "Supervision",
    "load",
    "reload",
]

DEFAULT_ACCOUNT = "sandbox"
SHOW_ALL: Mapping[str, Any] = MappingProxyType({"ack": {"scope": "all"}, "ledger": {"path": ":memory:"}})
"""Without a configuration: whoever tries things out wants to see marks, and no memory of yesterday's tries."""


@dataclass(frozen=True, slots=True)
class Config:
    """A checked configuration. ``repr`` and `describe` show no secret."""

    accounts: Mapping[str, Account]
    server: ServerSettings
    supervision: Supervision
    shutdown_budget_ms: int
    ledger_path: str
    """A directory, or ``:memory:``."""
    metrics_listen: str | None
    web_listen: str | None
    warnings: tuple[str, ...] = ()
    source: str | None = None
    """The file it was loaded from."""
    accounts_named: bool = True
    """False: it names none, so there is one on the built-in sandbox."""
    _selectors: Mapping[str, Selector] = field(default_factory=dict, repr=False, compare=False)

    def policy(
        self,
        account: str,
        conversation: str,
        direct: bool | None = None,
        mentioned: bool | None = None,
        kind: str | None = None,
    ) -> Policy:
        """The settings a run opens with. None: not known. Raises KeyError for an account that there has never been.

        The same set of matching blocks gives the same object.
        """
        return self._selectors[account].policy(conversation, direct, mentioned, kind)

    def describe(self) -> dict[str, Any]:
        """What is in force, for logs: plain values, no secret."""
        return {
            "source": self.source,
            "accounts": {name: _describe(account) for name, account in self.accounts.items()},
            "server": {
                "unix": self.server.unix,
                "tcp": self.server.tcp,
                "tls": self.server.tls_cert is not None,
                "tokens": len(self.server.tokens),
            },
            "ledger": self.ledger_path,
            "metrics": self.metrics_listen,
            "web": self.web_listen,
            "warnings": list(self.warnings),
        }


def _describe(account: Account) -> dict[str, Any]:
    credentials = account.credentials
    base_url = credentials.base_url or account.spec.base_url
    return {
        "platform": account.platform,
        "base_url": base_url and _without_password(base_url),
        "token": "set" if credentials.token else "none",
        "proxy": credentials.proxy and _without_password(credentials.proxy),
        "options": dict(credentials.options),
        "limits": {scope: f"{limit.count} per {limit.per_ms} ms" for scope, limit in account.limits.items()},
        "concurrency": account.calls.concurrency,
        "keepalive_ms": account.policy.typing.keepalive_ms,
        "ack": account.policy.ack.scope,
        "status": account.policy.status.enabled,
        "typing": account.policy.typing.mode,
    }


def _without_password(address: str) -> str:
    scheme, separator, rest = address.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"


def load(
    source: str | os.PathLike[str] | Mapping[str, Any] | Config | None = None,
    *,
    scenario: bool = False,
    platforms: Mapping[str, registry.Maker] = registry.PLATFORMS,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """The configuration of a TOML file, of a tree, or, with None, of nothing at all: one sandbox account.

    ``scenario``: tokens, addresses and files are not needed and not looked at. Raises `ConfigError`.
    """
    if isinstance(source, Config):
        return source
    report = Report()
    tree: object = {} if source is None else source
    directory = ""
    if isinstance(source, str | os.PathLike):
        report.file = os.fspath(source)
        directory = os.path.dirname(os.path.abspath(report.file))
        tree = _read_toml(report.file, report)
    where = Source(platforms, os.environ if environ is None else environ, directory, scenario)
    return _build(tree, where, report)


def _read_toml(path: str, report: Report) -> dict[str, Any]:
    try:
        text = read_text(path)
        report.locate = line_finder(text)
        return tomllib.loads(text)
    except OSError as error:
        report.problem("", f"cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        report.problem("", "is not UTF-8 text")
    except tomllib.TOMLDecodeError as error:
        report.problem("", f"is not TOML: {error}")
    except (ValueError, RecursionError):
        report.problem("", "is not TOML: a number is too long or tables are too deep")
    raise ConfigError(report.problems)


def _build(raw: object, source: Source, report: Report) -> Config:
    tree = read_tree(raw, report)
    named = bool(tree.accounts) or (isinstance(raw, Mapping) and bool(raw.get("accounts")))
    if not named:
        tree = _with_sandbox(tree, report)
    for block in tree.blocks:
        account = block.conditions.get("account")
        if account and account.value not in tree.accounts:
            names = ", ".join(tree.accounts)
            report.problem(account.origin, f"there is no account {quoted(account.value)}", names)
    accounts: dict[str, Account] = {}
    selectors: dict[str, Selector] = {}
    for name, own in tree.accounts.items():
        if built := build_account(name, tree.top, own, tree.blocks, source, report):
            accounts[name], selectors[name] = built
    if value_of(tree.top, "web.listen"):
        report.warning("web.listen", "is not available in this version: nothing listens there")
    metrics_listen = value_of(tree.top, "metrics.listen")
    if metrics_listen and not is_loopback(metrics_listen):
        report.warning("metrics.listen", "everybody who reaches it can read the metrics")
    server = build_server(tree, tree.accounts, source, report)
    report.check()
    top = tree.top
    return Config(
        accounts=MappingProxyType(accounts),
        server=server,
        supervision=Supervision(value_of(top, "supervision.intensity"), value_of(top, "supervision.period_ms")),
        shutdown_budget_ms=value_of(top, "shutdown.budget_ms"),
        ledger_path=ledger_path(top, source),
        metrics_listen=metrics_listen,
        web_listen=value_of(top, "web.listen"),
        warnings=tuple(report.warnings),
        source=report.file,
        accounts_named=named,
        _selectors=MappingProxyType(selectors),
    )


def _with_sandbox(tree: Tree, report: Report) -> Tree:
    own = read_tree({"accounts": {DEFAULT_ACCOUNT: {"platform": "sandbox"}}}, report)
    return Tree(tree.top, own.accounts, tree.blocks, tree.tokens)


@dataclass(frozen=True, slots=True)
class Reload:
    """What a new configuration changes in a running process."""

    config: Config
    """What is in force from now on."""
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    """Accounts whose credentials, limits or call settings are new; they hold at once."""
    ignored: tuple[str, ...]
    """Sections that need a new start; the old values stay."""


def reload(old: Config, new: Config) -> Reload:
    """Compare two configurations. Open runs keep their policy in any case, later ones get the new one.

    Raises `ConfigError` where an account would become another platform, or another model of one: its marks
    could not be found again; and where no account is named any more: that is a file that is just being written.
    """
    report = Report(new.source)
    if old.accounts_named and not new.accounts_named:
        report.problem("accounts", "names none any more; to end livesign, stop it")
    kept = [name for name in new.accounts if name in old.accounts]
    for name in kept:
        before, after = old.accounts[name], new.accounts[name]
        if (before.platform, before.spec.rules) != (after.platform, after.spec.rules):
            report.problem(f"accounts.{name}", "a running account cannot change its platform: use another name")
    report.check()
    fixed = ("server", "supervision", "ledger_path", "metrics_listen", "web_listen")
    ignored = tuple(name.partition("_")[0] for name in fixed if getattr(old, name) != getattr(new, name))
    return Reload(
        config=_with_fixed(old, new),
        added=tuple(name for name in new.accounts if name not in old.accounts),
        removed=tuple(name for name in old.accounts if name not in new.accounts),
        changed=tuple(name for name in kept if _at_once(old.accounts[name]) != _at_once(new.accounts[name])),
        ignored=ignored,
    )


def _at_once(account: Account) -> tuple[object, ...]:
    return account.credentials, account.limits, account.reserve, account.calls


def _with_fixed(old: Config, new: Config) -> Config:
    return Config(
        accounts=new.accounts,
        server=old.server,
        supervision=old.supervision,
        shutdown_budget_ms=new.shutdown_budget_ms,
        ledger_path=old.ledger_path,
        metrics_listen=old.metrics_listen,
        web_listen=old.web_listen,
        warnings=new.warnings,
        source=new.source,
        accounts_named=new.accounts_named,
        # What an account that is gone has left is still taken back, by its settings.
        _selectors=MappingProxyType({**old._selectors, **new._selectors}),
    )
