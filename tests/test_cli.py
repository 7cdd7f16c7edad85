"""The command line without a server: help, exit codes, and errors that say what to do next."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from actors.cli import app
from actors.exits import FAILED, OK, UNAVAILABLE, USAGE
from actors.send import checked_event, event_of_line, events_to_send
from protocol.codec import DecodeError
from protocol.events import Done, Thinking

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = ("serve", "demo", "send", "simulate", "version")
SCENARIO: dict[str, Any] = {
    "config": {"accounts": {"a": {"platform": "sandbox"}}},
    "events": [
        [0, {"type": "received", "conversation": "c", "message": "m", "direct": False, "mentioned": True}],
        [2_000, {"type": "done", "conversation": "c", "message": "m"}],
    ],
}


@pytest.fixture(autouse=True)
def log_of_the_client() -> Iterator[None]:
    """As it was: ``send`` has it say nothing for the rest of its process."""
    log = logging.getLogger("livesign.client")
    level = log.level
    yield
    log.setLevel(level)


def run(*args: str, stdin: str | None = None, env: dict[str, str] | None = None) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, args, input=stdin, env=env)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


def process(*args: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own: serving sets up the log of the whole process."""
    command = [sys.executable, "-W", "error", "-m", "actors", *args]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_the_help_names_every_command() -> None:
    code, text, _ = run("--help")
    assert code == OK
    assert all(f"  {command} " in text for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_shows_how_it_is_used_and_how_it_ends(command: str) -> None:
    code, text, _ = run(command, "--help")
    assert code == OK
    assert "xit code" in text
    if command != "version":
        assert "Example" in text
        assert "Exit codes:\n    0 " in text


def test_no_command_at_all_shows_the_help() -> None:
    _, text, errors = run()
    assert "serve" in text + errors


def test_version_names_the_libraries() -> None:
    code, text, _ = run("version")
    assert code == OK
    assert text.startswith("livesign ")
    assert "gevent" in text


def test_an_unknown_command_is_a_usage_error() -> None:
    assert run("sevre")[0] == USAGE


# --- serve -----------------------------------------------------------------------------------------------------------


def test_serve_lists_every_problem_of_its_configuration_and_starts_nothing(tmp_path: Path) -> None:
    config = tmp_path / "livesign.toml"
    config.write_text('[ack]\nscope = "everyone"\n[accounts.a]\nplatform = "sandbox"\ntoken = "hush"\ncolour = "red"\n')
    result = process("serve", str(config))
    assert result.returncode == USAGE
    assert f"{config}:2: ack.scope" in result.stderr
    assert f"{config}:6: accounts.a.colour" in result.stderr
    assert "2 problems in the configuration; nothing was started" in result.stderr
    assert "Traceback" not in result.stderr
    assert "hush" not in result.stderr


def test_serve_says_that_a_file_cannot_be_read(tmp_path: Path) -> None:
    result = process("serve", str(tmp_path / "nowhere.toml"))
    assert result.returncode == USAGE
    assert "cannot be read: No such file" in result.stderr
    assert "Traceback" not in result.stderr


def test_serve_says_that_a_certificate_file_is_none(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    config = tmp_path / "livesign.toml"
    config.write_text(
        '[server]\nunix = "l.sock"\n[accounts.a]\nplatform = "matrix"\ntoken = "t"\n'
        'base_url = "https://localhost:1"\nca_file = "ca.pem"\n'
    )
    result = process("serve", str(config))
    assert result.returncode == USAGE
    assert "accounts.a.ca_file" in result.stderr
    assert "Traceback" not in result.stderr


# --- send ------------------------------------------------------------------------------------------------------------


def test_an_event_that_may_open_a_run_gets_a_lease_and_others_none() -> None:
    opening = checked_event({"type": "thinking", "conversation": "c", "message": "m"}, 600_000)
    assert isinstance(opening, Thinking)
    assert opening.lease_ms == 600_000
    assert checked_event({"type": "done", "conversation": "c", "message": "m"}, 600_000) == Done(
        conversation="c", message="m"
    )


def test_a_lease_that_is_given_or_switched_off_is_left_alone() -> None:
    source = {"type": "thinking", "conversation": "c", "message": "m"}
    own = checked_event({**source, "lease_ms": 5}, 600_000)
    assert isinstance(own, Thinking)
    assert own.lease_ms == 5
    assert checked_event(source, 0) == Thinking(conversation="c", message="m")


@pytest.mark.parametrize("line", ["{", "[]", "3", '{"conversation": "c"}', '{"type": "thinking"}'])
def test_a_line_that_is_no_event_is_refused_with_a_reason(line: str) -> None:
    with pytest.raises(DecodeError):
        event_of_line(line, 0, print)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("thinkng", "-c", "c"), "there is no event 'thinkng'; did you mean thinking?"),
        (("thinking",), "thinking needs conversation\nlivesign: add --conversation"),
        (("received", "-c", "c", "-m", "m"), "add --set direct=VALUE"),
        (("received", "-c", "c", "-m", "m", "-s", "mentionned=true"), "--set mentionned: received has no such field"),
        (("received", "-c", "c", "-m", "m", "-s", "mentionned=true"), "did you mean mentioned?"),
        (("received", "-c", "c", "-m", "m", "-s", "direct=maybe"), "direct: expected true or false, got text"),
        (("hello",), "cannot say hello"),
        (("thinking", "-c", "c", "-m", "m", "--tcp", "h:65536"), "a port of 1 to 65535"),
        (("thinking", "-c", "c", "-m", "m", "--set", "lease"), "--set FIELD=VALUE"),
        (("thinking", "-c", "c", "-m", "m", "--unix", "x", "--tcp", "h:1"), "exclude each other"),
        (("thinking", "-c", "c", "-m", "m", "--tcp", "h"), "HOST:PORT"),
        (("thinking", "-c", "c", "-m", "m", "--tcp", "h:1"), "LIVESIGN_TOKEN"),
        (("-c", "c"), "name its type first"),
    ],
)
def test_send_refuses_what_makes_no_sense_before_it_connects(args: tuple[str, ...], words: str) -> None:
    code, _, errors = run("send", *args, env={"LIVESIGN_TOKEN": ""})
    assert code == USAGE
    assert words in errors


