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
from pathlib import Path

from tests.simulation.bug import Bug
from tests.simulation.bugs import BUGS

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60
FIRST_SEED = 1


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
