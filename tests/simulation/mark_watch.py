"""Watches what marks are asked for, while their run is open: only those that its settings and the gate let show, each in its time.

- no mark where the gate said no, none of a state that is not presented, none before the start delay
- a phase is asked for once it has waited for its debounce, and never sooner after the last change than the least time
- a stall mark comes only so long after the last progress, and not while the run waits
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from actors.platform_messages import ShowMark
from actors.presence.policy import Chain, StatusSettings
from actors.presence.terms import Rank
from protocol.events import Event
from tests.simulation.life import PROGRESS, Life
from tests.simulation.lives import Lives
from tests.simulation.scene import Scene
from tests.simulation.truth import Place

LATE_MS = 100
STALLS = ("stall_soft", "stall_hard")
AT_ONCE = ("queued", *STALLS)
"""States whose marks are not debounced."""


@dataclass(slots=True)
class Asked:
    """The last mark that was asked for on a message, and what has happened since."""

    chain: Chain
    at_ms: int
    event_ms: int | None = None
    """The first event since then that may ask for another mark."""
    last_ms: int | None = None
    """The last one."""
    differs_ms: int | None = None
    """Since when the phase is another than what is shown."""


class MarkWatch:
    """Wishes for marks against the lives of runs."""

    def __init__(self, scene: Scene, lost: Container[Place]) -> None:
        """``lost``: messages of runs of which an event was lost in a crash."""
        self._scene = scene
        self._lost = lost
        self._asked: dict[Place, Asked] = {}
        self._events: dict[Place, int] = {}

    def forget(self) -> None:
        """Another process."""
        self._asked.clear()

    def taken(self, event: Event) -> None:
        """The router is about to take an event in."""
        if not isinstance(event, PROGRESS):
            return
        life = self._scene.lives.all.get(Lives.key_of(event))
        message = event.message if life is None else life.message
        place = (event.account or "", event.conversation, message)
        if life is not None and self._scene.owner(place) is not life:
            return  # a newer run has the message
        asked = self._asked.setdefault(place, Asked((), -1))
        if life is not None and life.ended_ms is None:
            self._check_burst(life, asked, place)
        asked.last_ms = self._scene.awake_ms
        if asked.event_ms is None:
            asked.event_ms = self._scene.awake_ms

    def _check_burst(self, life: Life, asked: Asked, place: Place) -> None:
        """However fast phases change, one of them is asked for within three debounces."""
        scene, status = self._scene, life.policy.status
        state = life.phase.shown
        if state is None or not life.phase.known or not life.status or status.emoji[state] == asked.chain:
            asked.differs_ms = None
            return
        if asked.differs_ms is None:
            asked.differs_ms = asked.last_ms
        if asked.differs_ms is None or place in self._lost or status.quiet_minutes or status.min_change_ms:
            return
        late_ms = scene.awake_ms - asked.differs_ms - 3 * status.debounce_ms
        delayed = scene.awake_ms < life.opened_ms + status.start_delay_ms + 3 * status.debounce_ms
        well = place[0] not in scene.hurt and not scene.troubled(place[0]) and not scene.lag_ms and not life.survived
        if late_ms > LATE_MS and well and not delayed and scene.owner(place) is life:
            scene.problem(f"{life.key} is {state}, and nobody has asked for its mark for {late_ms} ms too long")

    def told(self, account: str, wish: ShowMark) -> None:
        """This mark is asked for now."""
        scene = self._scene
        place = (account, wish.conversation, wish.message)
        before = self._asked.get(place) or Asked((), -1)
        now_ms = scene.awake_ms
        if wish.chain == before.chain:
            return
        life = scene.owner(place)
        stall = life is not None and any(wish.chain == life.policy.status.emoji[state] for state in STALLS)
        self._asked[place] = Asked(wish.chain, now_ms, before.event_ms if stall or not wish.chain else None)
        if scene.lag_ms or scene.troubled(account) or life is None or life.survived or not wish.chain:
            return
        if not life.marked:
            scene.problem(f"{wish.chain[0]} is asked for on {place}, which the gate does not let have marks")
        elif wish.rank is Rank.TERMINAL or life.ended_ms is not None:
            if life.ended_ms is None and not life.done:
                scene.problem(f"{wish.chain[0]} is asked for on {place} as an end, and {life.key} has not ended")
        else:
            self._check_open(life, wish, before, now_ms)

    def _check_open(self, life: Life, wish: ShowMark, before: Asked, now_ms: int) -> None:
        scene, status, chain = self._scene, life.policy.status, wish.chain
        states = {state for state, emoji in status.emoji.items() if emoji == chain}
        if now_ms < life.opened_ms + status.start_delay_ms:
            scene.problem(f"{chain[0]} is asked for on {wish.message} {now_ms - life.opened_ms} ms after it was opened")
        if wish.rank is Rank.ACK:
            if not life.ack or "queued" not in states:
                scene.problem(f"{chain[0]} is asked for on {wish.message} as an ack")
            return
        if "queued" not in states and not any(map(life.presented, states)):
            scene.problem(
                f"{chain[0]} ({', '.join(sorted(states))}) is asked for on {wish.message}, and is not presented"
            )
        if before.chain and now_ms < before.at_ms + status.min_change_ms:
            scene.problem(f"{wish.message} changes to {chain[0]} {now_ms - before.at_ms} ms after the last change")
        if states <= set(STALLS):
            self._check_stall(life, status, chain, now_ms)
        elif not states & set(AT_ONCE) and (before.event_ms is None or now_ms < before.event_ms + status.debounce_ms):
            since = "nothing has asked for it" if before.event_ms is None else f"only {now_ms - before.event_ms} ms"
            scene.problem(f"{chain[0]} is asked for on {wish.message} before its debounce is over: {since}")

    def _check_stall(self, life: Life, status: StatusSettings, chain: Chain, now_ms: int) -> None:
        waits_ms = status.stall_soft_ms if chain == status.emoji["stall_soft"] else status.stall_hard_ms
        if life.waits:
            self._scene.problem(f"{chain[0]} is asked for on {life.key} while it waits")
        elif now_ms < life.progress_ms + waits_ms:
            self._scene.problem(f"{chain[0]} is asked for on {life.key} {now_ms - life.progress_ms} ms after progress")
