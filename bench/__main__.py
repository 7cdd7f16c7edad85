"""``python -m bench [SCENARIO…]``: run scenarios, show their figures.

The table, or with ``--json`` a document, goes to stdout; progress goes to stderr. Exit codes: 0, or 1 if ``--check`` was
given and a goal is missed by more than the tolerance, or 2 for a scenario that does not exist.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from bench.harness import TOLERANCE, Figure, Result, about, as_json, run_all, scenarios

PLAIN_WIDTH = 130
"""Columns of the table where the output is no terminal."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and show; returns the exit code."""
    known = scenarios()
    listing = "\n".join(f"  {name:10} {about(module)}" for name, module in known.items())
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure livesign. Without a name all scenarios run, one after the other.",
        epilog=f"scenarios:\n{listing}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("scenario", nargs="*", help="what to run (default: everything)")
    parser.add_argument(
        "--smoke", action="store_true", help="tiny sizes: shows that it works, the numbers mean nothing"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON document instead of a table")
    parser.add_argument(
        "--check",
        action="store_true",
        help=f"exit with 1 if a goal is missed by more than {TOLERANCE:.0%}".replace("%", "%%"),
    )
    options = parser.parse_args(arguments)
    for name in options.scenario:
        if name not in known:
            parser.error(f"there is no scenario {name!r}; there are {', '.join(known)}")
    chosen = {name: known[name] for name in options.scenario or known}
    results = list(run_all(chosen, options.smoke))
    if options.json:
        print(as_json(results, options.smoke))
    else:
        _show(results, options.smoke)
    missed = [figure for result in results for figure in result.figures if not figure.tolerable]
    if options.check and missed:
        print("missed: " + ", ".join(figure.name for figure in missed), file=sys.stderr)
        return 1
    return 0


def _show(results: list[Result], smoke: bool) -> None:
    console = Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH)
    for result in results:
        table = Table(title=f"{result.scenario} ({result.took_s:.1f} s)", title_justify="left", title_style="bold")
        table.add_column("figure")
        table.add_column("value", justify="right")
        table.add_column("unit")
        table.add_column("goal", justify="right")
        table.add_column("")
        table.add_column("against")
        for figure in result.figures:
            table.add_row(
                figure.name,
                _number(figure.value),
                figure.unit,
                str(figure.goal or ""),
                "" if smoke else _verdict(figure),
                figure.peer,
            )
        console.print(table)
    if smoke:
        console.print("smoke sizes: these numbers mean nothing but that it works")


def _verdict(figure: Figure) -> str:
    if figure.met is None:
        return ""
    return "[green]ok[/]" if figure.met else "[yellow]near[/]" if figure.tolerable else "[red]missed[/]"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:,.3g}"


if __name__ == "__main__":
    sys.exit(main())
