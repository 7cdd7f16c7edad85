"""``python -m actors.sandbox`` as a process of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from actors.sandbox import SandboxClient
from actors.sandbox.__main__ import main

pytestmark = pytest.mark.real


def test_it_says_where_it_is_does_as_told_and_stops_on_a_signal(tmp_path: Path) -> None:
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"rules": [{"op": "set", "nth": [0], "outcome": "transient"}]}))
    command = [
        sys.executable,
        "-m",
        "actors.sandbox",
        "--port",
        "0",
        "--reactions",
        "add_remove",
        "--rules",
        str(rules),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            line = process.stdout.readline()
            assert line.startswith("sandbox: http://127.0.0.1:")
            client = SandboxClient(line.removeprefix("sandbox: ").strip().rstrip("/"))
            client.post("c", "hello")
            assert client.state().chat_count == 1
            client.close()
        finally:
            process.send_signal(signal.SIGTERM)
            code = process.wait(10)
        assert (code, process.stderr.read()) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--account", "nobody"], "--account must be NAME=TOKEN"),
        (["--typing-lifetime-ms", "0", "--no-typing-stop"], "typing_stop must be true"),
        (["--speed", "0"], "time_scale"),
        (["--rules", "/does/not/exist"], "No such file"),
    ],
)
def test_wrong_arguments_end_it_with_two_and_a_reason(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--port", "0", *arguments]) == 2
    assert told in capsys.readouterr().err


def test_a_rules_file_that_does_not_fit_names_the_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "rules.json"
    rules.write_text('{"rules": [{"outcome": "broken"}]}')
    assert main(["--port", "0", "--rules", str(rules)]) == 2
    assert "$.rules[0].outcome" in capsys.readouterr().err


def test_an_address_that_is_taken_ends_it_with_one(capsys: pytest.CaptureFixture[str]) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["--port", str(port)]) == 1
        assert f"port {port}" in capsys.readouterr().err
