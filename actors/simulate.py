"""Run a scenario: the whole tree on virtual time, under the manual driver, against a scripted platform.

Two clocks: the scenario's, which is the platform's too, and the runtime's, which stands still while the host is
suspended. Everything in a `Result` is on the scenario's.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from actors.application import Application
from actors.config import Account, ConfigError, load, reload
from actors.fault_plan import Crash, Saboteur
from actors.keys import is_conversations
from actors.messages import FromClient, SessionDown, SessionUp, Subscription
from actors.platforms.port import PlatformPort
from actors.presence.run import EndedRun
from actors.presence.terms import RunKey
from actors.runtime import ManualClock, ManualDriver, Runtime
from actors.sandbox.faults import Faults
from actors.scenario import Control, Scenario, Step, read
from actors.scripted_ledger import ScriptedLedger
from actors.scripted_platform import ScriptedPlatform, World
from actors.sessions import Session
from actors.shutdown import DRAIN_POLL_MS
from actors.timeline import timeline
from actors.violations import violations
from actors.witness import Witness
from protocol import events
from protocol.codec import DecodeError
from protocol.events import Event, Reply

SHOWN_COUNTERS = (
    "late_events", "duplicate_messages", "unknown_events", "rejected", "restarts", "parked", "repaired", "breaker_opened",
    "accounts_stopped", "dropped_terminal", "leases_expired", "reloads_refused",
)  # fmt: skip


@dataclass(slots=True)
class Result:
    """What happened. ``to_json`` is the documented form."""

    scenario: Scenario
    world: World
    runs: list[dict[str, Any]]
    open_runs: int
    timers: int
    actors: int
    dead_letters: int
    saved_calls: int
    ledger_rows: int
    replies: list[tuple[int, str, Reply]]
    exits: list[tuple[int, int]]
    counters: dict[str, int]
    violations: list[str]

    def to_json(self) -> dict[str, Any]:
        """The result as plain data."""
        return {
            "calls": [_call(record) for record in self.world.calls],
            "shown": {"/".join(place): list(marks) for place, marks in self.world.marks.items()},
            "typing": ["/".join(filter(None, place)) for place in self.world.typing_at(self.scenario.until_ms)],
            "runs": self.runs,
            "open_runs": self.open_runs,
            "timers": self.timers,
            "actors": self.actors,
            "dead_letters": self.dead_letters,
            "saved_calls": self.saved_calls,
            "ledger_rows": self.ledger_rows,
            "replies": [[t_ms, client, msgspec.to_builtins(reply)] for t_ms, client, reply in self.replies],
            "exits": [list(row) for row in self.exits],
            "counters": self.counters,
            "violations": self.violations,
        }

    def timeline(self) -> str:
        """For people: what each conversation saw, in order."""
        return timeline(self.scenario.steps, self.world, self.runs, self.violations)


def _call(record: Any) -> dict[str, Any]:
    command = record.command
    return {
        "t_ms": record.t_ms,
        "account": record.account,
        "conversation": command.conversation,
        "thread": command.thread,
        "message": command.message,
        "op": command.op.value,
        "emoji": command.emoji,
        "outcome": record.outcome,
        "ended_ms": record.ended_ms,
    }


def run_file(path: str | Path) -> Result:
    """Read and run a scenario file. Raises `actors.scenario.ScenarioError`; then nothing was run."""
    return Simulation(read(path)).run()


def run(tree: Mapping[str, Any]) -> Result:
    """The same for a tree."""
    return Simulation(read(tree)).run()


class Simulation:
    """One run of one scenario; ``witness`` watches it."""

    def __init__(
        self, scenario: Scenario, witness: Witness | None = None, ledger: ScriptedLedger | None = None
    ) -> None:
        self.scenario = scenario
        self.witness = witness or Witness()
        self.turns_max = ManualDriver.turns_max
        """Turns without rest at one moment that are taken for an endless loop."""
        self.world = World(Faults(scenario.platform, 0), witness=self.witness)
        self.clock = ManualClock(0)
        self.ledger = ledger or ScriptedLedger()
        self.saboteur = Saboteur(self.witness)
        self.config = scenario.config
        self.app: Application | None = None
        self.replies: list[tuple[int, str, Reply]] = []
        self.exits: list[tuple[int, int]] = []
        self._ended: dict[RunKey, tuple[EndedRun, int, int]] = {}
        self._totals: Counter[str] = Counter()
        self._saved = 0
        self._dead_letters = 0
        self._sessions: dict[str, Session] = {}
        self._connected: set[str] = set()
        self._threads: dict[RunKey, str | None] = {}
        """Where the bot replies to each run."""
        self._ports: list[ScriptedPlatform] = []
        self._queue: list[tuple[int, int, Step]] = []
        self._number = 0
        self._boots = 0
        self._exit = False
        """The drain of a shutdown is over."""
        self._runtime = Runtime(ManualDriver(), self.clock, name="simulation")

    @property
    def now_ms(self) -> int:
        """The scenario's time."""
        return self.clock.now_ms() + self.world.away_ms

    def run(self) -> Result:
        """Go through all steps and on to ``until_ms``."""
        for step in self.scenario.steps:
            self._push(step)
        self._boot()
        until_ms = self.scenario.until_ms
        while self._queue and self._queue[0][0] <= until_ms:
            _, _, step = heapq.heappop(self._queue)
            self._go_to(step.t_ms)
            self.witness.before(step)
            self._do(step)
            self.witness.stepped(step)
        self._go_to(until_ms)
        return self._result()

    def _push(self, step: Step) -> None:
        self._number += 1
        heapq.heappush(self._queue, (step.t_ms, self._number, step))

    def _go_to(self, t_ms: int) -> None:
        at_ms = max(t_ms - self.world.away_ms, self.clock.now_ms())
        while self.app is not None and self.app.stopping and self.clock.now_ms() < at_ms:
            # The process ends as soon as its drain is over, in between two steps.
            self.app.runtime.run_until(min(at_ms, self.clock.now_ms() + DRAIN_POLL_MS))
            if self._exit:
                self._down()
        if self.app is not None:
            self.app.runtime.run_until(at_ms)
        else:
            self.clock.set(at_ms)

    # --- the process ---------------------------------------------------------------------------------------

    def _boot(self) -> None:
        if self.app is not None:
            return
        driver = ManualDriver()
        driver.turns_max = self.turns_max
        runtime = self._runtime = Runtime(driver, self.clock, name="simulation")
        self._boots += 1
        runtime.random.seed(f"{self.scenario.seed} {self._boots}")
        runtime.scheduler.tap = self.saboteur
        self._ports = []
        self.ledger.boot(runtime)
        self.app = Application(self.config, runtime, self._port_for, self.ledger)
        self.app.on_ended(self._on_ended)
        for name, ids in self.ledger.load().used.items():
            session = self._sessions[name] = Session(name, name)
            for event_id in ids:
                session.is_repeat(event_id)
        self.witness.booted()
        self.app.start()
        runtime.run_until_idle()

    def _port_for(self, account: Account) -> PlatformPort:
        port = ScriptedPlatform(account.name, account.spec.rules, self.world, self._runtime, account.adapter)
        self._ports.append(port)
        return port

    def _on_ended(self, ended: EndedRun) -> None:
        key = ended.info.key
        at_ms = self._ended[key][2] if key in self._ended and self._ended[key][0] is ended else self.now_ms
        opened_ms = at_ms - (ended.ended_ms - ended.opened_ms)
        self._ended[key] = (ended, opened_ms, at_ms)
        self.witness.run_ended(ended)

    def _down(self) -> None:
        """The process is gone, whatever way."""
        app = self.app
        if app is None:
            return
        for port in self._ports:
            port.abandon()
        self._collect(app)
        self.app = None
        self._exit = False
        self._connected.clear()
        self._sessions.clear()
        self.witness.died()

    def _collect(self, app: Application) -> None:
        self._totals.update(app.counters())
        self._dead_letters += app.runtime.dead_letters.count

    # --- steps ---------------------------------------------------------------------------------------------

    def _do(self, step: Step) -> None:
        if isinstance(step.what, Control):
            self._control(step, step.what)
        else:
            self._send(step.client, step.what)
        if self.app is not None:
            self.app.runtime.run_until_idle()
        if self._exit:
            self._down()

    def _send(self, client: str, what: Event | DecodeError) -> None:
        if self.app is None:
            return
        self._connect(client)
        if isinstance(what, DecodeError):
            self._totals["rejected"] += 1
            self._hear(client, what.reply())
            return
        session = self._sessions[client]
        repeated = what.id is not None and session.is_repeat(what.id)
        if isinstance(what, events.RunEvent | events.Alive):
            if isinstance(what, events.RunEvent):
                self._follow(what, repeated)
            self.app.submit(FromClient(client, what, partial(self._hear, client), repeated=repeated))
        elif isinstance(what, events.Subscribe):
            self.app.submit(Subscription(client, what, partial(self._hear, client)))
        elif isinstance(what, events.Ping):
            self._hear(client, events.Pong())
        elif isinstance(what, events.Stats):
            self._hear(client, events.StatsReply(counters=self.app.counters()))

    def _follow(self, event: events.RunEvent, repeated: bool) -> None:
        """Where the bot replies to this run. Once its post is there, the indicator is off where a post ends it; telling
        of it again is no second post."""
        account = event.account or next(iter(self.config.accounts))
        key = RunKey(account, event.conversation, event.run or event.message or "")
        if isinstance(event, events.Moved):
            self._threads[key] = event.thread
        thread = self._threads.setdefault(key, event.thread)
        known = self.config.accounts.get(account)
        posts = isinstance(event, events.Sent) and event.ok and not repeated
        if posts and known is not None and known.spec.post_clears_typing:
            self.world.posted(account, event.conversation, thread if known.spec.rules.typing_in_threads else None)

    def _hear(self, client: str, reply: Reply) -> None:
        self.replies.append((self.now_ms, client, reply))
        self.witness.replied(client, reply)

    def _connect(self, client: str) -> None:
        if client not in self._sessions:
            self._sessions[client] = Session(client, client)
        if client not in self._connected and self.app is not None:
            self._connected.add(client)
            self.app.submit(SessionUp(client))

    def _control(self, step: Step, control: Control) -> None:
        args = control.args
        match control.name:
            case "@connect":
                self._connect(step.client)
            case "@client_lost":
                if self.app is not None and step.client in self._connected:
                    self._connected.discard(step.client)
                    self.app.submit(SessionDown(step.client))
            case "@crash" if args["actor"] == "ledger":
                if self.app is not None:
                    self.ledger.fail()
            case "@crash":
                self.saboteur.plan(Crash.of(args))
            case "@kill_restart":
                self._down()
                self._push(Step(step.t_ms + args.get("down_ms", 0), step.client, Control("@boot", {})))
            case "@boot":
                self._boot()
            case "@shutdown":
                self._shut_down(bool(args.get("leave", False)))
            case "@reload":
                self._reload(args.get("config", {}))
            case "@suspend":
                self.world.away_ms += args["ms"]
                self.clock.jump_wall(args["ms"])
            case "@clock_jump":
                self.clock.jump_wall(args["ms"])

    def _shut_down(self, leave: bool) -> None:
        app = self.app
        if app is None or app.stopping:
            return
        if leave:
            self.exits.append((self.now_ms, 0))
            self._down()
        else:
            app.shut_down(self.config.shutdown_budget_ms, self._exited)

    def _exited(self, clean: bool) -> None:
        """The drain is over. The process ends outside of the actor that tells."""
        self.exits.append((self.now_ms, 0 if clean else 1))
        self._exit = True

    def _reload(self, tree: Any) -> None:
        try:
            new = load(tree, scenario=True)
            change = reload(self.config, new)
        except ConfigError:
            self._totals["reloads_refused"] += 1
            return
        self.config = change.config
        if self.app is not None:
            self.app.reload(change)

    # --- the result ----------------------------------------------------------------------------------------

    def _result(self) -> Result:
        app = self.app
        living = [] if app is None else [ref for ref in app.runtime.directory if is_conversations(ref.key)]
        if app is not None:
            self._collect(app)
        counters = dict.fromkeys(SHOWN_COUNTERS, 0) | dict(sorted(self._totals.items()))
        return Result(
            scenario=self.scenario,
            world=self.world,
            runs=[self._run_row(*row) for row in self._ended.values()],
            open_runs=len(app.parts.router.runs.open) if app is not None else 0,
            timers=sum(len(mailbox.timers or ()) for mailbox in living),
            actors=len(living),
            dead_letters=self._dead_letters,
            saved_calls=self._totals["calls_saved"],
            ledger_rows=self.ledger.rows,
            replies=self.replies,
            exits=self.exits,
            counters=counters,
            violations=violations(self.world, self.config),
        )

    def _run_row(self, ended: EndedRun, opened_ms: int, ended_ms: int) -> dict[str, Any]:
        key = ended.info.key
        return {
            "account": key.account,
            "conversation": key.conversation,
            "message": ended.info.message,
            "run": key.run,
            "outcome": ended.outcome,
            "reason": ended.reason,
            "opened_ms": opened_ms,
            "ended_ms": ended_ms,
        }
