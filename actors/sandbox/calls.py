"""A call as the sandbox saw it, and the count of all: by operation and outcome, the last ones in full."""

from __future__ import annotations

from collections import Counter, deque
from typing import NamedTuple

from actors.presence.terms import Op
from actors.sandbox.views import Calls, CallView

KEPT_CALLS = 1_000
"""How many calls are remembered in full; all of them are counted."""


class Call(NamedTuple):
    """One request that would change marks or typing. The names are those of a fault rule."""

    op: Op
    account: str
    conversation: str
    thread: str | None = None
    message: str | None = None
    emoji: str | None = None


class CallLog:
    """Counters since the start and the last calls. Outcome names are those of the wire, and besides them:

    ``hang`` (never answered), ``left`` (the client went away while its answer was delayed) and
    ``response`` (a raw answer of a rule).
    """

    def __init__(self, kept: int = KEPT_CALLS) -> None:
        self._counts: Counter[tuple[Op, str]] = Counter()
        self._last: deque[tuple[Call, int, int | None, str]] = deque(maxlen=kept)

    def note(self, call: Call, t_ms: int, ended_ms: int | None, outcome: str) -> None:
        """Count a call that came at ``t_ms`` and was answered at ``ended_ms`` (None: it was not)."""
        self._counts[call.op, outcome] += 1
        self._last.append((call, t_ms, ended_ms, outcome))

    @property
    def total(self) -> int:
        return self._counts.total()

    def view(self, last: int = KEPT_CALLS) -> Calls:
        """The counters and at most ``last`` calls, oldest first."""
        counts: dict[str, dict[str, int]] = {}
        for (op, outcome), count in sorted(self._counts.items()):
            counts.setdefault(op.value, {})[outcome] = count
        entries = list(self._last)[-last:] if last > 0 else []
        return Calls(self.total, counts, [_view(*entry) for entry in entries])


def _view(call: Call, t_ms: int, ended_ms: int | None, outcome: str) -> CallView:
    return CallView(
        t_ms=t_ms,
        account=call.account,
        conversation=call.conversation,
        thread=call.thread,
        message=call.message,
        op=call.op.value,
        emoji=call.emoji,
        outcome=outcome,
        ended_ms=ended_ms,
    )
