"""``python -m tests.load``: very many live conversations for minutes, against a sandbox that limits and fails."""

from __future__ import annotations

import argparse
import json
import sys

from tests.load.measure import Load
from tests.load.plan import Plan


def main() -> int:
    """Run; the exit code is 1 if anything was violated."""
    parser = argparse.ArgumentParser(prog="python -m tests.load", description=__doc__)
    parser.add_argument("--conversations", type=int, default=Plan.conversations)
    parser.add_argument("--minutes", type=float, default=Plan.minutes, help="measured, after the warm-up")
    parser.add_argument("--life", type=float, default=Plan.life_s, help="mean life of a run, in seconds")
    parser.add_argument(
        "--phase", type=float, default=Plan.phase_s, help="mean time between changes of phase, in seconds"
    )
    parser.add_argument("--ramp", type=float, default=Plan.ramp_s, help="warm-up, in seconds")
    parser.add_argument(
        "--rate", type=int, default=Plan.calls_per_s, help="calls per second that each account may make"
    )
    options = parser.parse_args()
    plan = Plan(
        conversations=options.conversations, minutes=options.minutes, life_s=options.life, phase_s=options.phase,
        ramp_s=options.ramp, calls_per_s=options.rate,
    )  # fmt: skip
    report = Load(plan, lambda text: print(text, file=sys.stderr, flush=True)).run()
    print(json.dumps(report, indent=1, ensure_ascii=False))
    return int(bool(report["violation_count"] or report["marks_without_a_row"] or report["ends_not_shown"]))


if __name__ == "__main__":
    sys.exit(main())
