"""``python -m actors.sandbox``: the sandbox by itself, until it is interrupted."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import gevent
import msgspec
from gevent.event import Event

from actors.sandbox.faults import FaultPlan
from actors.sandbox.options import Reactions, SandboxOptions, TypingIn
from actors.sandbox.service import SandboxService

EXIT_USAGE = 2
EXIT_NO_ADDRESS = 1


def _parser() -> argparse.ArgumentParser:
    default = SandboxOptions()
    parser = argparse.ArgumentParser(
        prog="python -m actors.sandbox",
        description="A small chat service to try bots against. Open its address in a browser to watch.",
    )
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    add("--port", type=int, default=8080, help="port to listen on; 0 takes a free one (%(default)s)")
    add(
        "--reactions",
        choices=get_args(Reactions),
        default=default.reactions,
        help="how marks behave (%(default)s)",
    )
    add(
        "--no-typing-stop",
        dest="typing_stop",
        action="store_false",
        help="there is no call that stops typing",
    )
    add("--typing-lifetime-ms", type=int, default=default.typing_lifetime_ms, help="0: it lasts (%(default)s)")
    add(
        "--typing-in",
        choices=get_args(TypingIn),
        default=default.typing_in,
        help="where it is allowed (%(default)s)",
    )
    add(
        "--keep-typing",
        dest="post_clears_typing",
        action="store_false",
        help="the bot's posts leave its typing on",
    )
    add(
        "--strict",
        dest="strict_messages",
        action="store_true",
        help="marks only on messages that were posted",
    )
    add("--account", action="append", metavar="NAME=TOKEN", help="let in these tokens only; may be repeated")
    add("--speed", dest="time_scale", type=float, default=1.0, help="how many times faster its time runs")
    add("--rules", type=Path, metavar="FILE", help="JSON file with a fault plan: latency_ms, rules")
    return parser


def _options(args: argparse.Namespace) -> SandboxOptions:
    """The options that the arguments ask for.

    Raises:
        ValueError: they make no sense.
        OSError: the file of rules cannot be read.
    """
    tokens: dict[str, str] | None = None
    for entry in args.account or ():
        name, equals, token = entry.partition("=")
        if not (name and equals and token):
            raise ValueError("--account must be NAME=TOKEN")
        tokens = {**(tokens or {}), token: name}
    plan = msgspec.json.decode(args.rules.read_bytes(), type=FaultPlan) if args.rules else FaultPlan()
    return SandboxOptions(
        reactions=args.reactions,
        typing_stop=args.typing_stop,
        typing_lifetime_ms=args.typing_lifetime_ms,
        post_clears_typing=args.post_clears_typing,
        typing_in=args.typing_in,
        strict_messages=args.strict_messages,
        tokens=tokens,
        time_scale=args.time_scale,
        plan=plan,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run until SIGINT or SIGTERM; the exit code: 0, 1 no address to listen on, 2 wrong arguments."""
    args = _parser().parse_args(argv)
    try:
        service = SandboxService(args.host, args.port, _options(args))
    except (ValueError, OSError) as error:
        print(f"sandbox: {error}", file=sys.stderr)
        return EXIT_USAGE
    stop = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        gevent.signal_handler(number, stop.set)
    try:
        service.start()
    except OSError as error:
        print(f"sandbox: {args.host} port {args.port}: {error}", file=sys.stderr)
        return EXIT_NO_ADDRESS
    print(f"sandbox: {service.base_url}/", flush=True)
    stop.wait()
    service.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
