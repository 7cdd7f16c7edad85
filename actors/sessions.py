"""Sessions: who is connected, with how many connections, and which event ids each has used.

A session is one client. It may have several connections, and it goes on over a reconnect that names it again.
The router hears of its first connection and of the loss of its last one.

- Names are the clients' own choice, so each is kept apart by the *principal* it belongs to (the user, or the
  token): nobody can take over, or disturb, a session of somebody else.
- The last 4,096 event ids are remembered until 10 minutes after the session's end. A session without a name
  that its client knows, or without ids, leaves nothing behind. At most 10,000 ended sessions are remembered,
  oldest out first.
"""

from __future__ import annotations

import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from actors.messages import SessionDown, SessionUp

REMEMBERED_IDS = 4_096
REMEMBERED_S = 600.0
REMEMBERED_SESSIONS = 10_000


class Teller(Protocol):
    """What the server needs of the router's ref."""

    def tell(self, message: Any) -> None: ...


class Session:
    """One client. ``key`` is its name among all principals; upward it is known by that."""

    __slots__ = ("_ids", "connections", "ended_at", "key", "name", "resumable")

    def __init__(self, key: str, name: str) -> None:
        self.key = key
        self.name = name
        self.connections = 0
        self.resumable = False
        """Whether a client knows the name."""
        self.ended_at = 0.0
        self._ids: OrderedDict[str, None] = OrderedDict()

    def is_repeat(self, event_id: str) -> bool:
        """Whether the client has used this id before. What became of that event, the router knows."""
        if event_id in self._ids:
            return True
        self._ids[event_id] = None
        if len(self._ids) > REMEMBERED_IDS:
            self._ids.popitem(last=False)
        return False

    @property
    def worth_keeping(self) -> bool:
        return self.resumable and bool(self._ids)


class Sessions:
    """All sessions of a server. Outlives the server's own restart."""

    def __init__(self, router: Teller, now: Callable[[], float] = time.monotonic) -> None:
        self._router = router
        self._now = now
        self._live: dict[str, Session] = {}
        self._ended: OrderedDict[str, Session] = OrderedDict()
        """Oldest end first."""

    def __len__(self) -> int:
        return len(self._live)

    @property
    def remembered(self) -> int:
        """Ended sessions whose ids are still known."""
        return len(self._ended)

    def remember(self, used: Mapping[str, Iterable[str]]) -> None:
        """Event ids that sessions of an earlier process have used, by session key, oldest first.

        For them that process's end was the sessions' end: the ids are known for 10 minutes from now.
        """
        now = self._now()
        for key, ids in used.items():
            if key not in self._live and key not in self._ended:
                session = Session(key, key.partition("/")[2])
                session.resumable = True
                session.ended_at = now
                for event_id in ids:
                    session.is_repeat(event_id)
                self._ended[key] = session

    def join(self, principal: str, name: str | None, *, told: bool) -> Session:
        """One more connection of the session ``name`` (None: a new one); ``told``: its client knows the
        name."""
        self._sweep()
        name = name or uuid.uuid4().hex
        key = f"{principal}/{name}"
        session = self._live.get(key)
        if session is None:
            session = self._ended.pop(key, None) or Session(key, name)
            self._live[key] = session
            self._router.tell(SessionUp(key))
        session.resumable |= told
        session.connections += 1
        return session

    def leave(self, session: Session) -> None:
        """One connection less."""
        session.connections -= 1
        if session.connections:
            return
        del self._live[session.key]
        if session.worth_keeping:
            session.ended_at = self._now()
            self._ended[session.key] = session
        self._sweep()
        self._router.tell(SessionDown(session.key))

    def _sweep(self) -> None:
        horizon = self._now() - REMEMBERED_S
        while self._ended:
            oldest = next(iter(self._ended.values()))
            if oldest.ended_at > horizon and len(self._ended) <= REMEMBERED_SESSIONS:
                return
            self._ended.popitem(last=False)
