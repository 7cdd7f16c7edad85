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
that came after it. No two calls of one message, or of one place to type in, overlap, and no message's mark changes faster
than `tests/soak/documented.py` says.

{table}

*In use* is the largest share of the platform's own limits that was ever in use, the fullest of them; where it is low,
livesign's row keeps away from the limit (zulip: 60 of 200 calls a minute).

## Where half is granted

`python -m tests.soak --share 0.5`: the platforms grant half of what they document, and livesign does not know. What is
refused teaches: calls of that account, conversation or kind keep a distance. The distance is halved in quiet times; to go back
to one at which a limit came is tried after 30 s, then 5 min, 50 min and every hour while it fails. When the limit
has passed, full speed is back after an hour and 20 minutes at most, after a first limit in half a minute.

{learned}"""


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
        less = soak(args.minutes, args.seed, 0.5)
        print(PAGE.format(minutes=args.minutes, table=table(seen), learned=learned(less)))
        bad |= bool(less.problems)
    else:
        print(table(seen))
        for row in seen.table():
            print(row["platform"], "peak use:", row["peaks"] or "no limits")
        print("\n".join(seen.problems[:20]) or "no violation")
    return int(bad)


def table(seen: Soak) -> str:
    """The comparison in Markdown."""
    lines = ["| platform | calls | refused | left behind | in use | naive calls | refused | left behind |"]
    lines.append("| --- " + "| ---: " * 7 + "|")
    for row in seen.table():
        numbers = [
            f"{row[name]:,}" for name in ("calls", "refused", "left", "naive_calls", "naive_refused", "naive_left")
        ]
        numbers.insert(3, f"{max(row['peaks'].values()):.0%}" if row["peaks"] else "no limit")
        lines.append(f"| {row['platform']} | " + " | ".join(numbers) + " |")
    return "\n".join(lines)


def learned(seen: Soak) -> str:
    """How much was refused, and how much of it late, in Markdown."""
    half_ms = seen.minutes * 30_000
    lines = [
        "| platform | calls | refused | of the calls | in the second half |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for row in seen.table():
        late = [call for call in seen.result.world.calls if call.account == row["platform"] and call.t_ms >= half_ms]
        late_refused = sum(at_ms >= half_ms for at_ms in seen.platforms.refused[row["platform"]])
        shares = f"{row['refused'] / row['calls']:.1%} | {late_refused / len(late):.1%}"
        lines.append(f"| {row['platform']} | {row['calls']:,} | {row['refused']:,} | {shares} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
