"""The platforms that livesign knows. A new one is a line here and a file beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from actors.platforms.discord import DiscordAdapter
from actors.platforms.googlechat import GoogleChatAdapter
from actors.platforms.like import LikeAdapter
from actors.platforms.matrix import MatrixAdapter
from actors.platforms.mattermost import MattermostAdapter
from actors.platforms.sandbox import SandboxAdapter
from actors.platforms.signal import SignalAdapter
from actors.platforms.slack import SlackAdapter
from actors.platforms.spec import NO_OPTIONS, HttpAdapter, Options
from actors.platforms.teams import TeamsAdapter
from actors.platforms.telegram import TelegramAdapter
from actors.platforms.whatsapp import WhatsappAdapter
from actors.platforms.zulip import ZulipAdapter

Maker: TypeAlias = Callable[[Options], HttpAdapter]

PLATFORMS: Final[Mapping[str, Maker]] = MappingProxyType({
    "telegram": lambda options: TelegramAdapter(),
    "discord": lambda options: DiscordAdapter(),
    "slack": SlackAdapter,
    "matrix": lambda options: MatrixAdapter(),
    "whatsapp": lambda options: WhatsappAdapter(),
    "mattermost": lambda options: MattermostAdapter(),
    "zulip": lambda options: ZulipAdapter(),
    "signal": SignalAdapter,
    "teams": lambda options: TeamsAdapter(),
    "googlechat": lambda options: GoogleChatAdapter(),
    "sandbox": SandboxAdapter,
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
