"""How large a load is, what the bots do, and what the platforms are like."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from actors.sandbox.faults import FaultPlan, Rule, Window

LATENCY_MS = 30
HOLD_MS = 1_500
WINDOW_MS = 2_000
"""Limits count in windows of this length."""
RETRY_AFTER_MS = 1_000
OUTAGE_EVERY_MS = 60_000
OUTAGE_MS = 5_000


@dataclass(frozen=True)
class Plan:
    """One load."""

    conversations: int = 100_000
    """Live at any time: where a run ends, another one begins in its conversation."""
    minutes: float = 10.0
    """Measured; before that comes the warm-up, in which all are opened."""
    accounts: int = 10
    life_s: float = 1_200.0
    """Mean life of a run; the first ones end evenly spread over that time."""
    phase_s: float = 60.0
    """Mean time between two changes of a run's phase."""
    ramp_s: float = 180.0
    calls_per_s: int = 40
    """What livesign believes that each account may make. The platform lets a tenth more pass: calls that begin evenly arrive
    less evenly."""

    @property
    def names(self) -> list[str]:
        return [f"bot{number}" for number in range(self.accounts)]

    @property
    def stingy(self) -> str:
        """The account that is granted two thirds of what its configuration believes."""
        return self.names[-1]

    @property
    def shaky(self) -> str:
        """The account whose platform fails now and then, and has outages."""
        return self.names[0]

    @property
    def window_ms(self) -> int:
        return WINDOW_MS

    @property
    def calls_per_window(self) -> int:
        return self.calls_per_s * WINDOW_MS // 1_000

    def faults(self) -> FaultPlan:
        """How the sandbox limits and fails."""
        end_ms = int((self.ramp_s + self.minutes * 60) * 1_000) + 60_000
        outages = [
            Rule(account=self.shaky, from_ms=at_ms, until_ms=at_ms + OUTAGE_MS, outcome="transient")
            for at_ms in range(OUTAGE_EVERY_MS // 2, end_ms, OUTAGE_EVERY_MS)
        ]
        hangs = Rule(account=self.shaky, nth=tuple(range(50, 20_000, 97)), outcome="hang", applied=True)
        failures = Rule(account=self.shaky, nth=tuple(range(7, 20_000, 41)), outcome="transient")
        few = self.calls_per_window * 2 // 3
        limits = [
            Rule(account=self.stingy, limit=Window(WINDOW_MS, few), retry_after_ms=RETRY_AFTER_MS, scope="account"),
            Rule(
                limit=Window(WINDOW_MS, self.calls_per_window * 11 // 10),
                retry_after_ms=RETRY_AFTER_MS,
                scope="account",
            ),
        ]
        return FaultPlan(latency_ms=LATENCY_MS, rules=(*outages, hangs, failures, *limits))

    def config(self, folder: Path, base_url: str) -> str:
        """The server's configuration."""
        accounts = "\n".join(
            f'[accounts.{name}]\nplatform = "sandbox"\nbase_url = "{base_url}"\ntoken_env = "TOKEN_{name.upper()}"'
            for name in self.names
        )
        return f"""{accounts}

[ack]
scope = "all"

[status]
done_hold_ms = {HOLD_MS}

[limits]
account = {{ count = {self.calls_per_window}, per_ms = {WINDOW_MS}, burst = {self.calls_per_window // 4} }}

[calls]
concurrency = 32
deadline_ms = 5000
typing_deadline_ms = 3000

[server]
unix = "{folder}/s.sock"
limits = {{ open_runs = {self.conversations + 1_000} }}

[ledger]
path = "{folder}/ledger"

[shutdown]
budget_ms = 10000
"""
