"""The watcher of a world: holds what livesign does against what clients sent and what the platforms show.

Invariants, checked at the moment of every call, answer, reply and end, after every step, every few seconds of simulated
time, and at rest:

- what `tests.simulation.truth` says of single calls: lanes, limits, waits
- no call for what is not wanted any more; nothing of an open phase is shown after the end
- a mark of the end stays for its hold, and nothing comes after it but its removal
- nothing types without an open run or scope that may want it; no indicator outlives them by more than its own lifetime
- every run has one outcome, the one that was acknowledged or one whose time has come; nothing revives it
- acknowledgements say what happened
- at rest nothing is left: no mark, indicator, run, timer, actor, lane, ledger row
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from actors.conversation_state import Deliver
from actors.keys import ROUTER
from actors.platform_io import CallEnded, ShowMark, TypeStart, TypeStop, TypeWithdraw
from actors.presence.run import EndedRun
from actors.presence.terms import Op, Outcome, OutcomeKind, RunKey, TypingReport
from actors.scenario import Control, Step
from actors.scripted_platform import CallRecord
from actors.simulate import Simulation
from actors.witness import Witness
from protocol import events
from protocol.events import Ack, Event, Rejected, Reply
from tests.simulation.lives import Life, Lives
from tests.simulation.truth import Place, Truth
from tests.simulation.worlds import LOOK_MS, World

TROUBLE_MS = 65_000
"""After a crash restarts may be held back for so long; until then lateness is no surprise."""
STUCK_MS = 1_800_000
"""So long after the last fault of an account its backlog is gone."""
PROMPT_MS = 6_000
"""The same where nothing ever failed and no limit holds anything back."""
PROBLEMS_MAX = 20
OWN_REASONS = (
    "lease_expired", "run_max", "gave_up", "crashed_terminal", "shutdown", "recovered", "child_failed", "final_sent",
    "wait_max", "not_shown",
)  # fmt: skip


class Watcher(Witness):
    """Watches one simulation; ``problems`` is what it found."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.problems: list[str] = []
        self.faults: Counter[str] = Counter()
        self.events = 0
        self._simulation: Simulation = None  # type: ignore[assignment]  # see `attach`
        self._truth: Truth = None  # type: ignore[assignment]
        self._lives: Lives = None  # type: ignore[assignment]
        self._sent: dict[tuple[str, str], Event] = {}
        self._wishes: dict[Place, tuple[str, ...] | str] = {}
        self._scopes: dict[tuple[str, str, str], tuple[str | None, int]] = {}
        self._wanted_ms: dict[Place, int] = {}
        self._ends: dict[RunKey, EndedRun] = {}
        self._news: list[EndedRun] = []
        self._config: Any = None
        self._unsure: set[tuple[str, str]] = set()
        """Conversations where what was told about typing was lost in a crash: it ends with its TTL."""
        self._stopped: set[str] = set()
        """Accounts that wait for other credentials."""
        self._crashes: dict[Any, list[int]] = defaultdict(list)
        self._touched: dict[Place, int] = {}
        self._trouble_ms: Counter[str] = Counter()
        self._fault_ms: Counter[str] = Counter()
        self._looked_ms = 0
        self._scope_ttl_ms: Counter[str] = Counter()
        self._applied: set[tuple[str, str]] = set()
        """Events that were acknowledged as taken in."""
        self._repeated: set[tuple[str, str]] = set()
        """Events that were sent again under the same id."""

    def attach(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._truth = Truth(lambda: simulation.config.accounts, self.problem)
        self._config = simulation.config
        self._note_ttls()
        self._lives = Lives(lambda: simulation.config)

    def _note_ttls(self) -> None:
        """Bare scopes keep the settings of their conversation, which may be older than the present ones."""
        for name in self._truth.accounts:
            ttl_ms = self._simulation.config.policy(name, "any").typing.ttl_ms
            self._scope_ttl_ms[name] = max(self._scope_ttl_ms[name], ttl_ms)

    def problem(self, text: str) -> None:
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(f"{self._now_ms} ms: {text}")

    @property
    def _now_ms(self) -> int:
        """The platforms' time."""
        return self._simulation.now_ms

    @property
    def _awake_ms(self) -> int:
        """The host's time."""
        return self._simulation.clock.now_ms()

    def _troubled(self, account: str) -> bool:
        since_ms = max(self._trouble_ms[account], self._trouble_ms[""])
        return bool(since_ms) and self._awake_ms < since_ms + TROUBLE_MS

    # --- the process ----------------------------------------------------------------------------------------

    def booted(self) -> None:
        if self._awake_ms:
            self._host_fault()
        self._lives.booted(self._awake_ms)
        self._wishes.clear()
        self._scopes.clear()

    def died(self) -> None:
        self._host_fault()
        self._truth.forget_calls()

    def _host_fault(self) -> None:
        self._trouble_ms[""] = self._awake_ms + 1
        for account in self._truth.accounts:
            self._fault_ms[account] = self._now_ms

    def handling(self, key: Any, message: Any) -> None:
        if self._news and key == ROUTER:
            self._check_news()
        if type(message) is ShowMark:
            self._wishes[key[1], message.conversation, message.message] = message.chain
        elif isinstance(message, TypeStart | TypeStop | TypeWithdraw):
            self._wishes[key[1], message.conversation, f"typing {message.thread}"] = type(message).__name__
        elif type(message) is TypingReport and message.token is not None and not message.called:
            self._wishes.pop((key[1], message.conversation, f"typing {message.thread}"), None)  # refused at once

    def crashed(self, key: Any, message: Any) -> None:
        actor = key if isinstance(key, str) else key[0]
        account = key[1] if isinstance(key, tuple) else ""
        self.faults[f"crash_{actor}"] += 1
        self._crashes[key].append(self._awake_ms)
        self._trouble_ms[account] = self._awake_ms + 1
        for name in (account,) if account else self._truth.accounts:
            self._fault_ms[name] = self._now_ms
        if isinstance(message, ShowMark):  # it is told again, but when?
            self._wishes.pop((account, message.conversation, message.message), None)
        elif isinstance(message, TypeStart | TypeStop | TypeWithdraw):
            self._wishes.pop((account, message.conversation, f"typing {message.thread}"), None)
        if isinstance(message, CallEnded):
            self._truth.forget_wait(account)
        if actor == "typing" and isinstance(message, Deliver):
            self._unsure.add((key[1], key[2]))
        if isinstance(message, Deliver) and message.info is not None:
            self._touched[message.info.key[0], message.info.key[1], message.info.message] = self._awake_ms

    # --- calls ----------------------------------------------------------------------------------------------

    def called(self, record: CallRecord) -> None:
        self._truth.called(record, self._now_ms)
        command, account = record.command, record.account
        if command.op in (Op.TYPING_START, Op.TYPING_STOP):
            self._typing_called(record)
            return
        place = (account, command.conversation, command.message)
        wish = self._wishes.get(place)
        if isinstance(wish, tuple):
            self._check_wish(record, wish)
        life = self._owner(place)
        if life is not None and life.ended_ms is not None:
            self._check_after_the_end(record, place, life)

    def _check_wish(self, record: CallRecord, wish: tuple[str, ...]) -> None:
        command = record.command
        rules = self._truth.accounts[record.account].spec.rules
        if command.op is Op.SET and command.emoji not in wish and not rules.removal_needs_handle:
            self.problem(f"{command.emoji} is set on {command.message} while {wish} is wanted")
        elif command.op is Op.CLEAR and wish:
            self.problem(f"{command.message} is cleared while {wish} is wanted")
        elif command.op is Op.REMOVE and wish and not self._fault_ms[record.account]:
            marks = self._truth.marks.get((record.account, command.conversation, command.message), {})
            newest = bool(marks) and max(marks.values()) == marks.get(command.emoji or "")
            if newest and not any(emoji in marks and emoji != command.emoji for emoji in wish):
                self.problem(f"{command.emoji} is removed from {command.message} before another mark is there")

    def _check_after_the_end(self, record: CallRecord, place: Place, life: Life) -> None:
        command, status = record.command, life.policy.status
        now_ms = self._awake_ms
        assert life.ended_ms is not None
        if now_ms <= life.ended_ms or self._troubled(record.account):
            return
        final = {*status.emoji["done"], *status.emoji["error"], *status.emoji["queued"]}
        if command.op is Op.SET and command.emoji not in final:
            rules = self._truth.accounts[record.account].spec.rules
            if not rules.removal_needs_handle:
                self.problem(f"{command.emoji} is set on {command.message} after its run has ended")
        if life.outcome not in ("done", "error") or now_ms <= self._touched.get(place, -1) + TROUBLE_MS:
            return
        chain = status.emoji[life.outcome]
        hold_ms = status.done_hold_ms if life.outcome == "done" else status.error_hold_ms
        shown_ms = self._truth.was_set.get((place, chain[0]))
        leaves = command.op is Op.CLEAR or (command.op is Op.REMOVE and command.emoji == chain[0])
        if leaves and shown_ms is not None and shown_ms >= life.ended_ms and self._now_ms < shown_ms + hold_ms:
            if place not in self._truth.left:
                self.problem(f"{chain[0]} on {command.message} was held for {self._now_ms - shown_ms} ms only")

    def _typing_called(self, record: CallRecord) -> None:
        command, account = record.command, record.account
        place = (account, command.conversation, f"typing {command.thread}")
        wish = self._wishes.get(place)
        if command.op is Op.TYPING_START:
            if wish not in (None, "TypeStart"):
                self.problem(f"typing is started in {place} although the last word was {wish}")
            self._wanted_ms[place] = self._now_ms
            if not self._may_type(place, self._awake_ms) and not self._troubled(account):
                self.problem(f"typing is started in {place} and nobody may want it")
        elif wish not in (None, "TypeStop"):
            self.problem(f"typing is stopped in {place} although the last word was {wish}")

    def answered(self, record: CallRecord, outcome: Outcome, applied: bool) -> None:
        self._truth.answered(record, outcome, applied, self._now_ms)
        slow = self._now_ms - record.t_ms > 300
        if outcome.kind is OutcomeKind.AUTH:
            self._stopped.add(record.account)
        if outcome.kind is not OutcomeKind.OK or slow:
            self._fault_ms[record.account] = self._now_ms
            self._count_fault(record, outcome, applied, slow)
        if record.command.op is Op.TYPING_START:
            for life in self._lives.in_conversation(record.account, record.command.conversation):
                life.start_ended(self._awake_ms, outcome.happened)

    def _count_fault(self, record: CallRecord, outcome: Outcome, applied: bool, slow: bool) -> None:
        kind = outcome.kind.value
        if outcome.kind is OutcomeKind.RATE_LIMITED:
            kind += "_untold" if outcome.retry_after_ms is None else f"_{outcome.scope or 'unsaid'}"
        if outcome.kind is not OutcomeKind.OK:
            self.faults[kind] += 1
            if applied:
                self.faults["answer_lost_effect_kept"] += 1
        elif slow:
            self.faults["slow_answer" if self._now_ms - record.t_ms < 5_000 else "very_slow_answer"] += 1

    def posted(self, account: str, conversation: str) -> None:
        for place in [place for place in self._truth.typing if place[:2] == (account, conversation)]:
            del self._truth.typing[place]

    # --- runs -----------------------------------------------------------------------------------------------

    def replied(self, client: str, reply: Reply) -> None:
        if isinstance(reply, Rejected):
            self.faults["rejected"] += 1
            return
        if not isinstance(reply, Ack):
            return
        event = self._sent.get((client, reply.id))
        if event is None:
            self.problem(f"{client} gets an acknowledgement of {reply.id!r}, which it has not sent")
            return
        if reply.result == "duplicate" and not isinstance(event, events.Received):
            self.faults["duplicate_event"] += 1
            if (client, reply.id) not in self._applied and not self._troubled(""):
                self.problem(f"{client}: {event} was never applied, and is called a duplicate")
            return
        self._acknowledged(client, event, reply)

    def _acknowledged(self, client: str, event: Event, reply: Ack) -> None:
        again = (client, reply.id) in self._applied
        if reply.result != "duplicate" or (client, reply.id) not in self._repeated:
            self._applied.add((client, reply.id))
        if again:
            if reply.result != "duplicate":
                self.problem(f"{client}: {event} is applied twice: {reply.result}")
            return
        if isinstance(event, events.TypingStart | events.TypingStop) and event.scope is not None:
            self._scope(event)
            return
        assert isinstance(event, events.RunEvent | events.Alive)
        place = (event.account or "", event.conversation or "", event.message)
        if isinstance(event, events.Clear | events.Restore):
            self._touched[place] = self._awake_ms
        if reply.result == "duplicate" and (client, reply.id) in self._repeated and self._troubled(""):
            return  # it is answered before the first of them was taken in
        expected = self._lives.acknowledged(event, client, self._awake_ms)
        if reply.result not in expected:
            self.problem(f"{client}: {event} is called {reply.result}, it is {expected}")

    def _scope(self, event: events.TypingStart | events.TypingStop) -> None:
        key = (event.account or "", event.conversation, f"{event.scope} {event.thread}")
        if isinstance(event, events.TypingStart):
            in_threads = self._truth.accounts[key[0]].spec.rules.typing_in_threads
            self._scopes[key] = (event.thread if in_threads else None, self._awake_ms)
        else:
            self._scopes.pop(key, None)

    def run_ended(self, ended: EndedRun) -> None:
        key = ended.info.key
        known = self._ends.get(key)
        if known is not None and known is not ended:
            self.problem(f"{key} ends again, as {ended.outcome} ({ended.reason})")
        if ended.reason == "recovered" and ended.info.policy.recovery_marks == "leave":
            self._truth.left.add((key[0], key[1], ended.info.message))
        if known is None:
            self._ends[key] = ended
            self._news.append(ended)

    def _check_end(self, ended: EndedRun) -> None:
        life = self._lives.all.get(ended.info.key)
        if life is None:
            self.problem(f"{ended.info.key} ends and nobody has opened it")
            return
        if life.ended_ms is not None:
            if ended.outcome != life.outcome and ended.reason not in OWN_REASONS:
                self.problem(f"{life.key} is told as {ended.outcome} ({ended.reason}) and was {life.outcome}")
            return
        reason = ended.reason or ""
        if not reason and life.done:  # its children were given up
            reason = "child_failed"
        if reason not in OWN_REASONS:
            self.problem(f"{life.key} ends as {ended.outcome} ({reason}) and nobody has ended it")
        elif reason == "gave_up" and not self._spent(life.key):
            self.problem(f"{life.key} is given up, and its actors did not fail too often")
        elif self._lives.due_ms(life, reason) > ended.ended_ms and not self._troubled(life.key.account):
            self.problem(f"{life.key} ends too soon: {reason}")
        self._lives.ends(life, ended.outcome, ended.ended_ms)

    def _spent(self, key: RunKey) -> bool:
        """Whether an actor of the conversation has failed more often than it may."""
        budget = self._simulation.config.supervision
        since_ms = self._awake_ms - budget.period_ms - 1_000
        return any(
            sum(at_ms >= since_ms for at_ms in self._crashes.get((kind, *key[:2]), ())) > budget.intensity
            for kind in ("reaction", "typing", "conversation")
        )

    def _owner(self, place: Place) -> Life | None:
        key = self._lives.newest.get((place[0], place[1], place[2] or ""))
        return None if key is None else self._lives.all.get(key)

    # --- typing ---------------------------------------------------------------------------------------------

    def _may_type(self, place: Place, now_ms: int) -> bool:
        """Whether an open run or a scope may want typing at this target."""
        account, conversation, target = place
        rules = self._truth.accounts[account].spec.rules
        if (account, conversation) in self._unsure:
            return True
        for (owner, where, _), (thread, started_ms) in self._scopes.items():
            if (owner, where) == (account, conversation) and f"typing {thread}" == target:
                if now_ms <= started_ms + self._scope_ttl_ms[account] + PROMPT_MS:
                    return True
        for life in self._lives.in_conversation(account, conversation):
            thread = life.thread if rules.typing_in_threads else None
            if f"typing {thread}" != target or life.typing_off:
                continue
            ttl_ms = life.policy.typing.ttl_ms
            lasts = any(now_ms <= at_ms + life.policy.status.span_max_ms + ttl_ms for at_ms in life.spans.values())
            prompt = self._patience_ms(account) == PROMPT_MS
            late_ms = PROMPT_MS if prompt else ttl_ms + TROUBLE_MS  # the TTL counts from the first call, which may wait
            if life.sending:
                late_ms += life.policy.typing.sending_max_ms
            waits = life.armed_ms < life.sign_ms and not prompt
            if lasts or waits or now_ms <= max(life.sign_ms, life.armed_ms) + ttl_ms + late_ms:
                return True
        return False

    # --- after every step -----------------------------------------------------------------------------------

    def before(self, step: Step) -> None:
        """What the step is about to do."""
        self._check_news()
        if isinstance(step.what, Control):
            self._control(step, step.what)
        elif not hasattr(step.what, "reply"):
            event: Any = step.what
            self.events += 1
            self._lives.connects(step.client)
            if event.id is not None:
                if (step.client, event.id) in self._sent:
                    self.faults["event_repeated"] += 1
                    self._repeated.add((step.client, event.id))
                self._sent[step.client, event.id] = event

    def _control(self, step: Step, control: Control) -> None:
        if control.name not in ("@connect", "@crash", "@boot", "@exit"):
            leave = "_leave" if control.args.get("leave") else ""
            self.faults[control.name[1:] + leave] += 1
        match control.name:
            case "@connect":
                self._lives.connects(step.client)
            case "@client_lost":
                self._lives.leaves(step.client, self._awake_ms)
            case "@shutdown" | "@reload":
                self._host_fault()
                self._truth.forget_calls_counted()
            case "@suspend":
                for account in self._truth.accounts:
                    self._fault_ms[account] = self._now_ms + control.args["ms"]

    def stepped(self, step: Step) -> None:
        if isinstance(step.what, Control) and step.what.name == "@reload":
            self._note_ttls()
            if self._simulation.config is not self._config:  # else it was refused
                self._config = self._simulation.config
                self._stopped.clear()
        self._check_news()
        if self._now_ms - self._looked_ms >= LOOK_MS:
            self._looked_ms = self._now_ms
            self.look()

    def _check_news(self) -> None:
        news, self._news = self._news, []
        for ended in news:
            self._check_end(ended)
        for key in self._lives.just_ended():
            if key not in self._ends and not self._troubled(key.account):
                self.problem(f"{key} has ended and has no outcome")

    def look(self) -> None:
        """What must hold at any time."""
        if self._simulation.app is None:
            return
        self._look_at_runs()
        self._look_at_typing()
        self._look_at_marks()

    def _look_at_runs(self) -> None:
        for life, reason in list(self._lives.overdue(self._awake_ms)):
            if not self._troubled(life.key.account):
                self.problem(f"{life.key} is still open: {reason}")
                self._lives.ends(life, "overdue", self._awake_ms)

    def _patience_ms(self, account: str) -> int:
        held = self._truth.accounts[account]
        prompt = self.world.calm and not held.limits and not held.spec.min_change_ms
        return PROMPT_MS if prompt else STUCK_MS

    def _look_at_typing(self) -> None:
        now_ms = self._now_ms
        for place in self._truth.typing_at(now_ms):
            account = place[0]
            if account in self._stopped:
                continue
            posting = self._awake_ms <= self._lives.posting.get((account, place[1]), -1)
            if posting or self._may_type(place, self._awake_ms):
                self._wanted_ms[place] = now_ms
                continue
            life_ms = self._truth.accounts[account].spec.rules.typing_lifetime_ms
            since_ms = max(self._wanted_ms.setdefault(place, now_ms), self._fault_ms[account])
            patience_ms = self._patience_ms(account) if not life_ms else life_ms + LOOK_MS + PROMPT_MS
            if now_ms > since_ms + patience_ms and place not in self._truth.left:
                self.problem(f"typing is still on in {place}")
                del self._truth.typing[place]

    def _look_at_marks(self) -> None:
        now_ms = self._now_ms
        for place, marks in list(self._truth.marks.items()):
            life = self._owner(place)
            if place[0] in self._stopped:
                continue
            if life is None or life.ended_ms is None or place in self._truth.left or self._stays(life, marks):
                continue
            hold_ms = max(life.policy.status.done_hold_ms, life.policy.status.error_hold_ms)
            since_ms = max(life.ended_ms + self._simulation.world.away_ms + hold_ms, self._fault_ms[place[0]])
            if now_ms > max(since_ms, *marks.values()) + self._patience_ms(place[0]):
                self.problem(f"{list(marks)} is still on {place}, {life.outcome} since {life.ended_ms} ms")
                self._truth.left.add(place)

    def _stays(self, life: Life, marks: dict[str, int]) -> bool:
        """Whether the settings let these marks stay after the end."""
        status = life.policy.status
        if status.settle == "clear" and (life.key[0], life.key[1], life.message) not in self._touched:
            return False
        return all(emoji in (*status.emoji["queued"], *status.emoji["done"], *status.emoji["error"]) for emoji in marks)

    # --- at rest --------------------------------------------------------------------------------------------

    def at_rest(self, label: str, look: Callable[[str], None] | None = None) -> None:
        """Everything is over: nothing may be left."""
        self._check_news()
        simulation, app = self._simulation, self._simulation.app
        if app is None:
            self.problem(f"{label}: the process is down")
            return
        problem = look or (lambda text: self.problem(f"{label}: {text}"))
        for life in list(self._lives.open.values()):
            problem(f"{life.key} is open")
        for key in self._lives.all:
            if key not in self._ends:
                problem(f"{key} has no outcome")
        for place, marks in self._truth.marks.items():
            life_ = self._owner(place)
            if place not in self._truth.left and not (life_ is not None and self._stays(life_, marks)):
                problem(f"{list(marks)} is left on {place}")
        for place in self._truth.typing_at(self._now_ms):
            if place not in self._truth.left:
                problem(f"typing is left on in {place}")
        router = app.parts.router
        left = {
            "open runs": len(router.runs.open),
            "conversations": len(router.conversations),
            "timers": app.runtime.armed_timers,
            "ledger rows": simulation.ledger.rows,
            "lanes": sum(len(account.lanes) for account in app.parts.accounts.values()),
            "calls under way": sum(not account.lanes.idle for account in app.parts.accounts.values()),
        }
        for name, count in left.items():
            if count:
                problem(f"{count} {name} are left")
        expected = 3 + 2 * len(app.parts.accounts)
        if app.runtime.actor_count > expected + self._simulation_extras():
            problem(f"{app.runtime.actor_count} actors are left, {expected} are expected")

    def _simulation_extras(self) -> int:
        """Actors of the scripted platforms that a reload has replaced."""
        return 2 * self.faults["reload"] * len(self._truth.accounts)
