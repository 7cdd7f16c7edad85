"""The runtime behind pykka's own ``Cls.start()``, and the one behind actors that were never started."""

from __future__ import annotations

from functools import cache

from actors.runtime.runtime import Runtime
from actors.runtime.scheduler import Scheduler
from actors.runtime.waiting import allocate_lock

__all__ = ["default_runtime", "unstarted_scheduler"]

_default_lock = allocate_lock()
_default: list[Runtime] = []


def default_runtime() -> Runtime:
    """The runtime behind pykka's own ``Cls.start()``: made when first needed, in a thread of its own.

    Unlike a ThreadingActor's, that thread does not keep the process alive.
    """
    with _default_lock:
        if not _default:
            runtime = Runtime(name="default")
            runtime.registers = True
            _default.append(runtime.start_thread())
        return _default[0]


@cache
def unstarted_scheduler() -> Scheduler:
    """What actors made by hand, not started, hang on to: a runtime that never runs."""
    return Runtime.manual(name="unstarted").scheduler
