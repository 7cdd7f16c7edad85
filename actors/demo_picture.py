"""What can be seen of the demo at one moment, and the plain lines that tell of it where there is no terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from actors.demo_script import Chat
from actors.demo_stage import Note
from actors.sandbox.views import Calls, ChatView, MessageView, State

REFUSALS = {"rate_limited": "slow down", "transient": "try again"}
"""What the chat service answered, in its own words."""


@dataclass(frozen=True, slots=True)
class Picture:
    """One moment. ``state`` and ``calls`` are what the chat service itself says."""

    t_ms: int
    state: State
    calls: Calls
    notes: Sequence[Note]
    events: int
    """Events that livesign has got."""
    saved: int
    """Calls that livesign did not have to make."""

    def chat(self, chat: Chat) -> ChatView | None:
        """The chat as it is, if anything has happened there."""
        return next((view for view in self.state.chats if view.id == chat.id), None)

    def made(self, *ops: str) -> int:
        """Calls of these operations."""
        return sum(sum(self.calls.counts.get(op, {}).values()) for op in ops)

    def answered(self, outcome: str) -> int:
        """Calls with this outcome."""
        return sum(outcomes.get(outcome, 0) for outcomes in self.calls.counts.values())


class PlainLines:
    """Tells what has changed from one picture to the next, one line each."""

    def __init__(self, chats: Sequence[Chat]) -> None:
        self._chats = chats
        self._messages: dict[tuple[str, str], MessageView] = {}
        self._typing: dict[str, frozenset[str]] = {}
        self._note = 0

    def lines(self, picture: Picture) -> Iterator[str]:
        """The lines for what is new in ``picture``."""
        for note in picture.notes:
            if note.number > self._note:
                self._note = note.number
                yield _line(note.t_ms, note.chat, f"           {note.who}: {note.what}")
        for chat in self._chats:
            view = picture.chat(chat)
            if view is not None:
                for text in self._changes(view):
                    yield _line(picture.t_ms, chat.title, text)

    def _changes(self, view: ChatView) -> Iterator[str]:
        for message in view.messages:
            before = self._messages.get((view.id, message.id))
            self._messages[view.id, message.id] = message
            if before is None:
                yield f"{message.sender}: {message.text}"
            marks, had = _marks(message), "" if before is None else _marks(before)
            if marks != had:
                yield f"{marks or 'no mark'} on “{message.text}”"
        typing = frozenset(typing.account for typing in view.typing)
        had_typing = self._typing.get(view.id, frozenset())
        self._typing[view.id] = typing
        for account in sorted(typing - had_typing):
            yield f"{account} is typing"
        for account in sorted(had_typing - typing):
            yield f"{account} has stopped typing"


def _marks(message: MessageView) -> str:
    return " ".join(mark.emoji for mark in message.marks)


def _line(t_ms: int, place: str, text: str) -> str:
    return f"{t_ms / 1_000:5.1f}  {place:8}  {text}"
