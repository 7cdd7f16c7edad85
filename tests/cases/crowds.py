"""Words that stand for many steps: what a test driver did in a loop, written out.

Chats are ``c1``, ``c2`` … and the turns of a chat ``c1-1``, ``c1-2`` …, so that other steps can name them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.cases.words import WordError

Step = tuple[int, str, dict[str, Any]]
"""When, word, arguments."""

HASTE_MS = 250
"""Button presses end after so long."""


def messages_many(t_ms: int, args: dict[str, Any]) -> Iterator[Step]:
    """``each`` messages in each of ``chats`` chats, one every ``every`` ms of a chat."""
    for number in range(args["each"]):
        at_ms = t_ms + int(number * args.get("every", 0))
        for chat in range(1, args["chats"] + 1):
            yield at_ms, "message", {"chat": f"c{chat}", "m": f"c{chat}-{number + 1}"}


def flood(t_ms: int, args: dict[str, Any]) -> Iterator[Step]:
    """``turns`` turns, spread over ``chats`` chats and over ``within`` ms."""
    for number in range(args["turns"]):
        at_ms = t_ms + number * args["within"] // args["turns"]
        chat = number % args["chats"] + 1
        name = f"c{chat}-{number // args['chats'] + 1}"
        yield at_ms, "message", {"chat": f"c{chat}", "m": name}
        yield at_ms, "begin", {"m": name}


def flood_interactions(t_ms: int, args: dict[str, Any]) -> Iterator[Step]:
    """``count`` button presses in one chat within ``within`` ms, each on a message of its own."""
    for number in range(args["count"]):
        at_ms = t_ms + number * args["within"] // args["count"]
        name = f"press-{number + 1}"
        yield at_ms, "message", {"chat": args["chat"], "m": name, "kind": "interaction"}
        yield at_ms, "begin", {"m": name}
        yield at_ms + HASTE_MS, "done", {"m": name}


def burst(t_ms: int, args: dict[str, Any]) -> Iterator[Step]:
    """``count`` messages in one chat, ``spacing`` ms apart: each is one call for a mark."""
    for number in range(args["count"]):
        yield t_ms + number * args["spacing"], "message", {"chat": args["chat"], "m": f"burst-{number + 1}"}


def call(t_ms: int, args: dict[str, Any]) -> Iterator[Step]:
    """One call to the platform: the ack of a message named by ``id``."""
    yield t_ms, "message", {"chat": args["chat"], "m": args["id"]}


def turns_many(t_ms: int, args: dict[str, Any]) -> Iterator[Step]:
    """``count`` turns, one every ``every`` ms, each over after ``life`` ms."""
    for number in range(args["count"]):
        at_ms, name = t_ms + number * args["every"], f"c1-{number + 1}"
        yield at_ms, "message", {"chat": "c1", "m": name}
        yield at_ms, "begin", {"m": name}
        yield at_ms + args["life"], "done", {"m": name}


def events_burst(t_ms: int, args: dict[str, Any]) -> Iterator[Step]:
    """``turns`` short turns, of which ``bad_share`` are an event that cannot be understood."""
    every = round(1 / args["bad_share"]) if args.get("bad_share") else 0
    for number in range(args["turns"]):
        name = f"c1-{number + 1}"
        if every and number % every == 0:
            yield t_ms, "message", {"chat": "c1", "m": name, "direct": "maybe"}
            continue
        yield t_ms, "message", {"chat": "c1", "m": name}
        yield t_ms + 1_000, "done", {"m": name}


def bundle(t_ms: int, args: dict[str, Any]) -> Iterator[Step]:
    """Several messages become one turn, that of the last, at ``close``; ``ack_immediately`` marks each on arrival."""
    *others, last = args["messages"]
    if not args.get("ack_immediately"):
        yield t_ms + args["close"], "message", {"chat": args["chat"], "m": last}
        return
    for name, at_ms in zip(args["messages"], args["at"], strict=True):
        yield t_ms + at_ms, "message", {"chat": args["chat"], "m": name}
    for name in others:
        yield t_ms + args["close"], "merge", {"m": name, "into": last}


ENDS = ("done", "done", "fail", "cancel", "silent", "nothing", "twice", "old", "refused", "flood")


def random_messages(t_ms: int, args: dict[str, Any]) -> Iterator[Step]:
    """``messages`` messages in 50 chats with every kind of end; the same for the same ``seed``."""
    dice = random.Random(args["seed"])
    at_ms = t_ms
    known = ""
    for number in range(args["messages"]):
        kind = dice.choice(ENDS)
        at_ms += 0 if kind == "flood" else dice.randrange(200)
        chat, name = f"c{dice.randrange(50) + 1}", f"m{number + 1}"
        if kind == "twice" and known:
            yield at_ms, "message", {"m": known}
        elif kind == "refused":
            yield at_ms, "message", {"chat": chat, "m": name, "direct": "maybe"}
        else:
            yield (
                at_ms,
                "message",
                {"chat": chat, "m": name, "lease": 20_000, "ts": "now-9000s" if kind == "old" else "now"},
            )
            yield at_ms + 50, "begin", {"m": name}
            known = name
            if kind in ("done", "fail", "cancel", "silent"):
                yield at_ms + dice.randrange(100, 15_000), kind, {"m": name}


CROWDS: Mapping[str, Callable[[int, dict[str, Any]], Iterator[Step]]] = {
    "messages_many": messages_many,
    "flood": flood,
    "flood_interactions": flood_interactions,
    "burst": burst,
    "call": call,
    "turns_many": turns_many,
    "events_burst": events_burst,
    "bundle": bundle,
    "random": random_messages,
}


def written_out(t_ms: int, word: str, args: dict[str, Any]) -> Iterator[Step]:
    """All steps that a step stands for: those of a crowd, or of ``repeat`` … ``until``."""
    if word in CROWDS:
        try:
            yield from CROWDS[word](t_ms, args)
        except KeyError as error:
            raise WordError(f"{word} lacks {error.args[0]}") from None
    elif "repeat" in args:
        rest = {key: value for key, value in args.items() if key not in ("repeat", "until")}
        every_ms, until_ms = args["repeat"], args.get("until")
        if not isinstance(every_ms, int) or every_ms < 1 or not isinstance(until_ms, int):
            raise WordError(f"{word}: repeat and until are whole numbers of ms, repeat at least 1")
        for at_ms in range(t_ms, until_ms, every_ms):
            yield at_ms, word, rest
    else:
        yield t_ms, word, args
