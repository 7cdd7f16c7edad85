"""Which kind of work a tool's name stands for, and so which mark shows while it runs.

A name is split into words at separators, case changes and digits. The exact names of all categories are
tried first: as written (without case), then by their words, then by the words behind a server prefix
(``mcp__server__tool``, ``server.tool``). After that the tokens, category by category in the order of the
table: a token matches whole words only, one of several words (``read file``) those words in a row. Nothing
found, or no name: ``tool``.

In the default table web comes before coding, and subjects that are not code (mail, memory, to-do lists) are
sorted out before its tokens are tried. A category of the user's own is one more row.
"""

from __future__ import annotations

import re
from functools import lru_cache

from actors.presence.policy import ToolCategory

__all__ = ["DEFAULT_CATEGORIES", "PLAIN", "categorise", "split_words"]

PLAIN = "tool"
"""The category of a tool that fits no other."""

NAME_CHARS_MAX = 256
"""Names are looked at no further than this."""

DEFAULT_CATEGORIES: tuple[ToolCategory, ...] = (
    ToolCategory(
        name="web",
        names=("fetch", "http"),
        tokens=(
            "web", "websearch", "webfetch", "website", "webpage", "internet", "url", "browser",
            "browse", "browsing", "scrape", "crawl", "firecrawl", "puppeteer", "playwright", "selenium",
            "http get", "http post", "http request", "http fetch", "requests get", "requests post",
            "requests put", "requests patch", "requests delete", "fetch page", "google search",
            "search google", "bing search", "search bing", "brave search", "duckduckgo", "ddg",
            "tavily", "serper", "serpapi", "searxng", "wikipedia", "arxiv",
        ),
    ),
    ToolCategory(
        name=PLAIN,
        tokens=(
            "todo", "todos", "memory", "memories", "mcp resource", "mcp resources", "mail", "email",
            "emails", "gmail", "calendar", "message", "messages", "image", "images", "spreadsheet",
        ),
    ),
    ToolCategory(
        name="coding",
        names=(
            "ls", "process", "replace", "udiff", "diff", "whole file", "editblock", "code",
        ),
        tokens=(
            "exec", "execute", "executor", "read", "write", "edit", "editor", "patch", "grep",
            "ripgrep", "glob", "bash", "zsh", "shell", "powershell", "terminal", "cmd", "run command",
            "python", "ipython", "repl", "session status", "code interpreter", "code execution",
            "run code", "apply diff", "search code", "code search", "codebase", "str replace",
            "replace in file", "list directory", "list files", "list dir", "search file",
            "search files", "find files", "create file", "delete file", "move file",
        ),
    ),
)  # fmt: skip

_RUNS = re.compile(r"[^\W\d_]+|\d+")
_CASE = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PREFIX = re.compile(r"__|[./:]")

_Words = tuple[str, ...]


def split_words(name: str) -> _Words:
    """The words of a name in lower case: ``mcp__web-Tools__HTTPGet2`` is mcp, web, tools, http, get, 2."""
    return tuple(part.lower() for run in _RUNS.findall(name) for part in _CASE.split(run))


def categorise(name: str | None, categories: tuple[ToolCategory, ...] | None = None) -> str:
    """The category of the tool ``name``; ``categories`` in order of precedence (None: the defaults)."""
    if not name:
        return PLAIN
    return _categorise(name[:NAME_CHARS_MAX].strip(), DEFAULT_CATEGORIES if categories is None else categories)


@lru_cache(maxsize=4_096)
def _categorise(name: str, categories: tuple[ToolCategory, ...]) -> str:
    table = _table(categories)
    words = split_words(name)
    found = (
        table.as_written.get(name.lower())
        or table.by_words.get(words)
        or table.by_words.get(split_words(_PREFIX.split(name)[-1]))
    )
    if found is not None:
        return found
    for category, tokens in table.tokens:
        if any(_in_a_row(token, words) for token in tokens):
            return category
    return PLAIN


class _Table:
    """Categories made ready for look-ups; of equal names the first counts."""

    __slots__ = ("as_written", "by_words", "tokens")

    def __init__(self, categories: tuple[ToolCategory, ...]) -> None:
        self.as_written: dict[str, str] = {}
        self.by_words: dict[_Words, str] = {}
        self.tokens = [
            (each.name, [words for token in each.tokens if (words := split_words(token))]) for each in categories
        ]
        for each in categories:
            for name in each.names:
                self.as_written.setdefault(name.strip().lower(), each.name)
                if words := split_words(name):
                    self.by_words.setdefault(words, each.name)


@lru_cache(maxsize=64)
def _table(categories: tuple[ToolCategory, ...]) -> _Table:
    return _Table(categories)


def _in_a_row(token: _Words, words: _Words) -> bool:
    size = len(token)
    return any(words[at : at + size] == token for at in range(len(words) - size + 1))
