"""The platforms that livesign knows. A new one is a line here and a file beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from actors.platforms.matrix import MatrixAdapter
from actors.platforms.sandbox import SandboxAdapter
from actors.platforms.spec import NO_OPTIONS, HttpAdapter, Options
from actors.platforms.telegram import TelegramAdapter

Maker: TypeAlias = Callable[[Options], HttpAdapter]

PLATFORMS: Final[Mapping[str, Maker]] = MappingProxyType({
    "telegram": lambda options: TelegramAdapter(),
    "matrix": lambda options: MatrixAdapter(),
    "sandbox": SandboxAdapter,
})  # fmt: skip


def adapter(platform: str, options: Options = NO_OPTIONS) -> HttpAdapter:
    """The adapter of ``platform`` for an account with ``options``.

    Raises ValueError for a platform that is not known, or an option that is not a value of its kind.
    """
    maker = PLATFORMS.get(platform)
    if maker is None:
        raise ValueError(f"unknown platform {platform!r}; known are {', '.join(sorted(PLATFORMS))}")
    return maker(options)
