"""The words of cases, and what each of them is in livesign: one table per kind of word.

A case is written in the words of the people who met the fault. `EVENTS` maps what happens to a turn to events of the
wire, `CONTROLS` what happens to the process or to a client to steps of a scenario, `QUESTIONS` what is asked, `SETTINGS`
how something is configured, `STATES` and `OPS` what is expected. A word in `NOTHING` needs no step, for the reason given
there. A word that is in no table is sent as it is: an event type of the wire, or one that nobody knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from actors.presence.policy import STATES as ALL_STATES
from actors.presence.terms import Op

Convert = Callable[[Any], Any]
Fields = dict[str, Any]


class WordError(ValueError):
    """A word is used in a way that has no meaning. The text says which and why."""


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Take:
    """An argument of a case's word: the wire's field for it, and how its value is turned into the wire's."""

    field: str
    convert: Convert = _same


@dataclass(frozen=True, slots=True)
class Word:
    """One event of the wire. Arguments that are not in ``takes`` say nothing to livesign."""

    wire: str
    takes: Mapping[str, Take] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    opens: bool = False
    ends: bool = False


# --- what happens to a turn -----------------------------------------------------------------------------------

KINDS = ("text", "audio", "command", "interaction", "scheduled")
ORIGINS = {"schedule": "scheduled", "user": "text", "child": "command"}
GOOD_ENDS = ("ok", "done", "success")


def _is_good(value: Any) -> bool:
    return value in GOOD_ENDS or value is True


_IN_GROUP = {"direct": False, "mentioned": True}
"""A message is one in a group that mentions the bot, unless the case says otherwise."""
_MESSAGE = {
    "direct": Take("direct"),
    "mentioned": Take("mentioned"),
    "mentionable": Take("mentionable"),
    "forum": Take("forum"),
    "from": Take("sender"),
    "from_bot": Take("from_bot"),
    "kind": Take("kind"),
    "sent_at_ms": Take("sent_at_ms"),
    "lease": Take("lease_ms"),
    "event_id": Take("id"),
}
_FAIL = {"text": Take("reason"), "reason": Take("reason"), "scope": Take("scope")}
_SENT = {"final": Take("final"), "ok": Take("ok")}
_REASON = {"reason": Take("reason")}

EVENTS: Mapping[str, Word] = {
    "message": Word("received", _MESSAGE, _IN_GROUP, opens=True),
    "interaction": Word("received", {}, _IN_GROUP | {"kind": "interaction"}, opens=True),
    "reaction_event": Word("received", {}, _IN_GROUP | {"kind": "interaction"}, opens=True),
    "turn_open": Word("received", {"origin": Take("kind", ORIGINS.__getitem__)}, _IN_GROUP, opens=True),
    "queued": Word("queued"),
    "prepare": Word("queued"),
    "accepted": Word("queued"),
    "begin": Word("thinking"),
    "thinking": Word("thinking"),
    "resume": Word("thinking"),
    "tool": Word("tool", {"name": Take("name"), "call": Take("call")}),
    "tool_end": Word("tool_end", {"call": Take("call"), "ok": Take("ok")}),
    "text": Word("text", {"visible": Take("visible")}),
    "compact": Word("compacting"),
    "compact_end": Word("compacting_end"),
    "progress": Word("progress"),
    "alive": Word("alive"),
    "wait_user": Word("waiting", fixed={"on": "user"}),
    "wait_slot": Word("waiting", fixed={"on": "slot"}),
    "child": Word("child", {"c": Take("child"), "max": Take("max_ms")}),
    "child_end": Word("child_end", {"c": Take("child"), "outcome": Take("ok", _is_good)}),
    "child_alive": Word("alive"),
    "merge": Word("merged", {"into": Take("into")}),
    "sending": Word("sending", {"final": Take("final")}),
    "sent": Word("sent", _SENT),
    "thread_opened": Word("moved", {"thread": Take("thread", str)}),
    "clear": Word("clear"),
    "restore": Word("restore"),
    "scope_start": Word("typing_start", {"scope": Take("scope", str), "id": Take("scope", str)}),
    "scope_stop": Word("typing_stop", {"scope": Take("scope", str), "id": Take("scope", str)}),
    "done": Word("done", _REASON, ends=True),
    "fail": Word("error", _FAIL, ends=True),
    "cancel": Word("cancelled", _REASON, ends=True),
    "silent": Word("silent", _REASON, ends=True),
    "host_exception": Word("error", _FAIL, ends=True),
    "host_cancel": Word("cancelled", _REASON, ends=True),
}

