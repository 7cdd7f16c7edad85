"""What is wrong with a configuration: all problems and warnings, each with its key and its line."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

_HEADER = re.compile(r"\s*\[(\[)?\s*([^\[\]]+?)\s*\]?\]\s*(?:#.*)?$")
_PAIR = re.compile(r"""\s*((?:[\w-]+|"[^"\n]*"|'[^'\n]*')(?:\s*\.\s*(?:[\w-]+|"[^"\n]*"|'[^'\n]*'))*)\s*=""")
_PART = re.compile(r"""[\w-]+|"[^"\n]*"|'[^'\n]*'""")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong: the full dotted key, the reason, what is allowed, and where it is."""

    key: str
    reason: str
    allowed: str = ""
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        place = "" if self.file is None else f"{self.file}:{self.line}: " if self.line else f"{self.file}: "
        key = f"{self.key}: " if self.key else ""
        return f"{place}{key}{self.reason}" + (f" (allowed: {self.allowed})" if self.allowed else "")


class ConfigError(ValueError):
    """A configuration that cannot be used. ``problems`` are all that were found, in the order of the keys."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


@dataclass(slots=True)
class Report:
    """Collects problems and warnings; the same one is kept once."""

    file: str | None = None
    locate: Callable[[str], int | None] = lambda _key: None
    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def problem(self, key: str, reason: str, allowed: str = "") -> None:
        problem = Problem(key, reason, allowed, self.file, self.locate(key))
        if problem not in self.problems:
            self.problems.append(problem)

    def told(self, key: str) -> bool:
        """Whether a problem of ``key`` is known already."""
        return any(problem.key == key for problem in self.problems)

    def warning(self, key: str, text: str) -> None:
        warning = str(Problem(key, text, "", self.file, self.locate(key)))
        if warning not in self.warnings:
            self.warnings.append(warning)

    def check(self) -> None:
        """Raise `ConfigError` if there was any problem."""
        if self.problems:
            raise ConfigError(self.problems)


def line_finder(text: str) -> Callable[[str], int | None]:
    """Where a dotted key stands in a TOML text; a key inside an inline table has the line of that table.

    It reads headers and the beginnings of lines only, so it may miss a key, but costs nothing to load.
    """
    lines: dict[str, int] = {}
    blocks: dict[str, int] = {}
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            section = _dotted(header[2])
            block, dot, rest = section.partition(".")
            if block in blocks:
                section = f"{block}[{blocks[block]}]{dot}{rest}" if dot else section
            if header[1]:
                index = blocks[section] = blocks.get(section, -1) + 1
                section = f"{section}[{index}]"
            lines.setdefault(section, number)
        elif pair := _PAIR.match(line):
            lines.setdefault(f"{section}.{_dotted(pair[1])}" if section else _dotted(pair[1]), number)

    def find(key: str) -> int | None:
        while key and key not in lines:
            key = key.rpartition(".")[0]
        return lines.get(key)

    return find


def _dotted(raw: str) -> str:
    return ".".join(part.strip("\"'") for part in _PART.findall(raw))
