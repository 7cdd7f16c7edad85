"""Watches calls: each must be one that is wanted, at the moment when it is made.

- no call for what is not wanted any more; add before remove where a platform does not replace
- nothing of an open phase is shown after the end; the mark of the end stays for its hold
- typing starts only where an open run or a scope may want it
- a mark of the end waits for no phase and for no typing
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from actors.conversation_state import Deliver
from actors.platform_messages import CallEnded, ShowMark, TypeStart, TypeStop, TypeWithdraw
from actors.presence.terms import TYPING_OPS, Op, Outcome, OutcomeKind, Rank, TypingReport
from actors.scripted_platform import CallRecord
from tests.simulation.life import Life
from tests.simulation.manners import REMEMBERED_MS
from tests.simulation.order_watch import OrderWatch
from tests.simulation.scene import PROMPT_MS, TROUBLE_MS, Scene, typing_place
from tests.simulation.truth import Place
from tests.simulation.wish import Wish

TRIES_MAX = 3
"""So often a call for an ack or a phase is tried."""


class CallWatch:
    """Calls against what was told to the account's actor, and against the lives of runs."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.scopes: dict[tuple[str, str, str], tuple[str | None, int]] = {}
        """Bare scopes that are on: their thread, and when they were started last."""
        self.scope_ttl_ms: dict[str, int] = defaultdict(int)
        self.wanted_ms: dict[Place, int] = {}
        """When somebody wanted typing at this target last."""
        self.posted_ms: dict[Place, int] = {}
        """When a post has ended the indicator there; a late one is not heard of."""
        self.lost: set[Place] = set()
        """Messages of runs of which an event was lost in a crash, until the next phase."""
        self.touched: dict[Place, int] = {}
        """When the marks of a message were changed for another reason than its run."""
        self._booted_ms = 0
        self._sought: set[tuple[Place, str | None]] = set()
        """Marks that were set once more only to take them off."""
        self._wishes: dict[Place, Wish] = {}
        self._order = OrderWatch(scene, self._wishes)
        self._refused_ms: dict[tuple[str, str, str], int] = {}
        """(account, conversation, emoji): when the platform has refused it there."""
        self._in_doubt: dict[Place, str | None] = {}
        """The mark that was to be set last, where nobody knows how that call has ended."""
        self.unsure: set[tuple[str, str]] = set()
        """Conversations where what was told about typing was lost in a crash: it ends with its TTL."""

    def forget(self) -> None:
        """Another process."""
        self._booted_ms = self.scene.awake_ms
        self._wishes.clear()
        self._refused_ms.clear()
        self._in_doubt.clear()
        self._order.forget()
        self.scopes.clear()

    # --- what is told to the account's actor ----------------------------------------------------------------

    def told(self, account: str, message: Any) -> None:
        if type(message) is ShowMark:
            place = (account, message.conversation, message.message)
            before = self._wishes.get(place)
            wish = self._wishes[place] = Wish(message.chain, message.rank, self.scene.awake_ms)
            if before is not None:
                wish.follow(before, self.scene.truth.marks.get(place, ()))
            self._order.told(place, wish)
        elif isinstance(message, TypeStart | TypeStop | TypeWithdraw):
            self._wishes[typing_place(account, message)] = Wish(
                type(message).__name__, Rank.TYPING, self.scene.awake_ms
            )
        elif type(message) is TypingReport and message.token is not None and not message.called:
            self._wishes.pop(typing_place(account, message), None)  # refused at once

    def crashed(self, key: Any, message: Any) -> None:
        account = key[1] if isinstance(key, tuple) else ""
        if isinstance(message, ShowMark):  # it is told again, but when?
            self._wishes.pop((account, message.conversation, message.message), None)
            self._order.forget(account)
        elif isinstance(message, TypeStart | TypeStop | TypeWithdraw):
            self._wishes.pop(typing_place(account, message), None)
        if isinstance(message, CallEnded):
            self.scene.truth.forget_wait(account)
        if isinstance(message, Deliver):
            if key[0] == "typing":
                self.unsure.add((key[1], key[2]))
            if message.info is not None:
                place = (message.info.key[0], message.info.key[1], message.info.message)
                self.touched[place] = self.scene.awake_ms
                self.lost.add(place)

    # --- calls ----------------------------------------------------------------------------------------------

    def called(self, record: CallRecord) -> None:
        scene = self.scene
        command, account = record.command, record.account
        if command.op is Op.TYPING_START:
            self.wanted_ms[typing_place(account, command)] = scene.now_ms
        if scene.lag_ms:  # what it was made for may have changed while it waited for the ledger
            return
        self._order.called(record)
        if command.op in TYPING_OPS:
            self._typing_called(record)
            return
        place = (account, command.conversation, command.message)
        wish = self._wishes.get(place)
        if wish is not None:
            self._check_wish(record, place, wish)
        life = scene.owner(place)
        if life is not None and life.ended_ms is not None:
            self._check_after_the_end(record, place, life)

    def _check_wish(self, record: CallRecord, place: Place, wish: Wish) -> None:
        scene, command = self.scene, record.command
        by_handle = scene.truth.accounts[record.account].spec.rules.removal_needs_handle
        if command.op is Op.SET:
            (self._sought.discard if command.emoji in wish.what else self._sought.add)((place, command.emoji))
        if command.op is Op.SET and not by_handle:
            self._check_set(record, place, wish)
        elif command.op is Op.CLEAR and wish.what:
            scene.problem(f"{command.message} is cleared while {wish.what} is wanted")
        elif (
            command.op is Op.REMOVE
            and wish.what
            and command.emoji not in wish.owed
            and scene.never_failed(record.account)
        ):
            marks = scene.truth.marks.get(place, {})
            newest = bool(marks) and max(marks.values()) == marks.get(command.emoji or "")
            if newest and not any(emoji in marks and emoji != command.emoji for emoji in wish.what):
                scene.problem(f"{command.emoji} is removed from {command.message} before another mark is there")

    def _check_set(self, record: CallRecord, place: Place, wish: Wish) -> None:
        scene, emoji = self.scene, record.command.emoji or ""
        if emoji not in wish.what:
            scene.problem(f"{emoji} is set on {place} while {wish.what} is wanted")
        refused_ms = self._refused_ms.get((*place[:2], emoji))
        in_doubt = self._in_doubt.pop(place, None) == emoji  # it is made once more, whatever is known by now
        if (
            not in_doubt
            and refused_ms is not None
            and refused_ms < wish.told_ms
            and scene.awake_ms < refused_ms + REMEMBERED_MS
        ):
            scene.problem(f"{emoji} is set on {place}, and was refused there {scene.awake_ms - refused_ms} ms ago")
        if wish.rank is Rank.TERMINAL:
            return
        if wish.failures >= TRIES_MAX:
            scene.problem(f"{emoji} has failed {wish.failures} times on {place}, and is tried again")
        life = scene.owner(place)
        marks = set(scene.truth.marks.get(place, ())) - (life.kept if life is not None else set())
        if scene.never_failed(record.account) and len(marks) > 1:
            scene.problem(f"{emoji} is set on {place}, which still has the marks of the change before: {marks}")

    def _check_after_the_end(self, record: CallRecord, place: Place, life: Life) -> None:
        scene, command, status = self.scene, record.command, life.policy.status
        now_ms = scene.awake_ms
        assert life.ended_ms is not None
        if now_ms <= life.ended_ms or scene.troubled(record.account):
            return
        final = {*status.emoji["done"], *status.emoji["error"], *status.emoji["queued"]}
        if command.op is Op.SET and command.emoji not in final:
            if not scene.truth.accounts[record.account].spec.rules.removal_needs_handle:
                scene.problem(f"{command.emoji} is set on {command.message} after its run has ended")
        if not life.shows_its_end or now_ms <= self.touched.get(place, -1) + TROUBLE_MS:
            return
        if life.ended_ms < self._booted_ms:  # the next process takes off what it finds
            return
        first = status.emoji[life.outcome or ""][0]
        hold_ms = status.done_hold_ms if life.outcome == "done" else status.error_hold_ms
        shown_ms = scene.truth.was_set.get((place, first))
        leaves = command.op is Op.CLEAR or (command.op is Op.REMOVE and command.emoji == first)
        if (
            (place, first) not in self._sought
            and leaves
            and shown_ms is not None
            and shown_ms >= life.ended_ms
            and scene.now_ms < shown_ms + hold_ms
        ):
            if place not in scene.truth.left:
                scene.problem(f"{first} on {command.message} was held for {scene.now_ms - shown_ms} ms only")

    # --- typing ---------------------------------------------------------------------------------------------

    def _typing_called(self, record: CallRecord) -> None:
        scene, place = self.scene, typing_place(record.account, record.command)
        wish = self._wishes.get(place)
        word = None if wish is None else wish.what
        if record.command.op is Op.TYPING_START:
            if word not in (None, "TypeStart"):
                scene.problem(f"typing is started in {place} although the last word was {word}")
            if not self.may_type(place) and not scene.troubled(record.account):
                scene.problem(f"typing is started in {place} and nobody may want it")
        elif word not in (None, "TypeStop"):
            scene.problem(f"typing is stopped in {place} although the last word was {word}")

    def may_type(self, place: Place) -> bool:
        """Whether an open run or a scope may want typing at this target."""
        scene, now_ms = self.scene, self.scene.awake_ms
        account, conversation, target = place
        if (account, conversation) in self.unsure:
            return True
        for (owner, where, _), (thread, started_ms) in self.scopes.items():
            if (owner, where) == (account, conversation) and f"typing {thread}" == target:
                if now_ms <= started_ms + self.scope_ttl_ms[account] + PROMPT_MS:
                    return True
        return any(
            scene.typing_place(life) == place and self._may_type_for(life)
            for life in scene.lives.in_conversation(account, conversation)
        )

    def _may_type_for(self, life: Life) -> bool:
        scene, now_ms = self.scene, self.scene.awake_ms
        if life.typing_off or life.typing_over or life.typing_from_ms is None or now_ms < life.typing_from_ms:
            return False
        ttl_ms = life.policy.typing.ttl_ms
        if any(now_ms <= at_ms + life.policy.status.span_max_ms + ttl_ms for at_ms in life.spans.values()):
            return True
        prompt = scene.patience_ms(life.key.account) == PROMPT_MS
        late_ms = PROMPT_MS if prompt else ttl_ms + TROUBLE_MS  # the TTL counts from the first call, which may wait
        if life.sending:
            late_ms += life.policy.typing.sending_max_ms
        waits = (life.armed_ms < life.sign_ms or life.start_failed) and not prompt
        return waits or now_ms <= max(life.sign_ms, life.armed_ms) + ttl_ms + late_ms

    # --- answers --------------------------------------------------------------------------------------------

    def answered(self, record: CallRecord, outcome: Outcome, applied: bool) -> None:
        scene = self.scene
        slow = scene.now_ms - record.t_ms > 300
        if outcome.kind is OutcomeKind.AUTH:
            scene.stopped.add(record.account)
        if outcome.kind is not OutcomeKind.OK:
            scene.hurt.add(record.account)
        if outcome.kind is not OutcomeKind.OK or slow:
            scene.fault_ms[record.account] = scene.now_ms
            self._count_fault(record, outcome, applied, slow)
        self._note_answer(record, outcome)
        if record.command.op is Op.TYPING_START:
            for life in scene.lives.in_conversation(record.account, record.command.conversation):
                if scene.typing_place(life) == typing_place(record.account, record.command):
                    life.start_ended(scene.awake_ms, outcome.happened)

    def _note_answer(self, record: CallRecord, outcome: Outcome) -> None:
        command = record.command
        wish = self._wishes.get((record.account, command.conversation, command.message))
        if wish is not None and command.emoji in wish.what:
            again = outcome.kind in (OutcomeKind.TRANSIENT, OutcomeKind.UNKNOWN)
            if again:
                called_ms = self.scene.awake_ms - (self.scene.now_ms - record.t_ms)
                wish.failures += called_ms >= wish.told_ms
            elif outcome.kind not in (OutcomeKind.RATE_LIMITED, OutcomeKind.AUTH):
                wish.failures = 0
        life = self.scene.owner((record.account, command.conversation, command.message))
        if command.op is Op.SET and outcome.happened and life is not None and life.ended_ms is None:
            life.kept -= {command.emoji or ""}  # it is its own now
        if outcome.kind is OutcomeKind.UNKNOWN and command.op is Op.SET:
            self._in_doubt[record.account, command.conversation, command.message] = command.emoji
        if outcome.kind is OutcomeKind.INVALID_REACTION and command.op is Op.SET:
            self._refused_ms[record.account, command.conversation, command.emoji or ""] = self.scene.awake_ms

    def _count_fault(self, record: CallRecord, outcome: Outcome, applied: bool, slow: bool) -> None:
        faults, kind = self.scene.faults, outcome.kind.value
        if outcome.kind is OutcomeKind.RATE_LIMITED:
            kind += "_untold" if outcome.retry_after_ms is None else f"_{outcome.scope or 'unsaid'}"
        if outcome.kind is not OutcomeKind.OK:
            faults[kind] += 1
            if applied:
                faults["answer_lost_effect_kept"] += 1
        elif slow:
            faults["slow_answer" if self.scene.now_ms - record.t_ms < 5_000 else "very_slow_answer"] += 1
