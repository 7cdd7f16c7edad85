"""Actors on pykka and gevent."""

from actors.runtime.actor import Actor, GreenletActor
from actors.runtime.clock import Clock, ManualClock, MonotonicClock
from actors.runtime.default import default_runtime
from actors.runtime.drivers import Driver, HubDriver, ManualDriver
from actors.runtime.errors import (
    ActorError,
    BlockingCallError,
    DeadlockError,
    DuplicateKeyError,
    LivelockError,
    MailboxFullError,
    MisuseError,
    RestartBudgetError,
    RuntimeClosedError,
    WrongDriverError,
)
from actors.runtime.future import Future
from actors.runtime.mailbox import Overflow
from actors.runtime.messages import DeadLetter, Event, Exit, Terminated
from actors.runtime.observe import Observer
from actors.runtime.ref import ActorRef
from actors.runtime.runtime import Runtime
from actors.runtime.supervision import Backoff, ChildSpec, Restart, Strategy
from actors.runtime.supervisor import Supervisor

__all__ = [
    "Actor",
    "ActorError",
    "ActorRef",
    "Backoff",
    "BlockingCallError",
    "ChildSpec",
    "Clock",
    "DeadLetter",
    "DeadlockError",
    "Driver",
    "DuplicateKeyError",
    "Event",
    "Exit",
    "Future",
    "GreenletActor",
    "HubDriver",
    "LivelockError",
    "MailboxFullError",
    "ManualClock",
    "ManualDriver",
    "MisuseError",
    "MonotonicClock",
    "Observer",
    "Overflow",
    "Restart",
    "RestartBudgetError",
    "Runtime",
    "RuntimeClosedError",
    "Strategy",
    "Supervisor",
    "Terminated",
    "WrongDriverError",
    "default_runtime",
]
