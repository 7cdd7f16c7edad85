"""A few threads for the bot's own blocking functions. They never keep a process from ending."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue

__all__ = ["Workers"]

log = logging.getLogger("livesign.client")


class Workers:
    """At most ``count`` daemon threads, started when they are needed."""

    def __init__(self, count: int, name: str) -> None:
        self._count = count
        self._name = name
        self._lock = threading.Lock()
        self._jobs: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._threads = 0
        self._idle = 0
        self._closed = False

    @property
    def waiting(self) -> int:
        """Jobs that no thread has begun."""
        return self._jobs.qsize()

    def submit(self, job: Callable[[], object]) -> None:
        """Have ``job`` called by one of the threads; those before it go first."""
        with self._lock:
            if self._closed:
                return
            self._jobs.put(job)
            if self._idle:
                self._idle -= 1
            elif self._threads < self._count:
                self._threads += 1
                threading.Thread(target=self._work, name=f"{self._name}-{self._threads}", daemon=True).start()

    def close(self) -> None:
        """Drop the jobs that wait; those under way are not waited for."""
        with self._lock:
            self._closed = True
            while not self._jobs.empty():
                self._jobs.get()
            for _ in range(self._threads):
                self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except Exception:
                log.exception("a call failed")
            with self._lock:
                self._idle += 1
