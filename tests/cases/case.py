"""A case as a file holds it, read and checked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from tests.cases.words import WordError


class Platform(Struct, forbid_unknown_fields=True, kw_only=True):
    """How the platform behaves."""

    like: str | dict[str, str] = "telegram"
    """A preset of `platforms`, or one for each account."""
    options: dict[str, Any] = {}
    """Added to the accounts' configuration."""
    latency_ms: int = 0
    rules: list[dict[str, Any]] = []
    """As in a scenario; emojis may be ``E.state``, ops may be a case's."""


class Variant(Struct, forbid_unknown_fields=True, kw_only=True):
    """The same case with something changed. What is left out is as in the case."""

    name: str
    settings: dict[str, Any] = {}
    """On top of those of the case."""
    script: list[Any] | None = None
    platform: Platform | None = None
    until_ms: int | None = None
    expect: list[Any] | None = None


class Case(Struct, forbid_unknown_fields=True, kw_only=True):
    """One case. ``proved_by``: pytest node ids of the tests that prove it, in place of a script or beside it."""

    id: str
    title: str
    kind: list[str] = []
    source: str | None = None
    note: str | None = None
    """What was changed against the report, and why."""
    platform: Platform = msgspec.field(default_factory=Platform)
    settings: dict[str, Any] = {}
    script: list[Any] = []
    until_ms: int | None = None
    expect: list[Any] = []
    variants: list[Variant] = []
    proved_by: list[str] = []

    def each(self) -> Iterator[tuple[str, Case]]:
        """The case itself, then each variant as a case of its own; with their names (the first has none)."""
        yield "", self
        for variant in self.variants:
            changed = msgspec.structs.replace(
                self,
                settings={**self.settings, **variant.settings},
                script=self.script if variant.script is None else variant.script,
                platform=self.platform if variant.platform is None else variant.platform,
                until_ms=self.until_ms if variant.until_ms is None and variant.script is None else variant.until_ms,
                expect=self.expect if variant.expect is None else variant.expect,
            )
            yield variant.name, changed


def read_file(path: Path) -> list[Case]:
    """The cases of a file: one object, or a list of them. A list of exclusions holds none.

    Raises `WordError` with the reason for a file that is not of this form.
    """
    try:
        raw = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise WordError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise WordError(f"{path}: is not JSON: {error}") from error
    if isinstance(raw, list) and not raw:
        raise WordError(f"{path}: holds no case")
    if isinstance(raw, dict) and "excluded" in raw:
        return []
    cases = []
    for tree in raw if isinstance(raw, list) else [raw]:
        try:
            cases.append(msgspec.convert(tree, Case))
        except msgspec.ValidationError as error:
            raise WordError(f"{path}: {error}") from error
    return cases
