"""Actors on pykka and gevent: the page of guarantees.

Each sentence below has its test; ``tests/runtime/test_guarantees.py`` says which.

Actors

- ``Actor`` (multiplexed) and ``GreenletActor`` are pykka actors: refs, ``tell``, ``ask``, ``stop``, proxies, futures
  and hooks work as pykka documents.
- An actor handles one message at a time, beginning after ``on_start``, and one sender's messages in their order.
- A multiplexed actor that tries to wait gets a ``BlockingCallError`` that says what to do instead.
- A greenlet actor may wait in its handler.
- Whoever holds the hub is reported with its stack by a watchdog thread.
- An actor waits for a future with ``pipe``: the answer, the error or the time-out comes as a message.

Mailbox

- The mailbox is the identity: a restart keeps ref, key and waiting messages.
- The system lane goes before the user lane, also in the middle of a backlog.
- Putting never waits.
- The user lane is bounded by ``mailbox_capacity``, for other threads as well.
- What a full lane does is the actor's declared ``Overflow``; all that is refused or dropped is counted.
- Ticks, piped answers, notices of an end and stop requests pass the bound.
- An idle actor owns no lane, no timer table and no place in any queue.

Threads

- ``tell``, ``ask``, ``spawn``, ``stop`` and ``Future.get`` work from any thread, greenlet or hub, and ``await`` from an
  asyncio loop without blocking it.
- ``tell`` from signal handlers and finalizers loses nothing.
- Nothing is monkey-patched, and all works in a patched process as in an unpatched one.
- Two runtimes in one process share nothing.

Scheduling

- Both drivers do the same with the same script.
- A flooded actor delays another by one turn.
- Sockets are served while actors are flooded, and the process's other threads get their share.
- The manual driver refuses greenlet actors, moves time only when told to, and reports a deadlock or an endless loop.

Timers

- A timer is never early.
- A key has one timer; starting it again replaces it.
- After cancel, replace, restart and stop a tick is dead, even in the mailbox.
- A missed interval fires once.
- Setting the system's clock moves no timer.
- Moving a deadline later touches no heap, and cancelled timers are reclaimed without waiting for their time.

Supervision

- Who comes back and who comes along is a table in ``supervision.py``.
- The message that failed does not come back.
- Timers, watches and pipes die with their instance; objects in a child's ``args`` live on.
- An exception in an ask goes to the asker and is no failure.
- A failure in ``on_start`` counts like any other; one in ``on_stop`` or ``on_failure`` is logged and changes nothing.
- A stray ``gevent.Timeout`` or ``GreenletExit`` is an ordinary failure of that one actor.
- ``KeyboardInterrupt`` and ``SystemExit`` ask the runtime to stop, and come out of ``wait``.
- A supervisor fails when its budget is spent; a parent of many only when 50 and more than 5 % of its children failed
  within the period.
- A child's own budget, once spent, ends that child only.
- Restarts back off exponentially, with jitter, and begin anew after quiet.
- A supervisor's own failure ends its children first; its next instance starts them anew.

End

- ``ref.stop()`` keeps its place in the queue; ``runtime.stop(ref)`` goes before it.
- Children end before their parents, the last started first.
- Stopping is bounded: a greenlet that is busy at the deadline is killed, and left behind if it survives that.
- Every waiting asker is answered.
- When a stop is answered ``on_stop`` has run, the timers are dead and the key is free.
- Stopping works twice, under load, before the start, and from a signal handler.
- What has stopped is freed without the garbage collector.

Seeing

- ``lookup`` finds a live actor by key.
- A watcher gets ``Terminated`` once, after everything the actor told it.
- Dead letters are counted, sampled into the log and told to subscribers.
- An idle actor can go away with ``passivate``; with something waiting it stays.
- ``snapshot`` shows the tree with states, depths, restarts and timers.
- A mailbox that grows deep is named in the log.
"""

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
