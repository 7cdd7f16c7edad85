"""Chats with the time in the test's hand, and short words to call them."""

from __future__ import annotations

from typing import Any

from actors.presence.terms import Op, OutcomeKind
from actors.sandbox.calls import Call
from actors.sandbox.chat import Chats
from actors.sandbox.options import SandboxOptions

OK, ALREADY = OutcomeKind.OK, OutcomeKind.ALREADY_DONE


class Stage:
    """One service's state, its time and its callers."""

    def __init__(self, **options: Any) -> None:
        self.chats = Chats(SandboxOptions(**options))
        self.now_ms = 0

    def do(
        self, op: Op, chat: str, thread: str | None, message: str | None, emoji: str | None, who: str
    ) -> OutcomeKind:
        return self.chats.apply(Call(op, who, chat, thread, message, emoji), self.now_ms).kind

    def set(self, emoji: str, message: str = "m", who: str = "bot", chat: str = "c") -> OutcomeKind:
        return self.do(Op.SET, chat, None, message, emoji, who)

    def remove(self, emoji: str, message: str = "m", who: str = "bot") -> OutcomeKind:
        return self.do(Op.REMOVE, "c", None, message, emoji, who)

    def clear(self, message: str = "m", who: str = "bot", chat: str = "c") -> OutcomeKind:
        return self.do(Op.CLEAR, chat, None, message, None, who)

    def type(self, chat: str = "c", thread: str | None = None, who: str = "bot") -> OutcomeKind:
        return self.do(Op.TYPING_START, chat, thread, None, None, who)

    def stop(self, chat: str = "c", thread: str | None = None, who: str = "bot") -> OutcomeKind:
        return self.do(Op.TYPING_STOP, chat, thread, None, None, who)

    def post(self, text: str = "hello", who: str = "ana", chat: str = "c", **more: Any) -> str:
        return self.chats.post(chat, who, text, self.now_ms, **more)

    def marks(self, message: str = "m", chat: str = "c") -> list[tuple[str, str]]:
        state = self.chats.view(self.now_ms, chat=chat)
        return [(mark.account, mark.emoji) for m in state.chats[0].messages if m.id == message for mark in m.marks]

    def typing(self) -> list[tuple[str, str | None, str, int | None]]:
        state = self.chats.view(self.now_ms)
        return [(c.id, t.thread, t.account, t.remaining_ms) for c in state.chats for t in c.typing]
