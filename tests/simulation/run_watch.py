"""Watches runs: every run has one outcome, the one that was acknowledged or one whose time has come; nothing revives it;
and every answer says what has happened.

What is taken in and what ends is written down in the order in which it happens, and judged in that order once the answers
are there: an answer may have to wait for the ledger. What was not answered when the process dies never was.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass
from typing import Any

from actors.config import Config
from actors.conversation_state import Deliver, is_terminal
from actors.ledger import Contents
from actors.presence.run import EndedRun
from actors.presence.terms import RunKey
from protocol import events
from protocol.events import Ack, Event, Rejected
from tests.simulation.call_watch import CallWatch
from tests.simulation.life import PHASES, Life
from tests.simulation.lives import REFUSED
from tests.simulation.scene import TROUBLE_MS, Scene

OWN_REASONS = (
    "lease_expired", "run_max", "gave_up", "crashed_terminal", "shutdown", "recovered", "child_failed", "final_sent",
    "wait_max", "not_shown", "account removed",
)  # fmt: skip


@dataclass(slots=True)
class Taken:
    """An event that the router has taken in."""

    client: str
    event: Event
    at_ms: int
    context: tuple[Config, int]
    """Configuration and wall clock of then."""
    reply: Ack | Rejected | None = None


class RunWatch:
    """Events, answers and outcomes against the lives of runs."""

    def __init__(self, scene: Scene, calls: CallWatch) -> None:
        self.scene = scene
        self.ends: dict[RunKey, EndedRun] = {}
        self._calls = calls
        self._log: deque[Taken | EndedRun] = deque()
        self._waiting: dict[tuple[str, str], deque[Taken]] = defaultdict(deque)
        self._applied: set[tuple[str, str]] = set()
        """Events that were acknowledged as taken in."""
        self._crashes: dict[Any, list[int]] = defaultdict(list)
        self._owed: dict[tuple[str, str], int] = {}
        """Events on which the router has failed, since when."""
        self._failed_ends: dict[RunKey, int] = {}
        """Runs on whose end an actor has failed, since when."""
        self._drops: Counter[tuple[str, str]] = Counter()
        """How often it has failed on them."""

    @property
    def overdue(self) -> list[tuple[str, str]]:
        """Events that were not answered for long after the router has failed on them."""
        late_ms = self.scene.awake_ms - TROUBLE_MS
        return [known for known, at_ms in self._owed.items() if at_ms < late_ms]

    @property
    def up_to_date(self) -> bool:
        """Whether all that has happened is judged."""
        return not self._log

    # --- what happens ---------------------------------------------------------------------------------------

    def was_applied(self, client: str, event: Event) -> bool:
        """Whether this event was acknowledged as taken in before."""
        return (client, event.id or "") in self._applied

    def taken(self, client: str, event: Event) -> None:
        """The router is about to take an event in."""
        if event.id is None:
            return
        taken = Taken(client, event, self.scene.awake_ms, self.scene.context)
        self._log.append(taken)
        self._waiting[client, event.id].append(taken)

    def dropped(self, client: str, event: Event) -> None:
        """The router has failed on it."""
        waiting = self._waiting.get((client, event.id or ""))
        if waiting:
            self._drops[client, event.id or ""] += 1
            self._log.remove(waiting.pop())
            self._owed[client, event.id or ""] = self.scene.awake_ms

    def crashed(self, key: Any, message: Any) -> None:
        self._crashes[key].append(self.scene.awake_ms)
        if isinstance(message, Deliver) and message.info is not None and is_terminal(message.event):
            self._failed_ends[message.info.key] = self.scene.awake_ms

    def look_at_failed_ends(self) -> None:
        """What an actor failed to show is told as an error."""
        for key, at_ms in list(self._failed_ends.items()):
            if at_ms < self.scene.awake_ms - TROUBLE_MS:
                del self._failed_ends[key]
                ended = self.ends.get(key)
                if ended is not None and ended.outcome != "error":
                    self.scene.problem(f"{key} is told as {ended.outcome}, and an actor has failed on its end")

    def answered(self, client: str, reply: Ack | Rejected) -> None:
        waiting = self._waiting.get((client, reply.id or ""))
        if not waiting:
            self.scene.problem(f"{client} gets an answer to {reply.id!r}, which it has not sent: {reply}")
            return
        waiting.popleft().reply = reply
        self._owed.pop((client, reply.id or ""), None)
        self.judge()

    def ended(self, ended: EndedRun) -> None:
        key = ended.info.key
        known = self.ends.get(key)
        if known is not None and known is not ended:
            self.scene.problem(f"{key} ends again, as {ended.outcome} ({ended.reason})")
        if ended.reason == "recovered" and ended.info.policy.recovery_marks == "leave":
            self.scene.truth.left.add((key[0], key[1], ended.info.message))
        if known is None:
            self.ends[key] = ended
            self._log.append(ended)

    def died(self, kept: Contents, forgetful: bool) -> None:
        """The process is gone, and ``kept`` is what its ledger has. ``forgetful``: it has failed before."""
        self.judge()
        self._log.clear()
        self._owed.clear()
        self._failed_ends.clear()
        self._drops.clear()
        self._waiting.clear()
        lives = self.scene.lives
        for key in [key for key in self.ends if key not in kept.ended]:
            del self.ends[key]
            life = lives.all.get(key)
            if life is not None and life.ended_ms is not None and key in kept.runs:
                lives.reopen(life)
        if not forgetful:
            return
        for life in list(lives.all.values()):
            if life.key not in kept.runs and life.key not in kept.ended:
                lives.forget(life)
        self._applied = {(client, event) for client, event in self._applied if event in kept.used.get(client, ())}

    # --- judging --------------------------------------------------------------------------------------------

    def judge(self) -> None:
        """Judge all that happened before the oldest event that waits for its answer."""
        while self._log:
            first = self._log[0]
            if isinstance(first, Taken):
                if first.reply is None:
                    return
                self._log.popleft()
                self.scene.then = first.context
                self._judge_answer(first, first.reply)
                self.scene.then = None
            else:
                self._log.popleft()
                self._judge_end(first)
        for key in self.scene.lives.just_ended():
            if key not in self.ends and not self.scene.troubled(key.account):
                self.scene.problem(f"{key} has ended and has no outcome")

    def _judge_answer(self, taken: Taken, reply: Ack | Rejected) -> None:
        scene, client, event = self.scene, taken.client, taken.event
        known = (client, event.id or "")
        result = reply.result if isinstance(reply, Ack) else REFUSED
        if known in self._applied:
            if result != "duplicate":
                scene.problem(f"{client}: {event} is applied twice: {result}")
            return
        if isinstance(reply, Rejected) and reply.code == "limit":  # it may come again
            ends = isinstance(event, events.Done | events.Clear) or (
                isinstance(event, events.Error) and is_terminal(event)
            )
            told_again = ends and self._drops[known] == 1
            if (told_again or not scene.troubled("")) and not self._draining:
                scene.problem(f"{client}: {event} is refused: {reply.detail}")
            return
        expected = self._expected(taken)
        if result not in expected:
            scene.problem(f"{client}: {event} is called {result}, it is {expected}")
        if result != REFUSED:
            self._applied.add(known)

    @property
    def _draining(self) -> bool:
        app = self.scene.simulation.app
        return app is not None and app.stopping

    def _expected(self, taken: Taken) -> str:
        event = taken.event
        account = getattr(event, "account", None)
        if account is not None and account not in taken.context[0].accounts:
            return REFUSED
        if isinstance(event, events.TypingStart | events.TypingStop) and event.scope is not None:
            self._scope(event)
            return "applied"
        assert isinstance(event, events.RunEvent | events.Alive)
        if isinstance(event, events.Clear | events.Restore):
            place = (event.account or "", event.conversation or "", event.message)
            self._calls.touched[place] = self.scene.awake_ms
        before = self.scene.owner((event.account or "", event.conversation or "", event.message))
        result = self.scene.lives.acknowledged(event, taken.client, taken.at_ms)
        life = self.scene.lives.open.get(self.scene.lives.key_of(event))
        clear = isinstance(event, PHASES) and not isinstance(
            event, events.Compacting
        )  # which comes back to the one before
        if life is not None and clear and not life.spans:
            self._calls.lost.discard((life.key.account, life.key.conversation, life.message))
        self._note_kept(event, before, taken.at_ms)
        return result

    def _note_kept(self, event: events.RunEvent | events.Alive, before: Life | None, at_ms: int) -> None:
        """What the run that had the message ``before`` has left there for good."""
        life = self.scene.lives.open.get(self.scene.lives.key_of(event))
        if life is None or life.opened_ms != at_ms:
            return
        place, emoji = (life.key.account, life.key.conversation, life.message), life.policy.status.emoji
        may_stay = {*emoji["done"], *emoji["error"]}
        if before is not None and before.ended_ms is not None:
            may_stay |= before.kept
            if before.policy.status.settle == "restore" or place in self._calls.touched:
                may_stay.update(emoji["queued"])
        life.kept = frozenset(may_stay.intersection(self.scene.truth.marks.get(place, {})))

    def _scope(self, event: events.TypingStart | events.TypingStop) -> None:
        account = event.account or ""
        key = (account, event.conversation, f"{event.scope} {event.thread}")
        if isinstance(event, events.TypingStop):
            self._calls.scopes.pop(key, None)
            return
        in_threads = self.scene.truth.accounts[account].spec.rules.typing_in_threads
        self._calls.scopes[key] = (event.thread if in_threads else None, self.scene.awake_ms)

    def _judge_end(self, ended: EndedRun) -> None:
        scene, lives = self.scene, self.scene.lives
        life = lives.all.get(ended.info.key)
        if life is None:
            scene.problem(f"{ended.info.key} ends and nobody has opened it")
            return
        if life.ended_ms is not None:
            if ended.outcome != life.outcome and ended.reason not in OWN_REASONS:
                scene.problem(f"{life.key} is told as {ended.outcome} ({ended.reason}) and was {life.outcome}")
            return
        reason = ended.reason or ""
        if not reason and life.done:  # its children were given up
            reason = "child_failed"
        if reason not in OWN_REASONS:
            scene.problem(f"{life.key} ends as {ended.outcome} ({reason}) and nobody has ended it")
        elif reason == "account removed" and not scene.was_removed(life.key.account):
            scene.problem(f"{life.key} ends with its account, which was never removed")
        elif reason == "gave_up" and not self._spent(life):
            scene.problem(f"{life.key} is given up, and its actors did not fail too often")
        elif lives.due_ms(life, reason) > ended.ended_ms and not scene.recovers(life.key.account):
            scene.problem(f"{life.key} ends too soon: {reason}")
        lives.ends(life, ended.outcome, ended.ended_ms)

    def _spent(self, life: Life) -> bool:
        """Whether an actor of the conversation has failed more often than it may."""
        budget = self.scene.simulation.config.supervision
        since_ms = self.scene.awake_ms - budget.period_ms - 1_000
        return any(
            sum(at_ms >= since_ms for at_ms in self._crashes.get((kind, *life.key[:2]), ())) > budget.intensity
            for kind in ("reaction", "typing", "conversation")
        )
