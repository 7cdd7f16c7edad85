"""Watches the order of calls: where nothing but the account's limit makes them wait, those for ends go first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from actors.presence.terms import TYPING_OPS, Op, Rank
from actors.scripted_platform import CallRecord
from tests.simulation.scene import Scene
from tests.simulation.truth import Place
from tests.simulation.wish import Wish


class OrderWatch:
    """Marks of ends that were told and not called for yet."""

    def __init__(self, scene: Scene, wishes: Mapping[Place, Wish]) -> None:
        """``wishes``: the last of each message."""
        self._scene = scene
        self._wishes = wishes
        self._urgent: dict[str, dict[Place, int]] = defaultdict(dict)
        """By account, since when."""

    def forget(self, account: str | None = None) -> None:
        """They are told again, but when? (None: those of all accounts.)"""
        if account is None:
            self._urgent.clear()
        else:
            self._urgent[account].clear()

    def told(self, place: Place, wish: Wish) -> None:
        self._urgent[place[0]].pop(place, None)
        if wish.rank is Rank.TERMINAL and wish.what:
            self._urgent[place[0]][place] = wish.told_ms

    def called(self, record: CallRecord) -> None:
        scene, account, command = self._scene, record.account, record.command
        urgent = self._urgent[account]
        place = (account, command.conversation, command.message)
        since_ms = urgent.pop(place, None)
        held = scene.truth.accounts[account]
        if since_ms is not None or not urgent or not scene.never_failed(account) or set(held.limits) - {"account"}:
            return
        if command.op in TYPING_OPS or (command.op is Op.SET and self._is_phase(place)):
            waits = [other for other, told_ms in urgent.items() if told_ms < scene.awake_ms and self._is_free(other)]
            if waits:
                scene.problem(f"{command.op} in {place} goes before the end of {waits[0]}")

    def _is_phase(self, place: Place) -> bool:
        life = self._scene.owner(place)
        return life is not None and life.ended_ms is None

    def _is_free(self, place: Place) -> bool:
        """Whether a call could be made: the mark is not there, and none is under way in this conversation."""
        wish = self._wishes.get(place)
        met = wish is not None and bool(wish.what) and wish.what[0] in self._scene.truth.marks.get(place, {})
        return not met and not self._scene.truth.flying_in(place[0], place[1])
