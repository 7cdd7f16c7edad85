"""One account: its platform, credentials and limits, and the policy each of its runs opens with."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import translate
from types import MappingProxyType
from urllib.parse import urlsplit

from actors.config_addresses import Url, environment_proxy
from actors.config_keys import KEYS, Level
from actors.config_policy import build_policy, typing_off
from actors.config_problems import Report
from actors.config_tree import Block, Layer, value_of
from actors.platforms.registry import Maker
from actors.platforms.spec import Credentials, HttpAdapter, PlatformSpec
from actors.presence.limits import SCOPES, Limit
from actors.presence.policy import Policy

_OPTIONS = {key.name: key.platform.split(", ") for key in KEYS if Level.OWN in key.levels and key.platform}
_TOKEN_MAX_BYTES = 65_536
_WITHOUT_ADDRESS = ("sandbox", "callback", "remote")


@dataclass(frozen=True, slots=True)
class CallSettings:
    deadline_ms: int = 10_000
    typing_deadline_ms: int = 3_000
    concurrency: int = 4


@dataclass(frozen=True, slots=True)
class Account:
    """One bot identity on one platform."""

    name: str
    platform: str
    adapter: HttpAdapter
    """The platform as the account's options choose it."""
    credentials: Credentials
    limits: Mapping[str, Limit]
    reserve: float
    calls: CallSettings
    idle_ms: int
    """When an idle conversation is put away."""
    typing_in: str
    """all, or direct: the platform shows typing in direct chats only."""
    policy: Policy
    """The policy where no ``[[match]]`` block applies."""

    @property
    def spec(self) -> PlatformSpec:
        """The platform's row."""
        return self.adapter.spec

    @property
    def egress(self) -> tuple[str, str | None]:
        """The server that calls go to, and the proxy they go through: to the platform, accounts that share both are one host."""
        url = self.credentials.base_url or self.spec.base_url
        return urlsplit(url).netloc if url else self.name, self.credentials.proxy


@dataclass(frozen=True, slots=True)
class _Rule:
    """A block's conditions, ready to be asked. None: no condition."""

    bit: int
    pattern: re.Pattern[str] | None
    direct: bool | None
    mentioned: bool | None
    kind: str | None

    def holds(self, conversation: str, direct: bool | None, mentioned: bool | None, kind: str | None) -> bool:
        return (
            (self.direct is None or self.direct is direct)
            and (self.mentioned is None or self.mentioned is mentioned)
            and (self.kind is None or self.kind == kind)
            and (self.pattern is None or self.pattern.match(conversation) is not None)
        )


@dataclass(slots=True)
class Selector:
    """Finds the policy of a run: which blocks apply, and for each set of blocks one policy, built once.

    Blocks for one literal conversation are found by its id, so thousands of them cost nothing.
    """

    adapter: HttpAdapter
    base: Layer
    blocks: list[Block]
    typing_in: str
    _anywhere: list[_Rule] = field(default_factory=list)
    _by_conversation: dict[str, list[_Rule]] = field(default_factory=dict)
    _built: dict[tuple[int, bool], Policy] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for index, block in enumerate(self.blocks):
            given = {name: setting.value for name, setting in block.conditions.items()}
            place = given.get("conversation")
            literal = place if place is not None and not re.search(r"[*?\[]", place) else None
            pattern = re.compile(translate(place)) if place is not None and literal is None else None
            rule = _Rule(1 << index, pattern, given.get("direct"), given.get("mentioned"), given.get("kind"))
            if literal is not None:
                self._by_conversation.setdefault(literal, []).append(rule)
            else:
                self._anywhere.append(rule)

    def policy(self, conversation: str, direct: bool | None, mentioned: bool | None, kind: str | None) -> Policy:
        applies = 0
        for rule in self._anywhere:
            if rule.holds(conversation, direct, mentioned, kind):
                applies |= rule.bit
        for rule in self._by_conversation.get(conversation, ()):
            if rule.holds(conversation, direct, mentioned, kind):
                applies |= rule.bit
        key = applies, direct is False and self.typing_in == "direct"
        policy = self._built.get(key)
        if policy is None:
            policy = self._built[key] = self._build(*key)
        return policy

    def _build(self, applies: int, no_typing: bool) -> Policy:
        layer = dict(self.base)
        for index, block in enumerate(self.blocks):
            if applies >> index & 1:
                layer |= block.settings
        policy = build_policy(layer, self.adapter, Report())
        return typing_off(policy) if no_typing else policy


@dataclass(frozen=True, slots=True)
class Source:
    """Where the rest is found. ``scenario``: nothing outside of the tree is read or required."""

    platforms: Mapping[str, Maker]
    environ: Mapping[str, str]
    directory: str
    """Relative paths begin here."""
    scenario: bool

    def path(self, path: str) -> str:
        return os.path.join(self.directory, path)


