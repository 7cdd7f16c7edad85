"""What the supervisor tree is made of: plain data that outlives every actor of it."""

from __future__ import annotations

from collections.abc import Collection
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
        return self._rests(frozenset())

    @property
    def at_its_end(self) -> bool:
        """At rest, but for accounts that their platform has stopped: waiting brings nothing more."""
        return self._rests({name for name, account in self.accounts.items() if account.lanes.stopped is not None})

    def _rests(self, but: Collection[str]) -> bool:
        conversations = self.router.conversations.values()
        return (
            not self.router.runs.open
            and all(entry.state.account in but or (entry.state.idle and not entry.waiting) for entry in conversations)
            and all(account.lanes.idle for account in self.accounts.values())
        )
