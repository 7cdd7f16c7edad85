"""``python -m tests.soak``: all platforms at their documented limits, on virtual time."""

from __future__ import annotations

import argparse
import json
import sys

from tests.soak.soak import Soak, soak

PAGE = """# Calls made, and calls a naive bot makes

Written by `python -m tests.soak --table`: {minutes:g} minutes of virtual traffic on every platform, in waves that ask for more
than the limits allow, before limiters with the platforms' documented limits (`tests/soak/documented.py`; where none is
published, the safe side). The naive bot makes a call for each event, renews typing by the clock, takes off the mark
before where the platform does not replace it, and tries a refused call up to three times more when it was told to.
*Refused*: answered with a limit. *Left behind*: messages that do not show what they should at the end, and typing
that came after it. `python -m tests.soak --share 0.5` grants half of each limit.

{table}"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30, help="virtual minutes of traffic")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", type=float, default=1.0, help="how much of its documented limits a platform grants")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--table", action="store_true", help="only the page with the table")
    args = parser.parse_args()
    seen = soak(args.minutes, args.seed, args.share)
    refused = sum(map(len, seen.platforms.refused.values()))
    bad = bool(seen.problems) or (args.share >= 1 and refused > 0)
    if args.json:
        print(json.dumps({"problems": seen.problems, "platforms": seen.table()}, indent=1))
        return int(bad)
    if args.table:
        print(PAGE.format(minutes=args.minutes, table=table(seen)))
    else:
        print(table(seen))
        for row in seen.table():
            print(row["platform"], "peak use:", row["peaks"] or "no limits")
        print("\n".join(seen.problems[:20]) or "no violation")
    return int(bad)


def table(seen: Soak) -> str:
    """The comparison in Markdown."""
    lines = ["| platform | calls | refused | left behind | naive calls | refused | left behind |"]
    lines.append("| --- " + "| ---: " * 6 + "|")
    for row in seen.table():
        numbers = ("calls", "refused", "left", "naive_calls", "naive_refused", "naive_left")
        lines.append(f"| {row['platform']} | " + " | ".join(f"{row[name]:,}" for name in numbers) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
