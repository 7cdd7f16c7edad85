"""Looks at everything at once, every few seconds and at rest: nothing is overdue, nothing is left behind.

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
from tests.simulation.worlds import LOOK_MS


class RestWatch:
    """What is open, shown and left."""

    def __init__(self, scene: Scene, calls: CallWatch, runs: RunWatch) -> None:
        self._scene = scene
        self._calls = calls
        self._runs = runs

    # --- at any time ----------------------------------------------------------------------------------------

    def look(self) -> None:
        """What must hold at any time at which all that has happened is judged."""
        if self._scene.simulation.app is not None and self._runs.up_to_date:
            self._look_at_runs()
            self._look_at_typing()
            self._look_at_marks()

    def _look_at_runs(self) -> None:
        scene = self._scene
        for life, reason in list(scene.lives.overdue(scene.awake_ms)):
            if not scene.troubled(life.key.account):
                scene.problem(f"{life.key} is still open: {reason}")
                scene.lives.ends(life, "overdue", scene.awake_ms)

    def _look_at_typing(self) -> None:
        scene, now_ms = self._scene, self._scene.now_ms
        for place in scene.truth.typing_at(now_ms):
            account = place[0]
            if scene.away(account):
                self._calls.wanted_ms[place] = now_ms
                continue
            posting = scene.awake_ms <= scene.lives.posting.get((account, place[1]), -1)
            if posting or self._calls.may_type(place):
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
            life = scene.owner(place)
            if scene.away(place[0]) or life is None or life.ended_ms is None:
                continue
            if place in scene.truth.left or self._stays(life, marks):
                continue
            hold_ms = max(life.policy.status.done_hold_ms, life.policy.status.error_hold_ms)
            since_ms = max(life.ended_ms + scene.simulation.world.away_ms + hold_ms, scene.fault_ms[place[0]])
            if now_ms > max(since_ms, *marks.values()) + scene.patience_ms(place[0]):
                scene.problem(f"{list(marks)} is still on {place}, {life.outcome} since {life.ended_ms} ms")
                scene.truth.left.add(place)

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
        if outcome not in ("done", "error") or life.ended_ms is None or not life.presented(outcome):
            return
        if life.ended_ms < life.opened_ms + life.policy.status.start_delay_ms:
            return
        if scene.truth.accounts[life.key.account].spec.rules.reactions == "none":
            return
        if scene.truth.was_set.get((place, life.policy.status.emoji[outcome][0]), -1) < life.ended_ms:
            problem(f"{life.key} was {outcome}, and nobody has seen it")

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
