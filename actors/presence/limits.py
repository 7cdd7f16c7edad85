"""Limits as people write them, and the budgets that `pacing` counts with.

Names: ``scope`` or ``scope.ops``.

=================  ==========================================================================
``account``        one budget for all calls of the account
``conversation``   one per conversation; threads of a conversation share it
``route``          one per conversation and kind of call (marks, typing)
``message``        one per message
``group``          one per conversation whose id begins with a minus sign: Telegram's groups
``account.set``    narrower: only these calls count. After the dot stands an op (``set``, ``remove``,
                   ``clear``, ``typing_start``, ``typing_stop``) or ``marks`` or ``typing``
=================  ==========================================================================

So Discord's reaction bucket per channel is ``route.marks``, and Slack's methods, which count per workspace,
are ``account.set`` and ``account.remove``. All limits that cover a call apply to it.

GCRA on integer microseconds, intervals rounded up. "N per W" with burst B refills one token every W / (N -
B + 1): a full bucket and the refills of a window add up to N, so no half-open window of length W ever holds
more than N starts. ``reserve``, the share of the bot's own posts, comes off both burst and rate. Phases and
typing leave the last tokens (a quarter of the burst, at most B - 1) to terminals and acks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from actors.presence.terms import TYPING_OPS, Op

ROOM_SHARE: Final = 4
"""Phases and typing leave one token in so many to terminals and acks."""

MARK_OPS: Final = frozenset({Op.SET, Op.REMOVE, Op.CLEAR})
_OPS_BY_NAME: Final[Mapping[str, frozenset[Op]]] = {
    "marks": MARK_OPS,
    "typing": TYPING_OPS,
    **{op.value: frozenset({op}) for op in Op},
}
SCOPES: Final = ("account", "conversation", "route", "message", "group")


@dataclass(frozen=True, slots=True)
class Limit:
    """At most ``count`` starts in any window of ``per_ms``. Raises ValueError on senseless numbers."""

    per_ms: int
    count: int
    burst: int | None = None
    """Starts that may come at once, 1 to ``count``. None: a quarter of ``count``, rounded up, which leaves
    at least three quarters of the documented rate for steady traffic."""

    def __post_init__(self) -> None:
        if self.per_ms < 1 or self.count < 1:
            raise ValueError(f"a limit needs per_ms and count of at least 1, not {self.per_ms} and {self.count}")
        if self.burst is not None and not 1 <= self.burst <= self.count:
            raise ValueError(f"burst must be between 1 and count ({self.count}), not {self.burst}")

    @property
    def depth(self) -> int:
        """The burst in force."""
        return -(-self.count // 4) if self.burst is None else self.burst


@dataclass(frozen=True, slots=True)
class Budget:
    """One limit in the form GCRA wants it. A budget's entry is its theoretical arrival time (TAT) in µs."""

    name: str
    interval_us: int
    slack_us: int
    """How far the TAT may lie ahead of a start: (B - 1) intervals."""
    low_slack_us: int
    """The same for phases and typing, which leave some tokens."""

    def start_us(self, tat_us: int, low: bool) -> int:
        return tat_us - (self.low_slack_us if low else self.slack_us)


def _budget(name: str, limit: Limit, reserve: float) -> Budget:
    share = round((1.0 - reserve) * 1_000_000)
    burst = max(1, limit.depth * share // 1_000_000)
    interval_us = -(-limit.per_ms * 1_000 * 1_000_000 // ((limit.count - limit.depth + 1) * share))
    room = min(burst - 1, -(-burst // ROOM_SHARE))
    return Budget(name, interval_us, (burst - 1) * interval_us, (burst - 1 - room) * interval_us)


class Route(NamedTuple):
    """Everything that paces one op, and so the group of ops that are paced alike."""

    account: tuple[Budget, ...]
    conversation: tuple[Budget, ...]
    message: tuple[Budget, ...]
    group: tuple[Budget, ...]
    ops: str
    """The name of its route."""
    by_account: bool
    """The route is one for the account, not one per conversation."""

    def budgets_of(self, conversation: str) -> tuple[Budget, ...]:
        """All that count per conversation for this one."""
        return self.conversation + self.group if self.group and conversation.startswith("-") else self.conversation


def _parse(name: str) -> Iterator[tuple[str, str]]:
    scope, dot, ops = name.partition(".")
    if scope not in SCOPES or (dot and ops not in _OPS_BY_NAME):
        raise ValueError(f"no limit is called {name!r}: a scope ({', '.join(SCOPES)}), then perhaps a dot and an op")
    if scope == "route" and not ops:
        return iter((("route", "marks"), ("route", "typing")))
    return iter(((scope, ops),))


def routes(limits: Mapping[str, Limit], reserve: float) -> dict[Op, Route]:
    """What paces each op. Raises ValueError for a name or a share that makes no sense."""
    if not 0.0 <= reserve < 1.0:
        raise ValueError(f"reserve must be at least 0 and below 1, not {reserve}")
    budgets = [
        (scope, ops, _budget(f"{scope}.{ops}", limit, reserve))
        for name, limit in limits.items()
        for scope, ops in _parse(name)
    ]
    return {op: _route(op, budgets) for op in Op}


def _route(op: Op, budgets: list[tuple[str, str, Budget]]) -> Route:
    """The budgets that cover ``op``. Its route is the narrowest one that a limit names, else its kind of
    call."""
    kind = "marks" if op in MARK_OPS else "typing"
    mine = [(scope, ops, budget) for scope, ops, budget in budgets if not ops or op in _OPS_BY_NAME[ops]]
    of = {at: tuple(budget for scope, _, budget in mine if scope == at) for at in SCOPES}
    named = {ops: scope for scope, ops, _ in mine if ops and scope in ("account", "route")}
    ops = min(named, key=lambda name: len(_OPS_BY_NAME[name]), default=kind)
    by_account = named.get(ops) == "account"
    return Route(of["account"], of["conversation"] + of["route"], of["message"], of["group"], ops, by_account)
