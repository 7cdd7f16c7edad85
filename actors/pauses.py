"""The garbage collector in a long-running process: seldom, and its longest pause measured.

At many thousand conversations a full collection is what makes the slowest event slow. Our own objects have no cycles,
so collections may be far apart, and what has survived a full one is left out of those to come: they look at what is new
since, half a million objects at most, however many conversations there are. What is left out is freed as ever when nobody
refers to it.
"""

from __future__ import annotations

import gc
import time
from typing import Any

THRESHOLDS = (20_000, 10, 1)
"""New objects between collections of the youngest generation, and how many of one generation's make one of the next."""
FULL = 2
"""The oldest generation."""


class PauseWatch:
    """Measures every collection from `start` on."""

    def __init__(self) -> None:
        self.longest_us = 0
        """The longest pause so far, in microseconds."""
        self._began_ns = 0

    def start(self) -> None:
        """Set the thresholds of this process, and measure."""
        gc.collect()
        gc.freeze()
        gc.set_threshold(*THRESHOLDS)
        gc.callbacks.append(self._note)

    def stop(self) -> None:
        """Measure no longer; the thresholds stay."""
        gc.callbacks.remove(self._note)

    def _note(self, phase: str, info: dict[str, Any]) -> None:
        now_ns = time.thread_time_ns()  # else it counts waiting for the interpreter, in a thread that gets it seldom
        if phase == "start":
            self._began_ns = now_ns
        else:
            self.longest_us = max(self.longest_us, (now_ns - self._began_ns) // 1_000)
            if info["generation"] == FULL:
                gc.freeze()
