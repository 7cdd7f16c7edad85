"""Replays recorded traces: ``python -m tests.conformance FILE.jsonl…`` (tables: FILE.json).

Ends with how many passed and failed and the ids of the failed; the exit code is 1 if any failed, 2 if a file
cannot be read.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.conformance.status_replay import replay_status
from tests.conformance.tables import replay_table
from tests.conformance.typing_replay import replay_typing

Trace = dict[str, Any]


def main(files: list[str]) -> int:
    """Replay every trace of ``files``; the exit code."""
    if not files:
        print(__doc__, file=sys.stderr)
        return 2
    passed = 0
    failed: list[str] = []
    for file in files:
        try:
            for name, problems in replay_file(Path(file)):
                if problems:
                    failed.append(name)
                    print(f"{file}: {name}: {'; '.join(problems)}")
                else:
                    passed += 1
        except (OSError, ValueError) as error:
            print(f"{file}: {error}", file=sys.stderr)
            return 2
    print(f"{passed} passed, {len(failed)} failed" + "".join(f" {name}" for name in failed))
    return 1 if failed else 0


def replay_file(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Id and problems of each trace (of a table: each row) in a file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        yield from replay_table(json.loads(text))
        return
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            trace = json.loads(line)
            name = str(trace.get("id", f"line {number}"))
            try:
                yield name, replay_for(trace)(trace)
            except Exception as error:
                yield name, [f"{type(error).__name__}: {error}"]


def replay_for(trace: Trace) -> Callable[[Trace], list[str]]:
    """The replay that fits the trace: status traces name their initial emoji."""
    return replay_status if "initialEmoji" in trace["config"] else replay_typing


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