BEHIND_ANOTHER = EVENTS["wait_slot"]
"""``queued`` while another turn of the same chat is open: this one waits for its place."""

OUTBOUND = (Word("sending"), Word("sent", _SENT, {"final": True}))
"""The host posts by itself; livesign is told before and after."""

# --- what happens to the process, to a client, to the platform --------------------------------------------------

NO_PONG_MS = 20_000
"""A half-open connection is noticed when nothing has answered for so long."""
_NEVER_MS = 2**50

CRASHABLE = (("typing", "typing"), ("status", "reaction"), ("reaction", "reaction"), ("router", "router"),
             ("conversation", "conversation"), ("chat", "conversation"), ("repair", "platform_io"),
             ("account", "platform_io"), ("platform", "platform_io"))  # fmt: skip


def crash(args: Fields) -> Fields:
    """Which actor a case means: ``actor`` names it, ``what`` describes it."""
    text = str(args.get("actor") or args.get("what", ""))
    actor = next((name for part, name in CRASHABLE if part in text), None)
    if actor is None:
        raise WordError(f"there is no actor {text!r}; there are {', '.join(dict(CRASHABLE).values())}")
    return {"actor": actor} | {key: args[key] for key in ("account", "conversation", "on", "times") if key in args}


CONTROLS: Mapping[str, tuple[str, Callable[[Fields], Fields]]] = {
    "conn": ("@connect", lambda args: {}),
    "client_connect": ("@connect", lambda args: {}),
    "eof": ("@client_lost", lambda args: {}),
    "half_open": ("@client_lost", lambda args: {}),
    "kill": ("@kill_restart", lambda args: {"down_ms": args.get("down", _NEVER_MS)}),
    "boot": ("@boot", lambda args: {}),
    "sigterm": ("@shutdown", lambda args: {"leave": bool(args.get("leave", False))}),
    "drain": ("@shutdown", lambda args: {}),
    "suspend": ("@suspend", lambda args: {"ms": args["ms"]}),
    "clock_jump": ("@clock_jump", lambda args: {"ms": args["ms"]}),
    "crash_actor": ("@crash", crash),
    "kill_actor": ("@crash", crash),
    "stop_actor": ("@stop_tree", lambda args: {}),
}
DELAYED = {"half_open": NO_PONG_MS}
QUESTIONS = {"stats": "stats", "health": "stats", "list_open": "subscribe", "snapshot": "subscribe"}
NOTHING: Mapping[str, str] = {
    "host_block": "livesign has a thread and a hub of its own",
    "stream_open": "typing and a stream's own status stand side by side",
    "stream_close": "typing and a stream's own status stand side by side",
    "boot_adapter": "adapters start with their account",
    "gc_every": "virtual time does not see the collector",
}
ELSEWHERE = ("bytes", "bytes_drip", "boot_second", "bench", "soak", "threads", "squat")
"""Words that need real sockets, processes or clocks: such a case names the test that proves it (``proved_by``)."""

# --- settings ---------------------------------------------------------------------------------------------------

STATES: Mapping[str, str] = {"compact": "compacting", "soft": "stall_soft", "hard": "stall_hard"}
"""A case's names of states where they differ from ours; used as ``E.compact`` and in ``emoji.compact``."""
MODES = {"off": "never"}


def _key(name: str) -> Callable[[Any], Fields]:
    return lambda value: {name: value}


def _ack(value: Any) -> Fields:
    return {} if value else {"ack.scope": "off", "status.gate": "none"}


def _ack_on(value: Any) -> Fields:
    if value == "arrival":
        return {}
    if value != "begin":
        raise WordError(f"ack_on is arrival or begin, not {value!r}")
    return {"ack.scope": "off", "status.gate": "none", "typing.mode": "thinking"}


