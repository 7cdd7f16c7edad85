"""Platforms that are not reached by HTTP from here: ``callback`` (the bot's own functions, in its process) and ``remote``
(an executor on livesign's socket). What they are like is the row of another platform, which the option ``like`` names;
without it, that of the sandbox, with its options.

The limits are that row's too: set ``limits`` where the bot's own client keeps others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from actors.platforms.spec import NO_OPTIONS, Credentials, HttpAdapter, Option, Options, Request, Response
from actors.presence.terms import Command, Outcome

NAMES: Final = ("callback", "remote")
DEFAULT: Final = "sandbox"
_LIKE: Final = Option("like", "the platform whose row it follows", DEFAULT)


class LikeAdapter(HttpAdapter):
    """See the module. Raises ValueError for a platform that there is not, or options that it does not have."""

    def __init__(self, name: str, options: Options, platforms: Mapping[str, Callable[[Options], HttpAdapter]]) -> None:
        like = options.get("like", DEFAULT)
        known = sorted(each for each in platforms if each not in NAMES)
        if like not in known:
            raise ValueError(f"like: {like!r} is unknown; known are {', '.join(known)}")
        rest = {key: value for key, value in options.items() if key != "like"}
        if rest and like != DEFAULT:
            raise ValueError(f"{', '.join(sorted(rest))}: only where like is {DEFAULT}")
        self.like = platforms[like](rest)
        own = (_LIKE, *platforms[DEFAULT](NO_OPTIONS).spec.options)
        self.spec = replace(self.like.spec, name=name, base_url=None, needs_token=False, options=own)

    def normalise(self, emoji: str) -> str | None:
        return self.like.normalise(emoji)

    def request(self, command: Command, credentials: Credentials) -> Request | Outcome:
        return self.like.request(command, credentials)

    def outcome(self, command: Command, response: Response) -> Outcome:
        return self.like.outcome(command, response)
