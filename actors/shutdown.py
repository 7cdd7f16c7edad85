"""The orderly end: what shows is taken back, within a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from actors.parts import Parts
from actors.router_state import EndAll
from actors.runtime import Actor, ActorRef

DRAIN_POLL_MS = 10


class ShutdownActor(Actor):
    """Ends all runs, waits until nothing of ours shows or can be taken back any more or the time is over, and says how it
    went."""

    def __init__(self, parts: Parts, router: ActorRef[Any], budget_ms: int, done: Callable[[bool], None]) -> None:
        super().__init__()
        self._parts = parts
        self._router = router
        self._budget_ms = budget_ms
        self._done = done
        self._deadline_ms = 0

    def on_start(self) -> None:
        self._deadline_ms = self.now_ms + self._budget_ms
        self._router.tell(EndAll("shutdown"))
        self.schedule(0, "look", key="look")

    def on_receive(self, message: Any) -> None:
        if self._parts.at_its_end or self.now_ms >= self._deadline_ms:
            self._done(self._parts.at_rest)
            self.stop()
        else:
            self.schedule(min(DRAIN_POLL_MS, self._deadline_ms - self.now_ms), "look", key="look")
