"""The calls that keep one target typing: at a fixed rate, one at a time, given up when the platform fails.

It knows nothing of runs. It is told to open when somebody wants typing and to close when nobody does any
more; `proceed` says after each change whether all who want it are just posting (*held*): then no call is
made.

The rate counts from the end of the *phase call*, the one that begins typing or begins it anew.

| state   | means (all of them while open)                                            |
| ------- | ------------------------------------------------------------------------- |
| due     | a phase call is to be made as soon as typing is not held                  |
| calling | a phase call is waiting or in flight; no tick is planned                  |
| on      | ticks run                                                                 |
| tripped | too many failures in a row: nothing until an explicit start or the probe  |

| what happens        | due           | calling               | on                           | tripped |
| ------------------- | ------------- | --------------------- | ---------------------------- | ------- |
| held                | -             | withdraw; due if that | withdraw; due if that was in | -       |
|                     |               | was in time           | time                         |         |
| not held any more   | call: calling | -                     | -                            | -       |
| explicit start      | due           | joins the call        | due; joins a tick's call     | due     |
| a post has ended it | due           | one more call after   | due; after a tick's call     | -       |
|                     |               | this one              |                              |         |
| tick                | -             | -                     | call; skipped while one is   | -       |
|                     |               |                       | in flight; due while held    |         |
| probe               | -             | -                     | due                          | due     |
| call ok             | -             | on                    | on                           | -       |
| call rate limited   | -             | on; a probe: tripped  | on                           | -       |
| call failed         | -             | on, or tripped        | on, or tripped               | -       |
| call: auth          | -             | tripped               | tripped                      | -       |
| call refused        | -             | told to the machine   | told to the machine          | -       |

- An explicit start resets the guard. One that joins a call in flight takes its success but not its failure:
  that is not counted, and a call of its own follows.
- A call whose end is unknown has failed.
- After close, an answer to an earlier call means nothing here; the lane sees to it that what it did is
  undone.
- With an interval of 0 there are no ticks; a start that did not succeed is then retried by the probe.
"""

from __future__ import annotations

import itertools
from enum import Enum, auto

from actors.presence.effects import Effects
from actors.presence.terms import Outcome, OutcomeKind, StartTyping, WithdrawTyping
from actors.presence.typing_wish import TypingWish

__all__ = ["PROBE", "TICK", "Answer", "TypingCalls"]

TICK, PROBE = "tick", "probe"

_REFUSALS = (
    OutcomeKind.GONE, OutcomeKind.FORBIDDEN, OutcomeKind.BAD_REQUEST, OutcomeKind.INVALID_REACTION,
)  # fmt: skip

_tokens = itertools.count(1)
"""Tokens are unique beyond one machine: an answer may come when its target has a new one."""


class Answer(Enum):
    """What an answer means for the machine."""

    NOTHING = auto()
    PHASED = auto()
    """The phase call has ended, well or badly."""
    REFUSED = auto()
    """The platform does not want this target to type."""


