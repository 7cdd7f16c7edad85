"""``python -m tests.cases [FILE…]``: run the cases of these files, without any those of this folder.

The last line is ``N passed, M failed``. The exit code is 1 if any failed, 2 if a file is not of the form: it counts as
one that failed, and the other files are run all the same. With ``--timeline`` what happened is shown for each case that
failed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.cases import own_files
from tests.cases.bare import BareEvidence
from tests.cases.case import Case, read_file
from tests.cases.runner import differences, played
from tests.cases.words import WordError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and tell; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.cases", description="Run cases. See the package's text.")
    parser.add_argument("file", nargs="*", type=Path, help="files of cases (default: all of this folder)")
    parser.add_argument("--timeline", action="store_true", help="show what happened in each case that failed")
    options = parser.parse_args(arguments)
    cases, unread = _read(options.file or own_files())
    failed = []
    for case in cases:
        try:
            found = list(differences(case))
        except Exception as error:
            found = [f"{type(error).__name__}: {error}"]
        if found:
            failed.append(case.id)
            print(f"{case.id} {case.title}")
            print("\n".join(f"    {text}" for text in found))
            if options.timeline:
                print("\n".join(timelines(case)))
    if failed:
        print(f"failed: {' '.join(failed)}")
    print(f"{len(cases) - len(failed)} passed, {len(failed) + unread} failed")
    return 2 if unread else 1 if failed else 0


def _read(paths: Sequence[Path]) -> tuple[list[Case], int]:
    """The cases of all files, and how many files could not be read; why is told at once."""
    cases: list[Case] = []
    unread = 0
    for path in paths:
        try:
            cases += read_file(path)
        except WordError as error:
            print(error, file=sys.stderr)
            unread += 1
    return cases, unread


def timelines(case: Case) -> Iterator[str]:
    """For people: what happened in each variant."""
    for name, each in case.each() if case.script else ():
        try:
            evidence = played(each)
        except ValueError as error:
            yield f"{name}: {error}"
            continue
        yield f"--- {case.id} {name}"
        if isinstance(evidence, BareEvidence):
            yield evidence.runtime.snapshot_text()
        else:
            yield evidence.result.timeline()


if __name__ == "__main__":
    sys.exit(main())
