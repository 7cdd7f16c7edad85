"""The messages that the runtime itself puts into user lanes, and those of pykka.

``SPECIAL`` holds every type that the scheduler does not simply hand to ``on_receive``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pykka.messages import ProxyCall, ProxyGetAttr, ProxySetAttr, _ActorStop

from actors.runtime.timers import Timer

if TYPE_CHECKING:
    from actors.runtime.future import Future
    from actors.runtime.ref import ActorRef

__all__ = [
    "PROXY_TYPES",
    "SPECIAL",
    "STOP",
    "Ask",
    "Cell",
    "DeadLetter",
    "Deferred",
    "Event",
    "Exit",
    "Piped",
    "Terminated",
]


class Exit(StrEnum):
    """Why an actor's life, or that of one of its instances, ended."""

    NORMAL = "normal"
    """It stopped itself or was asked to by ``ref.stop()``."""
    PASSIVATED = "passivated"
    """It was idle and went away until it is needed again."""
    SHUTDOWN = "shutdown"
    """Its supervisor or the runtime stopped it."""
    FAILED = "failed"
    """A handler, ``on_start`` or the greenlet failed."""
    GAVE_UP = "gave_up"
    """Its restart budget is spent."""


class Event(StrEnum):
    """What observers are told of an actor's life."""

    STARTED = "started"
    """An instance begins; detail: how many there were before."""
    FAILED = "failed"
    """An instance is broken; detail: the exception."""
    STOPPED = "stopped"
    """The actor has ended; detail: its ``Exit``."""


@dataclass(frozen=True, slots=True)
class Terminated:
    """A watched actor has ended. Comes after everything that it told the watcher."""

    ref: ActorRef[Any]
    reason: Exit


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that no actor has handled or will handle."""

    ref: ActorRef[Any]
    message: Any


class Ask:
    """A message whose sender waits for an answer."""

    __slots__ = ("future", "message")

    def __init__(self, message: Any, future: Future[Any]) -> None:
        self.message = message
        self.future = future


class Cell:
    """A waiting message of a coalescing mailbox, open to replacement."""

    __slots__ = ("key", "message")

    def __init__(self, key: Hashable, message: Any) -> None:
        self.key = key
        self.message = message


class Piped:
    """An awaited answer. Belongs to the instance that asked: a later one does not get it."""

    __slots__ = ("actor", "future", "message", "wrap")

    def __init__(self, actor: Any, future: Any, wrap: Callable[[Any], Any]) -> None:
        self.actor = actor
        self.future = future
        self.wrap = wrap
        self.message: Any = None
        """What ``wrap`` made of the answer."""


class Deferred:
    """A timer's message that is a call of the runtime: it goes to the system lane."""

    __slots__ = ("call",)

    def __init__(self, call: Callable[[], None]) -> None:
        self.call = call


STOP = _ActorStop()
"""pykka's stop message; one is enough."""
PROXY_TYPES = (ProxyCall, ProxyGetAttr, ProxySetAttr)
SPECIAL = frozenset({Ask, Cell, Piped, Terminated, Timer, _ActorStop, *PROXY_TYPES})
