"""The recorded status controller as its description has it, quirks and all, and which quirks a script met.

Serves to make new traces: where a script meets no quirk, our machine and lane must do exactly the same.
Checked itself by replaying the recordings, all of them.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Generator
from itertools import count
from typing import Any

from tests.conformance.recorded_rule import recorded_category

__all__ = ["StatusModel"]

Trace = dict[str, Any]
Job = Generator[tuple[str, Any], bool, None]

DEFAULTS = {
    "queued": None, "thinking": "🤔", "tool": "🔥", "coding": "👨\u200d💻", "web": "⚡", "done": "👍",
    "error": "😱", "stallSoft": "🥱", "stallHard": "😨", "compacting": "✍",
}  # fmt: skip


class StatusModel:
    """Runs one script. After `run`: ``calls``, ``visible`` and ``met``, the quirks it ran into."""

    def __init__(self, trace: Trace) -> None:
        config = trace["config"]
        timing = config.get("timing", {})
        self.script = trace["script"]
        self.sync = config.get("mode") == "sync"
        self.enabled = config.get("enabled", True)
        self.initial = config["initialEmoji"]
        self.has_remove = config["hasRemove"]
        self.debounce_ms = timing.get("debounceMs", 700)
        self.soft_ms = timing.get("stallSoftMs", 10_000)
        self.hard_ms = timing.get("stallHardMs", 30_000)
        self.table = {**DEFAULTS, "queued": self.initial, **config.get("emojis", {})}
        faults = config.get("faults", {})
        self.failing = set(faults.get("calls", ()))
        self.failing_emojis = {"set": faults.get("setEmojis", ()), "remove": faults.get("removeEmojis", ())}
        self.latency_ms = config.get("latencyMs") or [0]
        self.now_ms = 0
        self.heap: list[tuple[int, int, str, Callable[[], None]]] = []
        self.armed: dict[str, int] = {}
        self.numbers = count()
        self.shown: Any = ""
        self.pending: Any = ""
        self.finished = self.cleared = False
        self.jobs: deque[tuple[Job, Any, bool]] = deque()
        self.running: tuple[Job, Any, bool] | None = None
        self.burst_ms = 0
        self.calls: list[list[Any]] = []
        self.ends: list[list[Any] | None] = []
        self.visible: list[Any] = []
        self.met: set[str] = set()

    def run(self) -> None:
        """Play the script and every timer that is left."""
        for at, row in enumerate(self.script):
            self.fire(row[0])
            self.now_ms = row[0]
            if self.enabled:
                self.op(*row[1:])
            together = self.sync and at + 1 < len(self.script) and self.script[at + 1][0] == row[0]
            if not together:
                self.work()
        self.fire(None)

    def fire(self, until_ms: int | None) -> None:
        while self.heap and (until_ms is None or self.heap[0][0] <= until_ms):
            at_ms, number, name, action = heapq.heappop(self.heap)
            if self.armed.get(name) == number:
                del self.armed[name]
                self.now_ms = at_ms
                action()
                self.work()

    def arm(self, name: str, delay_ms: int, action: Callable[[], None]) -> None:
        number = self.armed[name] = next(self.numbers)
        # A delay that does not fit a timer of the recorded system ends after 1 ms.
        at_ms = self.now_ms + (1 if delay_ms > 2**31 - 1 else delay_ms)
        heapq.heappush(self.heap, (at_ms, number, name, action))

    def disarm(self, *names: str) -> None:
        for name in names:
            self.armed.pop(name, None)

    # --- operations ---------------------------------------------------------------------------------------

    def op(self, op: str, name: str | None = None) -> None:
        if op in ("queued", "thinking", "compacting", "tool"):
            if not self.finished:
                emoji = self.table[recorded_category(name) if op == "tool" else op]
                self.request(emoji, immediate=op == "queued")
                self.arm("soft", self.soft_ms, lambda: self.stall("stallSoft"))
                self.arm("hard", self.hard_ms, lambda: self.stall("stallHard"))
        elif op == "cancel_pending":
            self.disarm("debounce")
            self.pending = ""
        elif op in ("done", "error"):
            self.note("terminal twice", self.finished)
            self.finished = True
            self.disarm("debounce", "soft", "hard")
            self.add(self.apply(self.table[op], final=True), self.table[op], final=True)
        elif op == "clear":
            self.finished = True
            self.disarm("debounce", "soft", "hard")
            self.note("clear on one slot", not self.has_remove and bool(self.visible or self.jobs or self.running))
            self.add(self.clear(), None)
        else:
            self.restore()

    def restore(self) -> None:
        debouncing = "debounce" in self.armed
        self.disarm("debounce", "soft", "hard")
        if self.shown == self.initial and (not self.pending or debouncing):
            self.note("restore lost", self.running is not None or bool(self.jobs))
            self.pending = ""
        elif not (self.pending == self.initial and not debouncing):
            self.add(self.apply(self.initial, final=True), self.initial)

    def request(self, emoji: Any, *, immediate: bool) -> None:
        if emoji in (self.shown, self.pending):
            jobs = [job[1] for job in (self.running, *self.jobs) if job is not None]
            another = any(other not in ("", emoji) for other in (self.pending, *jobs))
            self.note("flap", emoji != self.pending and another)
            self.note("dead pending", emoji == self.pending and "debounce" not in self.armed and emoji not in jobs)
            return
        if "debounce" not in self.armed:
            self.burst_ms = self.now_ms
        self.pending = emoji
        self.disarm("debounce")
        if immediate:
            self.add(self.apply(emoji), emoji)
        else:
            self.note("starved", self.now_ms + self.debounce_ms > self.burst_ms + 3 * self.debounce_ms)
            self.arm("debounce", self.debounce_ms, lambda: self.add(self.apply(emoji), emoji))

    def stall(self, state: str) -> None:
        emoji = self.table[state]
        if emoji not in (self.shown, self.pending):
            self.note("stall took a phase", "debounce" in self.armed)
        self.request(emoji, immediate=True)

    def note(self, quirk: str, met: bool) -> None:
        if met:
            self.met.add(quirk)

    # --- jobs ---------------------------------------------------------------------------------------------

    def add(self, job: Job, emoji: Any, *, final: bool = False) -> None:
        self.note("superseded", bool(self.jobs))
        ahead = self.has_remove and self.running is not None and not self.running[2] and final
        self.note("goes ahead", ahead and bool(self.calls) and self.calls[-1][1] == "set")
        self.jobs.append((job, emoji, final))

    def apply(self, emoji: Any, *, final: bool = False) -> Job:
        before = self.shown
        self.note("set twice", self.visible == [emoji])
        good = yield "set", emoji
        self.note("wrong at the end", final and not good)
        if good and self.has_remove and before and before != emoji:
            good = yield "remove", before
            self.note("removal failed", not good)
        if good:
            self.shown = emoji
        waiting = "debounce" in self.armed or any(job[1] == self.pending for job in self.jobs)
        self.note("pending forgotten", bool(self.pending) and self.pending != emoji and waiting)
        self.pending = ""

    def clear(self) -> Job:
        if self.has_remove:
            for emoji in dict.fromkeys([self.initial, *self.table.values()]):
                good = yield "remove", emoji
                self.note("removal failed", not good)
        self.shown = self.pending = ""

    def work(self) -> None:
        while self.running is None and self.jobs:
            self.running = self.jobs.popleft()
            self.step(None)

    def step(self, good: bool | None) -> None:
        assert self.running is not None
        try:
            op, emoji = self.running[0].send(good)  # type: ignore[arg-type]
        except StopIteration:
            self.running = None
            return
        index = len(self.calls)
        self.calls.append([self.now_ms, op, emoji])
        self.ends.append(None)
        fails = index in self.failing or emoji in self.failing_emojis[op]
        latency_ms = self.latency_ms[index % len(self.latency_ms)]
        if latency_ms == 0:
            self.end(index, not fails)
        elif latency_ms is not None:
            self.arm(f"call {index}", latency_ms, lambda: self.end(index, not fails))
        else:
            self.met.add("hung")

    def end(self, index: int, good: bool) -> None:
        _, op, emoji = self.calls[index]
        self.ends[index] = [self.now_ms, "ok" if good else "err"]
        if good:
            if op == "set" and not self.has_remove:
                self.visible = []
            if emoji in self.visible:
                self.visible.remove(emoji)
            if op == "set":
                self.visible.append(emoji)
        self.step(good)
