"""Cases about bare actors: their scripts run on a runtime of their own, under the manual driver.

Steps of one moment are taken before any actor runs and before any timer of that moment fires.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from actors.runtime import ActorRef, ChildSpec, Future, ManualClock, ManualDriver, Runtime, Supervisor
from tests.cases.words import WordError

WARN_DEPTH = 100
STOP_APIS = ("stop", "flag", "runtime")
"""The ways to wait for an actor's end: ``ref.stop()``, ``ref.actor_stopped``, ``runtime.stop(ref)``."""
TICK, CANCEL, BOOM = "tick", "cancel", "boom"


@dataclass(slots=True)
class Book:
    """What one actor did, over all its instances; it lives above them."""

    starts: list[int] = field(default_factory=list)
    handled: list[int] = field(default_factory=list)
    ticks: list[int] = field(default_factory=list)
    stops: list[int] = field(default_factory=list)
    """When ``on_stop`` had finished."""


@dataclass(frozen=True, slots=True)
class Nature:
    """What an actor is like, as the step ``actor`` says."""

    tick_ms: int = 0
    on_stop_ms: int = 0
    on_start: str = "ok"
    children: int = 0
    supervised: bool = False


class Puppet(Supervisor):
    """An actor that does as its nature says and writes it down."""

    def __init__(self, nature: Nature, book: Book) -> None:
        super().__init__()
        self._nature = nature
        self._book = book

    def on_start(self) -> None:
        self._book.starts.append(self.now_ms)
        if self._nature.on_start == "raise":
            raise RuntimeError("this actor cannot start")
        for number in range(self._nature.children):
            child = Nature(tick_ms=self._nature.tick_ms)
            self.start_child(ChildSpec(id=number, cls=Puppet, args=(child, self._book)))
        self._plan_tick()

    def on_receive(self, message: Any) -> Any:
        if message == TICK:
            self._book.ticks.append(self.now_ms)
            self._plan_tick()
        elif message == CANCEL:
            self.cancel(TICK)
        elif message == BOOM:
            raise RuntimeError("this message cannot be handled")
        else:
            self._book.handled.append(self.now_ms)
        return message

    def on_stop(self) -> None:
        if self._nature.on_stop_ms:
            assert isinstance(self.clock, ManualClock)
            self.clock.advance(self._nature.on_stop_ms)
        self._book.stops.append(self.now_ms)

    def _plan_tick(self) -> None:
        if self._nature.tick_ms:
            self.schedule(self._nature.tick_ms, TICK, key=TICK)


class Patient(Supervisor):
    """A parent that never gives up; the back-off keeps a lasting fault from burning the machine."""

    intensity = 1_000_000


@dataclass(slots=True)
class Call:
    """Somebody who waits for an answer."""

    word: str
    asked_ms: int
    answered_ms: int | None = None


@dataclass(slots=True)
class BareEvidence:
    """All that expectations are held against."""

    runtime: Runtime
    books: dict[str, Book] = field(default_factory=dict)
    callers: list[Call] = field(default_factory=list)
    returned: dict[str, tuple[int, bool, bool]] = field(default_factory=dict)
    """By way to wait for a stop: when it returned, whether the hook was over, whether the key was free."""
    snapshots: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    logged: list[str] = field(default_factory=list)


