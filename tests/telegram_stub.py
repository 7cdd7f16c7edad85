"""A Bot API server on loopback, for livesign and for official client libraries alike.

It knows ``getMe``, ``setMessageReaction`` and ``sendChatAction``, takes JSON, form and multipart bodies as
the real one does, keeps what a chat user would see, and refuses what the Bot API refuses, in its words.
Scripted answers come first: slow, refused, cut off or never. Runs in threads of its own, so asyncio, gevent
and plain clients can share it.

    with TelegramStub() as stub:
        Bot(stub.token, base_url=f"{stub.url}/bot")                  # python-telegram-bot
        AiohttpSession(api=TelegramAPIServer.from_base(stub.url))    # aiogram
        Credentials(token=stub.token, base_url=stub.url)             # livesign
"""

from __future__ import annotations

import json
import socket
import threading
from collections import deque
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, unquote

from tests.platforms.schemas import telegram_emojis

TOKEN = "424242:AAE-stub-token_0123456789abcdefghijkl"


@dataclass(frozen=True)
class Called:
    """One request, its values decoded whatever the encoding was: numbers are numbers, ``reaction`` a list."""

    method: str
    values: dict[str, Any]
    content_type: str
    connection: int


@dataclass(frozen=True)
class Answer:
    """A scripted answer. ``cut``: close after so many bytes. ``hang``: none, until the client leaves."""

    status: int = 200
    body: Any = field(default_factory=lambda: {"ok": True, "result": True})
    headers: tuple[tuple[str, str], ...] = ()
    delay_s: float = 0.0
    cut: int | None = None
    hang: bool = False


def refusal(code: int, description: str, **parameters: Any) -> Answer:
    """The Bot API's form of an error."""
    body: dict[str, Any] = {"ok": False, "error_code": code, "description": description}
    if parameters:
        body["parameters"] = parameters
    headers = (("Retry-After", str(parameters["retry_after"])),) if "retry_after" in parameters else ()
    return Answer(code, body, headers)


