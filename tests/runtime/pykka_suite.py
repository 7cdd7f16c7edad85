"""pykka's own test suite, run on our two kinds of actor.

    python -m tests.runtime.pykka_suite FOLDER

FOLDER is pykka's unpacked source distribution (``pip download --no-deps --no-binary pykka pykka==4.5.0``); pytest-mock must be
installed. The suite finds our classes where it looks for ThreadingActor and ThreadingFuture. What is left out is
listed here with its reason; everything else must pass.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

LEFT_OUT = {
    "tests/test_threading_actor.py": "about the names and the daemon flag of ThreadingActor's own threads",
    "tests/test_actor.py::test_all_actors_are_stopped_on_base_exception": (
        "on purpose: a BaseException in one actor does not stop all actors of the process"
    ),
    "tests/test_logging.py::test_base_exception_is_logged": "on purpose: the same",
}
BLOCKING = {
    "tests/test_actor.py::test_messages_left_in_queue_after_actor_stops_receive_an_error": "waits inside a handler",
    "tests/test_actor.py::test_stop_requests_left_in_queue_after_actor_stops_are_handled": "waits inside a handler",
}
"""Left out for the multiplexed actor only."""

SCRIPT = """
import sys, pykka, pytest
from actors.runtime import {kind}, Future
pykka.ThreadingActor, pykka.ThreadingFuture = {kind}, Future
sys.exit(pytest.main(sys.argv[1:]))
"""


def run(folder: Path, kind: str) -> int:
    """The exit status of the suite with this class."""
    left_out = LEFT_OUT | (BLOCKING if kind == "Actor" else {})
    arguments = ["tests", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(folder)]
    arguments += [f"--deselect={name}" for name in left_out]
    command = [sys.executable, "-c", SCRIPT.format(kind=kind), *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=folder, env=environment, timeout=600).returncode


def main() -> int:
    """Both kinds; 0 if all is well."""
    folder = Path(sys.argv[1]).resolve()
    statuses = []
    for kind in ("Actor", "GreenletActor"):
        print(f"pykka's suite on {kind}:", flush=True)
        statuses.append(run(folder, kind))
    return max(statuses)


if __name__ == "__main__":
    sys.exit(main())
