"""One message's marks on one platform: what is wanted, what is really there, and which call comes next.

A lane is level-triggered. It holds the last wish (`MarkLane.show`), the marks on the message and at most one
call in flight; from these alone it works out the next call, so a wish replaced before its call began is
never sent.

Rules:

- A wish is a chain of emojis, best first, or the empty chain: no mark. A wish that holds already makes no call.
- On platforms that replace, a wish is one ``set`` or one ``clear``. On the others the new mark is added first and
  everything else of ours is removed after it, oldest first.
- A swap whose add has begun finishes its removals before the next add. Only an add of terminal rank goes ahead, and
  not ahead of a swap that is terminal itself. A swap's removal has the rank of its add.
- A mark is *in doubt* from the start of a call about it until an answer says what holds. A mark in doubt meets no
  wish and is removed like one that is shown; where removing needs a handle, its add is repeated to learn it.
- ``invalid_reaction`` moves on along the chain, three calls for one wish at most; refused emojis are remembered here,
  and the account's negative cache is asked as well. ``bad_request`` is final for that emoji on this message.
- ``gone`` and ``forbidden`` end the lane: no further call, not even to clean up. But where the message alone is full
  (scope ``message``) and a mark of ours is there, that one is removed before the next add.
- ``unknown`` is followed by the same call once, without delay; then, like ``transient``, by retries with doubling
  delays. Phases and acks have ``phase_tries`` tries, then the old mark stays. Terminal marks and all removals go on
  as long as ``terminal_retries`` allows; otherwise a failed removal is tried again at the next change.
- A repeat carries the idempotency key of the call it repeats, also where an earlier process made that one.
  ``rate_limited`` and ``auth`` are no failures.
- A released lane whose mark cannot be had wants none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from actors.presence.mark_plan import MarkPlan, Plan
from actors.presence.marks import Mark
from actors.presence.terms import Command, LaneRules, MarkReport, Op, Outcome, OutcomeKind, Rank, RetryRules
from actors.presence.wish import Call, Wish

__all__ = ["MarkLane"]

_GONE = (OutcomeKind.GONE, OutcomeKind.FORBIDDEN)
_LATER = (OutcomeKind.RATE_LIMITED, OutcomeKind.AUTH)
_REFUSED = (OutcomeKind.INVALID_REACTION, OutcomeKind.BAD_REQUEST)

_numbers = count(1)


def _nothing_refused(conversation: str, emoji: str) -> bool:
    return False


def _numbered_key() -> str:
    return f"mark-{next(_numbers)}"


class MarkLane:
    """The marks of one message. Pure: no pacing, no clock."""

    __slots__ = (
        "_flight_adds", "_flight_rank", "_forum", "_is_refused", "_keys", "_marks", "_new_key", "_plan",
        "_refused", "_released", "_retry", "conversation", "dead", "in_flight", "message", "not_before_ms", "saved",
    )  # fmt: skip

    def __init__(
        self,
        conversation: str,
        message: str,
        rules: LaneRules,
        retry: RetryRules,
        is_refused: Callable[[str, str], bool] = _nothing_refused,
        *,
        new_key: Callable[[], str] = _numbered_key,
        forum: bool = False,
    ) -> None:
        """``is_refused(conversation, emoji)``: the negative cache; ``new_key``: keys unique per account."""
        self.conversation = conversation
        self.message = message
        self._plan = MarkPlan(rules)
        self._marks = self._plan.marks
        self._retry = retry
        self._is_refused = is_refused
        self._new_key = new_key
        self._forum = forum
        self.in_flight: Command | None = None
        self.not_before_ms = 0
        """No retry before this time; 0: none is waiting."""
        self.dead: OutcomeKind | None = None
        """Why no call will ever be made again."""
        self.saved = 0
        """Wishes without a call of their own: they held already, joined one in flight, or were replaced."""
        self._keys: dict[Call, str] = {}
        self._refused: dict[str, OutcomeKind] = {}
        self._flight_rank = Rank.PHASE
        self._flight_adds = False
        """Whether the call in flight adds a mark that was wanted (and not one to be removed by its handle)."""
        self._released = False

    # --- the wish ---------------------------------------------------------------------------------------

    def show(self, chain: tuple[str, ...], rank: Rank, now_ms: int) -> Sequence[MarkReport]:
        """Want the first mark of ``chain`` that can be had (empty: none). Reports what needs no call."""
        old = self._plan.wish
        if old is not None and old.open and old.chain == chain and old.rank is rank:
            old.reported = False
            if not old.called and not self._plan.is_met(old):
                old.pick(self._why_not)  # its mark may have been refused on another message since
            return self._report(old)
        wish = Wish(chain, rank)
        wish.pick(self._why_not)
        if old is not None:
            if not old.called and not old.reported:
                self.saved += 1
            self._plan.change_from(old, wish)
        self.not_before_ms = 0
        self._released = False
        self._plan.wish = wish
        return self._report(wish)

    def adopt(self, emoji: str, mark: Mark, now_ms: int) -> None:
        """An earlier process has left this mark on the message, or was about to: it is wanted for now."""
        if self._plan.rules.reactions == "replace":
            self._forget_all()
        self._inherit(emoji, mark)
        self.show((emoji,), Rank.PHASE, now_ms)

    def find(self, emoji: str, mark: Mark) -> None:
        """An earlier process has left this mark too; it is there unless a mark of this process has replaced it."""
        if self._plan.rules.reactions != "replace" and emoji not in self._marks:
            self._inherit(emoji, mark)

    def _inherit(self, emoji: str, mark: Mark) -> None:
        self._marks.confirm(emoji, mark.handle)
        if not mark.certain:
            self._marks.doubt(emoji)
        if mark.key is not None:
            self._keys[Op.SET, emoji] = mark.key

    def release(self) -> None:
        """The run is over: what shows then may stay, and the lane can be dropped when it has settled."""
        self._released = True
        self._want_none_instead()

    @property
    def shown(self) -> dict[str, str | None]:
        """The marks that are certainly on the message, with the platform's handles."""
        return self._marks.shown()

    @property
    def possible(self) -> dict[str, Mark]:
        """The marks that are, or may be, on the message."""
        keys = self._keys
        return {
            emoji: Mark(handle) if certain else Mark(handle, False, keys.get((Op.SET, emoji)))
            for emoji, (handle, certain) in self._marks.items()
        }

    @property
    def settled(self) -> bool:
        """Whether nothing is in flight and nothing is left to call for the present wish."""
        return self.in_flight is None and self._next() is None

    @property
    def idle(self) -> bool:
        """Whether the lane can be dropped without forgetting a mark that somebody may still want gone."""
        return self.settled and (self._released or not self._marks)

    # --- calls ------------------------------------------------------------------------------------------

    def next_command(self, now_ms: int) -> tuple[Command, Rank] | None:
        """The call to make now. None: settled, one in flight, or backing off until ``not_before_ms``."""
        if self.in_flight is not None or now_ms < self.not_before_ms:
            return None
        plan = self._next()
        if plan is None:
            return None
        op, emoji, rank = plan
        key = self._keys.get((op, emoji))
        if key is None:
            key = self._keys[op, emoji] = self._new_key()
        command = Command(
            op=op,
            conversation=self.conversation,
            message=self.message,
            emoji=emoji,
            handle=self._marks.handle(emoji) if op is Op.REMOVE and emoji is not None else None,
            idempotency_key=key,
            forum=self._forum,
        )
        return command, rank

    def doubted_before(self, emoji: str | None) -> bool:
        """Whether the mark may have been there already when the call in flight, or the last one, began."""
        return emoji is not None and self._marks.was_there(emoji)

    def begin(self, command: Command, now_ms: int) -> None:
        """The call of `next_command` is being made."""
        wish = self._plan.wish
        plan = self._next()
        if wish is None or plan is None:
            raise ValueError("nothing was to be called")
        self._flight_rank = plan[2]
        self._flight_adds = command.op is Op.SET and wish.is_target(command.emoji)
        self.in_flight = command
        self.not_before_ms = 0
        self._marks.save()
        emoji = command.emoji
        if emoji is None:
            self._marks.doubt_all()
        else:
            self._marks.doubt(emoji)
        wish.called = wish.called or wish.target is None or emoji == wish.target

    def takes_away(self, command: Command) -> bool:
        """Whether this call is made to take a mark away: also an add that is repeated to learn its handle."""
        wish = self._plan.wish
        return command.op is not Op.SET or wish is None or not wish.is_target(command.emoji)

    def end(self, outcome: Outcome, now_ms: int, *, called: bool = True) -> Sequence[MarkReport]:
        """The call in flight has ended. Reports if that confirmed or refused the present wish.

        ``called`` False: it was refused without asking the platform."""
        command, wish = self.in_flight, self._plan.wish
        if command is None or wish is None:
            return ()
        self.in_flight = None
        kind = outcome.kind
        if outcome.happened:
            self._succeeded(wish, command, outcome.handle)
        elif self._is_full(command, outcome):
            self._marks.undo()
            self._keys.pop((command.op, command.emoji), None)
            self._plan.full = True
        elif kind in _GONE:
            self.dead = kind
            self._forget_all()
        elif kind in _LATER:
            self._marks.undo()
        elif kind in _REFUSED:
            self._marks.undo()
            self._was_refused(wish, command, kind, called)
        else:
            self._failed(wish, command, kind, now_ms)
        reports = self._report(wish)
        self._want_none_instead()
        return reports

    # --- outcomes ---------------------------------------------------------------------------------------

    def _succeeded(self, wish: Wish, command: Command, handle: str | None) -> None:
        emoji = command.emoji
        wish.settle_call()
        self._keys.pop((command.op, emoji), None)
        if emoji is None:
            self._forget_all()
        elif command.op is not Op.SET:
            self._forget(emoji)
        else:
            if self._plan.rules.reactions == "replace":
                self._forget_all()
            elif wish.is_target(emoji):
                self._plan.owe([], wish.rank)
            elif self._flight_adds:  # the wish has changed meanwhile: this swap is finished first
                self._plan.owe([each for each in self._marks if each != emoji], self._flight_rank)
            self._marks.confirm(emoji, handle)
            self._keys.pop((Op.REMOVE, emoji), None)  # its next removal is another one

    def _was_refused(self, wish: Wish, command: Command, kind: OutcomeKind, called: bool) -> None:
        emoji = command.emoji
        wish.settle_call()
        if called:  # else the key may be that of an earlier try, of which nobody knows how it ended
            self._keys.pop((command.op, emoji), None)
        if emoji is None:
            wish.unremovable = kind
            self._forget_all()
        elif command.op is not Op.SET:  # it will never be removed: nothing is owed any more
            wish.unremovable = kind
            self._forget(emoji)
        else:
            if emoji not in self._marks or (called and self._plan.rules.removal_needs_handle):
                self._forget(emoji)  # else an earlier try of it may have come through: it is still to be removed
            self._refused[emoji] = kind
            if wish.is_target(emoji):
                wish.attempts += 1
                wish.pick(self._why_not)

    def _failed(self, wish: Wish, command: Command, kind: OutcomeKind, now_ms: int) -> None:
        """Nobody knows whether it happened: the mark is in doubt; the call is made again if still needed."""
        call = (command.op, command.emoji)
        plan = self._next()
        if plan is None or plan[:2] != call:
            return
        wish.tries += 1
        adding = command.op is Op.SET and wish.is_target(command.emoji)
        endless = self._retry.terminal_retries and (not adding or wish.rank is Rank.TERMINAL)
        if not endless and wish.tries >= self._retry.phase_tries:
            wish.settle_call()
            if adding or command.emoji is None:
                wish.refusal = kind
            else:
                wish.skipped.add(command.emoji)
        elif kind is OutcomeKind.UNKNOWN and wish.repeat != call:
            wish.repeat = call
        else:
            delay_ms = self._retry.first_delay_ms << min(wish.tries - 1, 32)
            self.not_before_ms = now_ms + min(delay_ms, self._retry.max_delay_ms)

    def _want_none_instead(self) -> None:
        """Nobody is there any more who would say so."""
        wish = self._plan.wish
        if not self._released or self.in_flight is not None or wish is None or wish.open:
            return
        if wish.chain and wish.rank is Rank.TERMINAL:
            none = Wish((), Rank.TERMINAL)
            none.reported = True
            self._plan.change_from(wish, none)
            self._plan.wish = none

    def _is_full(self, command: Command, outcome: Outcome) -> bool:
        refused = outcome.kind is OutcomeKind.FORBIDDEN and outcome.scope == "message" and command.op is Op.SET
        return refused and any(emoji != command.emoji for emoji in self._marks)

    def _why_not(self, emoji: str) -> OutcomeKind | None:
        reason = self._refused.get(emoji)
        if reason is None and self._is_refused(self.conversation, emoji):
            reason = OutcomeKind.INVALID_REACTION
        return reason

    def _next(self) -> Plan | None:
        return None if self.dead is not None else self._plan.next()

    def _forget(self, emoji: str) -> None:
        self._plan.forget(emoji)
        self._keys.pop((Op.SET, emoji), None)

    def _forget_all(self) -> None:
        self._plan.forget_all()
        self._keys.clear()

    def _report(self, wish: Wish) -> Sequence[MarkReport]:
        if wish.reported:
            return ()
        refused = self.dead or wish.refusal
        if refused is None and wish.chain and self._plan.rules.reactions == "none":
            refused = OutcomeKind.FORBIDDEN
        if refused is None and not wish.chain:
            if self._marks and (self.in_flight is not None or self._plan.leftovers(wish)):
                return ()
            refused = wish.unremovable or (OutcomeKind.TRANSIENT if self._marks else None)
        elif refused is None and not self._plan.is_met(wish):
            return ()
        wish.reported = True
        if refused is None and not wish.called:
            self.saved += 1
        emoji = wish.chain[0] if refused is not None and wish.chain else wish.target
        return (MarkReport(self.conversation, self.message, emoji, refused, wish.chain),)
