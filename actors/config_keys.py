"""Every configuration key: one table that drives validation and documentation.

A key's name is its dotted path; ``NAME`` in it stands for a name of the user's own. ``levels`` says where
it may stand:

| level | place |
| --- | --- |
| top | the top of the file |
| account | under ``accounts.NAME``, over the top |
| match | in a ``[[match]]`` block, over the account |
| own | under ``accounts.NAME`` only |
| condition | in a ``[[match]]`` block: what the block applies to |
| token | in an entry of ``server.tokens`` |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from actors.config_addresses import FilePath, Listen, Url
from actors.config_values import (
    DAY_MS,
    MONTH_MS,
    AccountNames,
    Choice,
    Emoji,
    Flag,
    Glob,
    Kind,
    LimitTable,
    Presentation,
    QuietHours,
    Secret,
    Share,
    Text,
    TextList,
    Whole,
)
from actors.platforms.registry import PLATFORMS
from actors.platforms.spec import NO_OPTIONS, Option
from actors.presence.limits import SCOPES
from actors.presence.policy import DEFAULT_EMOJI, STATES


class Level(StrEnum):
    TOP = "top"
    ACCOUNT = "account"
    MATCH = "match"
    OWN = "own"
    CONDITION = "condition"
    TOKEN = "token"


RUN = frozenset({Level.TOP, Level.ACCOUNT, Level.MATCH})
SHARED = frozenset({Level.TOP, Level.ACCOUNT})
PROCESS = frozenset({Level.TOP})
_OWN = frozenset({Level.OWN})
_CONDITION = frozenset({Level.CONDITION})
_TOKEN = frozenset({Level.TOKEN})


@dataclass(frozen=True, slots=True)
class Key:
    """One key. ``default`` None: there is none, or ``default_text`` says where it comes from."""

    name: str
    kind: Kind
    default: object
    meaning: str
    levels: frozenset[Level]
    default_text: str = ""
    platform: str | None = None
    """The only platform (or several, with commas) whose accounts have this key."""


ROW = "platform row"
_SCOPES = ("all", "direct", "group-all", "group-mentions", "off", "none")
_KINDS = ("text", "audio", "command", "interaction", "scheduled")
_OFF_MS = Whole(1, DAY_MS, zero=True)
_LONG_MS = Whole(1, MONTH_MS, zero=True)


def _ack() -> tuple[Key, ...]:
    return (
        Key("ack.scope", Choice(_SCOPES), "group-mentions", "which messages get the ack mark", RUN),
        Key("ack.emoji", Emoji(), None, "the ack mark; also the mark of queued and waiting", RUN, "👀"),
        Key("ack.max_age_ms", _LONG_MS, 300_000, "older messages get neither ack nor status", RUN),
        Key("ack.from_bots", Flag(), False, "whether messages of bots get ack and status", RUN),
        Key("ack.whatsapp.direct", Flag(), True, "WhatsApp: ack direct messages", RUN),
        Key(
            "ack.whatsapp.group",
            Choice(("always", "mentions", "never")),
            "mentions",
            "WhatsApp: which group messages get the ack",
            RUN,
        ),
    )


def _status() -> tuple[Key, ...]:
    gate, settle = Choice(("ack", "none")), Choice(("clear", "keep", "restore"))
    plain = (
        Key("status.enabled", Flag(), True, "whether the mark follows the work", RUN),
        Key("status.gate", gate, "ack", "ack: only where the ack gate allowed; none: always", RUN),
        Key("status.presentation", Presentation(), None, "which states are shown", RUN, f"{ROW}, else full"),
        Key("status.min_change_ms", _OFF_MS, None, "least time between two marks", RUN, f"{ROW}, else 0"),
        Key("status.final_sent_ms", _OFF_MS, 30_000, "the final post counts as done after this", RUN),
        Key("status.quiet_hours", QuietHours(), None, "local time without marks but done, error", RUN, "none"),
        Key("status.debounce_ms", _OFF_MS, 700, "how long a phase must last to be shown", RUN),
        Key("status.stall_soft_ms", _OFF_MS, 10_000, "no progress for so long: first stall mark", RUN),
        Key("status.stall_hard_ms", _OFF_MS, 30_000, "no progress for so long: second stall mark", RUN),
        Key("status.done_hold_ms", _OFF_MS, 1_500, "how long done is shown before it settles", RUN),
        Key("status.error_hold_ms", _OFF_MS, 2_500, "how long error is shown before it settles", RUN),
        Key("status.settle", settle, "clear", "after the hold: no mark, the final one, or the ack", RUN),
        Key("status.wait_max_ms", _LONG_MS, 0, "longest wait for the user; then cancelled", RUN),
        Key("status.start_delay_ms", _OFF_MS, 0, "no mark before the run is this old", RUN),
    )
    return plain + tuple(
        Key(f"status.emoji.{state}", Emoji(), None, f"the mark of {state}", RUN, _emoji_default(state))
        for state in STATES
    )


def _emoji_default(state: str) -> str:
    origin = {"queued": "ack.emoji", "waiting": "as queued", "waiting_user": "as queued"}
    return origin.get(state) or DEFAULT_EMOJI[state][0]


def _tools() -> tuple[Key, ...]:
    listed = "coding, web: built in"
    return (
        Key("tools.NAME.tokens", TextList(lower=True), None, "words of a tool's name", RUN, listed),
        Key("tools.NAME.names", TextList(), None, "whole tool names, tried before words", RUN, listed),
        Key("tools.NAME.emoji", Emoji(), None, "the mark of these tools", RUN, "as status.emoji.tool"),
        Key("tools.span_max_ms", Whole(1, MONTH_MS), 1_800_000, "how long an open span is life", RUN),
    )


def _typing() -> tuple[Key, ...]:
    modes = Choice(("instant", "thinking", "message", "never"))
    return (
        Key("typing.mode", modes, "instant", "what starts the indicator", RUN),
        Key("typing.keepalive_ms", _OFF_MS, None, "refresh interval", RUN, f"{ROW}, else 3000"),
        Key("typing.ttl_ms", _OFF_MS, 60_000, "typing ends so long after the last sign of life", RUN),
        Key("typing.start_failures", Whole(1, 1_000, ""), 2, "failed starts in a row before it gives up", RUN),
        Key("typing.probe_ms", _OFF_MS, 30_000, "after giving up, one try after this", RUN),
        Key("typing.start_delay_ms", _OFF_MS, 0, "no indicator before the run is this old", RUN),
        Key(
            "typing.quiet_max_ms",
            Whole(1, MONTH_MS),
            600_000,
            "alive keeps it on this long past progress",
            RUN,
        ),
        Key("typing.sending_max_ms", Whole(1, DAY_MS), 10_000, "how long sending holds it back at most", RUN),
    )


def _life() -> tuple[Key, ...]:
    marks = Choice(("clear", "error", "leave"))
    return (
        Key("lease.ms", _LONG_MS, 30_000, "a run without client or event ends after this", RUN),
        Key("lease.run_max_ms", _LONG_MS, 21_600_000, "any run ends after this", RUN),
        Key("lease.adopt_ms", _LONG_MS, 15_000, "after a start, runs wait this long for their client", RUN),
        Key("lease.child_max_ms", Whole(1, MONTH_MS), 600_000, "how long a child keeps a run open", RUN),
        Key("recovery.marks", marks, "clear", "marks of runs that a dead process left", RUN),
    )


def _account() -> tuple[Key, ...]:
    scopes = {"route": "calls of one kind (marks, typing) in a conversation", "group": "calls in a group of Telegram"}
    limits = tuple(
        Key(f"limits.{scope}", LimitTable(), None, scopes.get(scope, f"calls per {scope}"), SHARED, ROW)
        for scope in SCOPES
    )
    return (
        *limits,
        Key("limits.reserve", Share(), 0.0, "share of each limit left to the bot's own posts", SHARED),
        Key("calls.deadline_ms", Whole(10, DAY_MS), 10_000, "longest time of a call", SHARED),
        Key(
            "calls.typing_deadline_ms",
            Whole(10, DAY_MS),
            None,
            "longest time of a typing call",
            SHARED,
            f"{ROW}, else 3000",
        ),
        Key("calls.concurrency", Whole(1, 256, ""), None, "calls at the same time", SHARED, ROW),
        Key("conversation.idle_ms", Whole(1, DAY_MS), 60_000, "an idle conversation is put away", SHARED),
        Key("platform", Text(), None, "the platform's name", _OWN, "required"),
        Key("token", Secret(), None, "the bot's token", _OWN),
        Key("token_env", Text(), None, "environment variable that holds the token", _OWN),
        Key("token_file", FilePath(), None, "file that holds the token", _OWN),
        Key("base_url", Url(), None, "address of the platform", _OWN, ROW),
        Key("ca_file", FilePath(), None, "certificates to trust instead of the system's, PEM", _OWN),
        Key("proxy", Url(("http",)), None, "HTTP proxy for all calls", _OWN, "the environment's"),
        *_options(),
        Key("account", Text(), None, "runs of this account", _CONDITION),
        Key("conversation", Glob(), None, "runs in these conversations", _CONDITION),
        Key("direct", Flag(), None, "direct chats, or all others", _CONDITION),
        Key("mentioned", Flag(), None, "messages that mention the bot, or all others", _CONDITION),
        Key("kind", Choice(_KINDS), None, "messages of this kind", _CONDITION),
    )


def _options() -> Iterator[Key]:
    """The options of all platforms; a name that several have means the same on each."""
    found: dict[str, dict[str, Option]] = {}
    for platform, make in PLATFORMS.items():
        for option in make(NO_OPTIONS).spec.options:
            found.setdefault(option.name, {})[platform] = option
    for name, options in found.items():
        first, *others = options.values()
        default = first.default if all(other.default == first.default for other in others) else ROW
        default = "required" if first.required else default
        yield Key(name, _kind(first), None, first.meaning, _OWN, default, ", ".join(options))


def _kind(option: Option) -> Kind:
    kinds: dict[str, Kind] = {"text": Text(), "url": Url(), "flag": Flag(), "ms": _OFF_MS}
    return Choice(option.allowed) if option.allowed else kinds[option.kind]


def _process() -> tuple[Key, ...]:
    count, roles = Whole(1, 10_000_000, ""), ("send", "execute", "subscribe")
    return (
        Key("supervision.intensity", Whole(0, 1_000, ""), 3, "restarts of one actor in the period", PROCESS),
        Key("supervision.period_ms", Whole(1, DAY_MS), 5_000, "the period restarts are counted in", PROCESS),
        Key("shutdown.budget_ms", Whole(0, DAY_MS), 10_000, "longest time of an orderly stop", PROCESS),
        Key("server.unix", FilePath("off"), None, "Unix socket", PROCESS, "in the runtime directory"),
        Key("server.tcp", Listen(), None, "TCP address", PROCESS, "off"),
        Key("server.tls.cert", FilePath(), None, "TCP: certificate chain, PEM", PROCESS),
        Key("server.tls.key", FilePath(), None, "TCP: private key, PEM", PROCESS),
        Key("server.tls.client_ca", FilePath(), None, "TCP: clients need a certificate of it", PROCESS),
        Key("server.limits.event_bytes", Whole(1_024, 65_536, "bytes"), 65_536, "largest event", PROCESS),
        Key("server.limits.connections", count, 1_024, "open connections", PROCESS),
        Key("server.limits.open_runs", count, 100_000, "open runs of one session", PROCESS),
        Key("server.limits.idle_ms", _LONG_MS, 0, "a connection that says nothing is closed", PROCESS),
        Key("ledger.path", FilePath(":memory:"), None, "the ledger's directory", PROCESS, "state directory"),
        Key(
            "metrics.listen",
            Listen(),
            None,
            "where serve answers /metrics (in Prometheus' text format) and /health",
            PROCESS,
            "off",
        ),
        Key("web.listen", Listen(), None, "not in this version: address of the web view", PROCESS, "off"),
        Key("token", Secret(), None, "the token a client sends", _TOKEN),
        Key("token_env", Text(), None, "environment variable that holds it", _TOKEN),
        Key("token_file", FilePath(), None, "file that holds it", _TOKEN),
        Key("accounts", AccountNames(), None, "accounts it may use", _TOKEN, '"*"'),
        Key("grants", TextList(options=roles), ("send",), "what it may do", _TOKEN, "send"),
    )


KEYS: tuple[Key, ...] = (
    *_ack(),
    *_status(),
    *_tools(),
    *_typing(),
    *_life(),
    *_account(),
    *_process(),
)
"""All keys, in the order of the documentation."""

DEFAULTS = {key.name: key.default for key in KEYS if Level.TOP in key.levels}
"""Defaults of the keys that stand at the top."""
