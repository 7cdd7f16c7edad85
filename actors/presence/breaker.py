"""When not to call at all: circuits per destination, the account's outage, and the count of refused calls.

Circuit (one per conversation and kind of call, or per kind for the whole account)

======  ===========================  ======  =======================================================
state   on                           then    meaning
======  ===========================  ======  =======================================================
closed  forbidden                    open    10 min: calls of this kind are refused without a call
open    its time is over             half    the next wanted call is the probe, others wait for it
half    probe answered, not refused  closed
half    probe forbidden              open    twice as long as before, at most a day
half    probe lost                   half    the next wanted call is the probe
======  ===========================  ======  =======================================================

The kinds are marks and typing. Only what shows something is held back: what may be there is taken away even
where nothing new is allowed, at the price of one call each. A circuit that nobody asks for as long as it
was open is forgotten.

Outage: five failures in a row (transient or without an answer, no other answer between) in at least three
conversations mean the platform is down. Then one call at a time probes, after 1 s, 2 s and so on up to
60 s, and the first answer of any other kind ends it.

Refusals: platforms ban hosts that collect refused calls (Discord: 10,000 of 401, 403, 429 in 10 min), so those of all
accounts on one server count together. At half of the ceiling typing and phases stop, at four fifths everything does,
until enough of them are older than 10 minutes.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final

from actors.presence.expiring import Expiring
from actors.presence.terms import Op, Rank

OPEN_MS: Final = 600_000
MAX_OPEN_MS: Final = 86_400_000
CIRCUITS: Final = 20_000
"""Circuits kept at most."""
OUTAGE_FAILURES: Final = 5
OUTAGE_CONVERSATIONS: Final = 3
PROBE_MS: Final = 1_000
MAX_PROBE_MS: Final = 60_000
REFUSALS: Final = 10_000
REFUSAL_WINDOW_MS: Final = 600_000
_STEP_MS: Final = 10_000

NEVER: Final = 1 << 62
"""No time will do: something must happen first."""


class Kind(StrEnum):
    """What a circuit is about."""

    MARKS = "marks"
    TYPING = "typing"


KINDS: Final = {
    Op.SET: Kind.MARKS,
    Op.REMOVE: Kind.MARKS,
    Op.CLEAR: Kind.MARKS,
    Op.TYPING_START: Kind.TYPING,
    Op.TYPING_STOP: Kind.TYPING,
}
SHOWING: Final = frozenset({Op.SET, Op.TYPING_START})
"""The calls that circuits hold back."""


class Gate(IntEnum):
    """What a circuit says to a call, from mild to strict."""

    PASS = 0
    PROBE = 1
    """It may start, and finds out."""
    WAIT = 2
    """Another call is finding out."""
    REFUSE = 3


@dataclass(slots=True)
class _Circuit:
    until_ms: int
    open_ms: int
    probe: int | None = None
    """The call that finds out."""

    def gate(self, now_ms: int) -> Gate:
        if self.probe is not None:
            return Gate.WAIT
        return Gate.REFUSE if now_ms < self.until_ms else Gate.PROBE


class Circuits:
    """All circuits of an account. ``conversation`` "" stands for the whole account."""

    def __init__(self) -> None:
        self._table: Expiring[tuple[str, Kind], _Circuit] = Expiring(_forgotten, CIRCUITS)

    def gate(self, conversation: str, kind: Kind, now_ms: int) -> Gate:
        """What the circuits of a call say now: the stricter of the conversation's and the account's."""
        if not self._table:
            return Gate.PASS
        gates = [circuit.gate(now_ms) for circuit in self._of(conversation, kind)]
        return max(gates, default=Gate.PASS)

    def begun(self, conversation: str, kind: Kind, call_id: int, now_ms: int) -> bool:
        """The call starts. Where a circuit waits for a probe, it is the probe; whether it is one."""
        waiting = [c for c in self._of(conversation, kind) if c.gate(now_ms) is Gate.PROBE] if self._table else []
        for circuit in waiting:
            circuit.probe = call_id
        return bool(waiting)

    def forbidden(self, conversation: str, kind: Kind, now_ms: int) -> bool:
        """A call was refused. Whether this opened the circuit: an open or probed one is left as it is."""
        circuit = self._table.get((conversation, kind))
        if circuit is None:
            circuit = _Circuit(now_ms + OPEN_MS, OPEN_MS)
        elif now_ms < circuit.until_ms or circuit.probe is not None:
            return False
        else:
            circuit.open_ms = min(2 * circuit.open_ms, MAX_OPEN_MS)
            circuit.until_ms = now_ms + circuit.open_ms
        self._table.put((conversation, kind), circuit, now_ms)
        return True

    def ended(self, conversation: str, kind: Kind, call_id: int, *, answered: bool) -> None:
        """The call has ended. If it was the probe, an answer that is no refusal closes the circuit."""
        if not self._table:
            return
        for where in (conversation, ""):
            circuit = self._table.get((where, kind))
            if circuit is not None and circuit.probe == call_id:
                circuit.probe = None
                if answered:
                    self._table.drop((where, kind))

    def reopen(self, conversation: str, kind: Kind, now_ms: int) -> None:
        """Let a probe through now."""
        circuit = self._table.get((conversation, kind))
        if circuit is not None:
            circuit.until_ms = min(circuit.until_ms, now_ms)

    def open_now(self, now_ms: int) -> dict[tuple[str, Kind], int]:
        """Open circuits and until when (ms); O(n)."""
        live = self._table.meaningful(now_ms)
        return {key: circuit.until_ms for key, circuit in live if circuit.until_ms > now_ms}

    def sweep(self, now_ms: int) -> None:
        """Drop what is forgotten anyway; O(n)."""
        self._table.sweep(now_ms)

    def _of(self, conversation: str, kind: Kind) -> list[_Circuit]:
        found = (self._table.get((conversation, kind)), self._table.get(("", kind)))
        return [circuit for circuit in found if circuit is not None]


def _forgotten(circuit: _Circuit, now_ms: int) -> bool:
    return circuit.probe is None and now_ms >= circuit.until_ms + circuit.open_ms


class Outage:
    """Whether the platform answers at all."""

    def __init__(self) -> None:
        self.down = False
        self._failures = 0
        self._conversations: set[str] = set()
        self._retry_at_ms = 0
        self._delay_ms = PROBE_MS
        self._probe: int | None = None

    def wait(self, now_ms: int) -> int:
        """0: calls may start. Otherwise when (ms), or NEVER while the probe is under way."""
        if not self.down:
            return 0
        if self._probe is not None:
            return NEVER
        return self._retry_at_ms if now_ms < self._retry_at_ms else 0

    def begun(self, call_id: int) -> None:
        """A call starts; during an outage it is the probe."""
        if self.down:
            self._probe = call_id

    def failed(self, conversation: str, call_id: int, now_ms: int) -> None:
        """A call got no answer, or a transient one."""
        if self.down:
            if call_id == self._probe:
                self._probe = None
                self._delay_ms = min(2 * self._delay_ms, MAX_PROBE_MS)
                self._retry_at_ms = now_ms + self._delay_ms
            return
        self._failures += 1
        if len(self._conversations) < OUTAGE_CONVERSATIONS:
            self._conversations.add(conversation)
        if self._failures >= OUTAGE_FAILURES and len(self._conversations) >= OUTAGE_CONVERSATIONS:
            self.down = True
            self._delay_ms = PROBE_MS
            self._retry_at_ms = now_ms + PROBE_MS

    def probe_now(self, now_ms: int) -> None:
        """The platform may be back: do not wait for the next probe's time."""
        self._delay_ms = PROBE_MS
        self._retry_at_ms = min(self._retry_at_ms, now_ms)

    def lost(self, call_id: int) -> None:
        """The answer was lost on our side: if it was the probe, another one finds out."""
        if call_id == self._probe:
            self._probe = None

    def answered(self) -> bool:
        """The platform answered. Whether an outage has ended with it."""
        self._failures = 0
        self._conversations.clear()
        self._probe = None
        was_down, self.down = self.down, False
        return was_down


