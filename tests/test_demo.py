"""`livesign demo`: it ends well, and what it shows can be read."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from actors.demo_canvas import Canvas
from actors.demo_picture import Picture, PlainLines
from actors.demo_script import CHATS, MAYA, SCENES, Vanish
from actors.demo_stage import Note
from actors.demo_view import screen
from actors.sandbox.views import Calls, ChatView, MarkView, MessageView, State, TypingView

ROOT = Path(__file__).resolve().parent.parent


def picture(*, marks: tuple[str, ...] = (), typing: bool = False, text: str = "Which train?") -> Picture:
    views = [MarkView(emoji, "iris", 100) for emoji in marks]
    message = MessageView("1", "maya", text, None, False, 0, views)
    indicator = [TypingView("iris", None, 4_000)] if typing else []
    state = State(5_000, len(views), len(indicator), 1, [ChatView("maya", True, [message], indicator)])
    calls = Calls(7, {"set": {"ok": 3, "rate_limited": 1}, "typing_start": {"ok": 3}}, [])
    return Picture(5_000, state, calls, [Note(1, 400, "iris", "maya", "thinking")], 12, 2)


def drawn(shown: Picture, width: int, height: int) -> list[str]:
    console = Console(width=width, height=height, file=io.StringIO(), force_terminal=True, color_system=None)
    canvas = screen(shown, CHATS, console, 1.0)
    with console.capture() as capture:
        console.print(canvas, end="")
    return [line.rstrip() for line in _without_moves(capture.get()).split("\n")]


def _without_moves(text: str) -> str:
    """The plain text: the cursor is only ever told to go where it should be already."""
    parts = text.split("\x1b[")
    return parts[0] + "".join(part.partition("G")[2] for part in parts[1:])


@pytest.mark.real
def test_the_demo_leaves_nothing_behind() -> None:
    command = [sys.executable, "-W", "error", "-m", "actors", "demo", "--speed", "20", "--json"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    summary = json.loads(result.stdout)
    assert set(summary) == {"events", "calls_made", "calls_saved", "marks_left", "typing_left", "errors"}
    assert summary["marks_left"] == summary["typing_left"] == summary["errors"] == 0
    assert summary["events"] > 60
    assert summary["calls_made"] > 50
    assert summary["calls_saved"] > 0


@pytest.mark.real
def test_without_a_terminal_the_demo_tells_what_people_see() -> None:
    command = [sys.executable, "-m", "actors", "demo", "--speed", "20"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    assert "\x1b" not in result.stdout
    for words in ("iris is typing", "👍 on", "no mark on", "otto: tool Grep", "✗ killed", "is over"):
        assert words in result.stdout


def test_the_script_has_everything_that_is_promised() -> None:
    told = {act.type for scene in SCENES for _, act in scene.steps if hasattr(act, "type")}
    assert {"tool", "tool_end", "compacting", "waiting", "error", "cancelled", "done"} <= told
    assert any(isinstance(act, Vanish) for scene in SCENES for _, act in scene.steps)
    assert {scene.chat.direct for scene in SCENES} == {True, False}


@pytest.mark.parametrize(("width", "height"), [(124, 34), (200, 60), (80, 24), (72, 20)])
def test_the_screen_fits_the_terminal(width: int, height: int) -> None:
    lines = drawn(picture(marks=("🤔",), typing=True), width, height)
    assert len(lines) == height
    text = "\n".join(lines)
    for words in ("maya", "#launch", "leon", "#ops", "Which train?", "🤔", "iris is typing", "thinking", "failed"):
        assert words in text


def test_figures_stand_beside_the_chats_where_there_is_room() -> None:
    wide, narrow = "\n".join(drawn(picture(), 124, 34)), "\n".join(drawn(picture(), 80, 24))
    assert "calls made" in wide
    assert "answered “slow down”" in wide
    assert "calls 7" in narrow
    assert "saved 2" in narrow


def test_a_long_talk_shows_its_end() -> None:
    text = "\n".join(drawn(picture(text="word " * 400 + "end", marks=("👍",)), 80, 24)[:20])
    assert "end" in text
    assert "👍" in text


def test_every_piece_begins_where_its_column_is_whatever_the_emoji_before_it() -> None:
    canvas = Canvas(20, 1)
    canvas.put(0, 0, "👨\u200d💻 x")
    canvas.put(10, 0, "right")
    console = Console(width=20, height=1, file=io.StringIO(), force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(canvas, end="")
    assert "\x1b[11Gright" in capture.get()


def test_plain_lines_tell_each_change_once() -> None:
    plain = PlainLines([MAYA])
    assert [line.split(maxsplit=2)[2] for line in plain.lines(picture(marks=("👀",), typing=True))] == [
        "iris: thinking",
        "maya: Which train?",
        "👀 on “Which train?”",
        "iris is typing",
    ]
    assert list(plain.lines(picture(marks=("👀",), typing=True))) == []
    assert [line.split(maxsplit=2)[2] for line in plain.lines(picture())] == [
        "no mark on “Which train?”",
        "iris has stopped typing",
    ]
