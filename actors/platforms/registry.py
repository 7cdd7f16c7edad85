"""The platforms that livesign knows. A new one is a line here and a file beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Final, TypeAlias

from actors.platforms.like import LikeAdapter
from actors.platforms.spec import NO_OPTIONS, HttpAdapter, Options

Maker: TypeAlias = Callable[[Options], HttpAdapter]


def _of(path: str) -> Maker:
    """The class at ``file.Name`` beside this file."""
    file, _, name = path.partition(".")
    made: Maker = getattr(import_module(f"actors.platforms.{file}"), name)
    return made


PLATFORMS: Final[Mapping[str, Maker]] = MappingProxyType({
    "telegram": _of("telegram.TelegramAdapter"),
    "discord": _of("discord.DiscordAdapter"),
    "slack": _of("slack.SlackAdapter"),
    "matrix": _of("matrix.MatrixAdapter"),
    "whatsapp": _of("whatsapp.WhatsappAdapter"),
    "mattermost": _of("mattermost.MattermostAdapter"),
    "zulip": _of("zulip.ZulipAdapter"),
    "signal": _of("signal.SignalAdapter"),
    "teams": _of("teams.TeamsAdapter"),
    "googlechat": _of("googlechat.GoogleChatAdapter"),
    "sandbox": _of("sandbox.SandboxAdapter"),
    "callback": lambda options: LikeAdapter("callback", options, PLATFORMS),
    "remote": lambda options: LikeAdapter("remote", options, PLATFORMS),
})  # fmt: skip


def adapter(platform: str, options: Options = NO_OPTIONS) -> HttpAdapter:
    """The adapter of ``platform`` for an account with ``options``.

    Raises ValueError for a platform that is not known, or an option that is not a value of its kind.
    """
    maker = PLATFORMS.get(platform)
    if maker is None:
        raise ValueError(f"unknown platform {platform!r}; known are {', '.join(sorted(PLATFORMS))}")
    return maker(options)