class TypingCalls:
    """One target's calls. ``lead``, where asked for, is the wish whose settings count now."""

    __slots__ = (
        "_again", "_due", "_effects", "_failures", "_held", "_joined", "_withdrawn", "call", "phasing",
        "started", "tripped",
    )  # fmt: skip

    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self.call: int | None = None
        """Token of the call that is waiting or in flight."""
        self.started = False
        """A start was asked for since the last stop has ended."""
        self._reset()

    def _reset(self) -> None:
        self._failures = 0
        self.tripped = False
        self.phasing = False
        """A phase call is due, waiting or in flight: TTLs are armed when it has ended."""
        self._due = False
        self._held = False
        self._withdrawn = False
        """The call was withdrawn, in case it had not begun."""
        self._joined = False
        """An explicit start relies on the call in flight."""
        self._again = False
        """A post may undo what the call in flight does."""

    # --- from the machine -----------------------------------------------------------------------------------

    def open(self) -> None:
        """Somebody wants typing."""
        self.phasing = self._due = True

    def explicit(self) -> None:
        """Begin anew: reset the guard, call now, count from the end of that call."""
        self._failures = 0
        self.tripped = False
        self._effects.cancel(TICK)
        self._effects.cancel(PROBE)
        self.phasing = True
        if self.call is None:
            self._due = True
        else:
            self._joined = True

    def posted(self) -> None:
        """The bot's own post has ended the indicator, and it is still wanted."""
        if self.tripped:
            return
        if self.call is None:
            self._due = True
        else:
            self._again = True

    def proceed(self, held: bool) -> None:
        """Make the call that is due, unless ``held``; withdraw one that waits when typing becomes held."""
        self._held = held
        if self.call is None:
            if self._due and not held:
                self._phase_call()
        elif held and not self._withdrawn:
            self._withdrawn = True
            self._effects.add(WithdrawTyping())

    def close(self) -> bool:
        """Nobody wants typing any more. Whether a call was waiting or in flight."""
        was_calling = self.call is not None
        self.call = None
        self._effects.cancel(TICK)
        self._effects.cancel(PROBE)
        self._reset()
        return was_calling

    def restart(self) -> None:
        """The answer to the call in flight may be lost: make it once more."""
        if self.call is None:
            return
        self.call = None
        self._joined = self._again = self._withdrawn = False
        if self._held:
            self._due = True
            self._effects.add(WithdrawTyping())
        elif self.phasing:
            self._phase_call()
        else:
            self._make_call()

    # --- timers ---------------------------------------------------------------------------------------------

    def tick(self, lead: TypingWish, due_ms: int, now_ms: int) -> None:
        """A refresh is due; ticks that were missed while nobody was looking are not made up for."""
        interval_ms = lead.keepalive_ms
        if interval_ms > 0:
            self._effects.schedule(TICK, now_ms + interval_ms - (now_ms - due_ms) % interval_ms)
        if self.call is not None:
            return
        if self._held:
            self._due = True
        else:
            self._make_call()

    def probe(self) -> None:
        """Try once again after a trip."""
        self._due = True
        self.proceed(self._held)

    # --- answers --------------------------------------------------------------------------------------------

    def answered(self, lead: TypingWish, outcome: Outcome, called: bool, now_ms: int) -> Answer:
        """The call has ended; ``called`` is false if it was withdrawn or refused before it began."""
        again, joined, withdrawn = self._again, self._joined, self._withdrawn
        self.call = None
        self._again = self._joined = self._withdrawn = False
        kind = outcome.kind
        if kind in _REFUSALS:
            return Answer.REFUSED
        if withdrawn and not called:
            self._due = True
        elif outcome.happened:
            self._failures = 0
            self.tripped = False
            self._due = again
        elif joined and kind is not OutcomeKind.AUTH and kind is not OutcomeKind.RATE_LIMITED:
            self._due = True
        else:
            self._failed(kind, lead)
            self._due = again and not self.tripped
        if self._due:
            self.proceed(self._held)
            return Answer.NOTHING
        return self._settled(lead, outcome, now_ms)

    def _failed(self, kind: OutcomeKind, lead: TypingWish) -> None:
        if kind is OutcomeKind.RATE_LIMITED:
            return
        self._failures += 1
        if kind is OutcomeKind.AUTH or self._failures >= lead.failures_max:
            self.tripped = True

    def _settled(self, lead: TypingWish, outcome: Outcome, now_ms: int) -> Answer:
        if self.tripped:
            self._effects.cancel(TICK)
        elif self.phasing and lead.keepalive_ms > 0:
            self._effects.schedule(TICK, now_ms + lead.keepalive_ms)
        if lead.probe_ms > 0 and (self.tripped or (lead.keepalive_ms <= 0 and not outcome.happened)):
            self._effects.schedule(PROBE, now_ms + lead.probe_ms)
        if not self.phasing:
            return Answer.NOTHING
        self.phasing = False
        return Answer.PHASED

    def _phase_call(self) -> None:
        self.phasing = True
        self._effects.cancel(TICK)
        self._effects.cancel(PROBE)
        self._make_call()

    def _make_call(self) -> None:
        self._due = False
        self.started = True
        self.call = next(_tokens)
        self._effects.add(StartTyping(self.call))
