"""One target's typing on one platform: what is wanted, whether an indicator may be on, which call comes next.

A lane is level-triggered: the newest wish replaces what has not begun. One call is in flight at most.

| what is told | nothing to do           | a start waits | start in flight | a stop waits | stop in flight  |
| ------------ | ----------------------- | ------------- | --------------- | ------------ | --------------- |
| start        | waits                   | replaces it   | waits behind it | replaces it  | waits behind it |
| stop         | waits, if one may be on | replaces it   | waits behind it | -            | -               |
| withdraw     | -                       | drops it      | -               | -            | -               |

| how a call ended     | a start                               | a stop                                      |
| -------------------- | ------------------------------------- | ------------------------------------------- |
| ok, already done     | may be on; reported                   | off; reported                               |
| gone                 | off; reported                         | off; reported                               |
| unknown              | may be on; the same call once, if it  | the same call once, then as transient       |
|                      | is still wanted; then reported        |                                             |
| transient, limited   | reported: the machine's next tick is  | again after a doubling delay or Retry-After |
|                      | the retry                             | until the indicator ends by itself          |
| auth                 | reported                              | the same for one that lasts, else given up  |
| refused otherwise    | reported                              | given up                                    |

- Every start gets one report; ``called`` is false if it was replaced or withdrawn before it began. A stop
  gets one unless a start replaces it: when it is confirmed or given up, or at once (``called`` false) when
  no call is needed, because nothing can be on or the platform has no such call.
- A stop never overtakes a start in flight. It is called only if something may be on when that has ended:
  from the end of a start that succeeded, or that may have, until the platform's lifetime is over (0: until
  stopped).
- A repeat carries the idempotency key of the call it repeats.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from actors.presence.terms import (
    OK,
    Command,
    LaneRules,
    Op,
    Outcome,
    OutcomeKind,
    Rank,
    RetryRules,
    TypingReport,
)

__all__ = ["TypingLane"]

_FOREVER_MS = 1 << 62
_AGAIN = (OutcomeKind.TRANSIENT, OutcomeKind.RATE_LIMITED, OutcomeKind.UNKNOWN)
_NO_TYPING = Outcome(OutcomeKind.FORBIDDEN, detail="the platform shows no typing")

_numbers = itertools.count(1)


def _numbered_key() -> str:
    return f"typing-{next(_numbers)}"


class TypingLane:
    """The typing of one target. Pure: no pacing, no clock."""

    __slots__ = (
        "_again", "_forum", "_inbound", "_may_repeat", "_new_key", "_on_until_ms", "_retry", "_rules", "_stop_key",
        "_stop_tries", "_stopping", "_token", "_waiting", "conversation", "in_flight", "not_before_ms",
        "saved", "thread",
    )  # fmt: skip

    def __init__(
        self,
        conversation: str,
        thread: str | None,
        rules: LaneRules,
        retry: RetryRules,
        *,
        new_key: Callable[[], str] = _numbered_key,
        forum: bool = False,
    ) -> None:
        """``new_key`` makes idempotency keys, unique per account."""
        self.conversation = conversation
        self.thread = thread
        self.in_flight: Command | None = None
        self.not_before_ms = 0
        """No retry of a stop before this time; 0: none is waiting."""
        self.saved = 0
        """Calls that were replaced or withdrawn before they began."""
        self._rules = rules
        self._retry = retry
        self._new_key = new_key
        self._forum = forum
        self._inbound: str | None = None
        """What `Command.inbound` of the next start will be."""
        self._waiting: tuple[int, str] | None = None
        """Token and key of the start that has not begun."""
        self._token: int | None = None
        """Token of the start in flight."""
        self._again: Command | None = None
        """The call that is made once more, because nobody knows how it ended."""
        self._may_repeat = False
        """Whether the call in flight is made again if its end is unknown."""
        self._stopping = False
        """A stop is wanted and not reported yet."""
        self._stop_key = ""
        self._stop_tries = 0
        self._on_until_ms = 0
        """Until when an indicator of ours may be on."""

    @property
    def settled(self) -> bool:
        """Whether no call is in flight and none is left to make."""
        return not (self.in_flight or self._again or self._waiting or self._stopping)

    @property
    def idle(self) -> bool:
        """Whether the lane can be dropped: it is settled, and nothing is on that a stop must know of."""
        return self.settled and (not self._rules.typing_stop or self._on_until_ms == 0)

    # --- what is wanted -------------------------------------------------------------------------------------

    def start(self, token: int, now_ms: int, inbound: str | None = None) -> Sequence[TypingReport]:
        """Make one typing call as soon as possible, in place of what has not begun. ``inbound``: see `Command`."""
        if not self._rules.typing:
            return [self._report(token, _NO_TYPING, called=False)]
        reports = self.withdraw(now_ms)
        if self._stopping:
            self.saved += self.in_flight is None or self.in_flight.op is Op.TYPING_START
            self._stopping = False
            self._again = None
            self.not_before_ms = 0
        self._waiting = token, self._new_key()
        self._inbound = inbound
        return reports

    def stop(self, now_ms: int) -> Sequence[TypingReport]:
        """Typing should be off."""
        reports = self.withdraw(now_ms)
        if not self._stopping:
            self._stopping = True
            self._stop_key = self._new_key()
            self._stop_tries = 0
            if not self._rules.typing_stop or (self.in_flight is None and self._on_until_ms <= now_ms):
                reports.append(self._unneeded_stop())
        return reports

    def withdraw(self, now_ms: int) -> list[TypingReport]:
        """Do not make a start that has not begun. What is on stays on for now."""
        reports = []
        if self.in_flight is not None and self.in_flight.op is Op.TYPING_START:
            self._may_repeat = False
        if self._again is not None and self._again.op is Op.TYPING_START:
            self._again = None
            reports.append(self._report(self._token, Outcome(OutcomeKind.UNKNOWN)))
        if self._waiting is not None:
            self.saved += 1
            reports.append(self._report(self._waiting[0], OK, called=False))
            self._waiting = None
        return reports

    def lapse(self, now_ms: int) -> Sequence[TypingReport]:
        """Let go of a stop that had to wait until the indicator was over by itself."""
        if not self._lapsed(now_ms):
            return []
        self._again = None
        self.not_before_ms = 0
        return [self._unneeded_stop()]

    def _lapsed(self, now_ms: int) -> bool:
        return self._stopping and self.in_flight is None and self._on_until_ms <= now_ms

    # --- calls ----------------------------------------------------------------------------------------------

    def next_command(self, now_ms: int) -> tuple[Command, Rank] | None:
        """The call to make now. None: settled, one in flight, or backing off until ``not_before_ms``."""
        if self.in_flight is not None or now_ms < self.not_before_ms or self._lapsed(now_ms):
            return None
        if self._again is not None:
            return self._again, Rank.TYPING
        if self._waiting is not None:
            return self._command(Op.TYPING_START, self._waiting[1]), Rank.TYPING
        if self._stopping:
            return self._command(Op.TYPING_STOP, self._stop_key), Rank.TYPING
        return None

    def begin(self, command: Command, now_ms: int) -> None:
        """The call of `next_command` is being made."""
        self.in_flight = command
        self.not_before_ms = 0
        self._may_repeat = self._again is None
        if self._again is None and self._waiting is not None:
            self._token = self._waiting[0]
            self._waiting = None
        self._again = None

    def end(self, outcome: Outcome, now_ms: int) -> Sequence[TypingReport]:
        """The call in flight has ended."""
        command = self.in_flight
        if command is None:
            return []
        self.in_flight = None
        if command.op is Op.TYPING_STOP:
            return self._stop_ended(command, outcome, now_ms)
        if outcome.happened or outcome.kind is OutcomeKind.UNKNOWN:
            lifetime_ms = self._rules.typing_lifetime_ms
            self._on_until_ms = now_ms + lifetime_ms if lifetime_ms > 0 else _FOREVER_MS
        elif outcome.kind is OutcomeKind.GONE:
            self._on_until_ms = 0
        if outcome.kind is OutcomeKind.UNKNOWN and self._may_repeat:
            self._again = command
            return []
        reports = [self._report(self._token, outcome)]
        if self._stopping and self._on_until_ms <= now_ms:
            reports.append(self._unneeded_stop())
        return reports

    def _stop_ended(self, command: Command, outcome: Outcome, now_ms: int) -> Sequence[TypingReport]:
        kind = outcome.kind
        if outcome.happened or kind is OutcomeKind.GONE:
            self._on_until_ms = 0
        elif self._stopping and kind is OutcomeKind.UNKNOWN and self._may_repeat:
            self._again = command
            return []
        elif self._stopping and self._may_retry(kind):
            delay_ms = min(self._retry.first_delay_ms << min(self._stop_tries, 32), self._retry.max_delay_ms)
            retry_at_ms = now_ms + max(delay_ms, outcome.retry_after_ms or 0)
            if retry_at_ms < self._on_until_ms:
                self._stop_tries += 1
                self.not_before_ms = retry_at_ms
                return []
        if not self._stopping:
            return []
        self._stopping = False
        self._on_until_ms = 0
        return [self._report(None, outcome)]

    def _may_retry(self, kind: OutcomeKind) -> bool:
        return kind in _AGAIN or (kind is OutcomeKind.AUTH and self._on_until_ms == _FOREVER_MS)

    def _unneeded_stop(self) -> TypingReport:
        self._stopping = False
        self._on_until_ms = 0
        return self._report(None, OK, called=False)

    def _command(self, op: Op, key: str) -> Command:
        inbound = self._inbound if op is Op.TYPING_START else None
        return Command(op, self.conversation, self.thread, idempotency_key=key, forum=self._forum, inbound=inbound)

    def _report(self, token: int | None, outcome: Outcome, called: bool = True) -> TypingReport:
        return TypingReport(self.conversation, self.thread, token, outcome, called)
