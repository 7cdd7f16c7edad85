"""What the watchers of one world share: its clocks, the truth, the lives of runs, and what went wrong until now."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from actors.config import Account, Config
from actors.simulate import Simulation
from tests.simulation.life import Life
from tests.simulation.lives import Lives
from tests.simulation.truth import Place, Truth
from tests.simulation.worlds import World

TROUBLE_MS = 65_000
"""After a crash restarts may be held back for so long; until then lateness is no surprise."""
STUCK_MS = 1_800_000
"""So long after the last fault of an account its backlog is gone."""
PROMPT_MS = 6_000
"""The same where nothing ever failed and no limit holds anything back."""
PROBLEMS_MAX = 20


class Scene:
    """One simulation as it is watched; ``problems`` is what was found."""

    def __init__(self, world: World, simulation: Simulation, lag_ms: int) -> None:
        """``lag_ms``: so long a call, or an answer to a client, may wait for the ledger."""
        self.world = world
        self.simulation = simulation
        self.lag_ms = lag_ms
        self.problems: list[str] = []
        self.faults: Counter[str] = Counter()
        self._removed: set[str] = set()
        self._config: Config | None = None
        self._known: dict[str, Account] = {}
        self.truth = Truth(self._accounts, self.problem, lag_ms)
        self.then: tuple[Config, int] | None = None
        """While something is judged that has happened before: the configuration and the wall clock of then."""
        self.lives = Lives(lambda: self.context[0], lambda: self.context[1])
        self.stopped: set[str] = set()
        """Accounts that wait for other credentials."""
        self.hurt: set[str] = set()
        """Accounts whose platform has ever failed or refused a call."""
        self.planned_failures = 0
        """Of actors of the present process."""
        self.fault_ms: Counter[str] = Counter()
        """By account, in the platforms' time."""
        self._trouble_ms: Counter[str] = Counter()
        """By account ("": all), in the host's time."""
        self._failed_ms: dict[str, list[int]] = defaultdict(list)
        self._host_ms = -TROUBLE_MS

    def problem(self, text: str) -> None:
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(f"{self.now_ms} ms: {text}")

    @property
    def now_ms(self) -> int:
        """The platforms' time."""
        return self.simulation.now_ms

    @property
    def awake_ms(self) -> int:
        """The host's time, which stands still while it sleeps."""
        return self.simulation.clock.now_ms()

    def _accounts(self) -> dict[str, Account]:
        """All accounts that there ever were, as they were configured last."""
        if self._config is not self.simulation.config:
            self._config = self.simulation.config
            self._removed |= set(self._known) - set(self._config.accounts)
            self._known |= self._config.accounts
        return self._known

    def was_removed(self, account: str) -> bool:
        """Whether some configuration did not name this account any more."""
        return account in self._accounts() and account in self._removed

    @property
    def context(self) -> tuple[Config, int]:
        """Configuration and wall clock (ms) of what is judged."""
        return self.then or (self.simulation.config, self.simulation.clock.wall_ms())

    # --- faults ---------------------------------------------------------------------------------------------

    def host_fault(self) -> None:
        """Something has happened to the whole process."""
        self._trouble_ms[""] = self.awake_ms + 1
        self._host_ms = self.awake_ms
        for account in self.truth.accounts:
            self.fault_ms[account] = self.now_ms

    def actor_fault(self, account: str) -> None:
        """An actor of this account ("": of all) has failed."""
        self._trouble_ms[account] = self.awake_ms + 1
        self._failed_ms[account].append(self.awake_ms)
        for name in (account,) if account else self.truth.accounts:
            self.fault_ms[name] = self.now_ms

    def asleep(self, ms: int) -> None:
        """The host sleeps now."""
        for account in self.truth.accounts:
            self.fault_ms[account] = self.now_ms + ms

    def troubled(self, account: str) -> bool:
        """Whether something may still be late because an actor or the process has failed."""
        since_ms = max(self._trouble_ms[account], self._trouble_ms[""])
        return bool(since_ms) and self.awake_ms < since_ms + TROUBLE_MS

    def recovers(self, account: str) -> bool:
        """The same, where one failure alone is soon made good for."""
        times_ms = [
            at_ms for name in (account, "") for at_ms in self._failed_ms[name] if at_ms > self.awake_ms - TROUBLE_MS
        ]
        return len(times_ms) > 1 or max([self._host_ms, *times_ms]) > self.awake_ms - PROMPT_MS

    def never_failed(self, account: str) -> bool:
        """Whether neither this account's platform nor anything of ours has failed yet."""
        return not self.fault_ms[account]

    # --- what may be expected -------------------------------------------------------------------------------

    def prompt(self, account: str) -> bool:
        """Whether all that is wanted now must be there: nothing holds calls back, and no fault has left a trace."""
        well = account not in self.hurt and not self.recovers(account) and not self.away(account) and not self.lag_ms
        return well and self.unlimited(account) and self.now_ms > self.fault_ms[account] + PROMPT_MS

    def away(self, account: str) -> bool:
        """Whether nothing can be done about what this account shows: it was stopped, or is not configured."""
        return account in self.stopped or account not in self.simulation.config.accounts

    def unlimited(self, account: str) -> bool:
        """Whether nothing but faults makes a call of this account wait."""
        held = self.truth.accounts[account]
        return not held.limits and not held.spec.min_change_ms and held.calls.concurrency > 3

    def patience_ms(self, account: str) -> int:
        """How long something may take that is wanted."""
        return PROMPT_MS if self.world.calm and self.unlimited(account) else STUCK_MS

    def typing_place(self, life: Life) -> Place:
        """The lane in which this run types."""
        in_threads = self.truth.accounts[life.key.account].spec.rules.typing_in_threads
        return life.key.account, life.key.conversation, f"typing {life.thread if in_threads else None}"

    def owner(self, place: Place) -> Life | None:
        """The run that owns the marks of this message."""
        key = self.lives.owners.get((place[0], place[1], place[2] or ""))
        return None if key is None else self.lives.all.get(key)


def typing_place(account: str, about: Any) -> Place:
    """The lane of a typing call or wish."""
    return account, about.conversation, f"typing {about.thread}"