def build_account(
    name: str, top: Layer, own: Layer, blocks: Iterable[Block], source: Source, report: Report
) -> tuple[Account, Selector] | None:
    """The account and what finds its policies; None where its platform is unknown."""
    origin = f"accounts.{name}"
    options = {option: _option_text(own[option].value) for option in _OPTIONS if option in own}
    adapter = _adapter(origin, own, options, source, report)
    if adapter is None:
        return None
    spec = adapter.spec
    mine = [b for b in blocks if "account" not in b.conditions or b.conditions["account"].value == name]
    base: Layer = {**top, **own}
    policy = build_policy(base, adapter, report)
    for block in mine:
        build_policy({**base, **block.settings}, adapter, report)
    _warn_lacking(origin, own, mine, spec, report)
    typing_in = own["typing_in"].value if "typing_in" in own else "all"
    account = Account(
        name=name,
        platform=spec.name,
        adapter=adapter,
        credentials=_credentials(origin, own, options, spec, source, report),
        limits=_limits(base, spec),
        reserve=value_of(base, "limits.reserve"),
        calls=CallSettings(
            value_of(base, "calls.deadline_ms"),
            value_of(base, "calls.typing_deadline_ms") or spec.typing_deadline_ms,
            value_of(base, "calls.concurrency") or spec.concurrency,
        ),
        idle_ms=value_of(base, "conversation.idle_ms"),
        typing_in=typing_in,
        policy=policy,
    )
    return account, Selector(adapter, base, mine, typing_in)


def _adapter(origin: str, own: Layer, options: Mapping[str, str], source: Source, report: Report) -> HttpAdapter | None:
    platform = own["platform"].value if "platform" in own else ""
    if platform not in source.platforms:
        known = ", ".join(sorted(source.platforms))
        if "platform" in own:
            report.problem(f"{origin}.platform", f'"{platform}" is unknown', known)
        elif not report.told(f"{origin}.platform"):
            report.problem(f"{origin}.platform", "is missing", known)
        return None
    for option in options:
        if platform not in _OPTIONS[option]:
            report.problem(own[option].origin, f"is for {', '.join(_OPTIONS[option])} accounts only")
    try:
        return source.platforms[platform](MappingProxyType(options))
    except ValueError as error:
        report.problem(origin, str(error))
        return None


def _limits(base: Layer, spec: PlatformSpec) -> Mapping[str, Limit]:
    """The row's limits; one that is set takes the place of those of its scope, and the same calls count."""
    limits = dict(spec.limits)
    for scope in SCOPES:
        if setting := base.get(f"limits.{scope}"):
            rows = [row for row in limits if row.partition(".")[0] == scope]
            limits.update(dict.fromkeys(rows or [scope], setting.value))
    return MappingProxyType(limits)


def _warn_lacking(origin: str, own: Layer, blocks: Iterable[Block], spec: PlatformSpec, report: Report) -> None:
    """Say once that an account asks for what its platform cannot do."""
    asked = {name.partition(".")[0] for name in own}
    for block in blocks:
        if "account" in block.conditions:
            asked |= {name.partition(".")[0] for name in block.settings}
    if spec.rules.reactions == "none" and asked & {"ack", "status", "tools"}:
        report.warning(origin, f"{spec.name} has no reactions: ack, status and tools do nothing here")
    if not spec.rules.typing and "typing" in asked:
        report.warning(origin, f"{spec.name} has no typing indicator: typing does nothing here")


def _option_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _credentials(
    origin: str, own: Layer, options: Mapping[str, str], spec: PlatformSpec, source: Source, report: Report
) -> Credentials:
    token = read_token(origin, own, source, report)
    if spec.needs_token and token is None and not source.scenario and not report.told(f"{origin}.token"):
        report.problem(f"{origin}.token", f"{spec.name} needs a token", "token, token_env or token_file")
    for name in spec.required_options:
        if name not in options and not source.scenario:
            report.problem(f"{origin}.{name}", f"{spec.name} needs it")
    base_url = own["base_url"].value if "base_url" in own else None
    somewhere = base_url or spec.base_url or ""
    needed = spec.name not in _WITHOUT_ADDRESS and not source.scenario
    if needed and not somewhere and not report.told(f"{origin}.base_url"):
        report.problem(f"{origin}.base_url", f"{spec.name} needs the address of a server")
    return Credentials(
        token=token or "",
        base_url=base_url,
        options=MappingProxyType(options),
        proxy=own["proxy"].value if "proxy" in own else _environment_proxy(origin, somewhere, source, report),
        ca_file=source.path(own["ca_file"].value) if "ca_file" in own else None,
    )


def _environment_proxy(origin: str, url: str, source: Source, report: Report) -> str | None:
    found = None if source.scenario else environment_proxy(url, source.environ)
    if found is None:
        return None
    name, proxy = found
    try:
        return Url(("http",)).convert(proxy)
    except ValueError:
        report.warning(origin, f"the environment's {name} is no proxy of the form http://host:port: it is not used")
        return None


def read_token(origin: str, layer: Layer, source: Source, report: Report) -> str | None:
    """The token of an account or a client, from the one place that is named. No message repeats it."""
    places = [name for name in ("token", "token_env", "token_file") if name in layer]
    if len(places) > 1:
        report.problem(f"{origin}.{places[1]}", f"{places[0]} is set too: keep one of them")
    if not places or "token" in places:
        return layer["token"].value if places else None
    place = layer[places[0]]
    if source.scenario:
        return ""
    if places[0] == "token_env":
        text = source.environ.get(place.value, "")
        reason = f"the environment variable {place.value} is not set"
    else:
        text, reason = _token_in(source.path(place.value))
    text = text.strip()
    if not text or not text.isprintable() or " " in text:
        report.problem(place.origin, reason if not text else "what it holds is no token (blanks or control characters)")
        return ""
    return text


def _token_in(path: str) -> tuple[str, str]:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(_TOKEN_MAX_BYTES), f"{path} is empty"
    except OSError as error:
        return "", f"{path} cannot be read: {error.strerror}"
    except ValueError:
        return "", f"{path} is not text"
