"""A load from its begin to its end, and what came of it."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

import gevent
import msgpack
from gevent import subprocess as green

from actors.sandbox.options import SandboxOptions
from actors.sandbox.service import SandboxService
from tests.load.crowd import Crowd
from tests.load.judge import Judge, WatchedCalls, WatchedFaults, ideal_waits_ms
from tests.load.plan import HOLD_MS, LATENCY_MS, Plan

TICKS = os.sysconf("SC_CLK_TCK")
SAMPLE_S = 5.0
START_S = 30.0


class Sample(NamedTuple):
    """The server's process at a time."""

    t_ms: int
    rss: int
    cpu_s: float
    stats: dict[str, int]


class Load:
    """Runs a plan; `run` returns the report. ``tell`` hears how far it is."""

    def __init__(self, plan: Plan, tell: Callable[[str], None] = lambda text: None) -> None:
        self.plan = plan
        self.judge = Judge()
        self.samples: list[Sample] = []
        self.crowds: list[Crowd] = []
        self.last_words = ""
        self.left_unwritten = 0
        self.stop_ms = 0
        self._tell = tell

    def run(self) -> dict[str, Any]:
        """Start everything, play, stop, and tell what was seen."""
        plan = self.plan
        options = SandboxOptions(
            tokens={f"secret-{name}": name for name in plan.names}, max_chats=2 * plan.conversations + 100
        )
        with tempfile.TemporaryDirectory() as name, SandboxService(options=options) as sandbox:
            folder = Path(name)
            api = sandbox._api
            api.calls = WatchedCalls(self.judge)
            api.faults = WatchedFaults(plan.faults(), sandbox._own_now_ms(), self.judge)
            config = folder / "livesign.toml"
            config.write_text(plan.config(folder, sandbox.base_url), "utf-8")
            tokens = {f"TOKEN_{name.upper()}": f"secret-{name}" for name in plan.names}
            server = green.Popen(
                [sys.executable, "-m", "actors", "serve", str(config)],
                env={**os.environ, **tokens}, stdout=subprocess.DEVNULL, stderr=green.PIPE,
            )  # fmt: skip
            try:
                self._play(server, folder, sandbox._own_now_ms)
            finally:
                with suppress(ProcessLookupError):
                    server.kill()
                server.wait()
                for crowd in self.crowds:
                    crowd.stop()
                    crowd.close()
        return self.report()

    def _play(self, server: Any, folder: Path, now_ms: Callable[[], int]) -> None:
        plan, path = self.plan, folder / "s.sock"
        with gevent.Timeout(START_S):
            while not path.exists():
                gevent.sleep(0.05)
        self.crowds = [Crowd(plan, name, str(path), self.judge, now_ms) for name in plan.names]
        begun_ms = now_ms()
        seconds = plan.ramp_s + plan.minutes * 60
        every_s = min(SAMPLE_S, plan.minutes * 60 / 10)
        while now_ms() < begun_ms + seconds * 1_000:
            gevent.sleep(every_s)
            if server.poll() is not None:
                raise RuntimeError(f"the server has ended: {server.stderr.read().decode()[-2_000:]}")
            self.samples.append(_sample(server.pid, str(path), now_ms()))
            self._tell(f"{(now_ms() - begun_ms) / 1_000:.0f} s of {seconds:.0f}: {self._now()}")
        for crowd in self.crowds:
            crowd.stop()
        stopped_ms = now_ms()
        server.send_signal(signal.SIGTERM)
        self.last_words = server.stderr.read().decode()
        server.wait()
        self.stop_ms = now_ms() - stopped_ms
        self.left_unwritten = len(set(self.judge.marks) - _written(folder / "ledger"))

    def _now(self) -> str:
        last = self.samples[-1]
        events = sum(crowd.events for crowd in self.crowds)
        return (
            f"{last.stats['open_runs']:,} runs open, {events:,} events, {self.judge.calls.total():,} calls, "
            f"{last.rss / 1e6:.0f} MB, {len(self.judge.violations)} violations"
        )

    # --- the report -----------------------------------------------------------------------------------------------

    def report(self) -> dict[str, Any]:
        """What was seen, in plain numbers."""
        plan, judge = self.plan, self.judge
        warm = [sample for sample in self.samples if sample.t_ms > self.samples[0].t_ms + plan.ramp_s * 1_000]
        first, last = warm[0], warm[-1]
        quarter = max(1, len(warm) // 4)
        before = _median([sample.rss for sample in warm[:quarter]])
        after = _median([sample.rss for sample in warm[-quarter:]])
        span_s = (last.t_ms - first.t_ms) / 1_000
        ended = last.stats["runs_ended"] - first.stats["runs_ended"]
        waits = {name: [ms for _, ms in judge.shown_after_ms.get(name, ())] for name in plan.names}
        told = {name: [at_ms for at_ms, _ in judge.shown_after_ms.get(name, ())] for name in plan.names}
        sound = [name for name in plan.names if name not in (plan.shaky, plan.stingy)]
        ideal = [
            ms + LATENCY_MS
            for name in sound
            for ms in ideal_waits_ms(told[name], HOLD_MS, plan.calls_per_window, plan.window_ms)
        ]
        return {
            "conversations": plan.conversations,
            "minutes": plan.minutes,
            "open_runs": [min(s.stats["open_runs"] for s in warm), max(s.stats["open_runs"] for s in warm)],
            "events": sum(crowd.events for crowd in self.crowds),
            "runs_ended": last.stats["runs_ended"],
            "calls": dict(judge.calls),
            "violations": judge.violations[:20],
            "violation_count": len(judge.violations),
            "marks_without_a_row": self.left_unwritten,
            "ends_shown": sum(map(len, waits.values())),
            "ends_not_shown": sum(now - HOLD_MS > 60_000 for now in (last.t_ms - at for at in judge.told_ms.values())),
            "terminal_p99_ms": _p99([ms for name in sound for ms in waits[name]]),
            "ideal_p99_ms": _p99(ideal),
            "terminal_p99_ms_stingy": _p99(waits[plan.stingy]),
            "terminal_p99_ms_shaky": _p99(waits[plan.shaky]),
            "rss_mb": [round(before / 1e6), round(after / 1e6)],
            "growth": round(after / before - 1, 4),
            "growth_bytes_per_ended_run": round((after - before) / max(1, ended)),
            "server_cpu": round((last.cpu_s - first.cpu_s) / span_s, 3),
            "events_per_s": round((last.stats["events"] - first.stats["events"]) / span_s),
            "gc_longest_pause_ms": last.stats["gc_longest_pause_us"] / 1_000,
            "backlog_max": max(s.stats["backlog"] for s in warm),
            "bots_late_ms": max(crowd.late_ms for crowd in self.crowds),
            "own_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3),
            "stop_ms": self.stop_ms,
            "last_words": self.last_words.strip().splitlines()[-3:],
        }


def _sample(pid: int, path: str, t_ms: int) -> Sample:
    status = Path(f"/proc/{pid}/status").read_text()
    rss = int(status.partition("VmRSS:")[2].split()[0]) * 1_024
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return Sample(t_ms, rss, (int(fields[11]) + int(fields[12])) / TICKS, _stats(path))


def _stats(path: str) -> dict[str, int]:
    with closing(gevent.socket.socket(gevent.socket.AF_UNIX)) as asking, gevent.Timeout(60):
        asking.connect(path)
        asking.sendall(msgpack.packb({"type": "stats"}))
        unpacker = msgpack.Unpacker()
        while data := asking.recv(65_536):
            unpacker.feed(data)
            for reply in unpacker:
                if reply["type"] == "stats":
                    counters: dict[str, int] = reply["counters"]
                    return counters
    raise RuntimeError("the server does not say what it has counted")


def _written(folder: Path) -> set[tuple[str, str, str | None]]:
    with closing(sqlite3.connect(folder / "ledger.db")) as ledger:
        return {tuple(row) for row in ledger.execute("SELECT account, conversation, message FROM marks")}


def _p99(values: list[int]) -> int | None:
    return sorted(values)[int(len(values) * 0.99)] if values else None


def _median(values: list[int]) -> int:
    return sorted(values)[len(values) // 2]
