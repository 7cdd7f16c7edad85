"""Kinds of configuration value that name a place: where to listen, what to reach, a file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
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


_LOOPBACK = re.compile(r"localhost|127\..*|::1")


def environment_proxy(url: str, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """The variable of the environment that names a proxy for ``url``, and that proxy. None: there is none, or NO_PROXY
    or a loopback address says that it is not used."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    names = (f"{parts.scheme}_proxy", f"{parts.scheme}_proxy".upper())
    name = next((name for name in names if environ.get(name)), None)
    if name is None or _LOOPBACK.fullmatch(host) or _without_proxy(host, parts.port, environ):
        return None
    proxy = environ[name]
    return name, proxy if "://" in proxy else f"http://{proxy}"


def _without_proxy(host: str, port: int | None, environ: Mapping[str, str]) -> bool:
    """NO_PROXY lists hosts and domains, also with ports, or ``*``."""
    listed = (environ.get("no_proxy") or environ.get("NO_PROXY") or "").lower()
    entries = {entry.strip().lstrip("*").lstrip(".") if entry.strip() != "*" else "*" for entry in listed.split(",")}
    labels = host.split(".")
    domains = [".".join(labels[at:]) for at in range(len(labels))]
    return "*" in entries or any(place in entries for domain in domains for place in (domain, f"{domain}:{port}"))