def _typing(value: Any) -> Fields:
    return {"typing.mode": "instant" if value else "never"}


def _emoji(name: str, value: Any) -> Fields:
    state = name.removeprefix("emoji.")
    state = STATES.get(state, state)
    if value == "":
        return {"status.presentation": [other for other in (*ALL_STATES, "coding", "web") if other != state]}
    return {f"status.emoji.{state}": value}


def _origin(name: str, value: Any) -> Fields:
    """``origin.schedule.typing``: one switch for turns that nobody asked for by a message."""
    _, origin, indicator = name.split(".")
    if indicator != "typing":
        raise WordError(f"{name}: only typing can be chosen by origin")
    return {"match": [{"kind": ORIGINS[origin], "typing": {"mode": "instant" if value else "never"}}]}


SETTINGS: Mapping[str, Callable[[Any], Fields]] = {
    "debounce": _key("status.debounce_ms"),
    "stall_soft": _key("status.stall_soft_ms"),
    "stall_hard": _key("status.stall_hard_ms"),
    "done_hold": _key("status.done_hold_ms"),
    "error_hold": _key("status.error_hold_ms"),
    "after": _key("status.settle"),
    "states": _key("status.presentation"),
    "status": _key("status.enabled"),
    "ack": _ack,
    "ack_on": _ack_on,
    "ack_scope": _key("ack.scope"),
    "max_age": _key("ack.max_age_ms"),
    "typing": _typing,
    "typing_mode": lambda value: {"typing.mode": MODES.get(value, value)},
    "typing_ttl": _key("typing.ttl_ms"),
    "typing_start_delay": _key("typing.start_delay_ms"),
    "keepalive": _key("typing.keepalive_ms"),
    "tool_max": _key("tools.span_max_ms"),
    "lease": _key("lease.ms"),
    "grace": _key("shutdown.budget_ms"),
}
MEANT_BY_ENDING: Mapping[str, Callable[[Any], Fields]] = {
    "keepalive": SETTINGS["keepalive"],
    "ack": lambda value: {"ack.scope": "group-mentions" if value else "off"},
    "error_policy": lambda value: {},  # livesign posts nothing, so a failure is only ever a mark
    "indicator": lambda value: {},  # marks and typing stand side by side; what is refused is left out
}
"""``telegram.keepalive`` and the like: settings of one platform or chat, known by their last part."""
DEFAULTS: Mapping[str, Any] = {"typing.ttl_ms": 300_000}
"""What holds for every case that says nothing else and is not our own default anyway."""


def setting(name: str, value: Any) -> Fields:
    """The configuration keys (dotted) that a case's setting stands for. Keys of the wire pass as they are."""
    if name in SETTINGS:
        return SETTINGS[name](value)
    if name.startswith("emoji."):
        return _emoji(name, value)
    if name.startswith("origin."):
        return _origin(name, value)
    ending = name.rpartition(".")[2]
    if "." in name and ending in MEANT_BY_ENDING:
        return MEANT_BY_ENDING[ending](value)
    if "." in name or name in ("match", "accounts"):
        return {name: value}
    raise WordError(f"there is no setting {name!r}; there are {', '.join(SETTINGS)}, and the keys of the configuration")


# --- expectations -----------------------------------------------------------------------------------------------

_MARKS = frozenset({Op.SET, Op.REMOVE, Op.CLEAR})
OPS: Mapping[str, frozenset[Op]] = {
    "typing": frozenset({Op.TYPING_START}),
    "react_add": frozenset({Op.SET}),
    "react_set": frozenset({Op.SET}),
    "react_remove": frozenset({Op.REMOVE, Op.CLEAR}),
    "react_clear": frozenset({Op.CLEAR}),
    "reaction": _MARKS,
    "mark": _MARKS,
    "status_set": frozenset({Op.TYPING_START}),
    "status_clear": frozenset({Op.TYPING_STOP}),
    "any": frozenset(Op),
    **{op.value: frozenset({op}) for op in Op},
}
"""A thread status is the typing of its platform: it is set, renewed and cleared."""
