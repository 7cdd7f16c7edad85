"""The agents of `livesign demo`, and their users: plays the script over real sockets and real HTTP.

Each scene's agent is a client like any other: msgpack maps on the server's Unix socket, and a bot's own posts on the
chat service. The stage writes down what they do, for the screen.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gevent
import msgpack
from gevent import socket
from gevent.pool import Group

from actors.demo_script import Answer, Say, Scene, Tell, Vanish
from actors.sandbox import SandboxClient
from protocol.codec import ReplyDecoder
from protocol.events import Ack

log = logging.getLogger("livesign.demo")

_KEPT = 200


@dataclass(frozen=True, slots=True)
class Note:
    """Something an agent did."""

    number: int
    t_ms: int
    who: str
    chat: str
    what: str


class Stage:
    """Plays scenes on time. ``now_ms`` is the demo's clock since its start, ``speed`` how fast that runs."""

    def __init__(self, path: str, base_url: str, now_ms: Callable[[], int], speed: float) -> None:
        self.notes: deque[Note] = deque(maxlen=_KEPT)
        self.errors: list[str] = []
        """What livesign should not have answered, or an agent could not do."""
        self._path = path
        self._chat = SandboxClient(base_url)
        self._now_ms = now_ms
        self._speed = speed
        self._noted = 0

    def play(self, scenes: Sequence[Scene]) -> None:
        """Play all scenes; returns when the last step of the last one is done."""
        actors = Group()
        try:
            for scene in scenes:
                actors.spawn(self._play, scene)
            actors.join()
        finally:
            actors.kill()

    def close(self) -> None:
        """Let the connections to the chat service go."""
        self._chat.close()

    def _play(self, scene: Scene) -> None:
        try:
            self._sleep_until(scene.at_ms)
            message = self._chat.post(scene.chat.id, scene.text, scene.user, direct=scene.chat.direct)
            agent = _Agent(self._path, scene, message)
            self._tell(scene, agent, _received(scene))
            at_ms = scene.at_ms
            for after_ms, act in scene.steps:
                at_ms += after_ms
                self._sleep_until(at_ms)
                self._do(scene, agent, act)
            agent.leave()
            self.errors += agent.complaints
        except Exception as error:
            log.exception("the scene %r ended early", scene.text)
            self.errors.append(f"{scene.chat.title}: {error}")

    def _do(self, scene: Scene, agent: _Agent, act: Tell | Answer | Say | Vanish) -> None:
        match act:
            case Tell():
                self._tell(scene, agent, act)
            case Answer(text, final):
                self._tell(scene, agent, Tell("sending", {"final": final}))
                self._chat.reply(scene.chat.id, text, scene.account)
                self._tell(scene, agent, Tell("sent", {"final": final}))
            case Say(text):
                self._chat.post(scene.chat.id, text, scene.user)
            case Vanish():
                agent.vanish()
                self._note(scene, "✗ killed")

    def _tell(self, scene: Scene, agent: _Agent, act: Tell) -> None:
        agent.tell(act)
        detail = act.fields.get("name") or act.fields.get("reason") or act.fields.get("on") or ""
        self._note(scene, f"{act.type} {detail}".rstrip())

    def _note(self, scene: Scene, what: str) -> None:
        self._noted += 1
        self.notes.append(Note(self._noted, self._now_ms(), scene.account, scene.chat.title, what))

    def _sleep_until(self, t_ms: int) -> None:
        gevent.sleep(max(0, t_ms - self._now_ms()) / 1_000 / self._speed)


class _Agent:
    """A client of livesign in the plainest way: a socket and msgpack."""

    def __init__(self, path: str, scene: Scene, message: str) -> None:
        self.complaints: list[str] = []
        self._target = {"account": scene.account, "conversation": scene.chat.id, "message": message}
        self._sent = 0
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._sock.connect(path)

    def tell(self, act: Tell) -> None:
        """Send one event, and wait for its ack."""
        self._sent += 1
        self._sock.sendall(msgpack.packb({"type": act.type, "id": str(self._sent), **self._target, **act.fields}))
        answer = self._answer()
        if not isinstance(answer, Ack) or answer.result != "applied":
            self.complaints.append(f"{act.type} of message {self._target['message']}: {answer}")

    def leave(self) -> None:
        """The work is done."""
        self._sock.close()

    vanish = leave

    def _answer(self) -> Any:
        decoder = ReplyDecoder()
        while data := self._sock.recv(4_096):
            for reply in decoder.feed(data):
                return reply
        return "connection closed"


def _received(scene: Scene) -> Tell:
    return Tell("received", {"direct": scene.chat.direct, "mentioned": not scene.chat.direct})
