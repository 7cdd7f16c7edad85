"""What the answers so far mean for calls to come: the state of an account's health, apart from its budgets.

======================  ======================================================================
answer                  consequence
======================  ======================================================================
auth                    the account is stopped: nothing is called until `revive`
forbidden               the circuit of its kind opens, for the conversation or as the answer says
forbidden, a message    it is dead as if it were gone, once no mark of ours is there
gone, a message         it is dead for a day: nothing is called for it
gone, the conversation  as forbidden; typing knows no other gone
invalid_reaction        this emoji is not tried in this conversation for a day; with scope ``message`` nothing
transient, unknown      after a row of them, the account's outage
everything else         the platform answers: an outage ends, a probed circuit closes
======================  ======================================================================

Auth, forbidden and rate_limited count as refusals. A refusal with scope ``message`` opens no circuit. The
tables of emojis and messages have a size; the oldest entries go first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from actors.presence.breaker import KINDS, NEVER, SHOWING, Circuits, Gate, Kind, Outage, Refusals, Refused
from actors.presence.expiring import Expiring
from actors.presence.terms import Command, Op, Outcome, OutcomeKind, Rank

REMEMBER_MS: Final = 86_400_000
"""How long a refused emoji and a dead message are remembered."""
CAPACITY: Final = 20_000
"""Refused emojis and dead messages kept at most, each."""

_REFUSALS: Final = frozenset({OutcomeKind.AUTH, OutcomeKind.FORBIDDEN, OutcomeKind.RATE_LIMITED})
_LATER: Final = frozenset({OutcomeKind.AUTH, OutcomeKind.RATE_LIMITED})
_FAILURES: Final = frozenset({OutcomeKind.TRANSIENT, OutcomeKind.UNKNOWN})


@dataclass(slots=True)
class Call:
    """A call under way."""

    call_id: int
    command: Command
    rank: Rank
    begun_ms: int
    probe: bool = False
    """It finds out whether a circuit can be closed."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an answer changed."""

    stopped: bool = False
    recovered: bool = False
    """An outage is over."""
    opened: tuple[str, Kind] | None = None
    """This circuit has opened."""
    paused: bool = False
    """There are so many refused calls that some or all calls stop for a while."""


_NOTHING: Final = Verdict()


