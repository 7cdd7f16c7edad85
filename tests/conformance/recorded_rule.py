"""The category rule of the recorded controllers: plain substrings, web before coding.

Ours is another; this one only serves to replay what was recorded.
"""

from __future__ import annotations

from collections.abc import Iterable

from actors.presence.policy import ToolCategory

__all__ = ["categories_for", "recorded_category"]

WEB = ("web_search", "web-search", "web_fetch", "web-fetch", "browser")
CODING = ("exec", "process", "read", "write", "edit", "session_status", "bash")


def recorded_category(name: str | None) -> str:
    """The category that the recorded rule gives a tool name."""
    written = (name or "").strip().lower()
    if any(token in written for token in WEB):
        return "web"
    if any(token in written for token in CODING):
        return "coding"
    return "tool"


def categories_for(names: Iterable[str]) -> tuple[ToolCategory, ...]:
    """A table that gives each of ``names`` the recorded category, by its exact name."""
    by_category: dict[str, list[str]] = {"web": [], "coding": [], "tool": []}
    for name in dict.fromkeys(names):
        by_category[recorded_category(name)].append(name)
    return tuple(ToolCategory(category, names=tuple(found)) for category, found in by_category.items())
