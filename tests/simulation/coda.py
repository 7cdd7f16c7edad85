"""The coda: plain runs on every account after everything has failed, and what users must see of them, moment by moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from actors.config import Account
from actors.presence.policy import Policy, StatusSettings
from protocol import events
from tests.simulation.life import gate
from tests.simulation.scripts import Row

LENGTH_MS = 300_000
CLIENT = "coda"
_THINK_MS, _WAIT_MS, _AGAIN_MS, _BACK_MS, _DONE_MS, _NEXT_MS, _ERROR_MS = (
    2_000, 10_000, 24_000, 56_000, 59_000, 80_000, 84_000,
)  # fmt: skip


def rows(places: list[tuple[str, str]], coda_ms: int) -> list[Row]:
    """The events; ``places`` are accounts and conversations."""
    found: list[Row] = []
    for account, conversation in places:
        first, second = "coda1", "coda2"
        script: tuple[tuple[int, str, str, dict[str, Any]], ...] = (
            (0, "received", first, {"direct": False, "mentioned": True}),
            (_THINK_MS, "thinking", first, {}),
            (_WAIT_MS, "waiting", first, {"on": "user"}),
            (_AGAIN_MS, "thinking", first, {}),
            (_BACK_MS, "progress", first, {}),
            (_DONE_MS, "done", first, {}),
            (_NEXT_MS, "received", second, {"direct": False, "mentioned": True}),
            (_ERROR_MS, "error", second, {}),
        )
        for t_ms, kind, message, fields in script:
            event = {"type": kind, "account": account, "conversation": conversation, "message": message, **fields}
            event["id"] = f"{account}/{conversation}/{t_ms}"
            found.append([coda_ms + t_ms, event, CLIENT])
    return found


@dataclass(frozen=True, slots=True)
class Look:
    """What must be true at a moment. ``marks``: exactly these show; ``since_ms``: this mark has shown since then."""

    t_ms: int
    what: str
    marks: tuple[str, ...] | None = None
    typing: bool | None = None
    was: tuple[str, int] | None = None


MOMENTS = (1_800, 9_000, 23_900, 28_000, 38_500, 55_500, 58_500, 61_500, 70_000, 86_500, 112_000)


def looks(account: Account, policy: Policy, wall_ms: int) -> Iterator[Look]:
    """All that must be seen of one conversation's coda, times from its beginning."""
    status, received = policy.status, events.Received(conversation="", direct=False, mentioned=True)
    ack, marked = gate(received, policy, wall_ms)

    def shown(state: str) -> bool:
        return marked and (status.presentation is None or state in status.presentation)

    for state, t_ms, since_ms in (("done", 61_500, _DONE_MS), ("error", 86_500, _ERROR_MS)):
        if shown(state):
            yield Look(t_ms, state, was=(status.emoji[state][0], since_ms))
    if status.quiet_minutes is None:
        yield from _marks(account, status, ack, shown)
    yield from _typing(account, policy)


def _marks(account: Account, status: StatusSettings, ack: bool, shown: Callable[[str], bool]) -> Iterator[Look]:
    """What shows at each moment: the ack, then the last state that is presented; after the end as it is settled."""

    def mark(t_ms: int, what: str, *states: str) -> Look:
        """The newest of these states that is presented."""
        found = next((state for state in states if shown(state)), None)
        emoji = status.emoji[found][0] if found else status.emoji["queued"][0] if ack else None
        return Look(t_ms, what, marks=() if emoji is None else (emoji,))

    def working(t_ms: int, since_ms: int) -> tuple[str, ...]:
        stalls = (("stall_hard", status.stall_hard_ms), ("stall_soft", status.stall_soft_ms))
        waited = ("waiting_user",) if t_ms > _WAIT_MS else ()
        return (*(state for state, ms in stalls if 0 < ms <= t_ms - since_ms), "thinking", *waited)

    yield mark(1_800, "the ack")
    yield mark(9_000, "the phase", *working(9_000, _THINK_MS))
    for t_ms in (38_500, 55_500):
        states = working(t_ms, _AGAIN_MS)
        yield mark(t_ms, "the phase" if states[0] == "thinking" else "the stall", *states)
    if status.min_change_ms <= 1_000 and not account.limits:  # else there is too little time for it
        yield mark(58_500, "the phase after a stall", *working(58_500, _BACK_MS))
    kept = {"clear": None, "keep": "done", "restore": "ack"}[status.settle]
    if kept == "done" and shown("done"):
        yield Look(70_000, "what is left of done", marks=(status.emoji["done"][0],))
    else:
        yield Look(70_000, "what is left of done", marks=(status.emoji["queued"][0],) if kept and ack else ())


def _typing(account: Account, policy: Policy) -> Iterator[Look]:
    rules, typing = account.spec.rules, policy.typing
    if not rules.typing:
        return
    if typing.mode == "instant" and not account.limits:
        yield Look(1_800, "typing at once", typing=True)
    if typing.mode in ("instant", "thinking") and not (account.limits and account.spec.name == "sandbox"):
        yield Look(9_000, "typing while it thinks", typing=True)
        yield Look(28_000, "typing after the user has answered", typing=True)
    yield Look(112_000, "no typing after the error", typing=False)
    if account.limits:  # a stop may have to wait
        return
    yield Look(23_900, "no typing while it waits for the user", typing=False)
    if typing.ttl_ms <= 8_000:
        yield Look(55_500, "no typing without a sign of life", typing=False)
    yield Look(70_000, "no typing after the end", typing=False)
