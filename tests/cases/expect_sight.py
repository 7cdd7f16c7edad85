"""Expectations about what users see: marks on messages and typing indicators, at moments and over time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from msgspec import Struct

from tests.cases.expect import Window, as_list
from tests.cases.stage import Evidence, MarkPlace, TypingPlace


class MessagePlace(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    message: str
    chat: str | None = None
    account: str | None = None


class Target(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    chat: str
    thread: str | None = None
    account: str | None = None


class Marks(Window, frozen=True, kw_only=True):
    """The marks on a message: exactly these (``are``) at some times, or rules for a whole window."""

    marks: str | MessagePlace
    are: list[str] | None = None
    at: list[int] | int | None = None
    """When they are these; left out: at the end."""
    min: int | None = None
    max: int | None = None
    always: list[str] | None = None
    never: list[str] | None = None
    only: list[str] | None = None
    once: list[str] | None = None
    """Each of these showed at some time in the window."""

    def check(self, evidence: Evidence) -> Iterator[str]:
        place = self._place(evidence)
        named = f"marks on {place[2]}"
        if self.are is not None:
            wanted = sorted(self._emojis(self.are, place, evidence))
            for t_ms in as_list(evidence.until_ms if self.at is None else self.at):
                shown = sorted(evidence.sight.marks_at(place, t_ms))
                if shown != wanted:
                    yield f"{named} at {t_ms}: {' '.join(shown) or 'none'}, not {' '.join(wanted) or 'none'}"
        yield from self._over_time(named, place, evidence)

    def _over_time(self, named: str, place: MarkPlace, evidence: Evidence) -> Iterator[str]:
        rules = (self.min, self.max, self.always, self.never, self.only, self.once)
        if all(rule is None for rule in rules):
            return
        always, never = self._emojis(self.always, place, evidence), self._emojis(self.never, place, evidence)
        only, missing = self._emojis(self.only, place, evidence), self._emojis(self.once, place, evidence)
        for t_ms, shown in evidence.sight.marks_between(place, self.first_ms, self.last_ms(evidence.until_ms)):
            missing -= set(shown)
            said = f"{named} at {t_ms}: {' '.join(shown) or 'none'}"
            if self.min is not None and len(shown) < self.min:
                yield f"{said}, fewer than {self.min}"
            if self.max is not None and len(shown) > self.max:
                yield f"{said}, more than {self.max}"
            if always - set(shown):
                yield f"{said}, without {' '.join(always - set(shown))}"
            if never & set(shown):
                yield f"{said}, which must never be"
            if self.only is not None and set(shown) - only:
                yield f"{said}, which is not among {' '.join(only)}"
        if missing:
            yield f"{named}: {' '.join(missing)} never showed"

    def _place(self, evidence: Evidence) -> MarkPlace:
        where = MessagePlace(message=self.marks) if isinstance(self.marks, str) else self.marks
        if where.chat is not None and where.account is not None:
            return where.account, where.chat, where.message
        turn = evidence.translation.turn(where.message, where.account)
        return turn.account, where.chat or turn.chat, where.message

    def _emojis(self, names: list[str] | None, place: MarkPlace, evidence: Evidence) -> set[str]:
        return {evidence.emoji(name, place[0], place[1]) for name in names or ()}


class Typing(Window, frozen=True, kw_only=True):
    """Whether the indicator of a chat (or thread) is on: at some times, or all through a window."""

    typing: str | Target
    on: bool = True
    at: list[int] | int | None = None
    gap_max: int = 0
    """In a window: it may be off (or on) for so long at a time."""

    def check(self, evidence: Evidence) -> Iterator[str]:
        target = self._target(evidence)
        spans = evidence.sight.typing_spans(target)
        named = f"typing in {'/'.join(filter(None, target[1:]))}"
        if self.at is not None:
            for t_ms in as_list(self.at):
                if any(begin <= t_ms < end for begin, end in spans) is not self.on:
                    yield f"{named}: {'off' if self.on else 'on'} at {t_ms}"
            return
        first_ms, last_ms = self.first_ms, self.last_ms(evidence.until_ms)
        inside = [
            (max(begin, first_ms), min(end, last_ms)) for begin, end in spans if end > first_ms and begin < last_ms
        ]
        wrong = inside
        if self.on:
            edges = [first_ms, *(edge for span in inside for edge in span), last_ms]
            wrong = list(pairwise(edges))[::2]
        for begin, end in wrong:
            if end - begin > self.gap_max:
                yield f"{named}: {'off' if self.on else 'on'} from {begin} to {end}"

    def _target(self, evidence: Evidence) -> TypingPlace:
        where = Target(chat=self.typing) if isinstance(self.typing, str) else self.typing
        return where.account or next(iter(evidence.config.accounts)), where.chat, where.thread