def test_send_says_how_to_go_on_when_nobody_answers(tmp_path: Path) -> None:
    code, _, errors = run("send", "thinking", "-c", "c", "-m", "m", "--unix", str(tmp_path / "no.sock"))
    assert code == UNAVAILABLE
    assert "livesign serve" in errors


def test_lines_are_named_by_their_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        '{"type": "thinking", "conversation": "c", "mesage": "m", "run": "r"}',
        "",
        '{"type": "thinkin", "conversation": "c", "message": "m"}',
        "no json",
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", io.StringIO("\n".join(lines)))
        good, unknown, broken = events_to_send(None, {}, 0)
    assert isinstance(good, Thinking)
    assert "line 1: mesage is ignored: thinking has no such field; did you mean message?" in capsys.readouterr().err
    assert str(unknown) == "unknown_type: line 3: there is no event 'thinkin'; did you mean thinking?"
    assert str(broken).startswith("malformed: line 4: this is no JSON")


# --- simulate --------------------------------------------------------------------------------------------------------


def test_simulate_prints_a_timeline_or_json(tmp_path: Path) -> None:
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps(SCENARIO))
    code, text, _ = run("simulate", str(path))
    assert code == OK
    assert "👀" in text
    code, text, _ = run("simulate", str(path), "--json")
    assert code == OK
    result = json.loads(text)
    assert [call["op"] for call in result["calls"]][:1] == ["set"]
    assert result["violations"] == []


def test_simulate_exits_with_1_where_a_rule_was_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.simulate.violations", lambda *_: ["a mark was left"])
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps(SCENARIO))
    assert run("simulate", str(path))[0] == FAILED


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "JSON"),
        ('{"events": [[0, {}], ["soon", {}]]}', "events[1]"),
        ('{"config": {"ack": {"scope": "x"}}}', "ack.scope"),
        ('{"event": []}', "event: a scenario has no such key; did you mean events?"),
        (
            '{"platform": {"rules": [{"opp": "set"}]}}',
            "platform.rules[0]: Object contains unknown field `opp`; did you",
        ),
        (
            '{"platform": {"rules": [{"op": "sett"}]}}',
            "platform.rules[0].op: Invalid enum value 'sett'; did you mean set?",
        ),
        ('{"platform": {"rules": [{"limit": {"cont": 1}}]}}', "did you mean count?"),
    ],
)
def test_simulate_names_the_place_that_does_not_fit(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "scenario.json"
    path.write_text(text)
    code, _, errors = run("simulate", str(path))
    assert code == USAGE
    assert words in errors
    assert str(path) in errors


def test_simulate_says_that_a_file_cannot_be_read(tmp_path: Path) -> None:
    code, _, errors = run("simulate", str(tmp_path / "nowhere.json"))
    assert code == USAGE
    assert "nowhere.json" in errors


def test_simulate_warns_of_what_a_server_would_ignore_or_refuse(tmp_path: Path) -> None:
    names = {"conversation": "c", "message": "m{n}"}
    events = [
        [0, {"type": "@repeat", "count": 3, "every_ms": 1, "events": [{"type": "thinking", "visble": True, **names}]}],
        [5, {"type": "thinkin", **names}],
    ]
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps({"events": events}))
    code, _, errors = run("simulate", str(path))
    assert code == OK
    assert errors.splitlines() == [
        "livesign: events[0][1].events[0][1].visble: is ignored: thinking has no such field; known are account, "
        "conversation, id, lease_ms, message, run, thread",
        "livesign: events[1][1]: is rejected: there is no event 'thinkin'; did you mean thinking?",
    ]


def test_simulate_tells_what_the_configuration_was_warned_of(tmp_path: Path) -> None:
    config = {"accounts": {"a": {"platform": "telegram"}}, "status": {"emoji": {"done": "✅"}}}
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps({"config": config}), "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "actors", "simulate", str(path)], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0
    assert "✅" in done.stderr
