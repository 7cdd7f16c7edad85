"""`livesign serve` with a Matrix account on a real homeserver: what a second user of the room sees."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.processes import Process, RawClient
from tests.end_to_end.synapse import Eyes, Synapse, User, running

pytestmark = pytest.mark.real

CONFIG = """
[accounts.bot]
platform = "matrix"
base_url = "{base_url}"
token_env = "BOT_TOKEN"
limits.account = {{ per_ms = 1000, count = 100 }}

[ack]
scope = "all"

[status]
presentation = "full"
min_change_ms = 0
debounce_ms = 200
done_hold_ms = 700
settle = "{settle}"

[server]
unix = "{folder}/s.sock"

[ledger]
path = "{folder}/ledger"

[lease]
adopt_ms = {adopt_ms}
"""


class Room:
    """A room with the bot in it, a user who asks and watches, and a server that serves the bot."""

    def __init__(self, homeserver: Synapse, folder: Path, settle: str = "clear", adopt_ms: int = 15_000) -> None:
        self.bot: User = homeserver.register()
        self.alice: User = homeserver.register()
        self.id = self.alice.create_room(self.bot)
        self.message = self.alice.say(self.id, "please work on this")
        self.eyes = Eyes(self.alice, self.id)
        self._folder = folder
        settings = {"base_url": homeserver.base_url, "folder": folder, "settle": settle, "adopt_ms": adopt_ms}
        (folder / "livesign.toml").write_text(CONFIG.format(**settings), "utf-8")
        self._serve()

    def _serve(self) -> None:
        config = self._folder / "livesign.toml"
        self.server = Process("-m", "actors", "serve", str(config), env={"BOT_TOKEN": self.bot.token})
        self.server.line_with("ready")
        self.client = RawClient(self._folder / "s.sock")

    def serve_again(self) -> None:
        """After the end of the server: another one, and a new connection to it."""
        self.close()
        self._serve()

    def tell(self, kind: str, **fields: object) -> None:
        self.client.send(type=kind, conversation=self.id, message=self.message, **fields)

    def shows(self, *emoji: str) -> None:
        """Wait until exactly these marks of the bot stand on the message."""
        wanted = [(self.bot.user_id, self.message, key) for key in emoji]
        self.eyes.until(lambda eyes: eyes.marks == wanted)

    def types(self, on: bool) -> None:
        wanted = [self.bot.user_id] if on else []
        self.eyes.until(lambda eyes: bool(eyes.typing) and eyes.typing[-1] == wanted)

    def close(self) -> None:
        self.client.close()
        self.server.close()


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    made = Room(running(), tmp_path)
    yield made
    made.close()
    assert made.bot.token not in made.server.text


def test_a_second_user_sees_ack_phases_result_and_typing_on_and_off(room: Room) -> None:
    room.tell("received", direct=True)
    room.shows("👀")
    room.types(True)
    room.tell("thinking")
    room.shows("🤔")
    room.tell("tool", name="web_search", call="1")
    room.shows("⚡\ufe0f")
    room.tell("tool_end", call="1")
    room.tell("tool", name="bash")
    room.shows("👨\u200d💻")
    room.tell("done")
    room.shows("👍\ufe0f")
    room.types(False)
    room.shows()
    seen = [each["content"]["m.relates_to"]["key"] for each in room.eyes.events if each["type"] == "m.reaction"]
    assert seen == ["👀", "🤔", "⚡\ufe0f", "👨\u200d💻", "👍\ufe0f"]


def test_a_client_that_is_gone_and_a_term_signal_leave_nothing_in_the_room(room: Room) -> None:
    room.tell("received", direct=True)
    room.tell("thinking")
    room.shows("🤔")
    room.types(True)
    room.server.signal(signal.SIGTERM)
    assert room.server.exit_code() == 0
    room.shows()
    room.types(False)


def test_a_server_that_was_killed_takes_back_at_its_next_start_what_it_left(room: Room, tmp_path: Path) -> None:
    room.tell("received", direct=True)
    room.tell("thinking")
    room.shows("🤔")
    room.server.signal(signal.SIGKILL)
    room.server.exit_code()
    config = tmp_path / "livesign.toml"
    config.write_text(config.read_text("utf-8").replace("adopt_ms = 15000", "adopt_ms = 300"), "utf-8")
    again = Process("-m", "actors", "serve", str(config), env={"BOT_TOKEN": room.bot.token})
    try:
        room.shows()
        room.types(False)
    finally:
        again.close()
