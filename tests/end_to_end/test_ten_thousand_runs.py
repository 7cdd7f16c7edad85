"""Ten thousand runs through real parts, and nothing is left: no mark, indicator, actor, timer or file descriptor.

The whole daemon runs in this process: Unix socket, sessions, tree, HTTP client, and the sandbox behind real HTTP on
loopback. The bots are a process of their own (`tests.end_to_end.crowd`): at least 1,000 runs are open at once, 5 % end as
an error, 5 % are cancelled, and 5 % lose their client half-way. What is left over is read from the sandbox over HTTP.

It takes about half a minute on two quiet cores. A quicker look, of one wave::

    LIVESIGN_RUNS=1200 python -m pytest -s tests/end_to_end/test_ten_thousand_runs.py
"""

from __future__ import annotations

import gc
import json
import logging
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gevent
import pytest

from actors.config import Config, load
from actors.daemon import Daemon
from actors.presence.run import EndedRun
from actors.sandbox import SandboxClient
from tests.end_to_end import crowd

pytestmark = pytest.mark.real

RUNS = int(os.environ.get("LIVESIGN_RUNS", "10000"))
STEP_MS = 500
"""Between two events of a run; well above the debounce, so that phases show."""
WARM_UP_RUNS = 40
WARM_UP_STEP_MS = 50
REST_S = 60.0
LOOK_S = 0.02
ROOT = Path(__file__).resolve().parents[2]


@dataclass(slots=True)
class Account:
    """What one life of the daemon came to."""

    tally: dict[str, Any]
    took_s: float
    most_open: int
    outcomes: Counter[str] = field(default_factory=Counter)
    calls: dict[str, dict[str, int]] = field(default_factory=dict)
    """The sandbox's count, by operation and outcome."""
    left: dict[str, int] = field(default_factory=dict)
    stats: dict[str, int] = field(default_factory=dict)
    drained: bool = False


def settings(directory: Path) -> Config:
    """The defaults, but for times: holds, lease and passivation are short, so that the end is soon."""
    return load({
        "accounts": {"sandbox": {"platform": "sandbox"}},
        "ack": {"scope": "all"},
        "status": {"debounce_ms": 40, "done_hold_ms": 100, "error_hold_ms": 150},
        "lease": {"ms": 300},
        "conversation": {"idle_ms": 200},
        "server": {"unix": str(directory / "livesign.sock")},
        "ledger": {"path": ":memory:"},
    })  # fmt: skip


def live(directory: Path, runs: int, step_ms: int) -> Account:
    """Start a daemon, let the crowd in, wait until all is over, look at what is left, and stop."""
    daemon = Daemon(settings(directory))
    outcomes: Counter[str] = Counter()
    daemon.application.on_ended(lambda ended: outcomes.update([outcome(ended)]))
    daemon.start()
    try:
        gevent.sleep(0)
        actors, timers = daemon.runtime.actor_count, daemon.runtime.armed_timers
        began_s = time.monotonic()
        tally, most_open = let_in(daemon, runs, step_ms)
        wait_for(lambda: at_rest(daemon, actors), f"not at rest after {REST_S:g} s:\n{daemon.stats()}")
        account = Account(tally, time.monotonic() - began_s, most_open, outcomes)
        client = SandboxClient(daemon.sandboxes["sandbox"].base_url)
        state, account.calls = client.state(recent=0), client.calls(last=0).counts
        client.close()
        account.stats = daemon.stats()
        account.left = {
            "marks": state.marks,
            "typing": state.typing,
            "actors": daemon.runtime.actor_count - actors,
            "timers": daemon.runtime.armed_timers - timers,
        }
    finally:
        drained = daemon.stop()
    account.drained = drained
    return account


def let_in(daemon: Daemon, runs: int, step_ms: int) -> tuple[dict[str, Any], int]:
    """The crowd plays ``runs`` runs; its tally, and how many were open at once."""
    unix = daemon.config.server.unix
    assert unix is not None
    command = [sys.executable, "-m", crowd.__name__, unix, str(runs), str(step_ms)]
    most_open = 0
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            most_open = max(most_open, daemon.gauges["open_runs"]())
            gevent.sleep(LOOK_S)
        assert process.stdout is not None
        output = process.stdout.read()
    assert process.returncode == 0, "the crowd has failed: see stderr"
    return json.loads(output.splitlines()[-1]), most_open


def at_rest(daemon: Daemon, actors: int) -> bool:
    return daemon.application.parts.at_rest and daemon.runtime.actor_count == actors


def wait_for(condition: Callable[[], bool], complaint: str) -> None:
    with gevent.Timeout(REST_S, AssertionError(complaint)):
        while not condition():
            gevent.sleep(LOOK_S)


def outcome(ended: EndedRun) -> str:
    return ended.outcome if ended.reason is None else f"{ended.outcome}: {ended.reason}"


def open_files() -> list[str]:
    """What this process holds open."""
    gc.collect()
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{name}").partition(":")[0])
        except FileNotFoundError:
            pass  # that of the listing itself
    return sorted(found)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts file descriptors as Linux shows them")
def test_thousands_of_runs_leave_nothing_behind(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    live(tmp_path, WARM_UP_RUNS, WARM_UP_STEP_MS)  # whatever is made once and kept is there after this
    files = open_files()

    account = live(tmp_path, RUNS, STEP_MS)

    tally, ends, lost = account.tally, account.tally["ends"], account.tally["lost"]
    print(report(account))
    assert tally["runs"] == RUNS
    assert tally["replies"] == {"applied": RUNS - lost}
    assert account.outcomes == Counter({**ends, "error: lease_expired": lost})
    assert account.most_open >= min(RUNS, 1_000)
    assert account.left == {"marks": 0, "typing": 0, "actors": 0, "timers": 0}
    assert account.drained
    assert open_files() == files
    calls = Counter(kind for counts in account.calls.values() for kind, count in counts.items() for _ in range(count))
    assert set(calls) <= {"ok", "already_done"}
    faults = ("failures", "restarts", "dead_letters", "rejected", "server_events_rejected", "repaired", "retries")
    assert {name: account.stats.get(name, 0) for name in faults} == dict.fromkeys(faults, 0)
    assert not [record.getMessage() for record in caplog.records]


def report(account: Account) -> str:
    """For the note."""
    tally, stats = account.tally, account.stats
    return (
        f"\n{tally['runs']:,} runs, {tally['events']:,} events in {account.took_s:.1f} s, {account.most_open:,} open at once; "
        f"ends {dict(sorted(account.outcomes.items()))}; calls {stats['calls_made']:,} made, {stats['calls_saved']:,} saved, "
        f"{account.calls}; left {account.left}"
    )
