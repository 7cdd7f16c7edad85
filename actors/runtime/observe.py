"""What can be seen of a runtime: dead letters, deep mailboxes, turns and events, the tree.

Costs nothing when nobody looks: counters are kept where something rare happens, the tree is read when asked for, and
observers are called once per turn and per event in an actor's life, not per message.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from actors.runtime.mailbox import STATES, Mailbox
from actors.runtime.messages import DeadLetter, Event

if TYPE_CHECKING:
    from actors.runtime.ref import ActorRef
    from actors.runtime.runtime import Runtime
    from actors.runtime.scheduler import Scheduler

__all__ = ["DeadLetters", "DepthAlarm", "Observer", "Observers", "snapshot", "snapshot_text"]

logger = logging.getLogger("actors.runtime")

LOG_EVERY_NS = 1_000_000_000
ALARM_EVERY_NS = 10_000_000_000


class Observer(Protocol):
    """Metrics or tracing. Called in the runtime's thread; must be quick and must not raise."""

    def turn(self, ref: ActorRef[Any], handled: int) -> None:
        """An actor has had a turn and handled so many messages in it."""
        ...

    def event(self, event: Event, ref: ActorRef[Any], detail: object) -> None:
        """Something has happened to an actor."""
        ...


class Observers:
    """Several observers as one."""

    __slots__ = ("observers",)

    def __init__(self, observers: tuple[Observer, ...]) -> None:
        self.observers = observers

    def turn(self, ref: ActorRef[Any], handled: int) -> None:
        """Pass it on."""
        for observer in self.observers:
            observer.turn(ref, handled)

    def event(self, event: Event, ref: ActorRef[Any], detail: object) -> None:
        """Pass it on."""
        for observer in self.observers:
            observer.event(event, ref, detail)


class DepthAlarm:
    """Warns of a mailbox that has more than ``depth`` messages waiting, naming its actor; once in ten seconds."""

    __slots__ = ("_next_ns", "depth")

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self._next_ns = -(1 << 62)

    def raise_for(self, mailbox: Mailbox) -> None:
        """This one is too deep."""
        now_ns = mailbox.scheduler.now_ns()
        if now_ns >= self._next_ns:
            self._next_ns = now_ns + ALARM_EVERY_NS
            logger.warning("%s, key %r, has %d messages waiting", mailbox, mailbox.key, mailbox.depth)


class DeadLetters:
    """Messages that no actor will handle: counted, told to subscribers, one a second written to the log."""

    __slots__ = ("_next_log_ns", "_scheduler", "_subscribers", "_unlogged")

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._subscribers: list[Callable[[DeadLetter], None]] = []
        self._next_log_ns = -(1 << 62)
        self._unlogged = 0

    @property
    def count(self) -> int:
        """How many so far."""
        return self._scheduler.counters["dead_letters"]

    def subscribe(self, callback: Callable[[DeadLetter], None]) -> Callable[[], None]:
        """Call ``callback(dead_letter)`` for each; the returned function ends that."""
        self._subscribers.append(callback)
        return lambda: self._subscribers.remove(callback)

    def add(self, letter: DeadLetter) -> None:
        """One more."""
        self._scheduler.counters["dead_letters"] += 1
        now_ns = self._scheduler.now_ns()
        if now_ns >= self._next_log_ns:
            self._next_log_ns = now_ns + LOG_EVERY_NS
            logger.warning(
                "Dead letter for %s: %s (%d more since the last report)",
                letter.ref,
                type(letter.message).__name__,
                self._unlogged,
            )
            self._unlogged = 0
        else:
            self._unlogged += 1
        for callback in tuple(self._subscribers):
            try:
                callback(letter)
            except Exception:
                logger.exception("A dead letter subscriber failed:")


def snapshot(runtime: Runtime) -> dict[str, Any]:
    """The runtime as plain data: counters, and the tree of actors with state, depth, drops, restarts, timers."""
    children: dict[Any, list[Mailbox]] = {}
    for mailbox in runtime.directory:
        parent = mailbox.parent
        children.setdefault(None if parent is None else parent.supervisor, []).append(mailbox)

    def node(mailbox: Mailbox) -> dict[str, Any]:
        result: dict[str, Any] = {
            "actor": mailbox.actor_class.__name__,
            "key": mailbox.key,
            "state": STATES[mailbox.state],
            "depth": mailbox.depth,
            "dropped": mailbox.dropped,
            "restarts": 0 if mailbox.parent is None else mailbox.parent.restarts,
            "timers": 0 if mailbox.timers is None else len(mailbox.timers),
        }
        below = children.get(mailbox)
        if below:
            result["children"] = [node(child) for child in below]
        return result

    return {
        "name": runtime.name,
        "now_ms": runtime.clock.now_ms(),
        "actors": runtime.actor_count,
        "backlog": runtime.backlog,
        "armed_timers": runtime.armed_timers,
        "counters": dict(runtime.counters),
        "tree": [node(mailbox) for mailbox in children.get(None, ())],
    }


def snapshot_text(runtime: Runtime) -> str:
    """The snapshot for people: one line per actor, children indented."""
    data = snapshot(runtime)
    lines = [
        f"{data['name']}: {data['actors']} actors, {data['backlog']} messages waiting, "
        f"{data['armed_timers']} timers armed"
    ]
    counters = ", ".join(f"{name} {value}" for name, value in sorted(data["counters"].items()))
    if counters:
        lines.append(f"  {counters}")

    def walk(nodes: list[dict[str, Any]], depth: int) -> None:
        for each in nodes:
            key = "" if each["key"] is None else f" {each['key']!r}"
            facts = [each["state"]]
            facts += [f"{name} {each[name]}" for name in ("depth", "dropped", "restarts", "timers") if each[name]]
            lines.append(f"{'  ' * depth}{each['actor']}{key}: {', '.join(facts)}")
            walk(each.get("children", []), depth + 1)

    walk(data["tree"], 1)
    return "\n".join(lines)
