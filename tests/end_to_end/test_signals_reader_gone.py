"""Whoever reads the output goes away, and signals to commands that end by themselves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.processes import ROOT, ChatService, RawClient, chat_service, eventually
from tests.end_to_end.signal_stage import Stage

pytestmark = [pytest.mark.real, pytest.mark.slow]

COMMAND = [sys.executable, "-m", "actors"]


@pytest.fixture
def service() -> Iterator[ChatService]:
    with chat_service() as running:
        yield running


def start(*args: str, **more: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*COMMAND, *args], cwd=ROOT, stdin=subprocess.DEVNULL, **more)  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize("closed", ["from the start", "after the ready line"])
def test_a_server_whose_log_nobody_reads_serves_and_ends_cleanly(
    tmp_path: Path, service: ChatService, closed: str
) -> None:
    stage = Stage(tmp_path, service)
    reads, writes = os.pipe()
    process = start("serve", str(stage.config), stdout=writes, stderr=writes)
    os.close(writes)
    if closed == "after the ready line":
        heard = b""
        while b"ready" not in heard:
            heard += os.read(reads, 4_096)
    os.close(reads)
    try:
        eventually(stage.socket.exists, "it listens")
        with RawClient(stage.socket) as client:
            stage.open(client, 3)
            process.send_signal(signal.SIGHUP)
            client.send(type="nonsense")
            assert client.receive()["code"] == "unknown_type"
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()
    assert not stage.shown()


def test_a_server_without_standard_streams_serves_and_ends_cleanly(tmp_path: Path, service: ChatService) -> None:
    stage = Stage(tmp_path, service)
    line = " ".join([*COMMAND, "serve", str(stage.config), ">&-", "2>&-", "<&-"])
    process = subprocess.Popen(["sh", "-c", f"exec {line}"], cwd=ROOT)
    try:
        eventually(stage.socket.exists, "it listens")
        with RawClient(stage.socket) as client:
            stage.open(client, 3)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()
    assert not stage.shown()


@pytest.mark.parametrize(
    "args", [("simulate",), ("simulate", "--json"), ("demo", "--plain"), ("demo", "--json"), ("--help",)]
)
def test_a_command_whose_reader_has_gone_ends_without_a_word(tmp_path: Path, args: tuple[str, ...]) -> None:
    scenario = tmp_path / "scenario.json"
    scenario.write_text(json.dumps({"events": [[0, {"type": "thinking", "conversation": "c", "message": "m"}]]}))
    more = (str(scenario),) if args[0] == "simulate" else ("--speed", "50") if args[0] == "demo" else ()
    reads, writes = os.pipe()
    os.close(reads)
    process = start(*args, *more, stdout=writes, stderr=subprocess.PIPE)
    os.close(writes)
    assert process.stderr is not None
    with process.stderr as stream:
        assert stream.read() == b""
    assert process.wait(20) in (0, 1)


def test_output_on_a_full_disk_is_one_line_of_error() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "version"], cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr == "livesign: cannot write: No space left on device\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_demo_quietly_and_leaves_no_file(tmp_path: Path, number: signal.Signals) -> None:
    env = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    process = start("demo", "--plain", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env)
    assert process.stdout is not None
    with process.stdout as stream:
        stream.readline()
        assert len(list(tmp_path.iterdir())) == 1
        process.send_signal(number)
        text = stream.read().decode()
    assert process.wait(10) == 128 + number
    assert "Traceback" not in text
    assert "KeyboardInterrupt" not in text
    assert not list(tmp_path.iterdir())


def test_the_demo_told_twice_does_not_wait(tmp_path: Path) -> None:
    env = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    process = start("demo", "--plain", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env)
    assert process.stdout is not None
    with process.stdout as stream:
        stream.readline()
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert b"Traceback" not in stream.read()
    assert process.wait(10) == 130
    assert time.monotonic() - began < 5
    assert not list(tmp_path.iterdir())
