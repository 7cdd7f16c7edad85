"""The kinds of value a configuration key can have: each says what it allows and converts one raw value.

A kind takes what TOML or JSON gives and returns the checked, immutable form. It raises ValueError with the
reason, in words that can stand after the key's name. A secret value is never repeated in a reason.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from actors.presence.pacing import Limit

DAY_MS = 86_400_000
MONTH_MS = 30 * DAY_MS
_CLOCK = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_INVISIBLE = frozenset({"Cc", "Cf", "Me", "Mn"})
"""Categories of what shows only together with something else: joiners, selectors, marks above and around."""
_TYPE_NAMES: tuple[tuple[type, str], ...] = (
    (bool, "true or false"),
    (int, "a whole number"),
    (float, "a fraction"),
    (str, "text"),
    (Mapping, "a table"),
    (list, "a list"),
)
ENDS = frozenset({"queued", "stall_soft", "stall_hard", "done", "error"})
"""The states that ``status.presentation = "ends"`` shows; the ack is ``queued``."""


class Kind(Protocol):
    """One kind of value."""

    @property
    def allowed(self) -> str:
        """What is allowed, for messages and documentation."""

    def convert(self, value: object) -> object:
        """The checked form of ``value``. Raises ValueError with the reason."""


def type_name(value: object) -> str:
    """What a value is, in a user's words."""
    return next((name for kind, name in _TYPE_NAMES if isinstance(value, kind)), f"a {type(value).__name__}")


def quoted(value: object) -> str:
    """A raw value for a message: short, on one line, whatever it is."""
    try:
        text = f'"{value}"' if isinstance(value, str) and not _CONTROL.search(value) else repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, a tree of thousands of levels
        return "the value"
    return text if len(text) <= 60 else text[:57] + "..."


def wrong_type(value: object, wanted: str) -> ValueError:
    """The error for a value of another type."""
    if value is None:
        return ValueError("null is no value: leave the key out")
    return ValueError(f"must be {wanted}, not {type_name(value)}")


def plain_text(value: object) -> str:
    """Text that is not empty and fits on one line. Raises ValueError."""
    if not isinstance(value, str):
        raise wrong_type(value, "text")
    if not value:
        raise ValueError("must not be empty")
    if _CONTROL.search(value):
        raise ValueError("must not hold control characters")
    return value


