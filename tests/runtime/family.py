"""A supervisor under test, with children named by letters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from actors.runtime import (
    ActorRef,
    Backoff,
    ChildSpec,
    Exit,
    Supervisor,
)
from tests.runtime.stand import Call, Recorder, Stand


class Parent(Supervisor):
    """Writes its hooks down; starts what it was given."""

    backoff: ClassVar[Backoff] = Backoff(first_ms=100, jitter=0.0)
    intensity: ClassVar[int] = 100

    def __init__(self, log: list[Any], specs: tuple[ChildSpec, ...] = ()) -> None:
        self.log = log
        self.specs = specs

    def on_start(self) -> None:
        for spec in self.specs:
            self.start_child(spec)

    def on_receive(self, message: Any) -> Any:
        if isinstance(message, Call):
            return message.work(self)
        raise ValueError(message)

    def on_child_failed(self, child: ChildSpec, message: Any, error: BaseException) -> None:
        self.log.append(("failed", child.id, message, type(error).__name__))

    def on_child_gave_up(self, child: ChildSpec) -> None:
        self.log.append(("gave up", child.id))

    def on_child_stopped(self, child: ChildSpec, reason: Exit) -> None:
        self.log.append(("stopped", child.id, reason.value))


@dataclass
class Family:
    """A parent with children named by letters, and what they logged."""

    stand: Stand
    parent: ActorRef[Any]
    log: list[Any] = field(default_factory=list)

    def __getitem__(self, name: str) -> ActorRef[Any]:
        ref = self.stand.runtime.lookup(name)
        assert ref is not None, name
        return ref

    def do(self, work: Callable[[Any], Any]) -> Any:
        return self.parent.ask(Call(work))

    def of(self, name: str) -> list[Any]:
        return [what for who, what in (entry[:2] for entry in self.log) if who == name]


def family(
    stand: Stand,
    names: str = "a",
    cls: type[Parent] = Parent,
    *,
    child: type[Recorder] = Recorder,
    **options: Any,
) -> Family:
    log: list[Any] = []
    specs = tuple(ChildSpec(name, child, (log, name), key=name, **options) for name in names)
    parent = stand.runtime.spawn(cls, log, specs, key="parent")
    stand.settle()
    return Family(stand, parent, log)
