"""The coda: plain runs on every account after everything has failed, and what users must see of them, moment by moment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from actors.config import Account
from actors.presence.policy import Policy
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


MOMENTS = (1_800, 9_000, 23_900, 28_000, 36_000, 55_500, 58_500, 61_500, 70_000, 86_500, 100_000)


def looks(account: Account, policy: Policy) -> Iterator[Look]:
    """All that must be seen of one conversation's coda, times from its beginning."""
    rules, status = account.spec.rules, policy.status
    shown = rules.reactions != "none"

    def mark(t_ms: int, state: str, what: str) -> Look:
        return Look(t_ms, what, marks=(status.emoji[state][0],) if shown else ())

    full = status.presentation is None
    quick = status.min_change_ms <= 1_000
    yield mark(1_800, "queued", "the ack")
    if full:
        yield mark(9_000, "thinking", "the phase")
    yield mark(36_000, "stall_soft", "the soft stall")
    yield mark(55_500, "stall_hard", "the hard stall")
    if full and quick:
        yield mark(58_500, "thinking", "the phase after a stall")
    if shown:
        yield Look(61_500, "done", was=(status.emoji["done"][0], _DONE_MS))
        yield Look(86_500, "error", was=(status.emoji["error"][0], _ERROR_MS))
    settled = {"clear": (), "keep": (status.emoji["done"][0],), "restore": (status.emoji["queued"][0],)}
    yield Look(70_000, "nothing after done", marks=settled[status.settle] if shown else ())
    yield from _typing(account, policy)


def _typing(account: Account, policy: Policy) -> Iterator[Look]:
    rules, typing = account.spec.rules, policy.typing
    if not rules.typing:
        return
    if typing.mode == "instant" and not account.limits:
        yield Look(1_800, "typing at once", typing=True)
    if typing.mode in ("instant", "thinking") and not (account.limits and account.spec.name == "sandbox"):
        yield Look(9_000, "typing while it thinks", typing=True)
        yield Look(28_000, "typing after the user has answered", typing=True)
    yield Look(100_000, "no typing after the error", typing=False)
    if account.limits:  # a stop may have to wait
        return
    yield Look(23_900, "no typing while it waits for the user", typing=False)
    if typing.ttl_ms <= 8_000:
        yield Look(55_500, "no typing without a sign of life", typing=False)
    yield Look(70_000, "no typing after the end", typing=False)
