"""What there is on the platform: chats, messages, marks and typing. The time is handed in; no I/O, no clock.

Rules:

- ``set`` on a platform that replaces takes the account's other mark off; on one that adds it joins them.
- ``remove`` takes one mark of the account off, ``clear`` all of them. Other accounts' marks are never
  touched.
- A call whose target state holds already changes nothing and says so. A typing start always counts anew.
- Typing ends by itself when its lifetime is over, by a stop, and (option) by the account's own message there.
- A deleted message stays deleted: marks on it are refused also where unknown messages are made.
- What carries a mark or an indicator is never forgotten; see `actors.sandbox.shelf`. If there is no room at
  all the call fails as transient.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from actors.presence.terms import Op, OutcomeKind
from actors.sandbox.calls import Call
from actors.sandbox.options import SandboxOptions
from actors.sandbox.shelf import Shelf, ShelfFullError, Shelved
from actors.sandbox.views import ChatView, MarkView, MessageView, State, TypingView

MAX_MARKS = 50
"""Marks that fit on one message."""


class Answer(NamedTuple):
    """What a call came to; ``detail`` is for people."""

    kind: OutcomeKind
    detail: str = ""


OK = Answer(OutcomeKind.OK)
ALREADY = Answer(OutcomeKind.ALREADY_DONE)
NO_MESSAGE = Answer(OutcomeKind.GONE, "no such message")
NO_CHAT = Answer(OutcomeKind.GONE, "no such chat")
NO_MARKS = Answer(OutcomeKind.BAD_REQUEST, "this platform has no marks")
NO_STOP = Answer(OutcomeKind.BAD_REQUEST, "this platform has no call that stops typing")
NO_TYPING = Answer(OutcomeKind.FORBIDDEN, "typing is for direct chats only")
NO_MORE_MARKS = Answer(OutcomeKind.FORBIDDEN, f"a message takes {MAX_MARKS} marks")
NO_ROOM = Answer(OutcomeKind.TRANSIENT, "no room: every chat or message carries a mark or an indicator")


class Message(Shelved):
    """A message. ``marks``: (account, emoji) to the time it was put there, oldest first."""

    __slots__ = ("at_ms", "bot", "deleted", "id", "marks", "number", "sender", "text", "thread")

    def __init__(self, id_: str, number: int, at_ms: int) -> None:
        super().__init__()
        self.id = id_
        self.number = number
        self.at_ms = at_ms
        self.sender = ""
        self.text = ""
        self.thread: str | None = None
        self.bot = False
        self.deleted = False
        self.marks: dict[tuple[str, str], int] = {}


class Chat(Shelved):
    """A chat. ``direct``: None while nobody has said what it is."""

    __slots__ = ("direct", "id", "made", "messages")

    def __init__(self, id_: str, room: int) -> None:
        super().__init__()
        self.id = id_
        self.direct: bool | None = None
        self.messages: Shelf[Message] = Shelf(room)
        self.made = 0


class Typing(NamedTuple):
    """An indicator: one account in one chat and thread."""

    chat: str
    account: str
    thread: str | None


class Chats:
    """All chats. Times must not go backwards."""

    def __init__(self, options: SandboxOptions) -> None:
        self._options = options
        self._replaces = options.reactions == "replace"
        self._chats: Shelf[Chat] = Shelf(options.max_chats)
        # One lifetime for all, renewed at the end: the order is that of expiry.
        self._typing: OrderedDict[Typing, int] = OrderedDict()
        self._mark_count = 0

    # --- the calls of accounts ---

    def apply(self, call: Call, now_ms: int) -> Answer:
        """Do what an account asks."""
        self._expire(now_ms)
        try:
            if call.op is Op.TYPING_START:
                return self._type(Typing(call.conversation, call.account, call.thread), now_ms)
            if call.op is Op.TYPING_STOP:
                return self._stop(Typing(call.conversation, call.account, call.thread))
            return self._mark(call, now_ms)
        except ShelfFullError:
            return NO_ROOM

    def _mark(self, call: Call, now_ms: int) -> Answer:
        if self._options.reactions == "none":
            return NO_MARKS
        chat = self._chats.get(call.conversation)
        message = chat.messages.get(call.message or "") if chat is not None else None
        if message is not None and message.deleted:
            return NO_MESSAGE
        if chat is None or message is None:
            if self._options.strict_messages:
                return NO_MESSAGE
            if call.op is not Op.SET:
                return ALREADY
            chat = chat or self._make_chat(call.conversation)
            message = self._make_message(chat, call.message or "", now_ms)
        if call.op is Op.SET:
            return self._set(chat, message, call.account, call.emoji or "", now_ms)
        going = [key for key in message.marks if key[0] == call.account and call.emoji in (None, key[1])]
        return self._take_off(chat, message, going)

    def _set(self, chat: Chat, message: Message, account: str, emoji: str, now_ms: int) -> Answer:
        key = (account, emoji)
        if key in message.marks:
            return ALREADY
        others = [other for other in message.marks if other[0] == account] if self._replaces else []
        if len(message.marks) - len(others) >= MAX_MARKS:
            return NO_MORE_MARKS
        message.marks[key] = now_ms
        self._mark_count += 1
        chat.messages.hold(message.id)
        self._chats.hold(chat.id)
        self._take_off(chat, message, others)
        return OK

    def _take_off(self, chat: Chat, message: Message, going: list[tuple[str, str]]) -> Answer:
        if not going:
            return ALREADY
        for key in going:
            del message.marks[key]
        self._mark_count -= len(going)
        chat.messages.release(message.id, len(going))
        self._chats.release(chat.id, len(going))
        return OK

    def _type(self, typing: Typing, now_ms: int) -> Answer:
        chat = self._chats.get(typing.chat)
        if chat is None:
            if self._options.strict_messages:
                return NO_CHAT
            chat = self._make_chat(typing.chat)
        if self._options.typing_in == "direct" and chat.direct is False:
            return NO_TYPING
        lifetime_ms = self._options.typing_lifetime_ms
        known = typing in self._typing
        if known and not lifetime_ms:
            return ALREADY
        self._typing[typing] = now_ms + lifetime_ms
        if known:
            self._typing.move_to_end(typing)
            self._chats.use(typing.chat)
        else:
            self._chats.hold(typing.chat)
        return OK

    def _stop(self, typing: Typing) -> Answer:
        if not self._options.typing_stop:
            return NO_STOP
        if typing not in self._typing:
            return ALREADY
        self._end(typing)
        return OK

    def _end(self, typing: Typing) -> None:
        del self._typing[typing]
        self._chats.release(typing.chat)

    def _expire(self, now_ms: int) -> None:
        if not self._options.typing_lifetime_ms:
            return
        while self._typing:
            typing, until_ms = next(iter(self._typing.items()))
            if until_ms > now_ms:
                return
            self._end(typing)

    # --- messages ---

    def post(
        self,
        chat_id: str,
        sender: str,
        text: str,
        now_ms: int,
        *,
        thread: str | None = None,
        bot: bool = False,
        direct: bool | None = None,
    ) -> str:
        """Put a message into a chat, which is made where it is new; its id. ``direct`` says what the chat is.

        Raises:
            ShelfFullError: there is no room.
        """
        self._expire(now_ms)
        chat = self._chats.get(chat_id) or self._make_chat(chat_id)
        if direct is not None:
            chat.direct = direct
        number = chat.made + 1
        while chat.messages.get(str(number)) is not None:  # a mark may have made a message of that name
            number += 1
        message = self._make_message(chat, str(number), now_ms)
        chat.made = message.number = number
        message.sender, message.text, message.thread, message.bot = sender, text, thread, bot
        self._chats.use(chat_id)
        typing = Typing(chat_id, sender, thread)
        if bot and self._options.post_clears_typing and typing in self._typing:
            self._end(typing)
        return message.id

    def delete(self, chat_id: str, message_id: str, now_ms: int) -> bool:
        """Take a message and its marks away. False: there is none."""
        self._expire(now_ms)
        chat = self._chats.get(chat_id)
        message = chat.messages.get(message_id) if chat is not None else None
        if chat is None or message is None or message.deleted:
            return False
        self._take_off(chat, message, list(message.marks))
        message.deleted = True
        message.text = ""
        return True

    def _make_chat(self, chat_id: str) -> Chat:
        chat = Chat(chat_id, self._options.max_messages)
        self._chats.add(chat_id, chat)
        return chat

    def _make_message(self, chat: Chat, message_id: str, now_ms: int) -> Message:
        chat.made += 1
        message = Message(message_id, chat.made, now_ms)
        chat.messages.add(message_id, message)
        return message

    # --- looking at it ---

    def view(self, now_ms: int, *, chat: str | None = None, recent: int | None = None) -> State:
        """Everything, or one chat, or only the chats with the latest activity."""
        self._expire(now_ms)
        if chat is not None:
            found = self._chats.get(chat)
            chats = [found] if found is not None else []
        else:
            chats = self._chats.newest(len(self._chats) if recent is None else recent)
        typing: dict[str, list[TypingView]] = {}
        for (chat_id, account, thread), until_ms in self._typing.items():
            remaining_ms = until_ms - now_ms if self._options.typing_lifetime_ms else None
            typing.setdefault(chat_id, []).append(TypingView(account, thread, remaining_ms))
        return State(
            now_ms=now_ms,
            marks=self._mark_count,
            typing=len(self._typing),
            chat_count=len(self._chats),
            chats=[_chat_view(chat, typing.get(chat.id, [])) for chat in chats],
        )


def _chat_view(chat: Chat, typing: list[TypingView]) -> ChatView:
    messages = sorted((m for m in chat.messages if not m.deleted), key=lambda m: m.number)
    return ChatView(chat.id, chat.direct, [_message_view(m) for m in messages], typing)


def _message_view(message: Message) -> MessageView:
    return MessageView(
        id=message.id,
        sender=message.sender,
        text=message.text,
        thread=message.thread,
        bot=message.bot,
        at_ms=message.at_ms,
        marks=[MarkView(emoji, account, at_ms) for (account, emoji), at_ms in message.marks.items()],
    )
