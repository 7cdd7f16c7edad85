"""Each example is run as its docstring says, and shows what it promises."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import re
import shlex
from pathlib import Path

import pytest

from tests.end_to_end.processes import ROOT, ChatService, Process, eventually

pytestmark = pytest.mark.real

EXAMPLES = ROOT / "examples"
MOST_LINES = 60
SDK = {
    "python_telegram_bot": ("telegram", "marks: 👀 🤔 ⚡ 👍; typing: True; answer: 42"),
    "aiogram_bot": ("aiogram", "marks: 👀 👍; typing: True; answer: 42"),
    "discord_bot": ("discord", "marks: 👀 🤔 👨‍💻 👍; typing: True; answer: 42"),
    "slack_bot": ("slack_sdk", "marks: eyes +1; typing: True; answer: 42"),
    "matrix_bot": ("nio", "marks: 👀 👍️; typing: True; answer: 42"),
}
"""What has to be installed, and what a person saw."""


def command(name: str) -> list[str]:
    """The last command of the docstring that needs no account."""
    text = ast.get_docstring(ast.parse((EXAMPLES / f"{name}.py").read_text("utf-8")), clean=False) or ""
    lines = [line.strip() for line in text.splitlines() if re.match(r" *python (-m|examples/)", line)]
    return shlex.split(lines[-1])[1:]


def run(name: str, tmp_path: Path) -> Process:
    return Process(*command(name), env={"PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(tmp_path)})


def needs(*modules: str) -> None:
    for module in modules:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is in the extra sdk")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_is_short(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) < MOST_LINES


@pytest.mark.parametrize("name", SDK)
def test_a_bot_on_an_official_client(name: str, tmp_path: Path) -> None:
    module, seen = SDK[name]
    needs(module, "aiohttp")
    process = run(name, tmp_path)
    try:
        assert process.exit_code() == 0, process.text
        told, wanted = (line.removeprefix("marks: ").split("; ", 1) for line in (process.text.splitlines()[-1], seen))
        marks, most = told[0].split(), wanted[0].split()
        assert told[1:] == wanted[1:]
        assert (marks[0], marks[-1]) == (most[0], most[-1])
        # On a busy machine a phase may be over before its call: what is superseded is not sent.
        assert marks == [mark for mark in most if mark in marks]
        assert "Traceback" not in process.text
    finally:
        process.close()


def test_a_bot_with_plain_threads(tmp_path: Path) -> None:
    process = run("threaded_bot", tmp_path)
    chat = ChatService(process.line_with("watch it at").split()[-1])
    eventually(lambda: set(chat.marks()) >= {"⚡"}, "tools show")
    assert process.exit_code() == 0
    assert process.text.count("answered: 42") == 4
    assert "failed: broken?" in process.text
    assert process.text.endswith("5 runs\n")
    process.close()


def test_a_bot_on_gevent(tmp_path: Path) -> None:
    process = run("gevent_bot", tmp_path)
    assert process.exit_code() == 0
    assert [line.strip() for line in process.lines[1:]] == [f"chat {n}: done 👍" for n in range(3)]
    process.close()


@pytest.mark.parametrize(
    ("name", "module", "marks"),
    [("openai_tool_loop", "json", "👀 🤔 ⚡ 🤔 👨‍💻 🤔 👍"), ("langgraph_agent", "langgraph", "👀 🤔 ⚡ 🤔 👍")],
)
def test_the_tools_of_an_agent_become_marks(name: str, module: str, marks: str, tmp_path: Path) -> None:
    needs(module)
    process = run(name, tmp_path)
    chat = ChatService(process.line_with("watch it at").split()[-1])
    calls: list[dict[str, str]] = []
    with contextlib.suppress(OSError):  # the chat service ends with the example
        while process.runs:
            calls = chat.get("/v1/calls?last=100")["last"]
    assert " ".join(call["emoji"] for call in calls if call["op"] == "set") == marks
    assert process.exit_code() == 0
    assert process.text.endswith("shown at the end: 👍\n")
    process.close()