class TelegramStub:
    """See the module. All attributes may be read and set from the test while it runs."""

    def __init__(self, token: str = TOKEN) -> None:
        self.token = token
        self.calls: list[Called] = []
        self.script: deque[Answer] = deque()
        """Answers to the next calls, in order."""
        self.reactions: dict[tuple[int, int], list[str]] = {}
        """Emojis by chat and message."""
        self.typing: list[tuple[int, int | None]] = []
        """Chat and thread of every accepted chat action."""
        self.deleted: set[tuple[int, int]] = set()
        self.topics: dict[int, set[int]] = {}
        """Threads of a forum; 1 is General. Other chats have no threads."""
        self.upgraded: dict[int, int] = {}
        """Groups that have become a supergroup, with its id."""
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._connections = 0

    @property
    def url(self) -> str:
        """Base URL, without ``/bot``."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> TelegramStub:
        handler = type("Handler", (_Handler,), {"stub": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = False
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), name="telegram-stub")
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    # --- called by the handler's threads ---

    def connected(self) -> int:
        """The number of a new connection."""
        with self._lock:
            self._connections += 1
            return self._connections - 1

    @property
    def connections(self) -> int:
        """Connections so far."""
        return self._connections

    @property
    def stopping(self) -> bool:
        """Whether the stub is being closed."""
        return self._stopping.is_set()

    def answer(self, token: str, called: Called) -> Answer:
        """What the Bot API says to the call."""
        with self._lock:
            self.calls.append(called)
            if self.script:
                return self.script.popleft()
            if token != self.token:
                well_formed = token.partition(":")[0].isdigit() and ":" in token
                return refusal(401, "Unauthorized") if well_formed else refusal(404, "Not Found")
            match called.method.lower():
                case "getme":
                    return Answer(body={"ok": True, "result": ME})
                case "setmessagereaction":
                    return self._react(called.values)
                case "sendchataction":
                    return self._act(called.values)
            return refusal(404, "Not Found: method not found")

    def _react(self, values: dict[str, Any]) -> Answer:
        chat = values.get("chat_id")
        if not isinstance(chat, int):
            return refusal(400, "Bad Request: chat not found")
        if chat in self.upgraded:
            return _upgraded(self.upgraded[chat])
        place = (chat, values.get("message_id", 0))
        if place in self.deleted:
            return refusal(400, "Bad Request: message to react not found")
        emojis = [each.get("emoji") for each in values.get("reaction", [])]
        if len(emojis) > 1:
            return refusal(400, "Bad Request: REACTIONS_TOO_MANY")
        if any(emoji not in telegram_emojis() for emoji in emojis):
            return refusal(400, "Bad Request: REACTION_INVALID")
        self.reactions[place] = emojis
        return Answer()

    def _act(self, values: dict[str, Any]) -> Answer:
        chat, thread = values.get("chat_id"), values.get("message_thread_id")
        if not isinstance(chat, int):
            return refusal(400, "Bad Request: chat not found")
        if chat in self.upgraded:
            return _upgraded(self.upgraded[chat])
        if values.get("action") != "typing":
            return refusal(400, "Bad Request: wrong parameter action in request")
        if thread is not None and thread not in self.topics.get(chat, ()):
            return refusal(400, "Bad Request: message thread not found")
        self.typing.append((chat, thread))
        return Answer()


ME = {"id": 424242, "is_bot": True, "first_name": "Stub", "username": "stub_bot"}


def _upgraded(new_id: int) -> Answer:
    text = "Bad Request: group chat was upgraded to a supergroup chat"
    return refusal(400, text, migrate_to_chat_id=new_id)


class _Handler(BaseHTTPRequestHandler):
    stub: TelegramStub
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 30

    def setup(self) -> None:
        super().setup()
        self.number = self.stub.connected()
        self.connection.settimeout(0.05)

    def handle_one_request(self) -> None:
        # Idle connections are left as soon as the stub is closed.
        while not self.stub.stopping:
            try:
                if not self.connection.recv(1, socket.MSG_PEEK):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
            self.connection.settimeout(5)
            super().handle_one_request()
            self.connection.settimeout(0.05)
            return
        self.close_connection = True

    def do_POST(self) -> None:
        _, _, rest = self.path.partition("/bot")
        token, _, method = rest.rpartition("/")
        content_type = self.headers.get("Content-Type", "")
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        called = Called(method, _values(content_type, body), content_type.partition(";")[0], self.number)
        self._send(self.stub.answer(unquote(token), called))

    do_GET = do_POST  # noqa: N815 - the base class's naming; the Bot API takes both

    def _send(self, answer: Answer) -> None:
        if answer.hang:
            self.connection.settimeout(0.02)
            while not self.stub.stopping:
                try:
                    if not self.connection.recv(1):
                        break
                except TimeoutError:
                    continue
                except OSError:
                    break
            self.close_connection = True
            return
        if answer.delay_s:
            threading.Event().wait(answer.delay_s)
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        lines = [
            f"HTTP/1.1 {answer.status} Stub",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
        ]
        lines += [f"{name}: {value}" for name, value in answer.headers]
        data = "\r\n".join([*lines, "", ""]).encode() + body
        try:
            self.connection.sendall(data if answer.cut is None else data[: answer.cut])
        except OSError:
            self.close_connection = True
        if answer.cut is not None:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Silent."""


def _values(content_type: str, body: bytes) -> dict[str, Any]:
    if content_type.startswith("application/json"):
        loaded: dict[str, Any] = json.loads(body)
        return loaded
    if content_type.startswith("multipart/form-data"):
        message = BytesParser(policy=HTTP).parsebytes(f"Content-Type: {content_type}\r\n\r\n".encode() + body)
        pairs = [
            (str(part.get_param("name", header="content-disposition")), part.get_content().rstrip("\r\n"))
            for part in message.iter_parts()
        ]
    else:
        pairs = parse_qsl(body.decode(), keep_blank_values=True)
    return {name: _decoded(text) for name, text in pairs}


def _decoded(text: str) -> Any:
    """Forms carry everything as text, lists and objects as JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return text
