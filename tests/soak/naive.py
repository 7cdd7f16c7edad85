"""The bot that everybody writes first: a call for each event, typing by the clock, and a retry when it is refused."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Any

from actors.platforms.registry import PLATFORMS
from actors.platforms.spec import NO_OPTIONS
from tests.soak.documented import Limiter

RETRIES = 3
LOOKS = {"received": "eyes", "thinking": "think", "compacting": "write", "error": "scream", "done": "thumb"}
ENDS = ("done", "error", "cancelled", "silent")
Place = tuple[str, str]


@dataclass
class Naive:
    """One account's bot. ``calls`` counts retries too; ``left``: wrong marks, and typing that came after the end."""

    platform: str
    calls: int = 0
    refused: int = 0
    marks: dict[Place, set[str]] = field(default_factory=dict)
    wanted: dict[Place, str] = field(default_factory=dict)
    late_typing: int = 0

    def __post_init__(self) -> None:
        self.spec = PLATFORMS[self.platform](NO_OPTIONS).spec
        self.limiter = Limiter(self.platform)
        self._replaces = self.spec.rules.reactions == "replace"
        self._queue: list[tuple[int, int, str, Place, str, int]] = []
        self._number = 0
        self._ended: dict[Place, int] = {}

    def play(self, rows: list[list[Any]]) -> None:
        for row in rows:
            if row[1]["account"] == self.platform:
                self._event(row[0], row[1])
        while self._queue:
            t_ms, _, op, place, emoji, tries = heapq.heappop(self._queue)
            self.calls += 1
            wait_ms, _window = self.limiter.ask(op, place[0], t_ms)
            if wait_ms:
                self.refused += 1
                if tries < RETRIES:
                    self._push(t_ms + wait_ms, op, place, emoji, tries + 1)
            else:
                self._apply(t_ms, op, place, emoji)

    @property
    def left(self) -> int:
        """Messages that do not show exactly what they should in the end, and typing shown after the end."""
        wrong = sum(
            self.marks.get(place, set()) != ({emoji} if emoji else set()) for place, emoji in self.wanted.items()
        )
        return wrong + self.late_typing

    def _event(self, t_ms: int, event: dict[str, Any]) -> None:
        place, kind = (event["conversation"], event["message"]), event["type"]
        emoji = LOOKS.get(kind) or (f"tool {event['name']}" if kind == "tool" else "")
        before = self.wanted.get(place, "")
        if kind == "received" and self.spec.rules.typing:
            self._push(t_ms, "typing_start", place)
        if emoji or kind in ENDS:
            self._change(t_ms, place, before, emoji)
        if kind in ENDS:
            self._end(t_ms, place)
        elif kind == "received":
            self._ended[place] = t_ms

    def _change(self, t_ms: int, place: Place, before: str, emoji: str) -> None:
        self.wanted[place] = emoji
        if emoji:
            self._push(t_ms, "set", place, emoji)
        if before and before != emoji and not (self._replaces and emoji):
            self._push(t_ms, "clear" if self._replaces else "remove", place, before)

    def _end(self, t_ms: int, place: Place) -> None:
        begun_ms, self._ended[place] = self._ended[place], t_ms
        if not self.spec.rules.typing:
            return
        if self.spec.keepalive_ms:
            for at_ms in range(begun_ms + self.spec.keepalive_ms, t_ms, self.spec.keepalive_ms):
                self._push(at_ms, "typing_start", place)
        if self.spec.rules.typing_stop:
            self._push(t_ms, "typing_stop", place)

    def _push(self, t_ms: int, op: str, place: Place, emoji: str = "", tries: int = 0) -> None:
        self._number += 1
        heapq.heappush(self._queue, (t_ms, self._number, op, place, emoji, tries))

    def _apply(self, t_ms: int, op: str, place: Place, emoji: str) -> None:
        marks = self.marks.setdefault(place, set())
        if op == "set":
            if self._replaces:
                marks.clear()
            marks.add(emoji)
        elif op == "remove":
            marks.discard(emoji)
        elif op == "clear":
            marks.clear()
        elif op == "typing_start" and t_ms > self._ended[place]:
            self.late_typing += 1
