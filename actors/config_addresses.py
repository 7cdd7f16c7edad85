"""Kinds of configuration value that name a place: where to listen, what to reach, a file."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from actors.config_values import plain_text, quoted


@dataclass(frozen=True, slots=True)
class Listen:
    """``host:port``; ``off`` is None."""

    allowed: str = "host:port, [IPv6 address]:port, or off"

    def convert(self, value: object) -> str | None:
        text = plain_text(value)
        if text == "off":
            return None
        host, colon, port = text.rpartition(":")
        bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        if not colon or not bare or (":" in bare) != (bare != host) or re.search(r"[\s/@]", bare):
            raise ValueError(f"{quoted(text)} is not host:port")
        if not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65535:
            raise ValueError(f"{quoted(text)} has no port between 0 and 65535")
        return text


@dataclass(frozen=True, slots=True)
class Url:
    """An address without query; it may carry a password, so no reason repeats it."""

    schemes: tuple[str, ...] = ("http", "https")

    @property
    def allowed(self) -> str:
        return " or ".join(f"{scheme}://host" for scheme in self.schemes)

    def convert(self, value: object) -> str:
        text = plain_text(value)
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError:
            raise ValueError("is not an address") from None
        if parts.scheme not in self.schemes or not parts.hostname or port == 0 or " " in text:
            raise ValueError(f"is not an address that begins with {' or '.join(self.schemes)}")
        if parts.query or parts.fragment:
            raise ValueError("must not have a query or fragment")
        return text.rstrip("/")


@dataclass(frozen=True, slots=True)
class FilePath:
    """A path; ``~`` is the home directory. ``word`` is a text with a meaning of its own (off, :memory:)."""

    word: str | None = None

    @property
    def allowed(self) -> str:
        return "a path" + (f", or {self.word}" if self.word else "")

    def convert(self, value: object) -> str:
        text = plain_text(value)
        return text if text == self.word else os.path.expanduser(text)