Refused = tuple[tuple[int, int], ...]
"""How long ago (ms) calls were refused, and how many; oldest first."""


class Refusals:
    """Refused calls of the last ten minutes, counted in steps of ten seconds. ``ceiling`` 0: not watched."""

    def __init__(self, ceiling: int = REFUSALS) -> None:
        self._ceiling = ceiling
        self._steps: deque[tuple[int, int]] = deque()
        self._sum = 0

    def count(self, now_ms: int) -> bool:
        """One more. Whether it is the one with which typing and phases stop, or everything."""
        self._forget(now_ms)
        step = now_ms // _STEP_MS
        seen = self._steps.pop()[1] if self._steps and self._steps[-1][0] == step else 0
        self._steps.append((step, seen + 1))
        self._sum += 1
        return self._ceiling > 0 and self._sum in (self._most(Rank.PHASE), self._most(Rank.TERMINAL))

    def wait(self, rank: Rank, now_ms: int) -> int:
        """0: calls of this rank may start. Otherwise when (ms) enough refusals are forgotten."""
        if not self._ceiling or not self._sum:
            return 0
        self._forget(now_ms)
        excess = self._sum - self._most(rank)
        if excess < 0:
            return 0
        forgotten_ms = 0
        for step, seen in self._steps:
            forgotten_ms = _forgotten_ms(step)
            excess -= seen
            if excess < 0:
                break
        return forgotten_ms

    def counted(self, now_ms: int) -> Refused:
        """For an heir: how long ago (ms), and how many."""
        self._forget(now_ms)
        return tuple((now_ms - step * _STEP_MS, seen) for step, seen in self._steps)

    def inherit(self, refused: Refused, age_ms: int, now_ms: int) -> None:
        """Take over what an earlier process has counted and written down ``age_ms`` ago.

        Of one time the larger number counts: accounts that share the count have each written down all of it."""
        steps = dict(self._steps)
        for ago_ms, seen in refused:
            step = (now_ms - age_ms - ago_ms) // _STEP_MS
            steps[step] = max(seen, steps.get(step, 0))
        self._steps = deque(sorted(steps.items()))
        self._sum = sum(steps.values())

    def total(self, now_ms: int) -> int:
        """How many there were."""
        self._forget(now_ms)
        return self._sum

    def _most(self, rank: Rank) -> int:
        """With so many, calls of this rank stop."""
        return self._ceiling // 2 if rank >= Rank.PHASE else self._ceiling * 4 // 5

    def _forget(self, now_ms: int) -> None:
        while self._steps and _forgotten_ms(self._steps[0][0]) <= now_ms:
            self._sum -= self._steps.popleft()[1]


def _forgotten_ms(step: int) -> int:
    return (step + 1) * _STEP_MS + REFUSAL_WINDOW_MS
