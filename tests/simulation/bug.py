"""A planted bug."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bug:
    """``old`` stands exactly once in ``file``; with ``new`` in its place livesign has the bug."""

    name: str
    area: str
    file: str
    old: str
    new: str
