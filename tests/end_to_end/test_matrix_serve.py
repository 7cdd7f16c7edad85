"""`livesign serve` with a Matrix account on a real homeserver: what a second user of the room sees."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.processes import Process
from tests.end_to_end.room import Room
from tests.end_to_end.synapse import running

pytestmark = pytest.mark.real


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
