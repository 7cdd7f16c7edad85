"""What happens in `livesign demo`: chats, agents and what each of them does when, as data.

Times are milliseconds of the demo's own clock. A scene is one message of a user and the agent that works on it, over
a connection of its own: it begins ``at_ms``, and each step follows so long after the one before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from actors.sandbox import FaultPlan, Rule, Window


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat and what it is called on the screen."""

    id: str
    title: str
    direct: bool


@dataclass(frozen=True, slots=True)
class Tell:
    """The agent tells livesign an event."""

    type: str
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """The agent posts its answer, telling so before and after. ``final``: the last one of this run."""

    text: str
    final: bool = True


@dataclass(frozen=True, slots=True)
class Say:
    """The user writes once more; nobody is asked to work on it."""

    text: str


@dataclass(frozen=True, slots=True)
class Vanish:
    """The agent's process dies: its connection is gone without a word."""


Act = Tell | Answer | Say | Vanish
Steps = tuple[tuple[int, Act], ...]


@dataclass(frozen=True, slots=True)
class Scene:
    """A message of ``user`` in ``chat`` and what the agent of ``account`` does about it."""

    at_ms: int
    chat: Chat
    account: str
    user: str
    text: str
    steps: Steps


ACCOUNTS = ("iris", "otto")
MAYA = Chat("maya", "maya", True)
LEON = Chat("leon", "leon", True)
LAUNCH = Chat("launch", "#launch", False)
OPS = Chat("ops", "#ops", False)
CHATS = (MAYA, LAUNCH, LEON, OPS)

LIMITED_FROM_MS, LIMITED_UNTIL_MS = 23_500, 34_000

CONFIG: Mapping[str, Any] = MappingProxyType({
    "ack": {"scope": "all"},
    "status": {"stall_soft_ms": 5_000, "stall_hard_ms": 9_000},
    "lease": {"ms": 6_000},
    "ledger": {"path": ":memory:"},
})  # fmt: skip
"""What the demo changes: everybody gets an ack, and what takes long by default takes less."""

PLAN = FaultPlan(
    latency_ms=70,
    rules=(
        Rule(
            conversation=OPS.id,
            from_ms=LIMITED_FROM_MS,
            until_ms=LIMITED_UNTIL_MS,
            limit=Window(per_ms=5_000, count=3, by="conversation"),
        ),
        Rule(op="set", conversation=LEON.id, emoji="🤔", nth=(0,), outcome="transient"),
    ),
)
"""How the chat service behaves: a little slow, once out of order, and strict in #ops for a while."""


def _tell(type_: str, **fields: Any) -> Tell:
    return Tell(type_, fields)


_TRAINS: Steps = (
    (700, _tell("thinking")),
    (2_300, _tell("tool", name="web_search", call="1")),
    (2_600, _tell("tool_end", call="1")),
    (200, _tell("text")),
    (1_500, Answer("The 8:02, direct. It is in Bern at 9:31.")),
    (300, _tell("done")),
)
_BUILD: Steps = (
    (500, _tell("thinking")),
    (1_600, _tell("tool", name="Grep", call="a")),
    (700, _tell("tool", name="web_fetch", call="b")),
    (900, _tell("tool", name="render_chart", call="c")),
    (1_700, _tell("tool_end", call="c")),
    (1_300, _tell("tool_end", call="b")),
    (1_600, _tell("tool_end", call="a")),
    (100, _tell("thinking")),
    (1_400, Answer("Fixed: one import was missing. The build is green.")),
    (200, _tell("done")),
)
_KEYS: Steps = (
    (600, _tell("thinking")),
    (1_500, _tell("tool", name="rotate_keys", call="1")),
    (2_200, _tell("tool_end", call="1", ok=False)),
    (300, _tell("error", reason="vault sealed")),
)
_SUMMARY: Steps = (
    (500, _tell("thinking")),
    (1_700, _tell("compacting")),
    (2_000, _tell("compacting_end")),
    (10_500, _tell("tool", name="read_file", call="1")),
    (2_200, _tell("tool_end", call="1")),
    (100, _tell("text")),
    (1_300, Answer("In short: ship on Friday, pricing stays open.")),
    (300, _tell("done")),
)
_BOOK: Steps = (
    (600, _tell("thinking")),
    (1_900, Answer("Two seats left. Shall I book one?", final=False)),
    (100, _tell("waiting", on="user")),
    (4_200, Say("Yes, please.")),
    (500, _tell("tool", name="book_ticket", call="1")),
    (2_400, _tell("tool_end", call="1")),
    (100, Answer("Booked: coach 4, seat 61.")),
    (200, _tell("done")),
)
_CANCEL: Steps = (
    (500, _tell("thinking")),
    (2_300, _tell("tool", name="web_search", call="1")),
    (2_400, Say("Never mind, found it.")),
    (600, _tell("cancelled", reason="user")),
)
_NOTES: Steps = (
    (400, _tell("thinking")),
    (1_500, _tell("child", child="research")),
    (100, _tell("tool", name="write_file", call="1")),
    (3_000, _tell("tool_end", call="1")),
    (1_200, _tell("child_end", child="research")),
    (200, Answer("Release notes are in the wiki.")),
    (200, _tell("done")),
)
_LOST: Steps = (
    (500, _tell("thinking")),
    (1_600, _tell("tool", name="Bash", call="1")),
    (2_600, Vanish()),
)
_QUESTIONS: Steps = (
    *_TRAINS[:3],
    (300, Answer("Price, date and the name of the plan.")),
    (200, _tell("done")),
)
_ROUND: Steps = (
    (800, _tell("tool", name="Bash")),
    (800, _tell("tool", name="web_fetch")),
    (800, _tell("compacting")),
    (800, _tell("thinking")),
)
_BURST: Steps = (
    (300, _tell("thinking")),
    *_ROUND,
    *_ROUND,
    *_ROUND,
    (600, Answer("Eleven nodes restarted, all healthy.")),
    (200, _tell("done")),
)

SCENES: tuple[Scene, ...] = (
    Scene(400, MAYA, "iris", "maya", "Which train gets me to Bern by ten?", _TRAINS),
    Scene(1_600, LAUNCH, "otto", "noor", "@otto the build is red, can you look?", _BUILD),
    Scene(3_200, LEON, "iris", "leon", "Sum up this week's launch thread", _SUMMARY),
    Scene(5_000, OPS, "otto", "sam", "@otto rotate the staging keys", _KEYS),
    Scene(7_500, LAUNCH, "iris", "kai", "@iris draft the release notes", _NOTES),
    Scene(12_500, MAYA, "iris", "maya", "Is there a seat left on it?", _BOOK),
    Scene(14_000, OPS, "otto", "sam", "@otto check the disk on db-2", _LOST),
    Scene(19_000, LAUNCH, "otto", "noor", "@otto who owns the old API?", _CANCEL),
    Scene(LIMITED_FROM_MS + 200, OPS, "otto", "lin", "@otto restart the web nodes", _BURST),
    Scene(27_500, LEON, "iris", "leon", "And the three open questions?", _QUESTIONS),
)  # fmt: skip

LENGTH_MS = 40_000
"""About how long it all takes."""
