"""Simulated worlds: ``python -m tests.simulation --seconds N [--json]``, ``--seed S [--shrink]``, ``--file FILE``.

Runs worlds of fresh seeds (from the clock, or from ``--first-seed``) for so many seconds, and prints simulated hours, events,
calls, faults by kind and violations. The exit code is 1 if anything was violated, or if a run of 60 seconds and more
did not meet its floors: so many events, and of each kind so many faults for every thousand of them. On a slow machine it
goes on for longer.

A failing seed prints the one command that runs it again. ``--shrink`` makes it small and writes a scenario file, which
``livesign simulate FILE`` shows and ``--file FILE`` checks.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

from tests.simulation import coda, shrink, trial, worlds
from tests.simulation.worlds import CALM_MS, World

HANG_S = 90
"""No world takes so long, in the process's own time; the largest take a third of it."""
EVENTS_PER_MINUTE = 40_000
"""With room for a slow machine; one without other work does 200,000."""
FAULTS_PER_EVENT = 0.0008
"""Each kind of fault is more frequent than that, measured over millions of events: 160 in 200,000."""
DEVIATIONS = 4
"""So many standard deviations below is no chance any more: less than 109 in 200,000."""
LONGER = 2.5
"""Where the floors are not met in time, because the machine is busy, a run goes on for so much longer at most."""
KINDS = (
    "slow_answer", "very_slow_answer", "unknown", "answer_lost_effect_kept", "already_done", "gone", "forbidden",
    "invalid_reaction", "transient", "bad_request", "rate_limited_untold", "rate_limited_account",
    "rate_limited_conversation", "rate_limited_route", "rate_limited_unsaid", "auth", "crash_reaction", "crash_typing",
    "crash_conversation", "crash_io", "crash_router", "crash_ledger", "client_lost", "event_repeated", "kill_restart", "suspend",
    "clock_jump", "reload", "shutdown", "shutdown_leave",
)  # fmt: skip
"""Every kind of fault that a run has to cover."""


