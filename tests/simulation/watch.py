"""The watcher of a world: holds what livesign does against what clients sent and what the platforms show.

Checked at the moment of every call, answer, reply and end, after every step, every few seconds of simulated time, and at
rest. What is checked stands with those who check it:

- `truth`: single calls as the platforms see them (lanes, limits, waits), and `manners` (keys, refusals, crowds)
- `call_watch`: whether a call is wanted; `mark_watch`: whether a mark may be asked for
- `run_watch`: outcomes and answers; `rest_watch`: what is overdue, and what is left
"""

from __future__ import annotations

from typing import Any

from actors.keys import ROUTER
from actors.messages import FromClient
from actors.platform_messages import ShowMark, TypeStart, TypeStop, TypeWithdraw
from actors.presence.run import EndedRun
from actors.presence.terms import Outcome, TypingReport
from actors.router_state import AdoptRuns, RouterFailedOn
from actors.scenario import Control, Step
from actors.scripted_platform import CallRecord
from actors.simulate import Simulation
from actors.witness import Witness
from protocol.events import Ack, Rejected, Reply, RunEvent, Sent
from tests.simulation.call_watch import CallWatch
from tests.simulation.lives import Lives
from tests.simulation.mark_watch import MarkWatch
from tests.simulation.rest_watch import RestWatch
from tests.simulation.run_watch import RunWatch
from tests.simulation.scene import TROUBLE_MS, Scene
from tests.simulation.worlds import LOOK_MS, World

OF_TYPING = (TypeStart, TypeStop, TypeWithdraw, TypingReport)


