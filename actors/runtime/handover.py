"""The hand-over: how other threads, signal handlers and finalizers reach the runtime's thread.

Rules:

- Adding is one ``deque.append`` and, unless someone has rung already, the driver's doorbell. No lock, no waiting.
- A message goes into its mailbox's *transit* lane, where it counts against the mailbox's bound; the common queue gets a
  mark for it. So one sender's messages arrive in its order, and nobody's flood takes another's room.
- Whoever adds after the runtime has stopped sees ``closed`` afterwards and answers what is in the queue himself:
  nobody is left waiting.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pykka import ActorDeadError

from actors.runtime import halting
from actors.runtime.errors import RuntimeClosedError
from actors.runtime.messages import Ask

if TYPE_CHECKING:
    from actors.runtime.drivers import Driver
    from actors.runtime.mailbox import Mailbox

__all__ = ["HandOver", "Transit"]

logger = logging.getLogger("actors.runtime")

TAKE_MAX = 1024  # taken per slice


class Transit(deque[Any]):
    """Messages from other threads on their way to one mailbox."""

    __slots__ = ("mailbox",)

    def __init__(self, mailbox: Mailbox) -> None:
        super().__init__()
        self.mailbox = mailbox


class HandOver:
    """What others have brought and the scheduler has not taken yet."""

    __slots__ = ("_driver", "_lanes", "_queue", "_rung", "closed")

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._queue: deque[Transit | Callable[[], object]] = deque()
        self._lanes: dict[Mailbox, Transit] = {}
        self._rung = False
        self.closed = False
        """The runtime has stopped."""

    def __len__(self) -> int:
        return len(self._queue)

    def waiting_for(self, mailbox: Mailbox) -> int:
        """How many messages are on their way to this mailbox."""
        lane = self._lanes.get(mailbox)
        return 0 if lane is None else len(lane)

    def send(self, mailbox: Mailbox, message: Any) -> None:
        """A message for this mailbox."""
        lane = self._lanes.get(mailbox)
        if lane is None:
            lane = self._lanes.setdefault(mailbox, Transit(mailbox))
        lane.append(message)
        self._queue.append(lane)
        self._ring()

    def call(self, call: Callable[[], object]) -> None:
        """A call to be made in the runtime's thread. RuntimeClosedError."""
        if self.closed:
            raise RuntimeClosedError("the runtime has stopped")
        self._queue.append(call)
        self._ring()

    def _ring(self) -> None:
        if not self._rung:
            self._rung = True
            self._driver.wake_from_afar()
        if self.closed:
            self.drain()

    def take(self) -> None:
        """Bring what is here, ``TAKE_MAX`` items at most, to its place (runtime's thread)."""
        self._rung = False  # before the look at the queue: who adds after it rings again
        queue = self._queue
        left = min(len(queue), TAKE_MAX)
        while left and queue:  # a call may stop the runtime and empty the queue
            left -= 1
            item = queue.popleft()
            if type(item) is not Transit:
                try:
                    item()  # type: ignore[operator]
                except Exception:
                    logger.exception("A call handed to the runtime failed:")
                continue
            mailbox, message = item.mailbox, item.popleft()
            if not item and self._lanes.get(mailbox) is item:
                del self._lanes[mailbox]
            try:
                mailbox.arrive(message)
            except ActorDeadError as error:  # its sender is gone, unless it waits for an answer
                if type(message) is Ask:
                    halting.answer_error(message.future, error)

    def drain(self) -> None:
        """The runtime has stopped: answer those who came too late (any thread)."""
        while True:
            try:
                item = self._queue.popleft()
            except IndexError:
                return
            if type(item) is Transit:
                halting.bury(item.mailbox, item.popleft())
            else:
                item()  # type: ignore[operator]
