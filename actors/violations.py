"""What must never be seen on a platform, checked on the record of a simulation."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from actors.config import Config
from actors.presence.terms import TYPING_OPS
from actors.scripted_platform import CallRecord, World


def violations(world: World, config: Config) -> list[str]:
    """Broken invariants as text; an empty list is good."""
    found: list[str] = []
    lanes: dict[tuple[object, ...], list[CallRecord]] = defaultdict(list)
    for call in world.calls:
        command = call.command
        kind = ("typing", command.thread) if command.op in TYPING_OPS else ("marks", command.message)
        lanes[call.account, command.conversation, *kind].append(call)
    for lane, calls in lanes.items():
        found += _overlaps(lane, calls)
    for name, account in config.accounts.items():
        mine = [call for call in world.calls if call.account == name]
        for scope, limit in account.limits.items():
            if scope == "account":
                found += _over(name, [call.t_ms for call in mine], limit.count, limit.per_ms)
    return found


def _overlaps(lane: tuple[object, ...], calls: list[CallRecord]) -> list[str]:
    """Two calls of one lane in flight at once."""
    found = []
    for before, after in pairwise(calls):
        lost = before.outcome == "lost"
        if not lost and (before.ended_ms is None or after.t_ms < before.ended_ms):
            found.append(f"two calls in flight in {lane}: from {before.t_ms} and {after.t_ms} ms")
    return found


def _over(account: str, times_ms: list[int], count: int, per_ms: int) -> list[str]:
    """More than the limit's count in one of its windows."""
    for first, last in zip(times_ms, times_ms[count:], strict=False):
        if last - first < per_ms:
            return [f"{account}: more than {count} calls in {per_ms} ms, from {first} ms on"]
    return []
