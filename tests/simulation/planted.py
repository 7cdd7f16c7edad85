"""Planted bugs: proof that the simulation finds what it is for. ``python -m tests.simulation.planted NAME… | --all | --rotate``.

Each is a change of one line or two, applied to a copy of the tree; 60 seconds of simulation have to find it. None of the
invariants knows of any of them. ``--rotate`` runs three, others every day; ``--list`` names them all.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60
FIRST_SEED = 1
AREAS = ("timers", "supervision", "reaction", "typing", "lanes", "pacing", "ledger", "sessions")


@dataclass(frozen=True, slots=True)
class Bug:
    """``old`` stands exactly once in ``file``; with ``new`` in its place livesign has the bug."""

    name: str
    area: str
    file: str
    old: str
    new: str


BUGS = (
    Bug("timers-fire-early", "timers", "actors/runtime/timers.py",
        "while near and near[0][0] <= now_ns and", "while near and near[0][0] <= now_ns + 400_000_000 and"),
    Bug("a-replaced-timer-lives-on", "timers", "actors/runtime/scheduler.py",
        "                self.timers.cancel(timer)\n        timer = timers[key]",
        "                pass\n        timer = timers[key]"),
    Bug("a-later-deadline-is-not-taken", "timers", "actors/runtime/scheduler.py",
        "                    timer.due_ns = due_ns\n", ""),
    Bug("a-failed-terminal-is-not-told", "supervision", "actors/conversation.py",
        "message.info is not None and is_terminal(message.event):",
        "message.info is not None and not is_terminal(message.event):"),
    Bug("an-io-failure-loses-the-wish", "supervision", "actors/application.py",
        "            if again is not None:\n", "            if again is None:\n"),
    Bug("the-restart-budget-is-one-short", "supervision", "actors/runtime/supervision.py",
        "return len(self._at_ms) <= self.intensity", "return len(self._at_ms) < self.intensity"),
    Bug("a-restart-tells-nothing-again", "supervision", "actors/conversation.py",
        "self._perform(run, machine, machine.restart(self.now_ms))", "machine.restart(self.now_ms)"),
    Bug("teardown-is-skipped-on-cancel", "reaction", "actors/presence/reaction.py",
        "if chain is None and not self._touched:", "if chain is None:"),
    Bug("a-pending-phase-survives-the-end", "reaction", "actors/presence/reaction.py",
        "        self._end = end\n        self._stop_timers()", "        self._end = end"),
    Bug("the-final-mark-is-not-held", "reaction", "actors/presence/reaction.py",
        "self._arm(_HOLD, now_ms + hold_ms)", "self._arm(_HOLD, now_ms)"),
    Bug("the-last-stop-is-not-owed", "typing", "actors/presence/typing.py",
        "self._owed = self._calls.started", "self._owed = False"),
    Bug("it-types-while-it-waits-for-the-user", "typing", "actors/presence/typing_wish.py",
        "self.off = self.off | USER if on_user else", "self.off = self.off if on_user else"),
    Bug("typing-never-expires", "typing", "actors/presence/typing_wish.py",
        "            self.off |= EXPIRED", "            self.arm(now_ms)"),
    Bug("marks-are-removed-before-the-add", "lanes", "actors/presence/mark_plan.py",
        "adding = wish.target is not None and not self.marks.is_certain(wish.target)",
        "adding = wish.target is not None and (not self.leftovers(wish) or self.rules.removal_needs_handle)"),
    Bug("a-call-in-flight-is-forgotten", "lanes", "actors/presence/mark_lane.py",
        "if self.in_flight is not None or now_ms < self.not_before_ms:", "if now_ms < self.not_before_ms:"),
    Bug("the-breaker-is-not-reset", "lanes", "actors/presence/breaker.py",
        "                circuit.probe = None\n                if answered:", "                if answered and False:"),
    Bug("an-unknown-add-counts-as-not-made", "lanes", "actors/presence/mark_lane.py",
        "        call = (command.op, command.emoji)\n", "        call = (command.op, command.emoji)\n        self._marks.undo()\n"),
    Bug("a-limit-of-the-account-blocks-one-chat", "pacing", "actors/presence/pacing.py",
        'if scope == "account":', 'if scope == "nobody":'),
    Bug("a-block-ends-with-the-last-answer", "pacing", "actors/presence/lesson.py",
        "self.until_ms = max(self.until_ms, now_ms + retry_after_ms)", "self.until_ms = now_ms + retry_after_ms"),
    Bug("calls-in-a-chat-cost-nothing", "pacing", "actors/presence/pacing.py",
        "        self._take(route.budgets_of(command.conversation), command.conversation, \"\", now_us)\n", ""),
    Bug("the-bots-own-share-is-spent", "pacing", "actors/presence/limits.py",
        "share = round((1.0 - reserve) * 1_000_000)", "share = 1_000_000"),
    Bug("a-mark-is-not-written-before-its-call", "ledger", "actors/platform_io.py",
        "            account.ledger.calling(command, possible)\n", ""),
    Bug("an-ended-run-stays-in-the-ledger", "ledger", "actors/ledger.py",
        "self._contents.runs.pop(key, None)", "self._contents.runs.get(key, None)"),
    Bug("used-ids-are-not-written", "ledger", "actors/router.py",
        "        self._state.ledger.used(message.session, message.event.id)\n", ""),
    Bug("typing-that-is-over-stays-written", "ledger", "actors/ledger.py",
        "self.ledger.typing(Place(self.account, conversation, thread), False)",
        "self.ledger.typing(Place(self.account, conversation, thread), True)"),
    Bug("a-lost-client-still-holds-its-runs", "sessions", "actors/presence/runs.py",
        "            run.connected -= 1\n", ""),
    Bug("a-client-that-is-back-holds-nothing", "sessions", "actors/presence/runs.py",
        "            self.open[key].connected += 1\n", "            pass\n"),
    Bug("a-repeated-event-is-applied-again", "sessions", "actors/sessions.py",
        "        if event_id in self._ids:\n            return True\n", ""),
)  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Run; the exit code is 1 if a bug was not found."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.planted", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--rotate", action="store_true", help="three of them, others every day")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    options = parser.parse_args(arguments)
    chosen = [bug for bug in BUGS if bug.name in options.names or options.all or options.list]
    if options.rotate:
        chosen = rotation(int(time.time()) // 86_400)
    unknown = set(options.names) - {bug.name for bug in BUGS}
    if unknown or not chosen:
        parser.error(
            f"no such bug: {', '.join(sorted(unknown))}" if unknown else "name bugs, or --all, --rotate, --list"
        )
    if options.list:
        print("\n".join(f"{bug.area:12} {bug.name}" for bug in chosen))
        return 0
    missed = [bug.name for bug in chosen if not find(bug, options.first_seed)]
    print(f"{len(chosen) - len(missed)} of {len(chosen)} found" + "".join(f"; missed: {name}" for name in missed))
    return 1 if missed else 0


def rotation(day: int) -> list[Bug]:
    """Three bugs of that day, from different areas."""
    count = len(BUGS)
    step = count // 3
    return [BUGS[(day + each * step) % count] for each in range(3)]


def find(bug: Bug, first_seed: int) -> bool:
    """Whether the simulation finds it in time; tells how."""
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        tree = plant(bug, Path(folder))
        start_s = time.monotonic()
        command = [sys.executable, "-m", "tests.simulation", "--stop", "--json"]
        command += ["--seconds", str(SECONDS), "--first-seed", str(first_seed)]
        done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
        took_s = time.monotonic() - start_s
    result = (
        json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else {"violations": {"?": [done.stderr[-300:]]}}
    )
    found = [problem for problems in result["violations"].values() for problem in problems]
    print(
        f"{bug.name}: " + (f"found in {took_s:.1f} s: {found[0]}" if found else f"NOT found in {took_s:.0f} s"),
        flush=True,
    )
    return bool(found)


def plant(bug: Bug, folder: Path) -> Path:
    """A copy of the tree with the bug."""
    for part in ("actors", "protocol", "tests/simulation"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "tests" / "__init__.py").touch()
    path = folder / bug.file
    text = path.read_text()
    if text.count(bug.old) != 1:
        raise ValueError(f"{bug.name}: its old text stands {text.count(bug.old)} times in {bug.file}")
    path.write_text(text.replace(bug.old, bug.new))
    return folder


if __name__ == "__main__":
    raise SystemExit(main())