class Health:
    """Circuits, outage, refusals, refused emojis and dead messages of one account."""

    def __init__(self, refusals: Refusals | None = None) -> None:
        """``refusals``: those of all accounts on the same server; None: this one's own."""
        self.stopped: str | None = None
        """Why nothing is called (``auth``); None: the account works."""
        self._circuits = Circuits()
        self._outage = Outage()
        self._refusals = refusals or Refusals()
        self._refused = False
        """There is a refusal that nobody has taken note of."""
        self._emojis: Expiring[tuple[str, str], int] = Expiring(_past, CAPACITY)
        self._dead: Expiring[tuple[str, str], int] = Expiring(_past, CAPACITY)

    def wait(self, rank: Rank, now_ms: int) -> int:
        """0: calls of this rank may start. Otherwise when (ms), or NEVER if no time will do."""
        if self.stopped:
            return NEVER
        return self._outage.wait(now_ms) or self._refusals.wait(rank, now_ms)

    def gate(self, conversation: str, op: Op, now_ms: int) -> Gate:
        """What the circuits say to such a call there."""
        return self._circuits.gate(conversation, KINDS[op], now_ms) if op in SHOWING else Gate.PASS

    def is_refused(self, conversation: str, emoji: str, now_ms: int) -> bool:
        """The platform said no to this emoji in this conversation."""
        until_ms = self._emojis.get((conversation, emoji))
        return until_ms is not None and until_ms > now_ms

    def is_dead(self, conversation: str, message: str, now_ms: int) -> bool:
        """The message is gone."""
        until_ms = self._dead.get((conversation, message))
        return until_ms is not None and until_ms > now_ms

    def bury(self, conversation: str, message: str, now_ms: int) -> None:
        """The message takes no mark: nothing is called for it any more."""
        self._dead.put((conversation, message), now_ms + REMEMBER_MS, now_ms)

    def begun(self, call: Call) -> None:
        """A call starts."""
        self._outage.begun(call.call_id)
        op = call.command.op
        if op in SHOWING:
            call.probe = self._circuits.begun(call.command.conversation, KINDS[op], call.call_id, call.begun_ms)

    def lost(self, call: Call) -> None:
        """We lost the answer ourselves: it says nothing about the platform."""
        self._outage.lost(call.call_id)
        self._circuits.ended(call.command.conversation, KINDS[call.command.op], call.call_id, answered=False)

    def ended(self, call: Call, outcome: Outcome, now_ms: int) -> Verdict:
        """The answer to a call."""
        command, kind = call.command, KINDS[call.command.op]
        refusal = outcome.kind in _REFUSALS
        self._refused |= refusal
        paused = refusal and self._refusals.count(now_ms)
        if outcome.kind in _FAILURES:
            self._outage.failed(command.conversation, call.call_id, now_ms)
            self._circuits.ended(command.conversation, kind, call.call_id, answered=False)
            return _NOTHING
        recovered = self._outage.answered()
        opened = None
        whole = outcome.scope == "conversation" or (kind is Kind.TYPING and command.thread is None)
        away = outcome.kind is OutcomeKind.GONE and whole
        refused = (away or outcome.kind is OutcomeKind.FORBIDDEN) and outcome.scope != "message"
        answered = not refused and outcome.kind not in _LATER
        self._circuits.ended(command.conversation, kind, call.call_id, answered=answered)
        if refused:
            where = "" if outcome.scope == "account" else command.conversation
            opened = (where, kind) if self._circuits.forbidden(where, kind, now_ms) else None
        if outcome.kind is OutcomeKind.INVALID_REACTION and command.emoji is not None:
            if outcome.scope != "message":
                self._emojis.put((command.conversation, command.emoji), now_ms + REMEMBER_MS, now_ms)
        elif outcome.kind is OutcomeKind.GONE and command.message is not None:
            self._dead.put((command.conversation, command.message), now_ms + REMEMBER_MS, now_ms)
        stopped = outcome.kind is OutcomeKind.AUTH and self.stopped is None
        if stopped:
            self.stopped = "auth"
        return Verdict(stopped, recovered, opened, paused)

    def take_refused(self, now_ms: int) -> Refused:
        """The refusals counted so far, if there are new ones since this was asked last; to be kept over a restart."""
        news, self._refused = self._refused, False
        return self._refusals.counted(now_ms) if news else ()

    def inherit_refused(self, refused: Refused, age_ms: int, now_ms: int) -> None:
        """An earlier process has counted these, ``age_ms`` ago."""
        self._refusals.inherit(refused, age_ms, now_ms)

    def revive(self) -> None:
        """New credentials: what the old ones were refused says nothing any more."""
        self.stopped = None
        self._circuits = Circuits()
        self._outage = Outage()

    def share(self, refusals: Refusals) -> None:
        """Refusals count here from now on."""
        self._refusals = refusals

    def moved(self) -> None:
        """Another server: what the old one refused says nothing any more."""
        self.revive()
        self._emojis = Expiring(_past, CAPACITY)
        self._dead = Expiring(_past, CAPACITY)

    def reachable(self, now_ms: int) -> None:
        """What could not be reached may be again: an outage is probed at once."""
        self._outage.probe_now(now_ms)

    def reopen(self, conversation: str, now_ms: int) -> None:
        """Something has changed in the conversation: its open circuits let a probe through."""
        for kind in Kind:
            self._circuits.reopen(conversation, kind, now_ms)

    def snapshot(self, now_ms: int) -> dict[str, object]:
        """For people; no secrets."""
        circuits = {f"{where or '*'} {kind}": until for (where, kind), until in self._circuits.open_now(now_ms).items()}
        return {
            "stopped": self.stopped,
            "outage": self._outage.down,
            "circuits": circuits,
            "refusals": self._refusals.total(now_ms),
            "refused_emojis": len(self._emojis),
            "dead_messages": len(self._dead),
        }

    def sweep(self, now_ms: int) -> None:
        """Drop what is forgotten anyway; O(n), for quiet times."""
        self._circuits.sweep(now_ms)
        self._emojis.sweep(now_ms)
        self._dead.sweep(now_ms)


def _past(until_ms: int, now_ms: int) -> bool:
    return until_ms <= now_ms