def main(arguments: list[str] | None = None) -> int:
    """Run; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--first-seed", type=int, help="begin with this seed and go on with the next ones")
    parser.add_argument("--seed", type=int, action="append", help="only this seed; may be given several times")
    parser.add_argument("--file", type=Path, help="a scenario file that was written by --shrink")
    parser.add_argument("--shrink", action="store_true", help="make failing worlds small and write them down")
    parser.add_argument("--out", type=Path, default=Path(), help="where --shrink writes")
    parser.add_argument("--stop", action="store_true", help="stop at the first violation")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    if options.file is not None:
        return _show(trial.run(_from_file(options.file)), options)
    total = Total()
    floors = options.seed is None and options.seconds >= 60 and not options.stop
    start_s = time.monotonic()
    for seed in options.seed or _seeds(options.first_seed):
        world = worlds.make(seed)
        _expect_end(seed, total)
        report = trial.run(world, enough=bool if options.stop else None)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        total.add(report)
        if report.problems:
            _tell(world, report, options)
            if options.stop:
                break
        total.seconds = time.monotonic() - start_s
        enough = not floors or not total.short(options.seconds) or total.seconds >= LONGER * options.seconds
        if options.seed is None and total.seconds >= options.seconds and enough:
            break
    total.seconds = time.monotonic() - start_s
    short = total.short(options.seconds) if floors else []
    print(json.dumps({**total.to_json(), "short_of_floors": short}, indent=None if options.json else 2))
    for each in short:
        print(f"not enough: {each}", file=sys.stderr)
    return 1 if total.violations or short else 0


def _expect_end(seed: int, total: Total) -> None:
    """A world that does not end is a violation too; there is no way to go on after it."""

    def hangs(number: int, frame: Any) -> None:
        print(f"seed {seed} hangs: python -m tests.simulation --seed {seed}", file=sys.stderr)
        traceback.print_stack(frame)
        total.violations[seed] = [f"it does not end within {HANG_S} s"]
        print(json.dumps(total.to_json()), flush=True)
        os._exit(1)

    signal.signal(signal.SIGVTALRM, hangs)
    signal.setitimer(signal.ITIMER_VIRTUAL, HANG_S)


def _seeds(first: int | None) -> Any:
    seed = time.time_ns() // 1_000_000 % 1_000_000_000 if first is None else first
    while True:
        yield seed
        seed += 1


def _tell(world: World, report: trial.Report, options: argparse.Namespace) -> None:
    """The one command that runs this world again, what it violates, and its small form if asked for."""
    print(f"seed {world.seed} fails: python -m tests.simulation --seed {world.seed} --shrink", file=sys.stderr)
    for problem in report.problems[:5]:
        print(f"  {problem}", file=sys.stderr)
    if options.shrink:
        small = shrink.shrink(world, report.problems[0])
        path = options.out / f"seed-{world.seed}.json"
        path.write_text(json.dumps(small.tree, ensure_ascii=False, indent=1))
        checks = f"python -m tests.simulation --file {path}"
        shows = f"only with its slow ledger: {checks}" if trial.is_slow(small.seed) else f"livesign simulate {path}"
        print(f"  {len(small.tree['events'])} steps in {path}: {shows}", file=sys.stderr)


def _from_file(path: Path) -> World:
    tree = json.loads(path.read_text())
    coda_ms = tree["until_ms"] - coda.LENGTH_MS
    in_coda = [row[1] for row in tree["events"] if len(row) > 2 and row[2] == coda.CLIENT]
    places = {(event["account"], event["conversation"]): None for event in in_coda}
    calm = not tree["platform"].get("rules")
    return World(tree["seed"], tree, coda_ms - CALM_MS, coda_ms, calm, tuple(places))


def _show(report: trial.Report, options: argparse.Namespace) -> int:
    for problem in report.problems:
        print(problem)
    print(f"{report.events} events, {report.calls} calls, {len(report.problems)} violations")
    return 1 if report.problems else 0


class Total:
    """The sum of many reports."""

    def __init__(self) -> None:
        self.worlds = self.events = self.calls = self.runs = self.storm_ms = 0
        self.seconds = 0.0
        self.faults: Counter[str] = Counter()
        self.violations: dict[int, list[str]] = {}

    def add(self, report: trial.Report) -> None:
        self.worlds += 1
        self.events += report.events
        self.calls += report.calls
        self.runs += report.runs
        self.storm_ms += report.storm_ms
        self.faults.update(report.faults)
        if report.problems:
            self.violations[report.seed] = report.problems

    def short(self, seconds: float) -> list[str]:
        """Floors of so many seconds that were not reached."""
        found = [f"{self.events} events"] if self.events < EVENTS_PER_MINUTE * seconds / 60 else []
        least = self.least_faults
        return found + [
            f"{self.faults[kind]} of {kind}, {least} are expected" for kind in KINDS if self.faults[kind] < least
        ]

    @property
    def least_faults(self) -> int:
        """So often at least each kind of fault happens in a run of so many events."""
        expected = FAULTS_PER_EVENT * self.events
        return max(1, round(expected - DEVIATIONS * math.sqrt(expected)))

    def to_json(self) -> dict[str, Any]:
        """As plain data. Hours are those of the storms; the day of calm after each is not counted."""
        rarest = min(KINDS, key=lambda kind: self.faults[kind])
        return {
            "seconds": round(self.seconds, 1),
            "worlds": self.worlds,
            "simulated_hours": round(self.storm_ms / 3_600_000, 1),
            "events": self.events,
            "calls": self.calls,
            "runs": self.runs,
            "faults": dict(sorted(self.faults.items())),
            "rarest_fault": {rarest: self.faults[rarest], "floor": self.least_faults},
            "violations": self.violations,
        }


if __name__ == "__main__":
    raise SystemExit(main())
