"""Looks at everything at once, every few seconds and at rest: nothing is overdue, nothing is left behind.

- no actor fails by itself
- no run is open whose time is over; a run that has ended shows no mark but one that its settings let stay
- no indicator outlives what wanted it by more than its own lifetime
- every end was shown, and every message that the gate let through was acked, where nothing went wrong
- at rest nothing is left: no mark, indicator, run, timer, actor, lane, ledger row
"""

from __future__ import annotations

from collections.abc import Callable

from tests.simulation.call_watch import CallWatch
from tests.simulation.life import Life
from tests.simulation.run_watch import RunWatch
from tests.simulation.scene import PROMPT_MS, Scene
from tests.simulation.truth import Place
from tests.simulation.worlds import ECHO, LOOK_MS

LATE_MS = 1_000
"""So much later than it should be a look may be that has missed nothing."""
POST_MS = 10_000
"""So long after a post that livesign was not told of in time the indicator is on again."""


class RestWatch:
    """What is open, shown and left."""

    def __init__(self, scene: Scene, calls: CallWatch, runs: RunWatch) -> None:
        self._scene = scene
        self._calls = calls
        self._runs = runs
        self._settled: dict[Place, dict[str, int]] = {}
        """Final marks that may stay, as long as nothing changes about them."""
        self._unwanted: set[Place] = set()
        """Where typing was on and not wanted at the last look."""
        self._looked_ms = 0

    # --- at any time ----------------------------------------------------------------------------------------

    def look(self) -> bool:
        """What must hold at any time at which all that has happened is judged; whether it is such a time."""
        if self._scene.simulation.app is None or not self._runs.up_to_date:
            return False
        self._look_at_failures()
        self._look_at_runs()
        self._look_at_typing()
        self._look_at_marks()
        self._look_at_open()
        self._look_at_ledger()
        return True

    def _look_at_failures(self) -> None:
        """No actor fails but by our plan."""
        app = self._scene.simulation.app
        assert app is not None
        failures = app.runtime.scheduler.counters["failures"] - self._scene.planned_failures
        if failures > 0:
            self._scene.problem(f"{failures} actors have failed that were not to")
            self._scene.planned_failures += failures

    def _look_at_runs(self) -> None:
        scene = self._scene
        self._runs.look_at_failed_ends()
        if self._runs.overdue:
            scene.problem(f"nobody has answered {self._runs.overdue}")
        for life, reason in list(scene.lives.overdue(scene.awake_ms)):
            if not scene.recovers(life.key.account):
                scene.problem(f"{life.key} is still open: {reason}")
                scene.lives.ends(life, "overdue", scene.awake_ms)

    def _look_at_typing(self) -> None:
        scene, now_ms = self._scene, self._scene.now_ms
        unwanted, self._unwanted = self._unwanted, set()
        missed, self._looked_ms = now_ms > self._looked_ms + LOOK_MS + LATE_MS, now_ms
        for place in scene.truth.typing_at(now_ms):
            account = place[0]
            posting = scene.awake_ms <= scene.lives.posting.get((account, place[1]), -1)
            wanted = scene.away(account) or posting or self._calls.may_type(place)
            if not wanted:
                self._unwanted.add(place)
            if wanted or (missed and place not in unwanted):  # else it may have been wanted while nobody looked
                self._calls.wanted_ms[place] = now_ms
                continue
            life_ms = scene.truth.accounts[account].spec.rules.typing_lifetime_ms
            since_ms = max(self._calls.wanted_ms.setdefault(place, now_ms), scene.fault_ms[account])
            patience_ms = scene.patience_ms(account) if not life_ms else life_ms + LOOK_MS + PROMPT_MS
            if now_ms > since_ms + patience_ms and place not in scene.truth.left:
                scene.problem(f"typing is still on in {place}")
                del scene.truth.typing[place]

    def _look_at_marks(self) -> None:
        scene, now_ms = self._scene, self._scene.now_ms
        for place, marks in list(scene.truth.marks.items()):
            if self._settled.get(place) == marks:
                continue
            life = scene.owner(place)
            if scene.away(place[0]) or life is None or life.ended_ms is None:
                continue
            if place in scene.truth.left:
                continue
            if self._stays(life, marks):
                self._settled[place] = dict(marks)
                continue
            hold_ms = max(life.policy.status.done_hold_ms, life.policy.status.error_hold_ms)
            since_ms = max(life.ended_ms + scene.simulation.world.away_ms + hold_ms, scene.fault_ms[place[0]])
            if now_ms > max(since_ms, *marks.values()) + scene.patience_ms(place[0]):
                scene.problem(f"{list(marks)} is still on {place}, {life.outcome} since {life.ended_ms} ms")
                scene.truth.left.add(place)

    def _look_at_open(self) -> None:
        """Where nothing goes wrong, an open run's mark is that of its phase or stall, and it types while it works."""
        scene, now_ms = self._scene, self._scene.awake_ms
        for life in scene.lives.open.values():
            if not scene.prompt(life.key.account):
                continue
            rules = scene.truth.accounts[life.key.account].spec.rules
            place = scene.typing_place(life)
            if rules.typing and life.must_type(now_ms, PROMPT_MS) and not self._may_rest(place):
                scene.problem(f"{life.key} works, and nothing types in {place}")
            self._look_at_phase(life)

    def _look_at_ledger(self) -> None:
        """Where nothing ever went wrong, the ledger has the marks that show, but for final ones that stay."""
        scene, kept = self._scene, self._scene.simulation.ledger.kept()
        if scene.lag_ms or scene.simulation.ledger.failed:
            return
        for place, marks in kept.marks.items():
            where = (place.account, place.conversation, place.target)
            quiet = (
                scene.prompt(place.account) and scene.never_failed(place.account) and not scene.truth.is_flying(where)
            )
            life = scene.owner(where)
            kept_marks = life.kept if life is not None else frozenset()
            shown = set(scene.truth.marks.get(where, ()))
            if quiet and set(marks) - kept_marks != shown - kept_marks:
                scene.problem(f"the ledger has {set(marks)} on {where}, which shows {shown}")

    def _may_rest(self, place: Place) -> bool:
        """Whether typing is on, or there may be a reason that it is not."""
        scene, where = self._scene, place[:2]
        on = scene.truth.typing.get(place, 0) > scene.now_ms or scene.truth.is_flying(place)
        lasting = not scene.truth.accounts[place[0]].spec.rules.typing_lifetime_ms
        posted_ms = self._calls.posted_ms.get(place)
        if posted_ms is not None and (lasting or scene.now_ms < posted_ms + POST_MS):
            return True
        return on or where in self._calls.unsure or scene.lives.posting.get(where, -1) >= scene.awake_ms

    def _look_at_phase(self, life: Life) -> None:
        scene, status = self._scene, life.policy.status
        place = (life.key.account, life.key.conversation, life.message)
        certain, state = life.phase.mark(scene.awake_ms, PROMPT_MS)
        if not certain or not life.marked or life.done or place in self._calls.lost or status.quiet_minutes:
            return
        if place in scene.truth.left or scene.truth.is_flying(place) or scene.owner(place) is not life:
            return
        if scene.truth.accounts[place[0]].spec.rules.reactions == "none":
            return
        shown = [emoji for emoji in scene.truth.marks.get(place, {}) if emoji not in life.kept]
        wanted = state if life.status and state else "queued" if life.ack else None
        if shown != ([] if wanted is None else [status.emoji[wanted][0]]):
            scene.problem(f"{life.key} is {wanted or 'nothing yet'}, and shows {shown}")

    def _stays(self, life: Life, marks: dict[str, int]) -> bool:
        """Whether the settings let these marks stay after the end."""
        status, marks = life.policy.status, {emoji: at for emoji, at in marks.items() if emoji not in life.kept}
        if not marks:
            return True
        if status.settle == "clear" and (life.key[0], life.key[1], life.message) not in self._calls.touched:
            return False
        return all(emoji in (*status.emoji["queued"], *status.emoji["done"], *status.emoji["error"]) for emoji in marks)

    # --- at rest --------------------------------------------------------------------------------------------

    def at_rest(self, label: str) -> None:
        """Everything is over: nothing may be left."""
        scene = self._scene
        self._runs.judge()
        if scene.simulation.app is None:
            scene.problem(f"{label}: the process is down")
            return

        def problem(text: str) -> None:
            scene.problem(f"{label}: {text}")

        for life in list(scene.lives.open.values()):
            problem(f"{life.key} is open")
        for key, life in scene.lives.all.items():
            if key not in self._runs.ends:
                problem(f"{key} has no outcome")
            self._look_at_shown(life, problem)
            if key.run in ECHO:
                self._look_at_echo(life, problem)
        for place, marks in scene.truth.marks.items():
            owner = scene.owner(place)
            if place not in scene.truth.left and not (owner is not None and self._stays(owner, marks)):
                problem(f"{list(marks)} is left on {place}")
        for place in scene.truth.typing_at(scene.now_ms):
            if place not in scene.truth.left:
                problem(f"typing is left on in {place}")
        self._look_at_process(problem)

    def _look_at_shown(self, life: Life, problem: Callable[[str], None]) -> None:
        """Where nothing went wrong, people have seen that the run has ended, and how."""
        scene, place = self._scene, (life.key.account, life.key.conversation, life.message)
        if not scene.never_failed(life.key.account) or scene.owner(place) is not life or place in self._calls.touched:
            return
        outcome = life.outcome or ""
        if life.ended_ms is None or not life.shows_its_end:
            return
        if scene.truth.accounts[life.key.account].spec.rules.reactions == "none":
            return
        if scene.truth.was_set.get((place, life.policy.status.emoji[outcome][0]), -1) < life.ended_ms:
            problem(f"{life.key} was {outcome}, and nobody has seen it")

    def _look_at_echo(self, life: Life, problem: Callable[[str], None]) -> None:
        """When the storm is over for long enough, what was refused once is asked for again."""
        scene, (account, conversation, _) = self._scene, life.key
        rules = scene.truth.accounts[account].spec.rules
        if scene.was_removed(account) or rules.reactions == "none" or not life.marked or not life.shows_its_end:
            return
        place, refused = (
            (account, conversation, life.message),
            scene.truth.manners.forbids[account, conversation, False],
        )
        if refused < 2 and place not in scene.truth.tried and scene.owner(place) is life:
            problem(f"{life.key} was {life.outcome}, and nobody has tried to show it")

    def _look_at_process(self, problem: Callable[[str], None]) -> None:
        simulation, app = self._scene.simulation, self._scene.simulation.app
        assert app is not None
        router, accounts = app.parts.router, app.parts.accounts
        left = {
            "open runs": len(router.runs.open),
            "conversations": len(router.conversations),
            "timers": app.runtime.armed_timers,
            "ledger rows": simulation.ledger.rows,
            "lanes": sum(len(account.lanes) for account in accounts.values()),
            "calls under way": sum(not account.lanes.idle for account in accounts.values()),
            "subscribers' memories": 0 if router.subscribers.any else len(router.subscribers._last),
        }
        for name, count in left.items():
            if count:
                problem(f"{count} {name} are left")
        expected = 4 + 2 * len(accounts) + 2 * self._scene.faults["reload"] * len(self._scene.truth.accounts)
        if app.runtime.actor_count > expected:  # root, router, conversations, the ledger's; two for each account
            problem(f"{app.runtime.actor_count} actors are left, {expected} are expected")