class Watcher(Witness):
    """Watches one simulation, and hands on what it is told."""

    def __init__(self, world: World, lag_ms: int) -> None:
        self.world = world
        self.events = 0
        self._lag_ms = lag_ms
        self._look_ms = 0
        self._sent: set[tuple[str, str]] = set()
        self._late = False
        """The event that is sent is one of no open run."""
        self._config: Any = None
        self._stopped_before: set[str] = set()
        """The accounts that were stopped before the reload that is being carried out."""
        self._simulation: Simulation
        self.scene: Scene
        self.calls: CallWatch
        self.runs: RunWatch

    def attach(self, simulation: Simulation) -> None:
        """To be called before the simulation runs."""
        self._simulation = simulation
        self.scene = Scene(self.world, simulation, self._lag_ms)
        self.calls = CallWatch(self.scene)
        self.marks = MarkWatch(self.scene, self.calls.lost)
        self.runs = RunWatch(self.scene, self.calls)
        self.rest = RestWatch(self.scene, self.calls, self.runs)
        self._configured()

    def _configured(self) -> None:
        """Bare scopes keep the settings of their conversation, which may be older than the present ones."""
        self._config = self._simulation.config
        for name in self._config.accounts:
            ttl_ms = self._config.policy(name, "any").typing.ttl_ms
            self.calls.scope_ttl_ms[name] = max(self.calls.scope_ttl_ms[name], ttl_ms)

    # --- the process ----------------------------------------------------------------------------------------

    def booted(self) -> None:
        self.scene.planned_failures = 0
        if self.scene.awake_ms:
            self.scene.host_fault()
        self.scene.lives.booted(self.scene.awake_ms)
        self.calls.forget()
        self.marks.forget()

    def died(self) -> None:
        scene = self.scene
        scene.host_fault()
        kept, forgetful = self._simulation.ledger.kept(), self._simulation.ledger.failed
        in_doubt = [
            ((place.account, place.conversation, place.target), emoji, mark.key)
            for place, marks in kept.marks.items()
            for emoji, mark in marks.items()
            if mark.key is not None
        ]
        scene.truth.forget_calls(0 if forgetful else scene.now_ms, in_doubt)
        self.runs.died(kept, forgetful)
        if forgetful:  # nobody will know of what it had no row for
            rows = {(place.account, place.conversation, place.target): marks for place, marks in kept.marks.items()}
            scene.truth.left |= {
                place for place, marks in scene.truth.marks.items() if set(marks) - set(rows.get(place, ()))
            }
            typing = {(place.account, place.conversation, f"typing {place.target}") for place in kept.typing}
            scene.truth.left |= {place for place in scene.truth.typing if place not in typing}

    def handling(self, key: Any, message: Any) -> None:
        kind = type(message)
        if key == ROUTER:
            self.runs.judge()
            if isinstance(message, AdoptRuns):
                self.scene.lives.configured(self.scene.awake_ms)
            told = self._from_client(message)
            if told is not None:
                if not self.runs.was_applied(told.session, told.event):
                    self.marks.taken(told.event)
                self.runs.taken(told.session, told.event)
        elif kind is ShowMark:
            self.runs.judge()
            self.calls.told(key[1], message)
            self.marks.told(key[1], message)
            self.scene.truth.manners.wished((key[1], message.conversation, message.message))
        elif kind in OF_TYPING and type(key) is tuple:
            self.calls.told(key[1], message)

    @staticmethod
    def _from_client(message: Any) -> FromClient | None:
        """The event of a client in what the router is told; it may have failed on it before."""
        while isinstance(message, RouterFailedOn):
            message = message.message
        return message if isinstance(message, FromClient) else None

    def crashed(self, key: Any, message: Any) -> None:
        self.scene.faults[f"crash_{key if isinstance(key, str) else key[0]}"] += 1
        self.scene.planned_failures += 1
        self.runs.crashed(key, message)
        self.scene.actor_fault(key[1] if isinstance(key, tuple) else "")
        self.calls.crashed(key, message)
        if isinstance(key, tuple) and key[0] in ("reaction", "conversation"):
            for life in self.scene.lives.in_conversation(key[1], key[2]):
                life.phase.restarted(self.scene.awake_ms)
        if isinstance(key, tuple) and key[0] == "typing":  # what was told to it comes late
            self.scene.truth.manners.happened(key[1], key[2], self.scene.now_ms + TROUBLE_MS)
        told = self._from_client(message) if key == ROUTER else None
        if told is not None:
            self.runs.dropped(told.session, told.event)

    # --- calls ----------------------------------------------------------------------------------------------

    def called(self, record: CallRecord) -> None:
        self.scene.truth.called(record, self.scene.now_ms)
        self.calls.called(record)

    def answered(self, record: CallRecord, outcome: Outcome, applied: bool) -> None:
        self.scene.truth.answered(record, outcome, applied, self.scene.now_ms)
        self.calls.answered(record, outcome, applied)

    def posted(self, account: str, conversation: str, thread: str | None) -> None:
        if self._late:
            self.calls.posted_ms[account, conversation, f"typing {thread}"] = self.scene.now_ms
        self.scene.truth.posted((account, conversation, f"typing {thread}"))

    # --- runs -----------------------------------------------------------------------------------------------

    def replied(self, client: str, reply: Reply) -> None:
        if isinstance(reply, Rejected):
            self.scene.faults["rejected"] += 1
        if isinstance(reply, Ack) and reply.result == "duplicate":
            self.scene.faults["duplicate"] += 1
        if isinstance(reply, Ack | Rejected) and reply.id is not None and not reply.id.startswith("?"):
            self.runs.answered(client, reply)

    def run_ended(self, ended: EndedRun) -> None:
        self.runs.ended(ended)

    # --- after every step -----------------------------------------------------------------------------------

    def before(self, step: Step) -> None:
        """What the step is about to do."""
        self.runs.judge()
        if isinstance(step.what, Control):
            self._control(step, step.what)
        elif not hasattr(step.what, "reply"):
            self.events += 1
            self.scene.lives.connects(step.client)
            self._about_to_send(step.client, step.what)

    def _about_to_send(self, client: str, event: Any) -> None:
        if event.id is not None:
            self.scene.faults["event_repeated"] += (client, event.id) in self._sent
            self._sent.add((client, event.id))
        self._late = isinstance(event, RunEvent) and Lives.key_of(event) not in self.scene.lives.open
        conversation = getattr(event, "conversation", None)
        if conversation is not None:
            manners = self.scene.truth.manners
            manners.happened(event.account, conversation, self.scene.now_ms)
            if isinstance(event, Sent) and event.ok and not self.runs.was_applied(client, event):
                manners.posted(event.account or "", conversation)

    def _control(self, step: Step, control: Control) -> None:
        scene = self.scene
        if control.name not in ("@connect", "@crash", "@boot", "@exit"):
            leave = "_leave" if control.args.get("leave") else ""
            scene.faults[control.name[1:] + leave] += 1
        match control.name:
            case "@connect":
                scene.lives.connects(step.client)
            case "@client_lost":
                scene.lives.leaves(step.client, scene.awake_ms)
            case "@crash" if control.args["actor"] == "ledger":
                scene.faults["crash_ledger"] += 1
            case "@shutdown" | "@reload":
                scene.host_fault()
                scene.truth.forget_calls_counted(scene.now_ms)
                if control.name == "@reload":  # what is stopped while it is carried out stays so
                    self._stopped_before, scene.stopped = scene.stopped, set()
            case "@suspend":
                scene.asleep(control.args["ms"])

    def stepped(self, step: Step) -> None:
        if isinstance(step.what, Control) and step.what.name == "@reload":
            if self._simulation.config is self._config:  # it was refused
                self.scene.stopped |= self._stopped_before
            else:
                self._configured()
                self.scene.truth.manners.renewed()
        self.runs.judge()
        if self.scene.now_ms >= self._look_ms and self.rest.look():
            self._look_ms = (self.scene.now_ms // LOOK_MS + 1) * LOOK_MS
