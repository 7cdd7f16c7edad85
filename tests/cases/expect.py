"""What all expectations have in common. The language is described in the package's text.

Each kind of expectation is a class with one field named as the expectation's first word; `read_expectations` finds the
class by that word. Its ``check`` yields a sentence for each thing that differs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from tests.cases.words import WordError

TOLERANCE_MS = 250
FOREVER_MS = 2**62


class Window(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"from_": "from", "is_": "is"}):
    """When something is expected; and, in ``why``, for what reason."""

    from_: int | None = None
    after: int | None = None
    to: int | None = None
    before: int | None = None
    why: str | None = None

    @property
    def first_ms(self) -> int:
        """Begin of the window, included."""
        return max(self.from_ or 0, 0 if self.after is None else self.after + 1)

    def last_ms(self, until_ms: int = FOREVER_MS) -> int:
        """End of the window, included."""
        to_ms = FOREVER_MS if self.to is None else self.to
        return min(to_ms, FOREVER_MS if self.before is None else self.before - 1, until_ms)

    def holds(self, t_ms: int) -> bool:
        """Whether this moment is in the window."""
        return self.first_ms <= t_ms <= self.last_ms()


class Counted(Window, frozen=True, kw_only=True):
    """How often; with no bound at all: at least once."""

    count: int | None = None
    min: int | None = None
    max: int | None = None

    @property
    def bounded(self) -> bool:
        return self.count is not None or self.min is not None or self.max is not None

    def counted(self, what: str, number: int) -> Iterator[str]:
        """Hold a number against the bounds."""
        least = self.min if self.bounded else 1
        if self.count is not None and number != self.count:
            yield f"{what}: {number}, not {self.count}"
        if least is not None and number < least:
            yield f"{what}: {number}, less than {least}"
        if self.max is not None and number > self.max:
            yield f"{what}: {number}, more than {self.max}"


W = TypeVar("W", bound=Window)


def check_names(what: str, names: Iterable[str], known: Collection[str]) -> None:
    """What there is not is never counted: an expectation of none would always hold. Raises `WordError`."""
    for name in names:
        if name not in known:
            raise WordError(f"there is no {what} {name!r}; there are {', '.join(sorted(known))}")


def as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def read_expectations(rows: Sequence[Any], kinds: Mapping[str, type[W]]) -> list[W]:
    """All expectations of a case. Raises `WordError` with the place of one that makes no sense."""
    found = []
    for index, row in enumerate(rows):
        names = [name for name in row if name in kinds] if isinstance(row, dict) else []
        if len(names) != 1:
            raise WordError(f"expect[{index}] must be an object with exactly one of {', '.join(kinds)}")
        try:
            expectation = msgspec.convert(row, kinds[names[0]])
        except msgspec.ValidationError as error:
            raise WordError(f"expect[{index}]: {error}") from error
        if expectation.first_ms > expectation.last_ms():
            raise WordError(f"expect[{index}]: the window ends before it begins")
        found.append(expectation)
    return found