@dataclass(frozen=True, slots=True)
class Flag:
    allowed: str = "true or false"

    def convert(self, value: object) -> bool:
        if not isinstance(value, bool):
            raise wrong_type(value, "true or false")
        return value


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number; ``zero`` adds 0, which means off, below ``low``."""

    low: int
    high: int
    unit: str = "ms"
    zero: bool = False

    @property
    def allowed(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        return f"{self.low} to {self.high}{unit}" + (", or 0 for off" if self.zero else "")

    def convert(self, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise wrong_type(value, "a whole number")
        if self.zero and value == 0:
            return 0
        if value < self.low:
            raise ValueError(f"{quoted(value)} is below {self.low}")
        if value > self.high:
            raise ValueError(f"{quoted(value)} is above {self.high}")
        return value


@dataclass(frozen=True, slots=True)
class Share:
    allowed: str = "0 to 0.9"

    def convert(self, value: object) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise wrong_type(value, "a number")
        if not 0 <= value <= 0.9 or not math.isfinite(value):
            raise ValueError(f"{quoted(value)} is not between 0 and 0.9")
        return float(value)


@dataclass(frozen=True, slots=True)
class Choice:
    options: tuple[str, ...]

    @property
    def allowed(self) -> str:
        return ", ".join(self.options)

    def convert(self, value: object) -> str:
        if not isinstance(value, str):
            raise wrong_type(value, "text")
        if value not in self.options:
            raise ValueError(f"{quoted(value)} is unknown")
        return value


@dataclass(frozen=True, slots=True)
class Text:
    allowed: str = "text"

    def convert(self, value: object) -> str:
        return plain_text(value)


@dataclass(frozen=True, slots=True)
class Secret:
    """Text that no message repeats."""

    allowed: str = "text without blanks"

    def convert(self, value: object) -> str:
        text = plain_text(value)
        if any(character.isspace() for character in text):
            raise ValueError("must not hold blanks")
        return text


@dataclass(frozen=True, slots=True)
class Glob:
    """A conversation id or a pattern of ids. Like ids of events, a whole number becomes decimal text."""

    allowed: str = "an id, or a pattern with *, ? and [...]"

    def convert(self, value: object) -> str:
        if isinstance(value, int) and not isinstance(value, bool):
            value = quoted(value)
        text = plain_text(value)
        if len(text.encode()) > 255:
            raise ValueError("is longer than 255 bytes")
        return text


@dataclass(frozen=True, slots=True)
class Emoji:
    allowed: str = "one emoji"

    def convert(self, value: object) -> str:
        if value == "":
            raise ValueError(
                "must not be empty; to leave a state unmarked, list the other states in status.presentation"
            )
        text = plain_text(value)
        if any(character.isspace() for character in text) or len(text) > 64:
            raise ValueError(f"{quoted(text)} is not one emoji")
        if all(unicodedata.category(character) in _INVISIBLE for character in text):
            raise ValueError(f"{quoted(text)} shows nothing")
        return text


@dataclass(frozen=True, slots=True)
class TextList:
    """``lower``: texts are compared in lower case."""

    lower: bool = False
    options: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        return "a list of " + (", ".join(self.options) or "texts")

    def convert(self, value: object) -> tuple[str, ...]:
        if not isinstance(value, list | tuple):
            raise wrong_type(value, "a list of texts")
        texts = [plain_text(item).lower() if self.lower else plain_text(item) for item in value]
        for text in texts:
            if self.options and text not in self.options:
                raise ValueError(f"{quoted(text)} is unknown")
        return tuple(dict.fromkeys(texts))


@dataclass(frozen=True, slots=True)
class AccountNames:
    """``"*"`` (None) or a list of account names."""

    allowed: str = '"*" or a list of account names'

    def convert(self, value: object) -> frozenset[str] | None:
        return None if value == "*" else frozenset(TextList().convert(value))


@dataclass(frozen=True, slots=True)
class Presentation:
    """``full`` (None), ``ends`` or a list of states; whether they exist is seen later."""

    allowed: str = "full, ends, or a list of states"

    def convert(self, value: object) -> frozenset[str] | None:
        if isinstance(value, str):
            if value not in ("full", "ends"):
                raise ValueError(f"{quoted(value)} is unknown")
            return ENDS if value == "ends" else None
        return frozenset(TextList().convert(value))


@dataclass(frozen=True, slots=True)
class QuietHours:
    """Minutes of the day (from, until); None: no quiet hours."""

    allowed: str = "HH:MM-HH:MM, or none"

    def convert(self, value: object) -> tuple[int, int] | None:
        text = plain_text(value)
        if text == "none":
            return None
        parts = [_CLOCK.fullmatch(part.strip()) for part in text.split("-")]
        if len(parts) != 2 or parts[0] is None or parts[1] is None:
            raise ValueError(f"{quoted(text)} is not a pair of times")
        begin, end = (int(part[1]) * 60 + int(part[2]) for part in parts if part)
        if begin == end:
            raise ValueError("begins and ends at the same time")
        return begin, end


@dataclass(frozen=True, slots=True)
class LimitTable:
    allowed: str = "{per_ms = 1 to 86400000, count = 1 to 1000000, burst = 1 to count}"

    def convert(self, value: object) -> Limit:
        if not isinstance(value, Mapping):
            raise wrong_type(value, "a table")
        for name in value:
            if name not in ("per_ms", "count", "burst"):
                raise ValueError(f"has the unknown key {quoted(name)}")
        numbers: dict[str, int] = {}
        for name, high in (("per_ms", DAY_MS), ("count", 1_000_000), ("burst", 1_000_000)):
            if name in value:
                try:
                    numbers[name] = Whole(1, high, "").convert(value[name])
                except ValueError as error:
                    raise ValueError(f"{name}: {error}") from None
            elif name != "burst":
                raise ValueError(f"lacks {name}")
        return Limit(**numbers)


def is_name(text: str) -> bool:
    """Whether ``text`` can name a tool category."""
    return _NAME.fullmatch(text) is not None
