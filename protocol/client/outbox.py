"""Events on their way to livesign: numbered, bounded, kept until they are acknowledged. No sockets, no
threads.

- An event stays until its `Ack` or `Rejected`; a new connection begins with everything that is left, in
  order. The ids make that safe: what was applied before is acknowledged as duplicate.
- When the box is full, the oldest event that is worth little when late (a phase, progress, a sign of life)
  makes room. The others, terminals above all, are never dropped: if only such are left, the newcomer is
  refused.
"""

from __future__ import annotations

import uuid
from collections import deque

import msgspec

from protocol.codec import encode
from protocol.events import PHASE_EVENTS, Alive, Event, Progress, TypingStart

CAPACITY = 4_096
WORTH_LITTLE_LATE = (*PHASE_EVENTS, Progress, Alive, TypingStart)
"""Events that may be dropped when there is no room."""


class OutboxFullError(Exception):
    """Thousands of events wait that must not be dropped: livesign has been away for long."""


class Outbox:
    """Not safe for threads by itself."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._prefix = uuid.uuid4().hex[:12]
        """Ids of two processes that use the same session name never meet."""
        self._count = 0
        self._waiting: dict[str, tuple[bytes, bool, Event]] = {}
        """By id, oldest first: the bytes, whether they may be dropped, and the event."""
        self._unsent: deque[str] = deque()
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, event_id: str) -> bool:
        return event_id in self._waiting

    def add(self, event: Event) -> str:
        """Returns the event's id, a new one if it has none. Raises `OutboxFullError`."""
        event_id = event.id
        if event_id is None:
            self._count += 1
            event_id = f"{self._prefix}-{self._count}"
            event = msgspec.structs.replace(event, id=event_id)
        may_drop = isinstance(event, WORTH_LITTLE_LATE)
        if len(self._waiting) >= self._capacity and not self._make_room():
            if not may_drop:
                raise OutboxFullError(f"{len(self._waiting)} events wait for livesign")
            self.dropped += 1
            return event_id
        self._waiting[event_id] = (encode(event), may_drop, event)
        self._unsent.append(event_id)
        return event_id

    def _make_room(self) -> bool:
        for event_id, (_, may_drop, _) in self._waiting.items():
            if may_drop:
                del self._waiting[event_id]
                self.dropped += 1
                return True
        return False

    def take(self, max_bytes: int) -> bytes:
        """Bytes to send next: whole events, about ``max_bytes`` of them; empty if there is nothing."""
        taken = bytearray()
        while self._unsent and len(taken) < max_bytes:
            waiting = self._waiting.get(self._unsent.popleft())
            if waiting is not None:  # it may be dropped by now
                taken += waiting[0]
        return bytes(taken)

    def settle(self, event_id: str) -> Event | None:
        """The event was acknowledged or refused; returns it, if it was still waiting."""
        waiting = self._waiting.pop(event_id, None)
        return None if waiting is None else waiting[2]

    def begin_again(self) -> None:
        """A new connection: send everything that is left."""
        self._unsent = deque(self._waiting)