class _Ear(logging.Handler):
    def __init__(self, heard: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        self._heard.append(record.getMessage())


def is_bare(script: Sequence[Any]) -> bool:
    """Whether a script is about actors and not about turns."""
    return bool(script) and len(script[0]) > 1 and script[0][1] == "actor"


def perform_bare(script: Sequence[Sequence[Any]], until_ms: int) -> BareEvidence:
    """Run a script about bare actors. Raises `WordError`."""
    runtime = Runtime(ManualDriver(), ManualClock(0), name="case", warn_depth=WARN_DEPTH)
    evidence = BareEvidence(runtime)
    ear, logger = _Ear(evidence.logged), logging.getLogger("actors.runtime")
    logger.addHandler(ear)
    propagates, logger.propagate = logger.propagate, False
    try:
        _Player(runtime, evidence).play(script, until_ms)
    finally:
        logger.removeHandler(ear)
        logger.propagate = propagates
    return evidence


class _Player:
    def __init__(self, runtime: Runtime, evidence: BareEvidence) -> None:
        self._runtime = runtime
        self._evidence = evidence
        self._natures: dict[str, Nature] = {}
        self._refs: dict[str, ActorRef[Any]] = {}
        self._words: Mapping[str, Callable[[str, dict[str, Any]], None]] = {
            "actor": self._actor,
            "tell_many": self._tell,
            "tell": self._tell,
            "ask_many": self._ask,
            "stop": self._stop,
            "stop_many": self._stop,
            "stop_now": self._halt,
            "stop_actor": self._halt,
            "kill_actor": self._halt,
            "crash_actor": lambda word, args: self._ref(args).tell(BOOM),
            "cancel": lambda word, args: self._ref(args).tell(CANCEL),
            "await_stop": self._await_stop,
            "stats": self._look,
            "snapshot": self._look,
        }

    def play(self, script: Sequence[Sequence[Any]], until_ms: int) -> None:
        clock = self._runtime.clock
        assert isinstance(clock, ManualClock)
        for t_ms, steps in _moments(script):
            if t_ms > clock.now_ms():
                self._runtime.run_until(t_ms - 1)
            clock.set(max(t_ms, clock.now_ms()))
            for word, args in steps:
                if word not in self._words:
                    raise WordError(f"{t_ms} {word}: no step for a bare actor; there are {', '.join(self._words)}")
                self._words[word](word, args)
            self._runtime.run_until_idle()
        self._runtime.run_until(max(until_ms, clock.now_ms()))

    # --- steps

    def _actor(self, word: str, args: dict[str, Any]) -> None:
        name = args["id"]
        nature = Nature(**{key: value for key, value in args.items() if key != "id"})
        self._natures[name] = nature
        self._refs[name] = self._spawn(name, nature)

    def _spawn(self, name: str, nature: Nature) -> ActorRef[Any]:
        book = self._evidence.books.setdefault(name, Book())
        if nature.supervised or nature.on_start == "raise":
            parent = self._runtime.spawn(Patient, key=f"parent of {name}")
            spec = ChildSpec(id=name, cls=Puppet, args=(nature, book), key=name)
            self._runtime.run_until_idle()
            started: Future[Any] = Future()
            self._runtime.call_soon(lambda: started.set(parent.actor.start_child(spec)))
            self._runtime.run_until_idle()
            ref: ActorRef[Any] = started.get()
            return ref
        return self._runtime.spawn(Puppet, nature, book, key=name)

    def _tell(self, word: str, args: dict[str, Any]) -> None:
        for number in range(args.get("count", 1)):
            self._ref(args).tell(number)

    def _ask(self, word: str, args: dict[str, Any]) -> None:
        for number in range(args.get("count", 1)):
            self._wait_for(word, self._ref(args).ask(number, block=False))

    def _stop(self, word: str, args: dict[str, Any]) -> None:
        for _ in range(args.get("count", 1)):
            self._wait_for(word, self._ref(args).stop(block=False))

    def _halt(self, word: str, args: dict[str, Any]) -> None:
        self._wait_for(word, self._runtime.stop(self._ref(args)))

    def _await_stop(self, word: str, args: dict[str, Any]) -> None:
        name = str(args["to"])
        apis = STOP_APIS if args.get("api", "each") == "each" else (args["api"],)
        began_ms = self._runtime.clock.now_ms()
        for api in apis:
            own = name if api == apis[0] else f"{name}: {api}"
            ref = self._ref(args) if own == name else self._spawn(own, self._natures[name])
            self._runtime.run_until_idle()
            before_ms = self._runtime.clock.now_ms()
            self._wait(api, ref)
            took_ms = self._runtime.clock.now_ms() - before_ms
            gone = self._runtime.lookup(own) is None
            self._evidence.returned[api] = (began_ms + took_ms, bool(self._evidence.books[own].stops), gone)

    def _wait(self, api: str, ref: ActorRef[Any]) -> None:
        if api == "stop":
            ref.stop()
        elif api == "flag":
            ref.stop(block=False)
            ref.actor_stopped.wait()
        elif api == "runtime":
            self._runtime.stop(ref).get()
        else:
            raise WordError(f"there is no way {api!r} to wait for a stop; there are {', '.join(STOP_APIS)}")

    def _look(self, word: str, args: dict[str, Any]) -> None:
        self._evidence.snapshots.append((self._runtime.clock.now_ms(), self._runtime.snapshot()))

    # --- helpers

    def _ref(self, args: dict[str, Any]) -> ActorRef[Any]:
        name = args.get("to")
        if name not in self._refs:
            raise WordError(f"there is no actor {name!r}")
        return self._refs[name]

    def _wait_for(self, word: str, future: Future[Any]) -> None:
        call = Call(word, self._runtime.clock.now_ms())
        self._evidence.callers.append(call)
        future.subscribe(partial(self._answered, call))

    def _answered(self, call: Call) -> None:
        call.answered_ms = self._runtime.clock.now_ms()


def _moments(script: Sequence[Sequence[Any]]) -> Iterator[tuple[int, list[tuple[str, dict[str, Any]]]]]:
    """The steps of a script by time, in the order they are written."""
    moments: dict[int, list[tuple[str, dict[str, Any]]]] = {}
    for index, step in enumerate(script):
        if not 2 <= len(step) <= 3 or not isinstance(step[0], int) or not isinstance(step[1], str):
            raise WordError(f"script[{index}] must be [t_ms, word, arguments]")
        moments.setdefault(step[0], []).append((step[1], step[2] if len(step) > 2 else {}))
    yield from sorted(moments.items())
