"""What the supervisor tree is made of: plain data that outlives every actor of it."""

from __future__ import annotations

from dataclasses import dataclass

from actors.platform_io import AccountIO
from actors.router_state import RouterState


@dataclass(slots=True)
class Parts:
    """Accounts and router state, and the restart budget of conversations' actors."""

    accounts: dict[str, AccountIO]
    router: RouterState
    intensity: int
    period_ms: int

    @property
    def at_rest(self) -> bool:
        """Nothing is open, shown, wanted or under way."""
        conversations = self.router.conversations.values()
        return (
            not self.router.runs.open
            and all(entry.state.idle and not entry.waiting for entry in conversations)
            and all(account.lanes.idle for account in self.accounts.values())
        )
